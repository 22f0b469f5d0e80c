//! Runs on a team server, as programs use them: the server behind its address, what a study is sent with, and the lines of
//! a run as they come.

mod events;
mod fold;
mod sending;
mod server;

pub use events::{Events, ServerEvent};
pub use fold::Fold;
pub use sending::StudyBundle;
pub use server::{AccessError, Server};
