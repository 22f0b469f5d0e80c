//! Data files of studies, each kept once in a project, under its SHA-256.

use sqlx::{Any, Row, Transaction};

use super::{Actor, Millis, Project, Store, StoreError, audit};

/// How long a file stays that no run names: one is sent before the run that names it.
const MOMENT: Millis = 60 * 60 * 1000;

/// A data file without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Bytes.
    pub size: u64,
    /// When it was added.
    pub created_at: Millis,
}

impl Store {
    /// Keeps a file under its SHA-256 in hexadecimal digits, which the caller has computed; one that is there stays as it is.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_file(
        &self,
        actor: &Actor,
        project: &Project,
        sha256: &str,
        content: &[u8],
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        Self::drop_unnamed_files(&mut transaction, &project.id, actor.at).await?;
        let added = sqlx::query(
            "INSERT INTO files (project, sha256, size, created_at, content) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (project, sha256) DO NOTHING",
        )
        .bind(&project.id)
        .bind(sha256)
        .bind(i64::try_from(content.len()).unwrap_or(i64::MAX))
        .bind(actor.at)
        .bind(content)
        .execute(&mut *transaction)
        .await?;
        if added.rows_affected() > 0 {
            audit::write(&mut transaction, actor, "file.create", sha256, Some(&project.id)).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// A file of a project by its SHA-256.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn file(&self, project: &Project, sha256: &str) -> Result<Option<KeptFile>, StoreError> {
        let row = sqlx::query("SELECT size, created_at FROM files WHERE project = $1 AND sha256 = $2")
            .bind(&project.id)
            .bind(sha256)
            .fetch_optional(&self.read)
            .await?;
        row.map(|row| {
            Ok(KeptFile {
                size: u64::try_from(row.try_get::<i64, _>("size")?).unwrap_or_default(),
                created_at: row.try_get("created_at")?,
            })
        })
        .transpose()
    }

    /// What a file of a project (by id) holds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn file_content(&self, project: &str, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let row = sqlx::query("SELECT content FROM files WHERE project = $1 AND sha256 = $2")
            .bind(project)
            .bind(sha256)
            .fetch_optional(&self.read)
            .await?;
        Ok(row.map(|row| row.try_get("content")).transpose()?)
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
        Ok(u64::try_from(row.try_get::<i64, _>("size")?).unwrap_or_default())
    }

    /// Deletes the files of a project that no run names, but those that were added a moment ago for one that is to come.
    pub(super) async fn drop_unnamed_files(
        transaction: &mut Transaction<'static, Any>,
        project: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM files WHERE project = $1 AND created_at < $2 AND NOT EXISTS (SELECT 1 FROM runs \
             WHERE runs.project = files.project AND runs.files LIKE '%' || files.sha256 || '%')",
        )
        .bind(project)
        .bind(now - MOMENT)
        .execute(&mut **transaction)
        .await?;
        Ok(())
    }
}
