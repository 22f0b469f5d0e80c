//! Signed-in browsers.

use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};

use super::{Actor, Member, Millis, Store, StoreError, audit};
use crate::secret::{self, Secret};

/// How long a session lasts from when it was last used.
const IDLE: Millis = 14 * DAY;

/// How long it lasts at most.
const MOST: Millis = 90 * DAY;

/// When a session or a token was used is written no more often than this.
pub(super) const TOUCH: Millis = 60_000;

const DAY: Millis = 24 * 60 * 60 * 1000;

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// When it began.
    pub created_at: Millis,
    /// When it was last used, to the minute.
    pub seen_at: Millis,
    /// Until when, unless it is used before.
    pub expires_at: Millis,
    /// Where it was signed in from.
    pub address: String,
    /// What the browser calls itself, shortened.
    pub browser: String,
}

impl Session {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            created_at: row.try_get("created_at")?,
            seen_at: row.try_get("seen_at")?,
            expires_at: row.try_get("expires_at")?,
            address: row.try_get("address")?,
            browser: row.try_get("browser")?,
        })
    }
}

/// Ends all sessions of a member but one, within a transaction.
pub(super) async fn end_others(
    transaction: &mut Transaction<'_, Any>,
    member: &Member,
    keep: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM sessions WHERE member = $1 AND id <> $2")
        .bind(&member.id)
        .bind(keep.unwrap_or_default())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl Store {
    /// Signs a browser in.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sign_in(
        &self,
        actor: &Actor,
        member: &Member,
        secret: &Secret,
        browser: &str,
    ) -> Result<Session, StoreError> {
        let session = Session {
            id: secret::id(),
            created_at: actor.at,
            seen_at: actor.at,
            expires_at: actor.at + IDLE,
            address: actor.address.clone(),
            browser: browser.chars().take(200).collect(),
        };
        let mut transaction = self.begin().await?;
        // What has expired is not kept.
        for (statement, before) in [
            ("DELETE FROM sessions WHERE expires_at <= $1", actor.at),
            ("DELETE FROM attempts WHERE last_at <= $1", actor.at - DAY),
        ] {
            sqlx::query(statement)
                .bind(before)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query(
            "INSERT INTO sessions (id, secret, member, created_at, seen_at, expires_at, address, browser) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&session.id)
        .bind(secret.hash())
        .bind(&member.id)
        .bind(session.created_at)
        .bind(session.seen_at)
        .bind(session.expires_at)
        .bind(&session.address)
        .bind(&session.browser)
        .execute(&mut *transaction)
        .await?;
        audit::write(&mut transaction, actor, "session.create", &member.name, None).await?;
        transaction.commit().await?;
        Ok(session)
    }

    /// The session and its member of a secret, if it is valid now; notes that it was used.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session(
        &self,
        secret: &Secret,
        now: Millis,
    ) -> Result<Option<(Session, Member)>, StoreError> {
        let row = sqlx::query("SELECT * FROM sessions WHERE secret = $1 AND expires_at > $2")
            .bind(secret.hash())
            .bind(now)
            .fetch_optional(&self.read)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let session = Session::of(&row)?;
        let member: String = row.try_get("member")?;
        let row = sqlx::query("SELECT * FROM members WHERE id = $1 AND disabled_at IS NULL")
            .bind(member)
            .fetch_optional(&self.read)
            .await?;
        let Some(row) = row else { return Ok(None) };
        self.touch_session(&session.id, session.created_at, Some(session.seen_at), now)
            .await;
        Ok(Some((session, Member::of(&row)?)))
    }

    /// Notes that a session of such an age is used, unless that was noted lately: it lasts for longer by that.
    pub(super) async fn touch_session(&self, id: &str, created: Millis, seen: Option<Millis>, now: Millis) {
        if seen.is_none_or(|seen| now - seen >= TOUCH) {
            let touched = sqlx::query("UPDATE sessions SET seen_at = $1, expires_at = $2 WHERE id = $3")
                .bind(now)
                .bind((now + IDLE).min(created + MOST))
                .bind(id)
                .execute(&self.write)
                .await;
            super::unless_written(touched);
        }
    }

    /// The sessions of a member that are valid now, the last used first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sessions(&self, member: &Member, now: Millis) -> Result<Vec<Session>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM sessions WHERE member = $1 AND expires_at > $2 ORDER BY seen_at DESC, id",
        )
        .bind(&member.id)
        .bind(now)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(Session::of).collect()
    }

    /// Ends a session of a member.
    ///
    /// # Errors
    /// When the member has none of this id, or the database fails.
    pub async fn end_session(&self, actor: &Actor, member: &Member, id: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let ended = sqlx::query("DELETE FROM sessions WHERE id = $1 AND member = $2")
            .bind(id)
            .bind(&member.id)
            .execute(&mut *transaction)
            .await?;
        if ended.rows_affected() == 0 {
            return Err(StoreError::Missing("session"));
        }
        audit::write(&mut transaction, actor, "session.end", &member.name, None).await?;
        Ok(transaction.commit().await?)
    }
}
