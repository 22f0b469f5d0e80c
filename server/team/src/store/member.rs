//! A member of the team.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Millis, StoreError, flag};

/// Somebody with an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// 32 hexadecimal digits.
    pub id: String,
    /// What they sign in with.
    pub name: String,
    /// Whether they administer the server: all projects, members and keys.
    pub is_admin: bool,
    /// Since when they are here.
    pub created_at: Millis,
    /// Since when they may not sign in.
    pub disabled_at: Option<Millis>,
    /// Whether they have a password: who came by an identity has none.
    pub has_password: bool,
}

impl Member {
    pub(super) fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            is_admin: flag(row, "is_admin")?,
            created_at: row.try_get("created_at")?,
            disabled_at: row.try_get("disabled_at")?,
            has_password: row.try_get::<Option<String>, _>("password")?.is_some(),
        })
    }
}
