//! The playground: the whole search in a browser tab.
//!
//! One WebAssembly module serves two places. On the page it shows: pages compose components and
//! charts, and everything they show is read off the fold over a run's journal. In a worker it
//! runs: a study becomes a search over a journal that lies in IndexedDB, and each line of it goes
//! to the page.

pub mod charts;
pub mod components;
pub mod diff;
pub mod format;
pub mod run;

/// Starts the page, or the worker when this module was loaded by one.
pub fn start() {}
