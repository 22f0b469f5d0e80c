//! The frame around all pages.

mod app;
mod broken;
mod drop_target;
mod foot;
pub mod handover;
pub mod imports;
pub mod keys;
pub mod shortcuts;
mod surroundings;
pub mod theme;
mod top;

pub use app::{App, start};
