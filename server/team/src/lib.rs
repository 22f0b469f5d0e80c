//! The team server: accounts, projects and what they share, over HTTP.
//!
//! [`Store`] keeps everything in SQLite or PostgreSQL; [`router`] serves it; [`Server`] is both with a clock. Nothing here
//! opens a socket.

mod http;
pub mod password;
pub mod seal;
pub mod secret;
pub mod store;
mod study;
mod telemetry;
mod worker;

pub use http::{Page, PageError, Server, SetUp, Settings, openapi, router};
pub use store::{Store, StoreError};
pub use telemetry::Metrics;
pub use worker::{WorkerSettings, work};
