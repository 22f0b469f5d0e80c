//! Trainings of the learned rewriter: what a project has, one of them as it goes on, and a new one.

mod checkpoints;
mod facts;
mod following;
mod new;
mod of_project;
mod orders;
mod page;
mod words;

pub use new::NewTrainingPage;
pub(super) use of_project::{TrainingsOf, trains};
pub use page::TrainingPage;

/// The address of a training.
fn address(project: &str, training: &str) -> String {
    format!("/team/projects/{project}/trainings/{training}")
}

/// The address of the page that starts one.
fn new_address(project: &str) -> String {
    format!("/team/projects/{project}/train")
}
