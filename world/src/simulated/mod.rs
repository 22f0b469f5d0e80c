//! The simulated models: an honest, documented, stochastic world behind [`capo_core::llm::Llm`].
//!
//! Text in, text out, no back channel: a simulated model sees the messages and tools of a request
//! and its own name and seed, nothing else; only where the workload has a script for its agent, as for the tau2
//! domains ([`SolutionScript`]), that decides what the agent does, as far as its prompt makes it. It reads the
//! system prompt ([`profile`]), acts as what the request asks it to be (agent, critic, rewriter, judge, customer,
//! …), and its answers are a pure function of model, seed, request and script. `docs/simulated-world.md` says what it reads, how it
//! acts and how large each effect is.

mod agent;
mod answer_form;
mod asking;
pub mod critic;
mod draft;
mod fingerprint;
mod judge;
mod labels;
mod memory;
mod metric_concerns;
mod model;
pub mod parameters;
mod phrases;
pub mod profile;
mod quoted;
mod random;
mod request;
mod review;
pub mod rewriter;
mod router;
mod tau2_customer;
#[cfg(test)]
mod tests;
mod text;
mod trace_reading;
mod user;
mod vary;
mod vectors;

pub use agent::{KnownBehaviours, SolutionScript};
pub use model::{Simulated, UnknownModel};
