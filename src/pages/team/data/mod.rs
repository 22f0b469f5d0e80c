//! Data sets: uploaded, looked at, and taken into new studies.

mod of_project;
mod page;
mod upload;

pub(super) use of_project::DataOf;
pub use page::DataSetPage;
