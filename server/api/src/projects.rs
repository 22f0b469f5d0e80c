//! Documents about projects.

use serde::{Deserialize, Serialize};

use crate::{Moment, ProjectName, Role, Title};

/// A project as it is shown to a member of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectShown {
    /// Its name in addresses.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// When it was made.
    pub created_at: Moment,
    /// One's own role.
    pub role: Role,
}

/// A new project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Its name in addresses.
    pub name: ProjectName,
    /// Its name for people.
    pub title: Title,
}

/// What is to change about a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    /// Another name for people.
    pub title: Title,
}

/// Somebody's role in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Membership {
    /// Name of the member.
    pub member: String,
    /// Their role.
    pub role: Role,
}

/// A role that somebody is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRole {
    /// The role.
    pub role: Role,
}

/// The path of a project's archive.
pub fn export_path(project: &str) -> String {
    crate::paths::of_project(project, "/export")
}

/// The path to which an archive is sent; the project gets the name that it had unless another is given.
pub fn import_path(name: Option<&str>) -> String {
    let name = name.map(|name| format!("?name={}", crate::paths::part(name)));
    format!("/api/projects/import{}", name.unwrap_or_default())
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EntryShown {
    /// Counts up; at most 0 where another server wrote the line.
    pub id: i64,
    /// Whether another server wrote it, from which the project was imported: this one knows nothing of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// When it was done.
    pub at: Moment,
    /// Name of the member, with that of the token if a program did it.
    pub actor: String,
    /// From where; empty for a program on the server's machine.
    pub address: String,
    /// What, such as `project.create`.
    pub action: String,
    /// To whom or what.
    pub subject: String,
}
