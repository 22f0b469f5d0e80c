//! Personal tokens, for programs that act for a member.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::sessions::TOUCH;
use super::{Actor, Member, Millis, Store, StoreError, audit, word};
use crate::secret::{self, Secret};
use capo_api::Scope;

/// A personal token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// What it may be used for.
    pub scope: Scope,
    /// When it was made.
    pub created_at: Millis,
    /// When it was last used, to the minute.
    pub seen_at: Option<Millis>,
    /// Until when it may be used.
    pub expires_at: Millis,
}

impl Token {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            scope: word(row, "scope")?,
            created_at: row.try_get("created_at")?,
            seen_at: row.try_get("seen_at")?,
            expires_at: row.try_get("expires_at")?,
        })
    }
}

impl Store {
    /// Adds a token of a member.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_token(
        &self,
        actor: &Actor,
        member: &Member,
        secret: &Secret,
        name: &str,
        scope: Scope,
        expires_at: Millis,
    ) -> Result<Token, StoreError> {
        let token = Token {
            id: secret::id(),
            name: name.to_owned(),
            scope,
            created_at: actor.at,
            seen_at: None,
            expires_at,
        };
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO tokens (id, secret, member, name, scope, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(&token.id)
        .bind(secret.hash())
        .bind(&member.id)
        .bind(name)
        .bind(scope.as_str())
        .bind(token.created_at)
        .bind(expires_at)
        .execute(&mut *transaction)
        .await?;
        audit::write(&mut transaction, actor, "token.create", name, None).await?;
        transaction.commit().await?;
        Ok(token)
    }

    /// The token and its owner of a secret, if it is valid now; notes that it was used.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn token(&self, secret: &Secret, now: Millis) -> Result<Option<(Token, Member)>, StoreError> {
        let token = sqlx::query("SELECT * FROM tokens WHERE secret = $1 AND expires_at > $2")
            .bind(secret.hash())
            .bind(now)
            .fetch_optional(&self.read);
        let member = sqlx::query(
            "SELECT * FROM members WHERE id = (SELECT member FROM tokens WHERE secret = $1) AND disabled_at IS NULL",
        )
        .bind(secret.hash())
        .fetch_optional(&self.read);
        let (Some(token), Some(member)) = tokio::try_join!(token, member)? else {
            return Ok(None);
        };
        let token = Token::of(&token)?;
        self.touch_token(&token.id, token.seen_at, now).await;
        Ok(Some((token, Member::of(&member)?)))
    }

    /// Notes that a token is used, unless that was noted lately.
    pub(super) async fn touch_token(&self, id: &str, seen: Option<Millis>, now: Millis) {
        if seen.is_none_or(|seen| now - seen >= TOUCH) {
            let touched = sqlx::query("UPDATE tokens SET seen_at = $1 WHERE id = $2")
                .bind(now)
                .bind(id)
                .execute(&self.write)
                .await;
            super::unless_written(touched);
        }
    }

    /// The tokens of a member, expired ones too, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tokens(&self, member: &Member) -> Result<Vec<Token>, StoreError> {
        let rows = sqlx::query("SELECT * FROM tokens WHERE member = $1 ORDER BY created_at DESC, id")
            .bind(&member.id)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(Token::of).collect()
    }

    /// Withdraws a token of a member.
    ///
    /// # Errors
    /// When the member has none of this id, or the database fails.
    pub async fn withdraw_token(&self, actor: &Actor, member: &Member, id: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query("DELETE FROM tokens WHERE id = $1 AND member = $2 RETURNING name")
            .bind(id)
            .bind(&member.id)
            .fetch_optional(&mut *transaction)
            .await?;
        let name: String = super::present(row, "token")?.try_get("name")?;
        audit::write(&mut transaction, actor, "token.withdraw", &name, None).await?;
        Ok(transaction.commit().await?)
    }
}
