//! Data files, each kept once in a project, under its SHA-256. What they hold lies elsewhere, as objects: each upload writes
//! one of its own, so that none is deleted that somebody has just written.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::any::AnyRow;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Any, Row, Transaction};

use super::{Actor, Millis, Project, Store, StoreError, audit, count};
use crate::files::Files;
use crate::secret;

/// How long a file stays after somebody asked for it, though nothing names it: one is sent before what names it. Objects that
/// nothing needs stay as long: a backup may be reading them.
const MOMENT: Millis = 60 * 60 * 1000;

/// A data file without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Size in bytes.
    pub size: u64,
    /// When it was added.
    pub created_at: Millis,
    /// The object with what it holds.
    pub object: String,
}

impl KeptFile {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            size: count(row, "size")?,
            created_at: row.try_get("created_at")?,
            object: row.try_get("object")?,
        })
    }
}

impl Store {
    /// Names an object that is about to be written for a project. Unless a file has it within an hour, it is deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_file(&self, project: &Project, now: Millis) -> Result<String, StoreError> {
        let object = format!("{}/{}", project.id, secret::id());
        sqlx::query("INSERT INTO leftovers (object, due_at) VALUES ($1, $2)")
            .bind(&object)
            .bind(now + MOMENT)
            .execute(&self.write)
            .await?;
        Ok(object)
    }

    /// Keeps a file under its SHA-256 in hexadecimal digits, with the object that was written for it; one that is there stays
    /// as it is.
    ///
    /// # Errors
    /// When the object was deleted since it was begun, or the database fails.
    pub async fn put_file(
        &self,
        actor: &Actor,
        project: &Project,
        sha256: &str,
        size: u64,
        object: &str,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        Self::drop_unnamed_files(&mut transaction, &project.id, actor.at).await?;
        let added = sqlx::query(
            "INSERT INTO files (project, sha256, size, created_at, touched_at, object) VALUES ($1, $2, $3, $4, $4, $5) \
             ON CONFLICT (project, sha256) DO NOTHING",
        )
        .bind(&project.id)
        .bind(sha256)
        .bind(i64::try_from(size).unwrap_or(i64::MAX))
        .bind(actor.at)
        .bind(object)
        .execute(&mut *transaction)
        .await?;
        if added.rows_affected() == 0 {
            touch(&mut transaction, &project.id, sha256, actor.at).await?;
            return Ok(transaction.commit().await?);
        }
        let begun = sqlx::query("DELETE FROM leftovers WHERE object = $1")
            .bind(object)
            .execute(&mut *transaction)
            .await?;
        if begun.rows_affected() == 0 {
            return Err(StoreError::Missing("upload any more"));
        }
        audit::write(&mut transaction, actor, "file.create", sha256, Some(&project.id)).await?;
        Ok(transaction.commit().await?)
    }

    /// A file of a project by its SHA-256, which stays for a while from now on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn file(
        &self,
        project: &Project,
        sha256: &str,
        now: Millis,
    ) -> Result<Option<KeptFile>, StoreError> {
        let mut transaction = self.begin().await?;
        match touch(&mut transaction, &project.id, sha256, now).await {
            Err(StoreError::Missing(_)) => return Ok(None),
            touched => touched?,
        }
        transaction.commit().await?;
        self.kept_file(&project.id, sha256).await
    }

    /// A file of a project (by id).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn kept_file(&self, project: &str, sha256: &str) -> Result<Option<KeptFile>, StoreError> {
        let row =
            sqlx::query("SELECT size, created_at, object FROM files WHERE project = $1 AND sha256 = $2")
                .bind(project)
                .bind(sha256)
                .fetch_optional(&self.read)
                .await?;
        row.as_ref().map(KeptFile::of).transpose()
    }

    /// How many bytes of files a project has.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn size_of_files(&self, project: &Project) -> Result<u64, StoreError> {
        let row = sqlx::query(
            "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) AS size FROM files WHERE project = $1",
        )
        .bind(&project.id)
        .fetch_one(&self.read)
        .await?;
        count(&row, "size")
    }

    /// Objects that nothing needs for an hour now, some of them where there are many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn leftovers(&self, now: Millis) -> Result<Vec<String>, StoreError> {
        sqlx::query("UPDATE leftovers SET due_at = $1 WHERE due_at IS NULL")
            .bind(now + MOMENT)
            .execute(&self.write)
            .await?;
        let rows = sqlx::query("SELECT object FROM leftovers WHERE due_at <= $1 LIMIT 256")
            .bind(now)
            .fetch_all(&self.read)
            .await?;
        Ok(rows
            .iter()
            .map(|row| row.try_get("object"))
            .collect::<Result<_, _>>()?)
    }

    /// Notes that an object is gone.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_leftover(&self, object: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM leftovers WHERE object = $1")
            .bind(object)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// What a file holds that lies in the database, as it does after a restored backup, and the object that it is to become:
    /// one of them, as long as there are any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn content(&self) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        // Of files that are gone.
        sqlx::query(
            "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM files \
             WHERE files.project = contents.project AND files.sha256 = contents.sha256)",
        )
        .execute(&self.write)
        .await?;
        let row = sqlx::query(
            "SELECT files.object, contents.content FROM contents \
             JOIN files ON files.project = contents.project AND files.sha256 = contents.sha256 LIMIT 1",
        )
        .fetch_optional(&self.read)
        .await?;
        let content = row.map(|row| Ok::<_, sqlx::Error>((row.try_get("object")?, row.try_get("content")?)));
        Ok(content.transpose()?)
    }

    /// Notes that what a file holds has become its object.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn content_written(&self, object: &str) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM contents WHERE EXISTS (SELECT 1 FROM files WHERE files.object = $1 \
             AND files.project = contents.project AND files.sha256 = contents.sha256)",
        )
        .bind(object)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// Has a new run hold the files that it names, for as long as it is there.
    ///
    /// # Errors
    /// When the project does not have one of them, or the database fails.
    pub(super) async fn hold_files(
        transaction: &mut Transaction<'static, Any>,
        run: &str,
        project: &str,
        named: &BTreeMap<String, String>,
        now: Millis,
    ) -> Result<(), StoreError> {
        for sha256 in named.values().collect::<BTreeSet<_>>() {
            touch(transaction, project, sha256, now).await?;
            sqlx::query("INSERT INTO run_files (run, project, sha256) VALUES ($1, $2, $3)")
                .bind(run)
                .bind(project)
                .bind(sha256)
                .execute(&mut **transaction)
                .await?;
        }
        Ok(())
    }

    /// Deletes the files of a project that no run and no data set names, but those that somebody asked for a moment ago.
    pub(super) async fn drop_unnamed_files(
        transaction: &mut Transaction<'static, Any>,
        project: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM files WHERE project = $1 AND touched_at < $2 \
             AND NOT EXISTS (SELECT 1 FROM run_files AS named \
             WHERE named.project = files.project AND named.sha256 = files.sha256) \
             AND NOT EXISTS (SELECT 1 FROM data_sets AS named \
             WHERE named.project = files.project AND named.sha256 = files.sha256)",
        )
        .bind(project)
        .bind(now - MOMENT)
        .execute(&mut **transaction)
        .await?;
        Ok(())
    }
}

