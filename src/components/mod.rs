//! What pages are composed of.

mod branch_dialog;
mod choose;
mod deferred;
mod frame_queue;
mod marks;
mod message;
mod page_title;
mod raise_dialog;
mod removal;
mod run_head;
mod run_keys;
mod run_nav;
mod run_notices;
mod run_route;
mod run_tag;
mod window;
mod words;

pub use branch_dialog::BranchDialog;
pub use choose::Choose;
pub use deferred::Deferred;
pub use frame_queue::in_turn;
pub use marks::{Gate, HeldOutGate};
pub use message::Message;
pub use page_title::page_title;
pub use raise_dialog::RaiseDialog;
pub use removal::removing;
pub use run_head::RunHead;
pub use run_keys::{KeyField, RunKeys};
pub use run_nav::RunNav;
pub use run_notices::RunNotices;
pub use run_route::{use_begin, use_run, with_run};
pub use run_tag::RunTag;
pub use window::{Spacer, Window};
pub use words::Words;
