//! Projects and who has which role in them.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Actor, Member, Millis, Store, StoreError, audit, present, taken, word};
use crate::secret;
use capo_api::Role;

/// What a team works on together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Its name in addresses.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// When it was made.
    pub created_at: Millis,
}

/// A member's place in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRole {
    /// Name of the member.
    pub member: String,
    /// Their role.
    pub role: Role,
}

impl Project {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            title: row.try_get("title")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

impl Store {
    /// Adds a project, of which the member who does so is an administrator.
    ///
    /// # Errors
    /// When the name is taken, or the database fails.
    pub async fn add_project(
        &self,
        actor: &Actor,
        by: &Member,
        name: &str,
        title: &str,
    ) -> Result<Project, StoreError> {
        let project = Project {
            id: secret::id(),
            name: name.to_owned(),
            title: title.to_owned(),
            created_at: actor.at,
        };
        let mut transaction = self.begin().await?;
        sqlx::query("INSERT INTO projects (id, name, title, created_at) VALUES ($1, $2, $3, $4)")
            .bind(&project.id)
            .bind(name)
            .bind(title)
            .bind(actor.at)
            .execute(&mut *transaction)
            .await
            .map_err(taken("project"))?;
        sqlx::query("INSERT INTO roles (project, member, role) VALUES ($1, $2, $3)")
            .bind(&project.id)
            .bind(&by.id)
            .bind(Role::Admin.as_str())
            .execute(&mut *transaction)
            .await?;
        audit::write(&mut transaction, actor, "project.create", name, Some(&project.id)).await?;
        transaction.commit().await?;
        Ok(project)
    }

    /// The projects of a member with their role, by name; all of them, as their administrator, for who administers the
    /// server.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn projects(&self, member: &Member) -> Result<Vec<(Project, Role)>, StoreError> {
        let rows = if member.is_admin {
            sqlx::query("SELECT projects.*, 'admin' AS role FROM projects ORDER BY name")
                .fetch_all(&self.read)
                .await?
        } else {
            sqlx::query(
                "SELECT projects.*, roles.role AS role FROM projects \
                 JOIN roles ON roles.project = projects.id WHERE roles.member = $1 ORDER BY projects.name",
            )
            .bind(&member.id)
            .fetch_all(&self.read)
            .await?
        };
        rows.iter()
            .map(|row| Ok((Project::of(row)?, word(row, "role")?)))
            .collect()
    }

    /// A project by name and the role of a member in it. It is missing for who has none.
    ///
    /// # Errors
    /// When it is missing, or the database fails.
    pub async fn project(&self, member: &Member, name: &str) -> Result<(Project, Role), StoreError> {
        let row = sqlx::query(
            "SELECT projects.*, roles.role AS role FROM projects \
             LEFT JOIN roles ON roles.project = projects.id AND roles.member = $1 WHERE projects.name = $2",
        )
        .bind(&member.id)
        .bind(name)
        .fetch_optional(&self.read)
        .await?;
        let row = present(row, "project")?;
        if member.is_admin {
            return Ok((Project::of(&row)?, Role::Admin));
        }
        let role: Option<String> = row.try_get("role")?;
        role.ok_or(StoreError::Missing("project"))?;
        Ok((Project::of(&row)?, word(&row, "role")?))
    }

    /// Gives a project another title.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn retitle_project(
        &self,
        actor: &Actor,
        project: &Project,
        title: &str,
    ) -> Result<Project, StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query("UPDATE projects SET title = $1 WHERE id = $2")
            .bind(title)
            .bind(&project.id)
            .execute(&mut *transaction)
            .await?;
        audit::write(
            &mut transaction,
            actor,
            "project.retitle",
            &project.name,
            Some(&project.id),
        )
        .await?;
        transaction.commit().await?;
        Ok(Project {
            title: title.to_owned(),
            ..project.clone()
        })
    }

    /// Deletes a project and all that is in it. Its lines of the audit log stay.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_project(&self, actor: &Actor, project: &Project) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query("DELETE FROM projects WHERE id = $1")
            .bind(&project.id)
            .execute(&mut *transaction)
            .await?;
        audit::write(
            &mut transaction,
            actor,
            "project.delete",
            &project.name,
            Some(&project.id),
        )
        .await?;
        Ok(transaction.commit().await?)
    }

    /// Who has which role in a project, by name; who only administers the server is not among them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn member_roles(&self, project: &Project) -> Result<Vec<MemberRole>, StoreError> {
        let rows = sqlx::query(
            "SELECT members.name AS member, roles.role AS role FROM roles \
             JOIN members ON members.id = roles.member WHERE roles.project = $1 ORDER BY members.name",
        )
        .bind(&project.id)
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(MemberRole {
                    member: row.try_get("member")?,
                    role: word(row, "role")?,
                })
            })
            .collect()
    }

    /// Gives a member a role in a project, or none.
    ///
    /// # Errors
    /// When there is no such member, or the database fails.
    pub async fn set_role(
        &self,
        actor: &Actor,
        project: &Project,
        member: &str,
        role: Option<Role>,
    ) -> Result<(), StoreError> {
        let member = self.member(member).await?;
        let mut transaction = self.begin().await?;
        if let Some(role) = role {
            sqlx::query(
                "INSERT INTO roles (project, member, role) VALUES ($1, $2, $3) \
                 ON CONFLICT (project, member) DO UPDATE SET role = excluded.role",
            )
            .bind(&project.id)
            .bind(&member.id)
            .bind(role.as_str())
            .execute(&mut *transaction)
            .await?;
        } else {
            let removed = sqlx::query("DELETE FROM roles WHERE project = $1 AND member = $2")
                .bind(&project.id)
                .bind(&member.id)
                .execute(&mut *transaction)
                .await?;
            if removed.rows_affected() == 0 {
                return Err(StoreError::Missing("member"));
            }
        }
        if role != Some(Role::Admin) {
            // Nobody comes back by an invitation of their own.
            sqlx::query("DELETE FROM invitations WHERE project = $1 AND invited_by = $2")
                .bind(&project.id)
                .bind(&member.id)
                .execute(&mut *transaction)
                .await?;
        }
        let action = match role {
            Some(Role::Viewer) => "role.viewer",
            Some(Role::Editor) => "role.editor",
            Some(Role::Admin) => "role.admin",
            None => "role.none",
        };
        audit::write(&mut transaction, actor, action, &member.name, Some(&project.id)).await?;
        Ok(transaction.commit().await?)
    }
}
