//! What a team server has people decide: who they are, who may do what, and what was done.

mod account;
mod audit;
mod doors;
mod form;
mod guard;
mod invitations;
mod keys;
mod list;
mod once;
mod project;
mod projects;
mod prompts;
mod removal;
mod server;
mod sign_in;

pub use account::AccountPage;
pub use doors::{InvitationPage, SetUpPage, SignInPage};
pub use project::ProjectPage;
pub use projects::ProjectsPage;
pub use prompts::{AddToPrompts, PromptPage};
pub use server::ServerPage;
