//! The playground: the whole search in a browser tab.
//!
//! Two WebAssembly modules come of it. The page shows: pages compose components and charts, and
//! everything they show is read off the fold over a run's journal. The worker runs: a study becomes
//! a search over a journal that lies in IndexedDB, and each line of it goes to the page. What only
//! the worker calls (workloads, providers, methods) is not in the page's module, which is therefore
//! loaded sooner.

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
pub mod gzip;
pub mod keys;
pub mod live;
pub mod pages;
pub mod run;
pub mod run_link;
pub mod schemas;
pub mod servers;
pub mod shared_keys;
pub mod storage;
pub mod studies;
pub mod team;
pub mod vault;
pub mod worker;

/// Starts the page.
pub fn start() {
    frame::start();
}
