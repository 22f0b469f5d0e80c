//! Runs that somebody hosts for a team, on the team server or at the edge: which studies can be run there, on which keys, and
//! what people may change while they run.

mod moment;
mod steering;
mod study;
mod waiting;
mod waits;

pub use moment::millis;
pub use steering::{by_hand, steering};
pub use study::{Prepared, SharedKeys, check_size, trained};
pub use waiting::Waiting;
pub use waits::{Waits, left, waits};

/// Runs of one member at a time, unless an operator says otherwise.
pub const RUNS_OF_MEMBER: u32 = 8;
