//! The frame around all pages.

mod about;
mod address;
mod app;
mod broken;
mod connectivity;
pub mod drop_target;
pub mod focus;
mod foot;
pub mod handover;
pub mod imports;
pub mod keys;
mod keys_dialog;
mod passphrase;
pub mod remember;
pub mod shortcuts;
pub mod table_keys;
pub mod theme;
mod top;

pub use app::{App, start};
