//! Data sets: files of a project that have a name, and what they hold at a glance.

use capo_api::DataKind;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::columns::{document, number, written, written_word};
use super::{Actor, Millis, Project, Store, StoreError, audit, count, files, present, taken};
use crate::secret;

/// Data sets of a project.
const MOST: u64 = 1000;

/// A data set as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Its name, that of a file.
    pub name: String,
    /// What it is.
    pub kind: DataKind,
    /// SHA-256 of its file.
    pub sha256: String,
    /// Bytes of it.
    pub size: u64,
    /// Number of rows.
    pub rows: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Who added it.
    pub created_by: String,
    /// When it was added.
    pub created_at: Millis,
    /// Runs that name its file.
    pub runs: u64,
}

/// A data set that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedDataSet {
    /// Its name, that of a file.
    pub name: String,
    /// What it is.
    pub kind: DataKind,
    /// SHA-256 of its file, which the project has.
    pub sha256: String,
    /// Number of rows.
    pub rows: usize,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Its first rows, as they are shown.
    pub first: Vec<Vec<String>>,
}

impl DataSet {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            kind: written_word(row, "kind")?.ok_or_else(|| StoreError::Unreadable("kind".into()))?,
            sha256: row.try_get("sha256")?,
            size: count(row, "size")?,
            rows: count(row, "row_count")?,
            columns: document(row, "column_names")?,
            created_by: row.try_get("created_by")?,
            created_at: row.try_get("created_at")?,
            runs: count(row, "runs")?,
        })
    }
}

/// Data sets with what is known of their files.
const DATA_SETS: &str = "SELECT data_sets.id, data_sets.name, data_sets.kind, data_sets.sha256, files.size, data_sets.row_count, \
                         data_sets.column_names, data_sets.created_by, data_sets.created_at, \
                         (SELECT COUNT(*) FROM run_files WHERE run_files.project = data_sets.project \
                         AND run_files.sha256 = data_sets.sha256) AS runs \
                         FROM data_sets JOIN files ON files.project = data_sets.project AND files.sha256 = data_sets.sha256 \
                         WHERE data_sets.project = $1";

impl Store {
    /// Keeps a file of a project as a data set.
    ///
    /// # Errors
    /// When the project does not have the file, has a data set of this name or too many, or the database fails.
    pub async fn add_data_set(
        &self,
        actor: &Actor,
        project: &Project,
        new: &AddedDataSet,
    ) -> Result<DataSet, StoreError> {
        let id = secret::id();
        let mut transaction = self.begin().await?;
        files::touch(&mut transaction, &project.id, &new.sha256, actor.at).await?;
        let there = sqlx::query("SELECT COUNT(*) AS data_sets FROM data_sets WHERE project = $1")
            .bind(&project.id)
            .fetch_one(&mut *transaction)
            .await?;
        if count(&there, "data_sets")? >= MOST {
            return Err(StoreError::TooMany("data sets", MOST));
        }
        sqlx::query(
            "INSERT INTO data_sets (id, project, name, kind, sha256, row_count, column_names, first_rows, created_by, \
             created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(&id)
        .bind(&project.id)
        .bind(&new.name)
        .bind(written(&new.kind))
        .bind(&new.sha256)
        .bind(number(new.rows))
        .bind(written(&new.columns))
        .bind(written(&new.first))
        .bind(&actor.name)
        .bind(actor.at)
        .execute(&mut *transaction)
        .await
        .map_err(taken("data set"))?;
        audit::write(
            &mut transaction,
            actor,
            "data.create",
            &new.name,
            Some(&project.id),
        )
        .await?;
        transaction.commit().await?;
        self.data_set(project, &id).await
    }

    /// The data sets of a project, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn data_sets(&self, project: &Project) -> Result<Vec<DataSet>, StoreError> {
        let statement = format!("{DATA_SETS} ORDER BY data_sets.name, data_sets.id");
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(&project.id)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(DataSet::of).collect()
    }

    /// A data set of a project.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn data_set(&self, project: &Project, id: &str) -> Result<DataSet, StoreError> {
        let statement = format!("{DATA_SETS} AND data_sets.id = $2");
        let row = sqlx::query(AssertSqlSafe(statement))
            .bind(&project.id)
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        DataSet::of(&present(row, "data set")?)
    }

    /// Its first rows.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn first_rows(&self, project: &Project, id: &str) -> Result<Vec<Vec<String>>, StoreError> {
        let row = sqlx::query("SELECT first_rows FROM data_sets WHERE project = $1 AND id = $2")
            .bind(&project.id)
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        document(&present(row, "data set")?, "first_rows")
    }

    /// Deletes a data set; its file stays for as long as runs name it.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn delete_data_set(
        &self,
        actor: &Actor,
        project: &Project,
        set: &DataSet,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let deleted = sqlx::query("DELETE FROM data_sets WHERE project = $1 AND id = $2")
            .bind(&project.id)
            .bind(&set.id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(StoreError::Missing("data set"));
        }
        Self::drop_unnamed_files(&mut transaction, &project.id, actor.at).await?;
        audit::write(
            &mut transaction,
            actor,
            "data.delete",
            &set.name,
            Some(&project.id),
        )
        .await?;
        Ok(transaction.commit().await?)
    }
}
