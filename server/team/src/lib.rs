//! The team server: accounts, projects and what they share, over HTTP.
//!
//! [`Store`] keeps everything in SQLite or PostgreSQL; [`router`] serves it; [`Server`] is both with a clock. Nothing here
//! opens a socket.

mod archive;
mod files;
#[cfg(test)]
mod fixture;
mod http;
mod oidc;
pub mod password;
mod places;
pub mod seal;
pub mod secret;
pub mod shared_keys;
pub mod spans;
pub mod store;
mod telemetry;
pub mod trainings;
mod worker;

pub use capo_gateway::{DEFAULT_RATE, network};
pub use files::{Files, FilesError};
pub use http::{Page, PageError, Server, SetUp, Settings, openapi, router};
pub use oidc::OidcSettings;
pub use places::{Place, Places};
pub use store::{Store, StoreError};
pub use telemetry::Metrics;
pub use trainings::work::train;
pub use worker::{WorkerSettings, work};
