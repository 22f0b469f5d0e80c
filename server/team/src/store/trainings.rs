//! Trainings, and what people tell them.
//!
//! One that learns from its own search has a run, whose journal it alone writes: no worker claims that.

use std::collections::BTreeMap;

use capo_api::{RunOrigin, RunStage, TrainingKind, TrainingStart, TrainingState};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{document, number, written, written_word};
use super::runs::insert_run;
use super::{Actor, AddedRun, Member, Millis, Project, Store, StoreError, audit, count, flag, present};
use crate::secret;

/// Trainings of a project, at most: each has a folder with checkpoints.
const MOST: u64 = 200;

/// Lines of a log that one statement reads.
const READ: i64 = 256;

/// A training as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Id of its project.
    pub project: String,
    /// Name of its project.
    pub project_name: String,
    /// Id of the member on whose account it asks models.
    pub member: String,
    /// Their name.
    pub member_name: String,
    /// Its name for people.
    pub name: String,
    /// What it learns from.
    pub kind: TrainingKind,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that its study names, by path.
    pub files: BTreeMap<String, String>,
    /// Its settings, as TOML.
    pub settings: String,
    /// What it starts from.
    pub start: TrainingStart,
    /// Ids of the runs whose journals it learns from.
    pub runs: Vec<String>,
    /// Whether all weights learn, not an adapter.
    pub full: bool,
    /// Id of the run that is its search.
    pub run: Option<String>,
    /// Where it stands.
    pub state: TrainingState,
    /// Whether it was told to stop and has not yet.
    pub stopping: bool,
    /// Why it could not begin or go on.
    pub error: Option<String>,
    /// When it was added.
    pub created_at: Millis,
    /// When its log or its state last changed.
    pub touched_at: Millis,
    /// Lines of its log.
    pub lines: u64,
    /// The most lines that the file of its log has had of which the log has all.
    pub reached: u64,
}

/// A training that is to be kept.
#[derive(Debug, Clone)]
pub struct AddedTraining {
    /// Its name for people.
    pub name: String,
    /// What it learns from.
    pub kind: TrainingKind,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that its study names, by path.
    pub files: BTreeMap<String, String>,
    /// Its settings, as TOML.
    pub settings: String,
    /// What it starts from.
    pub start: TrainingStart,
    /// Ids of the runs whose journals it learns from.
    pub runs: Vec<String>,
    /// Whether all weights learn, not an adapter.
    pub full: bool,
    /// The run that is its search.
    pub run: Option<AddedRun>,
}

impl Training {
    fn of(row: &AnyRow) -> Result<Self, StoreError> {
        let known = |column: &str| StoreError::Unreadable(column.into());
        Ok(Self {
            id: row.try_get("id")?,
            project: row.try_get("project")?,
            project_name: row.try_get("project_name")?,
            member: row.try_get("member")?,
            member_name: row.try_get("member_name")?,
            name: row.try_get("name")?,
            kind: written_word(row, "kind")?.ok_or_else(|| known("kind"))?,
            study: row.try_get("study")?,
            files: document(row, "files")?,
            settings: row.try_get("settings")?,
            start: document(row, "start")?,
            runs: document(row, "runs")?,
            full: flag(row, "all_weights")?,
            run: row.try_get("run")?,
            state: written_word(row, "state")?.ok_or_else(|| known("state"))?,
            stopping: flag(row, "stopping")?,
            error: row.try_get("error")?,
            created_at: row.try_get("created_at")?,
            touched_at: row.try_get("touched_at")?,
            lines: count(row, "lines")?,
            reached: count(row, "reached")?,
        })
    }
}

/// Trainings with the names of their projects and members.
const TRAININGS: &str = "SELECT trainings.*, projects.name AS project_name, members.name AS member_name FROM trainings \
                         JOIN projects ON projects.id = trainings.project JOIN members ON members.id = trainings.member";

