//! Invitations: links by which people make their own account.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::{
    Actor, Member, Millis, Project, SignsInBy, Store, StoreError, accounts, audit, flag, present, word,
};
use crate::secret::{self, Secret};
use capo_api::Role;

/// A link that was not used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// 32 hexadecimal digits; not the secret.
    pub id: String,
    /// The role in the project that it is for; `None` for one to the server alone.
    pub role: Option<Role>,
    /// Whether who follows it administers the server.
    pub is_admin: bool,
    /// Name of who invited.
    pub invited_by: String,
    /// When it was made.
    pub created_at: Millis,
    /// Until when it can be followed.
    pub expires_at: Millis,
}

/// What an invitation is to.
#[derive(Debug, Clone, Copy)]
pub enum Invited<'a> {
    /// The server.
    Server {
        /// To administer it.
        is_admin: bool,
    },
    /// A project, with a role.
    Project(&'a Project, Role),
}

impl Invitation {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        let role: Option<String> = row.try_get("role")?;
        Ok(Self {
            id: row.try_get("id")?,
            role: role.is_some().then(|| word(row, "role")).transpose()?,
            is_admin: flag(row, "is_admin")?,
            invited_by: row.try_get("invited_by_name")?,
            created_at: row.try_get("created_at")?,
            expires_at: row.try_get("expires_at")?,
        })
    }
}

impl Store {
    /// Invites somebody.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn invite(
        &self,
        actor: &Actor,
        by: &Member,
        secret: &Secret,
        to: Invited<'_>,
        expires_at: Millis,
    ) -> Result<Invitation, StoreError> {
        let (project, role, is_admin) = match to {
            Invited::Server { is_admin } => (None, None, is_admin),
            Invited::Project(project, role) => (Some(project), Some(role), false),
        };
        let invitation = Invitation {
            id: secret::id(),
            role,
            is_admin,
            invited_by: by.name.clone(),
            created_at: actor.at,
            expires_at,
        };
        let mut transaction = self.begin().await?;
        sqlx::query("DELETE FROM invitations WHERE expires_at <= $1")
            .bind(actor.at)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(
            "INSERT INTO invitations (id, secret, project, role, is_admin, invited_by, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&invitation.id)
        .bind(secret.hash())
        .bind(project.map(|project| &project.id))
        .bind(role.map(Role::as_str))
        .bind(i64::from(is_admin))
        .bind(&by.id)
        .bind(actor.at)
        .bind(expires_at)
        .execute(&mut *transaction)
        .await?;
        let project = project.map(|project| project.id.as_str());
        audit::write(
            &mut transaction,
            actor,
            "invitation.create",
            &invitation.id,
            project,
        )
        .await?;
        transaction.commit().await?;
        Ok(invitation)
    }

    /// The open invitations to a project, or to the server, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn invitations(
        &self,
        project: Option<&Project>,
        now: Millis,
    ) -> Result<Vec<Invitation>, StoreError> {
        let rows = sqlx::query(
            "SELECT invitations.*, members.name AS invited_by_name FROM invitations \
             JOIN members ON members.id = invitations.invited_by \
             WHERE COALESCE(invitations.project, '') = $1 AND invitations.expires_at > $2 \
             ORDER BY invitations.created_at DESC, invitations.id",
        )
        .bind(project.map_or("", |project| &project.id))
        .bind(now)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(Invitation::of).collect()
    }

    /// Takes an invitation back.
    ///
    /// # Errors
    /// When there is none of this id to the project or, without one, to the server; or the database fails.
    pub async fn withdraw_invitation(
        &self,
        actor: &Actor,
        project: Option<&Project>,
        id: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let project = project.map(|project| project.id.as_str());
        let withdrawn = sqlx::query("DELETE FROM invitations WHERE id = $1 AND COALESCE(project, '') = $2")
            .bind(id)
            .bind(project.unwrap_or_default())
            .execute(&mut *transaction)
            .await?;
        if withdrawn.rows_affected() == 0 {
            return Err(StoreError::Missing("invitation"));
        }
        audit::write(&mut transaction, actor, "invitation.withdraw", id, project).await?;
        Ok(transaction.commit().await?)
    }

    /// Whether a secret is that of an open invitation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_invited(&self, secret: &Secret, now: Millis) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT id FROM invitations WHERE secret = $1 AND expires_at > $2")
            .bind(secret.hash())
            .bind(now)
            .fetch_optional(&self.read)
            .await?;
        Ok(row.is_some())
    }

    /// Follows an invitation: a new member, in the project with the role that it is for. It serves once.
    ///
    /// # Errors
    /// When there is no such open invitation, the name or the identity is taken, or the database fails.
    pub async fn follow_invitation(
        &self,
        actor: &Actor,
        secret: &Secret,
        name: &str,
        by: impl Into<SignsInBy<'_>>,
    ) -> Result<Member, StoreError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query("DELETE FROM invitations WHERE secret = $1 AND expires_at > $2 RETURNING *")
            .bind(secret.hash())
            .bind(actor.at)
            .fetch_optional(&mut *transaction)
            .await?;
        let row = present(row, "invitation")?;
        let is_admin = flag(&row, "is_admin")?;
        let member = accounts::add(&mut transaction, name, by.into(), is_admin, actor.at).await?;
        let project: Option<String> = row.try_get("project")?;
        if let Some(project) = &project {
            let role: Role = word(&row, "role")?;
            sqlx::query("INSERT INTO roles (project, member, role) VALUES ($1, $2, $3)")
                .bind(project)
                .bind(&member.id)
                .bind(role.as_str())
                .execute(&mut *transaction)
                .await?;
        }
        audit::write(
            &mut transaction,
            actor,
            "invitation.follow",
            name,
            project.as_deref(),
        )
        .await?;
        transaction.commit().await?;
        Ok(member)
    }
}
