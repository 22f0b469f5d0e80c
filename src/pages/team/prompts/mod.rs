//! Prompts for programs: their versions with what speaks for them, and the labels that people move between these.

mod add;
mod against;
mod evidence;
mod fetching;
mod from_run;
mod history;
mod labels;
mod move_dialog;
mod of_project;
mod page;
mod place;
mod version;
mod versions;

pub use from_run::AddToPrompts;
pub(super) use of_project::PromptsOf;
pub use page::PromptPage;
