//! The two sides of a conversation.

use serde::{Deserialize, Serialize};

/// Who calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The agent.
    Assistant,
    /// The user.
    User,
}

impl Side {
    /// The side it talks to.
    pub fn other(self) -> Self {
        match self {
            Self::Assistant => Self::User,
            Self::User => Self::Assistant,
        }
    }
}
