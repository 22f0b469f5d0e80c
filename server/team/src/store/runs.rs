//! Runs: what lists show of them, and their studies.

use std::collections::BTreeMap;

use capo_api::{RunOrigin, RunStage, RunWish};
use capo_core::journal::Status;
use capo_core::reading::progress::{Progress, Times};
use capo_hosted::Waits;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{document, number, written, written_word};
use super::journals::insert_lines;
use super::{Actor, Member, Millis, Project, Store, StoreError, Tested, audit, count, present};
use crate::secret;

/// A run as lists show it: without its study and its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Id of its project.
    pub project: String,
    /// Name of its project.
    pub project_name: String,
    /// Id of the member on whose account it asks models.
    pub member: String,
    /// Their name, or that of who started it elsewhere.
    pub member_name: String,
    /// Its name for people.
    pub name: String,
    /// Where it comes from.
    pub origin: RunOrigin,
    /// Name of the method.
    pub method: String,
    /// The metric that it raises.
    pub objective: String,
    /// Where it stands.
    pub stage: RunStage,
    /// What it was told and has not done yet.
    pub wish: Option<RunWish>,
    /// How its journal ends, once it does.
    pub status: Option<Status>,
    /// Why it could not begin or go on.
    pub error: Option<String>,
    /// When it was added.
    pub created_at: Millis,
    /// Before when it does not start.
    pub start_at: Option<Millis>,
    /// When its journal or its stage last changed.
    pub touched_at: Millis,
    /// Lines of its journal.
    pub lines: u64,
    /// How often the first line was replaced.
    pub revision: u64,
    /// Its numbers, as of the last round or later.
    pub progress: Progress,
    /// When its lines came, as of the last round or later.
    pub times: Times,
    /// The model that it waits for, as its worker says.
    pub waits: Waits,
}

/// The study of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStudy {
    /// As TOML.
    pub text: String,
    /// SHA-256 of the data files that it names, by path.
    pub files: BTreeMap<String, String>,
}

/// A run that is to be kept.
#[derive(Debug, Clone, Default)]
pub struct AddedRun {
    /// Its name for people.
    pub name: String,
    /// Where it comes from; the server itself unless stated.
    pub origin: Option<RunOrigin>,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that its study names, by path.
    pub files: BTreeMap<String, String>,
    /// Name of the method.
    pub method: String,
    /// The metric that it raises.
    pub objective: String,
    /// Before when it does not start.
    pub start_at: Option<Millis>,
    /// Where it stands; queued unless stated.
    pub stage: Option<RunStage>,
    /// How its journal ends.
    pub status: Option<Status>,
    /// Its journal so far.
    pub lines: Vec<String>,
    /// What the journal says.
    pub progress: Progress,
    /// What it says was tested, where somebody has looked.
    pub tested: Option<Vec<Tested>>,
    /// Who started it elsewhere, in words; the member unless stated.
    pub author: Option<String>,
    /// When; now unless stated.
    pub created_at: Option<Millis>,
}

impl Run {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            project: row.try_get("project")?,
            project_name: row.try_get("project_name")?,
            member: row.try_get("member")?,
            member_name: row.try_get("member_name")?,
            name: row.try_get("name")?,
            origin: document(row, "origin")?,
            method: row.try_get("method")?,
            objective: row.try_get("objective")?,
            stage: written_word(row, "stage")?.ok_or_else(|| StoreError::Unreadable("stage".into()))?,
            wish: written_word(row, "wish")?,
            status: written_word(row, "status")?,
            error: row.try_get("error")?,
            created_at: row.try_get("created_at")?,
            start_at: row.try_get("start_at")?,
            touched_at: row.try_get("touched_at")?,
            lines: count(row, "lines")?,
            revision: count(row, "revision")?,
            progress: document(row, "progress")?,
            times: document(row, "times")?,
            waits: document(row, "waits")?,
        })
    }
}

/// Runs with the names of their projects and members.
const RUNS: &str = "SELECT runs.id, runs.project, runs.member, runs.name, runs.origin, runs.method, runs.objective, \
                    runs.stage, runs.wish, runs.status, runs.error, runs.created_at, runs.start_at, runs.touched_at, \
                    runs.lines, runs.revision, runs.progress, runs.times, runs.waits, \
                    projects.name AS project_name, COALESCE(runs.author, members.name) AS member_name FROM runs \
                    JOIN projects ON projects.id = runs.project JOIN members ON members.id = runs.member";

