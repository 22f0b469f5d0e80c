//! The frame around all pages.

mod app;
pub mod keys;
pub mod theme;
mod top;

pub use app::{App, start};
