//! The simulated models: an honest, documented, stochastic world behind [`capo_core::llm::Llm`].
//!
//! Text in, text out, no back channel: see `docs/simulated-world.md` for what they read, how they
//! act and how large each effect is.

mod association;
mod conduct;
pub mod critic;
mod judge;
pub mod rewriter;
mod vary;
mod bank;
mod draft;
mod luck;
pub mod parameters;
pub mod profile;
mod review;
mod text;
