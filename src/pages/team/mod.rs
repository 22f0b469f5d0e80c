//! What a team server has people decide: who they are, who may do what, and what was done.

mod account;
mod audit;
mod certificates;
mod data;
mod doors;
mod form;
mod guard;
mod invitations;
mod issuer;
mod keys;
mod list;
mod once;
mod project;
mod project_bar;
mod projects;
mod prompts;
mod removal;
mod server;
mod sign_in;
mod trainings;

pub use account::AccountPage;
pub use data::DataSetPage;
pub use doors::{InvitationPage, SetUpPage, SignInPage};
pub use issuer::ReturnPage;
pub use project::ProjectPage;
pub use projects::ProjectsPage;
pub use prompts::{AddToPrompts, PromptPage};
pub use server::ServerPage;
pub use trainings::{NewTrainingPage, TrainingPage};
