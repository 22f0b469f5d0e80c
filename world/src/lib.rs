//! The simulated world: a help desk with its customers, and models that live in it.
//!
//! It exists so that anybody can see a method work without a key, so that tests are whole runs, and so that a
//! rewriter can be trained without downloaded weights. [`desk`] is the workload `kind = "desk"`, which serves
//! real models as well; [`simulated`] holds the models of `provider = "simulated"`. `docs/simulated-world.md`
//! says what they read, how they act and what they are not.

pub mod desk;
pub mod simulated;
mod tool_names;
