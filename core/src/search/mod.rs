//! The search: what it costs money through, the dual steps, the methods, a whole run, and a journal checked by it.

pub mod arena;
pub mod certify;
pub mod control;
pub mod dual;
pub mod evaluate;
pub mod evidence;
mod finalists;
pub mod methods;
mod optimize;
mod pilot;
pub mod problem;
pub mod starts;
mod study;
pub mod templates;
mod verify;

pub use optimize::{Outcome, RunError, optimize};
pub use pilot::{Piloted, pilot};
pub use verify::{Difference, Verified, verify};
