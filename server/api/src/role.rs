//! Roles of members and scopes of tokens: who may do what.

use serde::{Deserialize, Serialize};

/// What a member may do in a project; a later one may do all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Starts and steers runs, uploads data, writes prompts.
    Editor,
    /// Decides about members, keys and the project itself.
    Admin,
}

/// What a personal token may be used for; a later one for all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Requests that change nothing.
    Read,
    /// All that its owner may do but what concerns accounts: members, invitations, passwords, tokens and sessions.
    Write,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Editor, Self::Admin];

    /// As it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }
}

impl Scope {
    /// All of them, the least first.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// As it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A word that is none of those that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {0:?}")]
pub struct UnknownWord(String);

impl std::str::FromStr for Role {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl std::str::FromStr for Scope {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == word);
        found.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}
