//! Why the models of a study cannot be built.

use capo_core::llm::Role;

/// Why the models of a study cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A table does not read, or asks for something impossible.
    #[error("models.{role}: {message}")]
    Spec {
        /// Whose table.
        role: Role,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The key is missing.
    #[error(
        "models.{role}: provider `{provider}` needs a key: set {variable}, or name another variable with `api_key_env`"
    )]
    MissingKey {
        /// Whose table.
        role: Role,
        /// Who wants the key.
        provider: &'static str,
        /// The variable looked in.
        variable: String,
    },
    /// Neither the role nor those it falls back to have a model.
    #[error("no model for the role `{role}`: add a table [models.{role}]")]
    NoModel {
        /// The role.
        role: Role,
    },
    /// This machine does not run the model.
    #[error("models.{role}: {message}")]
    Device {
        /// Whose table.
        role: Role,
        /// What is missing, and what to do.
        message: String,
    },
    /// The HTTP client could not start.
    #[error("the HTTP client does not start: {0}")]
    Http(String),
}