/// Inserts a run of a project, on the account of a member, which holds the files that it names, and returns its id.
pub(super) async fn insert_run(
    transaction: &mut Transaction<'static, Any>,
    actor: &Actor,
    project: &Project,
    member: &Member,
    new: &AddedRun,
) -> Result<String, StoreError> {
    let id = secret::id();
    let origin = new.origin.clone().unwrap_or(RunOrigin::Server);
    let action = match origin {
        RunOrigin::Server | RunOrigin::Training { .. } => "run.start",
        RunOrigin::Pushed => "run.push",
        RunOrigin::Branch { .. } => "run.branch",
    };
    sqlx::query(
        "INSERT INTO runs (id, project, member, name, origin, study, files, method, objective, stage, status, \
         created_at, start_at, touched_at, fence, lease_until, lines, revision, steered, claims, progress, times, \
         author, certificates) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $12, 0, 0, $14, 0, 0, 0, \
         $15, '[]', $16, $17)",
    )
    .bind(&id)
    .bind(&project.id)
    .bind(&member.id)
    .bind(&new.name)
    .bind(written(&origin))
    .bind(&new.study)
    .bind(written(&new.files))
    .bind(&new.method)
    .bind(&new.objective)
    .bind(written(&new.stage.unwrap_or(RunStage::Queued)))
    .bind(new.status.as_ref().map(written))
    .bind(new.created_at.unwrap_or(actor.at))
    .bind(new.start_at)
    .bind(number(new.lines.len()))
    .bind(written(&new.progress))
    .bind(&new.author)
    .bind(new.tested.as_ref().map(written))
    .execute(&mut **transaction)
    .await?;
    Store::hold_files(transaction, &id, &project.id, &new.files, actor.at).await?;
    insert_lines(transaction, &id, 0, &new.lines).await?;
    audit::write(transaction, actor, action, &new.name, Some(&project.id)).await?;
    Ok(id)
}

impl Store {
    /// Keeps a run of a project, on the account of a member.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_run(
        &self,
        actor: &Actor,
        project: &Project,
        member: &Member,
        new: AddedRun,
    ) -> Result<Run, StoreError> {
        let mut transaction = self.begin().await?;
        let id = insert_run(&mut transaction, actor, project, member, &new).await?;
        transaction.commit().await?;
        self.run(&id).await
    }

    /// A run.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn run(&self, id: &str) -> Result<Run, StoreError> {
        let statement = format!("{RUNS} WHERE runs.id = $1");
        let row = sqlx::query(AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        Run::of(&present(row, "run")?)
    }

    /// The study of a run.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn run_study(&self, id: &str) -> Result<RunStudy, StoreError> {
        let row = sqlx::query("SELECT study, files FROM runs WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        let row = present(row, "run")?;
        Ok(RunStudy {
            text: row.try_get("study")?,
            files: document(&row, "files")?,
        })
    }

    /// The runs of some projects, by id, those that were added last first; or those
    /// that come after one that was added then and has this id.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn runs(
        &self,
        projects: &[String],
        before: Option<(Millis, &str)>,
        most: u32,
    ) -> Result<Vec<Run>, StoreError> {
        if projects.is_empty() {
            return Ok(Vec::new());
        }
        let (at, id) = before.unwrap_or((Millis::MAX, ""));
        let named: Vec<String> = (0..projects.len())
            .map(|index| format!("${}", index + 4))
            .collect();
        let statement = format!(
            "{RUNS} WHERE runs.project IN ({}) AND (runs.created_at < $1 OR (runs.created_at = $1 AND runs.id < $2)) \
             ORDER BY runs.created_at DESC, runs.id DESC LIMIT $3",
            named.join(", ")
        );
        let query = sqlx::query(AssertSqlSafe(statement))
            .bind(at)
            .bind(id)
            .bind(i64::from(most));
        let query = projects.iter().fold(query, sqlx::query::Query::bind);
        let rows = query.fetch_all(&self.read).await?;
        rows.iter().map(Run::of).collect()
    }

    /// Gives a run another name.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn rename_run(&self, actor: &Actor, run: &Run, name: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let renamed = sqlx::query("UPDATE runs SET name = $1 WHERE id = $2")
            .bind(name)
            .bind(&run.id)
            .execute(&mut *transaction)
            .await?;
        if renamed.rows_affected() == 0 {
            return Err(StoreError::Missing("run"));
        }
        audit::write(&mut transaction, actor, "run.rename", name, Some(&run.project)).await?;
        Ok(transaction.commit().await?)
    }

    /// Deletes a run on which nobody works, its journal, and the data files that no other run of its project names.
    ///
    /// # Errors
    /// When somebody works on it, there is none, or the database fails.
    pub async fn delete_run(&self, actor: &Actor, run: &Run) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let deleted = sqlx::query("DELETE FROM runs WHERE id = $1 AND stage <> 'running'")
            .bind(&run.id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            transaction.rollback().await?;
            self.run(&run.id).await?;
            return Err(StoreError::Working);
        }
        Self::drop_unnamed_files(&mut transaction, &run.project, actor.at).await?;
        audit::write(
            &mut transaction,
            actor,
            "run.delete",
            &run.name,
            Some(&run.project),
        )
        .await?;
        Ok(transaction.commit().await?)
    }
}