impl Store {
    /// Keeps a training of a project, on the account of a member, with the run that is its search.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_training(
        &self,
        actor: &Actor,
        project: &Project,
        member: &Member,
        new: AddedTraining,
    ) -> Result<Training, StoreError> {
        let id = secret::id();
        let mut transaction = self.begin().await?;
        let there = sqlx::query("SELECT COUNT(*) AS trainings FROM trainings WHERE project = $1")
            .bind(&project.id)
            .fetch_one(&mut *transaction)
            .await?;
        if count(&there, "trainings")? >= MOST {
            return Err(StoreError::TooMany("trainings", MOST));
        }
        let run = match &new.run {
            Some(run) => {
                let training = id.clone();
                let run = AddedRun {
                    origin: Some(RunOrigin::Training { training }),
                    ..run.clone()
                };
                Some(insert_run(&mut transaction, actor, project, member, &run).await?)
            }
            None => None,
        };
        sqlx::query(
            "INSERT INTO trainings (id, project, member, name, kind, study, files, settings, start, runs, all_weights, \
             run, state, stopping, created_at, touched_at, fence, lease_until, claims, lines, reached) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'queued', 0, $13, $13, 0, 0, 0, 0, 0)",
        )
        .bind(&id)
        .bind(&project.id)
        .bind(&member.id)
        .bind(&new.name)
        .bind(written(&new.kind))
        .bind(&new.study)
        .bind(written(&new.files))
        .bind(&new.settings)
        .bind(written(&new.start))
        .bind(written(&new.runs))
        .bind(i64::from(new.full))
        .bind(run)
        .bind(actor.at)
        .execute(&mut *transaction)
        .await?;
        audit::write(
            &mut transaction,
            actor,
            "training.start",
            &new.name,
            Some(&project.id),
        )
        .await?;
        transaction.commit().await?;
        self.training(&id).await
    }

    /// A training.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn training(&self, id: &str) -> Result<Training, StoreError> {
        let statement = format!("{TRAININGS} WHERE trainings.id = $1");
        let row = sqlx::query(AssertSqlSafe(statement))
            .bind(id)
            .fetch_optional(&self.read)
            .await?;
        Training::of(&present(row, "training")?)
    }

    /// The trainings of a project by its id, those that were added last first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn trainings(&self, project: &str) -> Result<Vec<Training>, StoreError> {
        let statement = format!(
            "{TRAININGS} WHERE trainings.project = $1 ORDER BY trainings.created_at DESC, trainings.id DESC"
        );
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(project)
            .fetch_all(&self.read)
            .await?;
        rows.iter().map(Training::of).collect()
    }

    /// Ids of the trainings that have gone their whole way in the projects of a member, and when they had, the latest first:
    /// in all projects for who administers the server.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn done_trainings(&self, member: &Member) -> Result<Vec<(String, Millis)>, StoreError> {
        let rows = if member.is_admin {
            sqlx::query(
                "SELECT id, touched_at FROM trainings WHERE state = 'done' ORDER BY touched_at DESC, id",
            )
            .fetch_all(&self.read)
            .await?
        } else {
            sqlx::query(
                "SELECT trainings.id, trainings.touched_at FROM trainings \
                 JOIN roles ON roles.project = trainings.project \
                 WHERE trainings.state = 'done' AND roles.member = $1 ORDER BY trainings.touched_at DESC, trainings.id",
            )
            .bind(&member.id)
            .fetch_all(&self.read)
            .await?
        };
        rows.iter()
            .map(|row| Ok((row.try_get("id")?, row.try_get("touched_at")?)))
            .collect()
    }

    /// The name of the training whose search a run is.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn training_of_run(&self, run: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT name FROM trainings WHERE run = $1")
            .bind(run)
            .fetch_optional(&self.read)
            .await?;
        Ok(row.map(|row| row.try_get("name")).transpose()?)
    }

    /// The log of a training from a line on, some lines of it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn training_lines(&self, training: &str, from: u64) -> Result<Vec<(u64, String)>, StoreError> {
        let rows = sqlx::query(
            "SELECT line, body FROM training_lines WHERE training = $1 AND line >= $2 ORDER BY line LIMIT $3",
        )
        .bind(training)
        .bind(number(from))
        .bind(READ)
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|row| Ok((count(row, "line")?, row.try_get("body")?)))
            .collect()
    }

    /// Tells a training to stop: at once where nobody works on it, else who does hears of it.
    ///
    /// # Errors
    /// When it is at rest already, or the database fails.
    pub async fn stop_training(&self, actor: &Actor, training: &Training) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let waiting = sqlx::query(
            "UPDATE trainings SET state = 'stopped', touched_at = $1, fence = fence + 1 \
             WHERE id = $2 AND (state = 'queued' OR (state = 'running' AND lease_until <= $1))",
        )
        .bind(actor.at)
        .bind(&training.id)
        .execute(&mut *transaction)
        .await?;
        if waiting.rows_affected() == 0 {
            let told = sqlx::query("UPDATE trainings SET stopping = 1 WHERE id = $1 AND state = 'running'")
                .bind(&training.id)
                .execute(&mut *transaction)
                .await?;
            if told.rows_affected() == 0 {
                return Err(StoreError::AtRest);
            }
        } else {
            stand(&mut transaction, &training.id, RunStage::Paused, None, actor.at).await?;
        }
        note_order(transaction, actor, "training.stop", training).await
    }

    /// Lets a training at rest go on, on the account of who resumes it.
    ///
    /// # Errors
    /// When it goes on already, or the database fails.
    pub async fn resume_training(
        &self,
        actor: &Actor,
        training: &Training,
        by: &Member,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let rests = sqlx::query(
            "UPDATE trainings SET state = 'queued', stopping = 0, error = NULL, claims = 0, touched_at = $1, member = $2 \
             WHERE id = $3 AND state IN ('stopped', 'done', 'failed')",
        )
        .bind(actor.at)
        .bind(&by.id)
        .bind(&training.id)
        .execute(&mut *transaction)
        .await?;
        if rests.rows_affected() == 0 {
            return Err(StoreError::GoesOn);
        }
        sqlx::query("UPDATE runs SET member = $1, author = NULL WHERE id = $2")
            .bind(&by.id)
            .bind(&training.run)
            .execute(&mut *transaction)
            .await?;
        stand(&mut transaction, &training.id, RunStage::Queued, None, actor.at).await?;
        note_order(transaction, actor, "training.resume", training).await
    }

    /// Deletes a training on which nobody works, and its log. Its run stays, to be looked at.
    ///
    /// # Errors
    /// When somebody works on it, there is none, or the database fails.
    pub async fn delete_training(&self, actor: &Actor, training: &Training) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let deleted = sqlx::query("DELETE FROM trainings WHERE id = $1 AND state <> 'running'")
            .bind(&training.id)
            .execute(&mut *transaction)
            .await?;
        if deleted.rows_affected() == 0 {
            transaction.rollback().await?;
            self.training(&training.id).await?;
            return Err(StoreError::Working);
        }
        // Nobody goes on with its search, which no worker could.
        sqlx::query(
            "UPDATE runs SET origin = $1, stage = CASE WHEN stage = 'queued' THEN 'paused' ELSE stage END WHERE id = $2",
        )
            .bind(written(&RunOrigin::Server))
            .bind(&training.run)
            .execute(&mut *transaction)
            .await?;
        note_order(transaction, actor, "training.delete", training).await
    }
}

/// Says where the run stands that is the search of a training, if one is.
pub(super) async fn stand(
    transaction: &mut Transaction<'static, Any>,
    training: &str,
    stage: RunStage,
    error: Option<&str>,
    now: Millis,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE runs SET stage = $1, error = $2, touched_at = $3, status = CASE WHEN $1 = 'running' THEN NULL ELSE status END \
         WHERE id = (SELECT run FROM trainings WHERE id = $4)",
    )
    .bind(written(&stage))
    .bind(error)
    .bind(now)
    .bind(training)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

/// Writes the line of the audit log and ends the transaction.
async fn note_order(
    mut transaction: Transaction<'static, Any>,
    actor: &Actor,
    action: &'static str,
    training: &Training,
) -> Result<(), StoreError> {
    audit::write(
        &mut transaction,
        actor,
        action,
        &training.name,
        Some(&training.project),
    )
    .await?;
    Ok(transaction.commit().await?)
}
