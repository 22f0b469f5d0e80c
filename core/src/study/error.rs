//! Errors: what is wrong with a study.

use std::fmt;

/// What is wrong with a study, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The text is not a study.
    #[error("{0}")]
    Syntax(String),
    /// A key holds something impossible.
    #[error("`{key}`: {problem}")]
    Invalid {
        /// Dotted path of the key.
        key: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

impl StudyError {
    /// An impossible value.
    pub fn invalid(key: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self::Invalid {
            key: key.into(),
            problem: problem.to_string(),
        }
    }
}
