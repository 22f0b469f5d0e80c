//! The audit log: who did what, when, and from where.

use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{ROWS, ROWS_AT_ONCE, number, rows};
use super::{Millis, Store, StoreError};

/// What a sign-in that was refused is called.
const REFUSAL: &str = "session.refuse";

/// How many lines of refused sign-ins stay.
pub(crate) const REFUSALS: i64 = 1000;

/// Of the lines of an action (`$1`), lets as many of the latest stay as are asked for (`$2`).
pub(super) const FORGET: &str = "DELETE FROM audit WHERE action = $1 AND id <= \
                                 (SELECT id FROM audit WHERE action = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Name of the member, or of the program: `capo admin`.
    pub name: String,
    /// Where the request comes from; empty for a program on this machine.
    pub address: String,
    /// When they do it.
    pub at: Millis,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Counts up; at most 0 where another server wrote it.
    pub id: i64,
    /// When it was done.
    pub at: Millis,
    /// Who did it.
    pub actor: String,
    /// The address it was done from.
    pub address: String,
    /// What, such as `project.create`.
    pub action: String,
    /// To whom or what, by name.
    pub subject: String,
    /// In which project, by id.
    pub project: Option<String>,
}

/// Adds a line within a transaction.
pub(super) async fn write(
    transaction: &mut Transaction<'_, Any>,
    actor: &Actor,
    action: &'static str,
    subject: &str,
    project: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit (at, actor, address, action, subject, project) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(actor.at)
    .bind(&actor.name)
    .bind(&actor.address)
    .bind(action)
    .bind(subject)
    .bind(project)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

impl Store {
    /// Adds a line of what changes nothing else that is kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record(
        &self,
        actor: &Actor,
        action: &'static str,
        subject: &str,
        project: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        write(&mut transaction, actor, action, subject, project).await?;
        Ok(transaction.commit().await?)
    }

    /// Adds a line of a sign-in that was refused to somebody who named a member. Of such lines the latest 1,000 stay:
    /// anybody writes them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record_refusal(&self, actor: &Actor, subject: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        write(&mut transaction, actor, REFUSAL, subject, None).await?;
        sqlx::query(FORGET)
            .bind(REFUSAL)
            .bind(REFUSALS)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// The latest lines first, before the one of an id if one is named: of the whole server, or of one project by id, and
    /// then those that it brought along from another server.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn audit(
        &self,
        project: Option<&str>,
        before: Option<i64>,
        most: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let before = before.unwrap_or(i64::MAX);
        let rows = match project {
            Some(project) => {
                sqlx::query(
                    "SELECT id, at, actor, address, action, subject, project FROM audit \
                     WHERE project = $1 AND id < $2 UNION ALL \
                     SELECT id, at, actor, address, action, subject, project FROM imported_audit \
                     WHERE project = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
                )
                .bind(project)
                .bind(before)
                .bind(i64::from(most))
                .fetch_all(&self.read)
                .await?
            }
            None => {
                sqlx::query("SELECT * FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2")
                    .bind(before)
                    .bind(i64::from(most))
                    .fetch_all(&self.read)
                    .await?
            }
        };
        rows.iter()
            .map(|row| {
                Ok(Entry {
                    id: row.try_get("id")?,
                    at: row.try_get("at")?,
                    actor: row.try_get("actor")?,
                    address: row.try_get("address")?,
                    action: row.try_get("action")?,
                    subject: row.try_get("subject")?,
                    project: row.try_get("project")?,
                })
            })
            .collect()
    }

    /// Keeps the lines of another server's log that a project, by id, brings along, the earliest first and whatever ids they
    /// had: for whoever reads the project's log, beneath its own lines and never among them.
    ///
    /// # Errors
    /// When it has some already, or the database fails; a part of them may be kept then.
    pub async fn import_audit(
        &self,
        actor: &Actor,
        project: &str,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        let mut id = 1 - number(entries.len());
        for entries in entries.chunks(ROWS_AT_ONCE) {
            let mut transaction = self.begin().await?;
            for entries in entries.chunks(ROWS) {
                let values = rows(entries.len(), 6);
                let statement = format!(
                    "INSERT INTO imported_audit (project, id, at, actor, address, action, subject) \
                     VALUES {values}"
                );
                let mut query = sqlx::query(AssertSqlSafe(statement)).bind(project);
                for entry in entries {
                    query = query
                        .bind(id)
                        .bind(entry.at)
                        .bind(&entry.actor)
                        .bind(&entry.address)
                        .bind(&entry.action)
                        .bind(&entry.subject);
                    id += 1;
                }
                query.execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
        }
        let subject = format!("{} lines of another server", entries.len());
        self.record(actor, "audit.import", &subject, Some(project)).await
    }
}
