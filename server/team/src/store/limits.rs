//! Daily limits: what members, projects and keys may consume in a day.

use capo_gateway::{Limits, NanoUsd, Scope};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::columns::number;
use super::{Actor, Store, StoreError, audit};

/// Whose limits and consumption a request counts towards.
#[derive(Debug, Clone)]
pub struct ChargedTo {
    /// Id of the key.
    pub key: String,
    /// Id of the project.
    pub project: String,
    /// Id of the member.
    pub member: String,
}

impl ChargedTo {
    pub(super) fn all(&self) -> [(Scope, &str); 3] {
        [
            (Scope::Member, &self.member),
            (Scope::Project, &self.project),
            (Scope::Key, &self.key),
        ]
    }
}

/// As it is written in the database.
pub(super) fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Member => "member",
        Scope::Project => "project",
        Scope::Key => "key",
    }
}

pub(super) fn unsigned(row: &AnyRow, column: &str) -> Result<u64, StoreError> {
    let value: i64 = row.try_get(column)?;
    u64::try_from(value).map_err(|_| StoreError::Unreadable(format!("{column}: {value}")))
}

pub(super) fn scope_of(row: &AnyRow) -> Result<Scope, StoreError> {
    let scope: String = row.try_get("scope")?;
    let known = [Scope::Member, Scope::Project, Scope::Key];
    let found = known.into_iter().find(|known| word(*known) == scope);
    found.ok_or_else(|| StoreError::Unreadable(format!("scope: {scope}")))
}

fn limits_in(row: &AnyRow) -> Result<Limits, StoreError> {
    let amount = |column| -> Result<Option<u64>, StoreError> {
        let value: Option<i64> = row.try_get(column)?;
        value.map(|_| unsigned(row, column)).transpose()
    };
    Ok(Limits {
        usd_per_day: amount("nano_usd")?.map(NanoUsd::from),
        requests_per_day: amount("requests")?,
    })
}

pub(super) fn set_for(row: &AnyRow) -> Result<(Scope, String, Limits), StoreError> {
    Ok((scope_of(row)?, row.try_get("subject")?, limits_in(row)?))
}

impl Store {
    /// Says what a member, a project or a key may consume in a day.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_limits(
        &self,
        actor: &Actor,
        (scope, subject): (Scope, &str),
        name: &str,
        limits: Limits,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO limits (scope, subject, nano_usd, requests) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (scope, subject) DO UPDATE SET nano_usd = excluded.nano_usd, requests = excluded.requests",
        )
        .bind(word(scope))
        .bind(subject)
        .bind(limits.usd_per_day.map(|amount| number(amount.get())))
        .bind(limits.requests_per_day.map(number))
        .execute(&mut *transaction)
        .await?;
        let action = match scope {
            Scope::Member => "limits.member",
            Scope::Project => "limits.project",
            Scope::Key => "limits.key",
        };
        let usd = limits
            .usd_per_day
            .map_or_else(|| "no limit".to_owned(), |amount| format!("${}", amount.usd()));
        let requests = limits
            .requests_per_day
            .map_or_else(|| "no limit".to_owned(), |requests| requests.to_string());
        let subject = format!("{name}: dollars a day {usd}, requests a day {requests}");
        audit::write(&mut transaction, actor, action, &subject, None).await?;
        Ok(transaction.commit().await?)
    }

    /// All limits, by what they are set for and its id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn all_limits(&self) -> Result<Vec<(Scope, String, Limits)>, StoreError> {
        let rows = sqlx::query("SELECT * FROM limits ORDER BY scope, subject")
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(set_for).collect()
    }

    /// What a member, a project or a key may consume in a day.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn limits(&self, scope: Scope, subject: &str) -> Result<Limits, StoreError> {
        let row = sqlx::query("SELECT * FROM limits WHERE scope = $1 AND subject = $2")
            .bind(word(scope))
            .bind(subject)
            .fetch_optional(&self.read)
            .await?;
        row.map_or_else(|| Ok(Limits::default()), |row| limits_in(&row))
    }
}
