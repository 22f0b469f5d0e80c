//! The simulated models: an honest, documented, stochastic world behind [`capo_core::llm::Llm`].
//!
//! Text in, text out, no back channel: see `docs/simulated-world.md` for what they read, how they
//! act and how large each effect is.

mod luck;
pub mod profile;
mod text;
