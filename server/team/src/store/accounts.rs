//! Accounts of members: how they get in, and who of them administers the server.

use sqlx::{Any, Row, Transaction};

use super::sessions::end_others;
use super::{Actor, Member, Millis, SignsInBy, Store, StoreError, audit, identities, present, taken};
use crate::secret;

/// Waits for every other transaction that decides who administers the server.
async fn lock(transaction: &mut Transaction<'_, Any>) -> Result<(), StoreError> {
    sqlx::query("UPDATE locks SET name = name WHERE name = 'members'")
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Adds a member within a transaction.
pub(super) async fn add(
    transaction: &mut Transaction<'_, Any>,
    name: &str,
    by: SignsInBy<'_>,
    is_admin: bool,
    at: Millis,
) -> Result<Member, StoreError> {
    let password = match by {
        SignsInBy::Password(password) => Some(password),
        SignsInBy::Identity(_) => None,
    };
    let member = Member {
        id: secret::id(),
        name: name.to_owned(),
        is_admin,
        created_at: at,
        disabled_at: None,
        has_password: password.is_some(),
    };
    sqlx::query("INSERT INTO members (id, name, password, is_admin, created_at) VALUES ($1, $2, $3, $4, $5)")
        .bind(&member.id)
        .bind(name)
        .bind(password)
        .bind(i64::from(is_admin))
        .bind(at)
        .execute(&mut **transaction)
        .await
        .map_err(taken("member"))?;
    if let SignsInBy::Identity(identity) = by {
        identities::add(transaction, &member.id, identity, at).await?;
    }
    Ok(member)
}

impl Store {
    /// Whether anybody has an account.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_set_up(&self) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT id FROM members LIMIT 1")
            .fetch_optional(&self.read)
            .await?;
        Ok(row.is_some())
    }

    /// Adds a member.
    ///
    /// # Errors
    /// When the name or the identity is taken, or the database fails.
    pub async fn add_member(
        &self,
        actor: &Actor,
        name: &str,
        by: impl Into<SignsInBy<'_>>,
        is_admin: bool,
    ) -> Result<Member, StoreError> {
        let mut transaction = self.begin().await?;
        let member = add(&mut transaction, name, by.into(), is_admin, actor.at).await?;
        audit::write(&mut transaction, actor, "member.create", name, None).await?;
        transaction.commit().await?;
        Ok(member)
    }

    /// Adds the first member, who administers the server.
    ///
    /// # Errors
    /// When somebody was faster, or the database fails.
    pub async fn set_up(&self, actor: &Actor, name: &str, password: &str) -> Result<Member, StoreError> {
        let mut transaction = self.begin().await?;
        lock(&mut transaction).await?;
        let somebody = sqlx::query("SELECT id FROM members LIMIT 1")
            .fetch_optional(&mut *transaction)
            .await?;
        if somebody.is_some() {
            return Err(StoreError::SetUp);
        }
        let member = add(&mut transaction, name, password.into(), true, actor.at).await?;
        audit::write(&mut transaction, actor, "server.set-up", name, None).await?;
        transaction.commit().await?;
        Ok(member)
    }

    /// All members by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn members(&self) -> Result<Vec<Member>, StoreError> {
        let rows = sqlx::query("SELECT * FROM members ORDER BY name")
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(Member::of).collect()
    }

    /// A member by name, with what is kept of the password.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn credentials(&self, name: &str) -> Result<Option<(Member, Option<String>)>, StoreError> {
        let row = sqlx::query("SELECT * FROM members WHERE name = $1")
            .bind(name)
            .fetch_optional(&self.read)
            .await?;
        row.map(|row| Ok((Member::of(&row)?, row.try_get("password")?)))
            .transpose()
    }

    /// A member by name.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn member(&self, name: &str) -> Result<Member, StoreError> {
        let found = self.credentials(name).await?;
        found
            .map(|(member, _)| member)
            .ok_or(StoreError::Missing("member"))
    }

    /// Replaces a password, and ends all sessions of the member but one.
    ///
    /// # Errors
    /// When there is no such member, or the database fails.
    pub async fn set_password(
        &self,
        actor: &Actor,
        member: &Member,
        password: &str,
        keep_session: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query("UPDATE members SET password = $1 WHERE id = $2")
            .bind(password)
            .bind(&member.id)
            .execute(&mut *transaction)
            .await?;
        end_others(&mut transaction, member, keep_session).await?;
        audit::write(&mut transaction, actor, "member.password", &member.name, None).await?;
        Ok(transaction.commit().await?)
    }

    /// Says whether a member administers the server and whether they may sign in. Who may not loses all sessions and
    /// tokens.
    ///
    /// # Errors
    /// When there is no such member, nobody would administer the server any more, or the database fails.
    pub async fn change_member(
        &self,
        actor: &Actor,
        name: &str,
        is_admin: Option<bool>,
        is_disabled: Option<bool>,
    ) -> Result<Member, StoreError> {
        let mut transaction = self.begin().await?;
        lock(&mut transaction).await?;
        let row = sqlx::query("SELECT * FROM members WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *transaction)
            .await?;
        let mut member = Member::of(&present(row, "member")?)?;
        let before = member.clone();
        member.is_admin = is_admin.unwrap_or(member.is_admin);
        if let Some(is_disabled) = is_disabled {
            member.disabled_at = is_disabled.then(|| member.disabled_at.unwrap_or(actor.at));
        }
        sqlx::query("UPDATE members SET is_admin = $1, disabled_at = $2 WHERE id = $3")
            .bind(i64::from(member.is_admin))
            .bind(member.disabled_at)
            .bind(&member.id)
            .execute(&mut *transaction)
            .await?;
        let admins = sqlx::query("SELECT id FROM members WHERE is_admin = 1 AND disabled_at IS NULL")
            .fetch_all(&mut *transaction)
            .await?;
        if admins.is_empty() {
            return Err(StoreError::LastAdmin);
        }
        let belongings: &[&'static str] = match (member.disabled_at, member.is_admin) {
            (Some(_), _) => &[
                "DELETE FROM sessions WHERE member = $1",
                "DELETE FROM tokens WHERE member = $1",
                "DELETE FROM invitations WHERE invited_by = $1",
            ],
            // Nobody comes back by an invitation of their own.
            (None, false) => &["DELETE FROM invitations WHERE invited_by = $1 AND project IS NULL"],
            (None, true) => &[],
        };
        for statement in belongings {
            sqlx::query(*statement)
                .bind(&member.id)
                .execute(&mut *transaction)
                .await?;
        }
        let changes = [
            (
                before.is_admin,
                member.is_admin,
                ["member.demote", "member.promote"],
            ),
            (
                before.disabled_at.is_some(),
                member.disabled_at.is_some(),
                ["member.enable", "member.disable"],
            ),
        ];
        for (was, is, actions) in changes {
            if was != is {
                audit::write(&mut transaction, actor, actions[usize::from(is)], name, None).await?;
            }
        }
        transaction.commit().await?;
        Ok(member)
    }

    /// Counts an attempt to sign in under a key (an address, a name from an address), unless there were so many of them
    /// that this one has to wait: then it says for how long, in milliseconds. After `free` attempts each further one
    /// doubles the wait, from one second up to 15 minutes; a day without one makes all forgotten. Deciding and counting are
    /// one statement, so that attempts at once are counted like those that follow each other.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn attempt(&self, key: &str, free: i64, at: Millis) -> Result<Option<Millis>, StoreError> {
        let counted = sqlx::query(
            "INSERT INTO attempts (key, attempts, last_at) VALUES ($1, 1, $2) ON CONFLICT (key) DO UPDATE SET \
             attempts = CASE WHEN attempts.last_at < $2 - 86400000 THEN 1 ELSE attempts.attempts + 1 END, \
             last_at = excluded.last_at \
             WHERE attempts.last_at <= $2 - CASE WHEN attempts.attempts <= $3 THEN 0 \
             WHEN attempts.attempts > $3 + 10 THEN 900000 \
             ELSE 1000 << CAST(attempts.attempts - $3 - 1 AS INTEGER) END RETURNING attempts",
        )
        .bind(key)
        .bind(at)
        .bind(free)
        .fetch_optional(&self.write)
        .await?;
        if counted.is_some() {
            return Ok(None);
        }
        let row = sqlx::query("SELECT attempts, last_at FROM attempts WHERE key = $1")
            .bind(key)
            .fetch_optional(&self.read)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let (attempts, last): (i64, Millis) = (row.try_get("attempts")?, row.try_get("last_at")?);
        let doubled = (attempts - free - 1).clamp(0, 10);
        let wait = if attempts > free + 10 {
            900_000
        } else {
            1000 << doubled
        };
        Ok(Some((last + wait - at).max(1)))
    }

    /// Takes an attempt back that was right, or all of a key.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_attempts(&self, key: &str, all: bool) -> Result<(), StoreError> {
        let statement = if all {
            "DELETE FROM attempts WHERE key = $1"
        } else {
            "UPDATE attempts SET attempts = attempts - 1 WHERE key = $1 AND attempts > 0"
        };
        sqlx::query(statement).bind(key).execute(&self.write).await?;
        Ok(())
    }
}
