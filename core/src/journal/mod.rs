//! The journal: append-only JSON Lines, one [`Event`] a line.
//!
//! It is the cache, the history, the audit log, the file a person shares, and what every screen
//! shows. [`JournalStore`] is where the lines lie; [`Journal`] writes events to a store and keeps
//! the one fold over them, [`RunState`](run_state::RunState), up to date.

mod branch;
mod difference;
mod event;
#[cfg(not(target_arch = "wasm32"))]
mod file;
mod identity;
mod memory;
mod numbers;
mod reader;
mod report;
mod reuse;
pub mod run_state;
mod slim;
mod store;
mod writer;

pub use branch::branch;
pub(crate) use difference::difference;
pub use event::*;
#[cfg(not(target_arch = "wasm32"))]
pub use file::{FileJournal, Fsync};
pub use memory::MemoryJournal;
pub(crate) use numbers::not_finite;
pub use reader::{JournalError, parse_line};
pub use report::in_report;
pub use reuse::EarlierRuns;
pub(crate) use reuse::InputsByExample;
pub use slim::{slim, without_conversations};
pub use store::{JournalStore, LineId, StoreError};
pub use writer::{Journal, Observer};

/// Version of the lines' schema written by this build.
pub const SCHEMA: u32 = 1;