/// Lets a file stay for a while, and nobody delete it before this transaction has ended.
///
/// # Errors
/// When there is none, or the database fails.
pub(super) async fn touch(
    transaction: &mut Transaction<'static, Any>,
    project: &str,
    sha256: &str,
    now: Millis,
) -> Result<(), StoreError> {
    let touched = sqlx::query("UPDATE files SET touched_at = $1 WHERE project = $2 AND sha256 = $3")
        .bind(now)
        .bind(project)
        .bind(sha256)
        .execute(&mut **transaction)
        .await?;
    if touched.rows_affected() == 0 {
        return Err(StoreError::Missing("data file"));
    }
    Ok(())
}

/// Puts into a copy of a database what its files hold, from where the server that starts on the copy takes it.
///
/// # Errors
/// When an object is missing, or the place of objects or the copy fails.
pub(super) async fn take_along(copy: &mut SqliteConnection, files: &Files) -> Result<(), StoreError> {
    let rows = sqlx::query("SELECT project, sha256, size, created_at, object FROM files")
        .fetch_all(&mut *copy)
        .await?;
    for row in rows {
        let object: String = row.try_get("object")?;
        let lies = sqlx::query("SELECT 1 FROM contents WHERE project = $1 AND sha256 = $2")
            .bind(row.try_get::<String, _>("project")?)
            .bind(row.try_get::<String, _>("sha256")?)
            .fetch_optional(&mut *copy)
            .await?;
        if lies.is_some() {
            continue;
        }
        let content = files.read(&object).await?.ok_or_else(|| StoreError::NoObject {
            object,
            place: files.to_string(),
        })?;
        sqlx::query(
            "INSERT INTO contents (project, sha256, size, created_at, content) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(row.try_get::<String, _>("project")?)
        .bind(row.try_get::<String, _>("sha256")?)
        .bind(row.try_get::<i64, _>("size")?)
        .bind(row.try_get::<i64, _>("created_at")?)
        .bind(content)
        .execute(&mut *copy)
        .await?;
    }
    Ok(())
}
