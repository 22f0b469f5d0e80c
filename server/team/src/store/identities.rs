//! Identities at an OpenID Connect issuer, by which members sign in.

use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};

use super::sessions::end_others;
use super::{Actor, Member, Millis, Store, StoreError, audit, present, taken};
use crate::secret;

/// Somebody as an issuer knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issuer's address.
    pub issuer: String,
    /// What the issuer calls them for good.
    pub subject: String,
    /// What people know them by: an e-mail address, or a name.
    pub label: String,
}

/// An identity by which a member signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Who it is at the issuer.
    pub identity: Identity,
    /// When it was linked.
    pub created_at: Millis,
    /// When somebody last signed in by it.
    pub seen_at: Option<Millis>,
}

/// By what a new member signs in.
#[derive(Debug, Clone, Copy)]
pub enum SignsInBy<'a> {
    /// A password as [`crate::password::hash`] makes it.
    Password(&'a str),
    /// An identity, and no password.
    Identity(&'a Identity),
}

impl<'a> From<&'a str> for SignsInBy<'a> {
    fn from(password: &'a str) -> Self {
        Self::Password(password)
    }
}

impl LinkedIdentity {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            identity: Identity {
                issuer: row.try_get("issuer")?,
                subject: row.try_get("subject")?,
                label: row.try_get("label")?,
            },
            created_at: row.try_get("created_at")?,
            seen_at: row.try_get("seen_at")?,
        })
    }
}

/// Gives a member an identity within a transaction.
pub(super) async fn add(
    transaction: &mut Transaction<'_, Any>,
    member: &str,
    identity: &Identity,
    at: Millis,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO identities (id, issuer, subject, member, label, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(secret::id())
    .bind(&identity.issuer)
    .bind(&identity.subject)
    .bind(member)
    .bind(&identity.label)
    .bind(at)
    .execute(&mut **transaction)
    .await
    .map_err(|error| match taken("identity")(error) {
        StoreError::Taken(_) => StoreError::Linked,
        error => error,
    })?;
    Ok(())
}

impl Store {
    /// The member whom an identity belongs to, whether they may sign in or not.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn identified(&self, identity: &Identity) -> Result<Option<Member>, StoreError> {
        let row = sqlx::query(
            "SELECT members.* FROM members JOIN identities ON identities.member = members.id \
             WHERE identities.issuer = $1 AND identities.subject = $2",
        )
        .bind(&identity.issuer)
        .bind(&identity.subject)
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(Member::of).transpose()
    }

    /// Notes that somebody signed in by an identity, and what the issuer calls them by now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn touch_identity(&self, identity: &Identity, at: Millis) -> Result<(), StoreError> {
        sqlx::query("UPDATE identities SET seen_at = $1, label = $2 WHERE issuer = $3 AND subject = $4")
            .bind(at)
            .bind(&identity.label)
            .bind(&identity.issuer)
            .bind(&identity.subject)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// The identities of a member, the oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn identities(&self, member: &Member) -> Result<Vec<LinkedIdentity>, StoreError> {
        let rows = sqlx::query("SELECT * FROM identities WHERE member = $1 ORDER BY created_at, id")
            .bind(&member.id)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(LinkedIdentity::of).collect()
    }

    /// Gives a member one more way to sign in.
    ///
    /// # Errors
    /// When the identity is somebody's already, or the database fails.
    pub async fn link(&self, actor: &Actor, member: &Member, identity: &Identity) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        add(&mut transaction, &member.id, identity, actor.at).await?;
        audit::write(&mut transaction, actor, "identity.link", &identity.label, None).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes an identity from a member, and ends all their sessions but one: some may have begun by it.
    ///
    /// # Errors
    /// When the member has none of this id, could not sign in any more, or the database fails.
    pub async fn unlink(
        &self,
        actor: &Actor,
        member: &Member,
        id: &str,
        keep_session: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        // Two at once wait for each other, or both would leave the other one.
        let row = sqlx::query("UPDATE members SET name = name WHERE id = $1 RETURNING *")
            .bind(&member.id)
            .fetch_optional(&mut *transaction)
            .await?;
        let member = Member::of(&present(row, "member")?)?;
        let row = sqlx::query("DELETE FROM identities WHERE id = $1 AND member = $2 RETURNING label")
            .bind(id)
            .bind(&member.id)
            .fetch_optional(&mut *transaction)
            .await?;
        let label: String = present(row, "identity")?.try_get("label")?;
        let left = sqlx::query("SELECT id FROM identities WHERE member = $1 LIMIT 1")
            .bind(&member.id)
            .fetch_optional(&mut *transaction)
            .await?;
        if left.is_none() && !member.has_password {
            return Err(StoreError::LastWayIn);
        }
        end_others(&mut transaction, &member, keep_session).await?;
        audit::write(&mut transaction, actor, "identity.unlink", &label, None).await?;
        Ok(transaction.commit().await?)
    }

    /// A name that nobody has: the one that is wished for, or the first of `name-2`, `name-3` and so on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn free_name(&self, wished: &str) -> Result<String, StoreError> {
        let mut name = wished.to_owned();
        let mut number = 2;
        while self.credentials(&name).await?.is_some() {
            name = format!("{wished}-{number}");
            number += 1;
        }
        Ok(name)
    }
}
