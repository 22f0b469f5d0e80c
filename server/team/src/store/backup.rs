//! Copies of a SQLite database: taken while a server works on it, and made ready to be one's own.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use super::files::take_along;
use super::keys::CHECK;
use super::leases::Jobs;
use super::{PATIENCE, SQLITE, StoreError};
use crate::files::Files;
use crate::seal::MasterKey;

/// The table of a copy that holds the master key, where it was asked to. No server has one.
const MASTER: &str = "backup_master_key";

/// Copies a database, as of one moment, into a file that is empty or not there; with what data files hold where their place is
/// given, and with a master key where one is.
///
/// # Errors
/// When there is no database of a server, the master key is another one's, what a data file holds is missing, or the database
/// or the disk fails.
pub async fn back_up(
    database: &Path,
    copy: &Path,
    files: Option<&Files>,
    master: Option<&MasterKey>,
) -> Result<(), StoreError> {
    let mut connection = open(database).await?;
    version(&mut connection).await?;
    if let Some(master) = master {
        is_of(&mut connection, master).await?;
    }
    let path = copy
        .to_str()
        .ok_or_else(|| StoreError::Unreadable("the name of the copy is no UTF-8".into()))?;
    sqlx::query("VACUUM INTO $1")
        .bind(path)
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    let mut connection = open(copy).await?;
    // Before there was such a table, files lay in the database.
    if let Some(files) = files
        && has_table(&mut connection, "contents").await?
    {
        take_along(&mut connection, files).await?;
    }
    if let Some(master) = master {
        sqlx::query("CREATE TABLE backup_master_key (master_key TEXT NOT NULL)")
            .execute(&mut connection)
            .await?;
        sqlx::query("INSERT INTO backup_master_key (master_key) VALUES ($1)")
            .bind(master.reveal())
            .execute(&mut connection)
            .await?;
    }
    connection.close().await?;
    Ok(())
}

/// What lets somebody in without a password. One that was withdrawn after a copy was made is in the copy.
const LETS_IN: [&str; 3] = ["sessions", "tokens", "invitations"];

/// Checks a copy, takes the master key out of it, which is returned where there is one, and lets go of the runs and trainings
/// that were under way: whoever worked on them has another database. Sessions, tokens and invitations end unless they are to
/// be kept.
///
/// # Errors
/// When it is damaged, is no database of a server, a newer version wrote it, or its keys were encrypted with another master
/// key than `present`.
pub async fn make_ready(
    copy: &Path,
    present: Option<&MasterKey>,
    keeps_tokens: bool,
) -> Result<Option<String>, StoreError> {
    let opened = open(copy).await;
    let mut connection = opened.map_err(|error| StoreError::Damaged(error.to_string()))?;
    let found = sqlx::query("PRAGMA integrity_check")
        .fetch_all(&mut connection)
        .await
        .map_err(|error| StoreError::Damaged(error.to_string()))?;
    let found: Vec<String> = found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    if found != ["ok"] {
        return Err(StoreError::Damaged(found.into_iter().next().unwrap_or_default()));
    }
    let found = version(&mut connection).await?;
    let known = SQLITE
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0);
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    if let Some(present) = present
        && has_table(&mut connection, "master").await?
    {
        is_of(&mut connection, present).await?;
    }
    for table in LETS_IN {
        if !keeps_tokens && has_table(&mut connection, table).await? {
            let statement = AssertSqlSafe(format!("DELETE FROM {table}"));
            sqlx::query(statement).execute(&mut connection).await?;
        }
    }
    let mut master = None;
    if has_table(&mut connection, MASTER).await? {
        master = sqlx::query_scalar("SELECT master_key FROM backup_master_key")
            .fetch_optional(&mut connection)
            .await?;
        // Nothing of it is left in pages that are free.
        sqlx::raw_sql("PRAGMA secure_delete = ON; DROP TABLE backup_master_key; VACUUM;")
            .execute(&mut connection)
            .await?;
    }
    for Jobs { table, stage, .. } in [Jobs::RUNS, Jobs::TRAININGS] {
        if has_table(&mut connection, table).await? {
            let statement = format!("UPDATE {table} SET lease_until = 0 WHERE {stage} = 'running'");
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut connection)
                .await?;
        }
    }
    connection.close().await?;
    Ok(master)
}

/// Refuses a master key that is not the one of a database.
async fn is_of(connection: &mut SqliteConnection, master: &MasterKey) -> Result<(), StoreError> {
    let sealed: Option<String> = sqlx::query_scalar("SELECT sealed FROM master WHERE name = $1")
        .bind(CHECK)
        .fetch_optional(connection)
        .await?;
    if sealed.is_some_and(|sealed| master.open(CHECK, &sealed).is_err()) {
        return Err(StoreError::OtherMasterKey);
    }
    Ok(())
}

async fn open(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(PATIENCE);
    Ok(options.connect().await?)
}

/// The last change of the tables.
async fn version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let is_one = has_table(connection, "_sqlx_migrations").await?;
    let is_one = is_one && has_table(connection, "members").await?;
    if !is_one {
        return Err(StoreError::Unreadable(
            "it is no database of a team server".into(),
        ));
    }
    let version = sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await?;
    Ok(version)
}

async fn has_table(connection: &mut SqliteConnection, name: &str) -> Result<bool, StoreError> {
    let found = sqlx::query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1")
        .bind(name)
        .fetch_optional(connection)
        .await
        .map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(found.is_some())
}
