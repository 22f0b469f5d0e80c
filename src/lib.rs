//! The playground: the whole search in a browser tab.
//!
//! One WebAssembly module serves two places. On the page it shows: pages compose components and
//! charts, and everything they show is read off the fold over a run's journal. In a worker it
//! runs: a study becomes a search over a journal that lies in IndexedDB, and each line of it goes
//! to the page.

#![expect(
    unreachable_pub,
    reason = "`#[component]` makes what it generates as public as the component"
)]

pub mod charts;
pub mod components;
pub mod diff;
pub mod download;
pub mod format;
pub mod frame;
pub mod keys;
pub mod live;
pub mod pages;
pub mod run;
pub mod servers;
pub mod storage;
pub mod studies;
pub mod vault;
pub mod worker;

/// Starts the page, or the worker when this module was loaded by one.
pub fn start() {
    console_error_panic_hook::set_once();
    match worker::scope() {
        Some(scope) => worker::start(&scope),
        None => frame::start(),
    }
}
