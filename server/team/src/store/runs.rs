//! Runs: their journals as rows, what they were told, and who works on them.
//!
//! A run is its own job. A worker claims it for some seconds and renews that as long as it lives; each claim raises the
//! run's fence, and nothing is written under an earlier one. So a worker that was taken for dead, and is not, loses what it
//! had under way, and nothing that the journal has is asked for again.

use std::collections::BTreeMap;

use capo_api::{RunOrigin, RunStage, RunWish};
use capo_core::journal::{Status, SteerEvent};
use capo_core::reading::progress::{Progress, Times};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::{Actor, Member, Millis, Project, Store, StoreError, audit, count, present};
use crate::secret;

/// Rows that one statement inserts.
const ROWS: usize = 64;

/// Rows that one statement reads.
const READ: usize = 32;

/// How often a run is taken up without a further line before it is left alone.
const CLAIMS: u64 = 4;

/// A run as it is kept.
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
    /// Their name.
    pub member_name: String,
    /// Its name for people.
    pub name: String,
    /// Where it comes from.
    pub origin: RunOrigin,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that its study names, by path.
    pub files: BTreeMap<String, String>,
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
}

/// A worker's right to work on a run, until somebody else claims it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Id of the run.
    pub run: String,
    /// Rises with every claim.
    pub fence: i64,
}

/// What a run was told, as its worker sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// To pause or to stop.
    pub wish: Option<RunWish>,
    /// Changes that no round has taken up yet, by number.
    pub steers: Vec<(i64, SteerEvent)>,
}

/// Why a worker's lines are not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Another worker has claimed the run, or it was deleted.
    #[error("another worker goes on with this run, or it was deleted")]
    Lost,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for NotKept {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// How a worker leaves a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// Where it stands from now on.
    pub stage: RunStage,
    /// How its journal ends.
    pub status: Option<Status>,
    /// Why it could not begin or go on.
    pub error: Option<String>,
}

/// As it is written in the database, which is as documents say it.
fn written(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(value) => value.to_string(),
        Err(error) => unreachable!("documents are plain: {error}"),
    }
}

fn read<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Unreadable(format!("{column}: {error}")))
}

fn document<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    read(column, &row.try_get::<String, _>(column)?)
}

fn word<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<Option<T>, StoreError> {
    let word: Option<String> = row.try_get(column)?;
    let word = word.map(|word| {
        serde_json::from_value(serde_json::Value::String(word))
            .map_err(|error| StoreError::Unreadable(format!("{column}: {error}")))
    });
    word.transpose()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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
            study: row.try_get("study")?,
            files: document(row, "files")?,
            method: row.try_get("method")?,
            objective: row.try_get("objective")?,
            stage: word(row, "stage")?.ok_or_else(|| StoreError::Unreadable("stage".into()))?,
            wish: word(row, "wish")?,
            status: word(row, "status")?,
            error: row.try_get("error")?,
            created_at: row.try_get("created_at")?,
            start_at: row.try_get("start_at")?,
            touched_at: row.try_get("touched_at")?,
            lines: count(row, "lines")?,
            revision: count(row, "revision")?,
            progress: document(row, "progress")?,
            times: document(row, "times")?,
        })
    }
}

/// Runs with the names of their projects and members.
const RUNS: &str = "SELECT runs.*, projects.name AS project_name, members.name AS member_name FROM runs \
                    JOIN projects ON projects.id = runs.project JOIN members ON members.id = runs.member";

async fn insert_lines(
    transaction: &mut Transaction<'static, Any>,
    run: &str,
    first: u64,
    lines: &[String],
) -> Result<(), sqlx::Error> {
    let mut next = i64::try_from(first).unwrap_or(i64::MAX);
    for rows in lines.chunks(ROWS) {
        let values: Vec<String> = (0..rows.len())
            .map(|row| format!("($1, ${}, ${})", 2 * row + 2, 2 * row + 3))
            .collect();
        let statement = format!("INSERT INTO lines (run, line, body) VALUES {}", values.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(statement)).bind(run);
        for line in rows {
            query = query.bind(next).bind(line);
            next += 1;
        }
        query.execute(&mut **transaction).await?;
    }
    Ok(())
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
        let id = secret::id();
        let origin = new.origin.unwrap_or(RunOrigin::Server);
        let action = match origin {
            RunOrigin::Server => "run.start",
            RunOrigin::Pushed => "run.push",
            RunOrigin::Branch { .. } => "run.branch",
        };
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO runs (id, project, member, name, origin, study, files, method, objective, stage, status, \
             created_at, start_at, touched_at, fence, lease_until, lines, revision, steered, claims, progress, times) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $12, 0, 0, $14, 0, 0, 0, $15, '[]')",
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
        .bind(actor.at)
        .bind(new.start_at)
        .bind(number(new.lines.len()))
        .bind(written(&new.progress))
        .execute(&mut *transaction)
        .await?;
        insert_lines(&mut transaction, &id, 0, &new.lines).await?;
        audit::write(&mut transaction, actor, action, &new.name, Some(&project.id)).await?;
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

/// What people tell a run.
impl Store {
    /// Tells a run to pause or to stop: at once where nobody works on it, else its worker hears of it.
    ///
    /// # Errors
    /// When it is at rest already, or the database fails.
    pub async fn wish(&self, actor: &Actor, run: &Run, wish: RunWish) -> Result<(), StoreError> {
        let (stage, action) = match wish {
            RunWish::Pause => (RunStage::Paused, "run.pause"),
            RunWish::Stop => (RunStage::Ended, "run.stop"),
        };
        let mut transaction = self.begin().await?;
        let waiting = sqlx::query(
            "UPDATE runs SET stage = $1, wish = NULL, touched_at = $2, fence = fence + 1 WHERE id = $3 AND stage <> $1 \
             AND (stage IN ('queued', 'paused') OR (stage = 'running' AND lease_until <= $2))",
        )
        .bind(written(&stage))
        .bind(actor.at)
        .bind(&run.id)
        .execute(&mut *transaction)
        .await?;
        if waiting.rows_affected() == 0 {
            let running = sqlx::query("UPDATE runs SET wish = $1 WHERE id = $2 AND stage = 'running'")
                .bind(written(&wish))
                .bind(&run.id)
                .execute(&mut *transaction)
                .await?;
            if running.rows_affected() == 0 {
                return Err(StoreError::AtRest);
            }
        }
        audit::write(&mut transaction, actor, action, &run.name, Some(&run.project)).await?;
        Ok(transaction.commit().await?)
    }

    /// Lets a run at rest go on, on the account of who resumes it, under another study where one is given.
    ///
    /// # Errors
    /// When it goes on already, or the database fails.
    pub async fn resume_run(
        &self,
        actor: &Actor,
        run: &Run,
        by: &Member,
        study: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let rests = sqlx::query(
            "UPDATE runs SET stage = 'queued', wish = NULL, status = NULL, error = NULL, start_at = NULL, claims = 0, \
             study = COALESCE($1, study), touched_at = $2, member = $4 \
             WHERE id = $3 AND stage IN ('paused', 'ended', 'failed')",
        )
        .bind(study)
        .bind(actor.at)
        .bind(&run.id)
        .bind(&by.id)
        .execute(&mut *transaction)
        .await?;
        if rests.rows_affected() == 0 {
            return Err(StoreError::GoesOn);
        }
        let subject = match study {
            Some(_) => format!("{} (under another study)", run.name),
            None => run.name.clone(),
        };
        audit::write(
            &mut transaction,
            actor,
            "run.resume",
            &subject,
            Some(&run.project),
        )
        .await?;
        Ok(transaction.commit().await?)
    }

    /// Adds a change that the next round takes up.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn steer(&self, actor: &Actor, run: &Run, change: &SteerEvent) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        touch(&mut transaction, &run.id, actor.at).await?;
        // A number is never used again: its worker knows by it what the journal has taken up.
        sqlx::query("UPDATE runs SET steered = steered + 1 WHERE id = $1")
            .bind(&run.id)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(
            "INSERT INTO steers (run, number, change) SELECT id, steered, $2 FROM runs WHERE id = $1",
        )
        .bind(&run.id)
        .bind(written(change))
        .execute(&mut *transaction)
        .await?;
        let subject = format!("{}: {}", run.name, written(change));
        audit::write(&mut transaction, actor, "run.steer", &subject, Some(&run.project)).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes back thresholds and multipliers that no round has taken up yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn withdraw_steers(
        &self,
        actor: &Actor,
        run: &Run,
        change: &SteerEvent,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        touch(&mut transaction, &run.id, actor.at).await?;
        let rows = sqlx::query("SELECT number, change FROM steers WHERE run = $1")
            .bind(&run.id)
            .fetch_all(&mut *transaction)
            .await?;
        for row in &rows {
            let (number, mut left): (i64, SteerEvent) = (row.try_get("number")?, document(row, "change")?);
            left.withdraw(change);
            // The row stays, so that its worker sees that this number says nothing any more.
            sqlx::query("UPDATE steers SET change = $1 WHERE run = $2 AND number = $3")
                .bind(written(&left))
                .bind(&run.id)
                .bind(number)
                .execute(&mut *transaction)
                .await?;
        }
        audit::write(
            &mut transaction,
            actor,
            "run.withdraw",
            &run.name,
            Some(&run.project),
        )
        .await?;
        Ok(transaction.commit().await?)
    }

    /// What no round has taken up yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_steers(&self, run: &str) -> Result<Vec<(i64, SteerEvent)>, StoreError> {
        let rows = sqlx::query("SELECT number, change FROM steers WHERE run = $1 ORDER BY number")
            .bind(run)
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get("number")?, document(row, "change")?)))
            .collect()
    }
}

async fn touch(transaction: &mut Transaction<'static, Any>, run: &str, at: Millis) -> Result<(), StoreError> {
    let touched = sqlx::query("UPDATE runs SET touched_at = $1 WHERE id = $2")
        .bind(at)
        .bind(run)
        .execute(&mut **transaction)
        .await?;
    if touched.rows_affected() == 0 {
        return Err(StoreError::Missing("run"));
    }
    Ok(())
}

/// Journals.
impl Store {
    /// The journal of a run from a line on, up to about so many bytes; at least one line where there is one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lines(&self, run: &str, from: u64, bytes: usize) -> Result<Vec<(u64, String)>, StoreError> {
        let (mut found, mut size) = (Vec::new(), 0);
        loop {
            let next = found.last().map_or(from, |(line, _): &(u64, String)| line + 1);
            let rows = sqlx::query(
                "SELECT line, body FROM lines WHERE run = $1 AND line >= $2 ORDER BY line LIMIT $3",
            )
            .bind(run)
            .bind(i64::try_from(next).unwrap_or(i64::MAX))
            .bind(number(READ))
            .fetch_all(&self.read)
            .await?;
            for row in &rows {
                let body: String = row.try_get("body")?;
                size += body.len();
                found.push((count(row, "line")?, body));
            }
            if rows.len() < READ || size >= bytes {
                return Ok(found);
            }
        }
    }

    /// One line of a journal.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn line(&self, run: &str, line: u64) -> Result<String, StoreError> {
        let row = sqlx::query("SELECT body FROM lines WHERE run = $1 AND line = $2")
            .bind(run)
            .bind(i64::try_from(line).unwrap_or(i64::MAX))
            .fetch_optional(&self.read)
            .await?;
        Ok(present(row, "line")?.try_get("body")?)
    }
}

/// What workers do.
impl Store {
    /// Claims the run that has waited longest: one that is queued, or one whose worker was not heard of. Of one member no more
    /// than so many run at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim(
        &self,
        now: Millis,
        until: Millis,
        most_of_member: u32,
    ) -> Result<Option<(Lease, Run)>, StoreError> {
        let ready = "(stage = 'queued' AND (start_at IS NULL OR start_at <= $1)) \
                     OR (stage = 'running' AND lease_until <= $1)";
        // Most of the time there is none, and nothing is locked for that.
        let statement = format!("SELECT id FROM runs WHERE {ready} LIMIT 1");
        let any = sqlx::query(AssertSqlSafe(statement))
            .bind(now)
            .fetch_optional(&self.read)
            .await?;
        if any.is_none() {
            return Ok(None);
        }
        let mut transaction = self.begin().await?;
        // One worker at a time, so that nobody has more than so many.
        sqlx::query("UPDATE locks SET name = name WHERE name = 'runs'")
            .execute(&mut *transaction)
            .await?;
        let statement = format!(
            "SELECT id, fence, claims FROM runs WHERE ({ready}) AND (SELECT COUNT(*) FROM runs AS others \
             WHERE others.member = runs.member AND others.stage = 'running' AND others.lease_until > $1) < $2 \
             ORDER BY created_at, id LIMIT 1"
        );
        let row = sqlx::query(AssertSqlSafe(statement))
            .bind(now)
            .bind(i64::from(most_of_member))
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let lease = Lease {
            run: row.try_get("id")?,
            fence: row.try_get::<i64, _>("fence")? + 1,
        };
        if count(&row, "claims")? >= CLAIMS {
            sqlx::query(
                "UPDATE runs SET stage = 'failed', fence = $1, error = $2, touched_at = $3 WHERE id = $4",
            )
            .bind(lease.fence)
            .bind("each worker that took it up ended before it had a further line; the servers' logs say why")
            .bind(now)
            .bind(&lease.run)
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            return Ok(None);
        }
        sqlx::query(
            "UPDATE runs SET stage = 'running', fence = $1, lease_until = $2, touched_at = $3, status = NULL, error = NULL, \
             claims = claims + 1 WHERE id = $4",
        )
        .bind(lease.fence)
        .bind(until)
        .bind(now)
        .bind(&lease.run)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        let run = self.run(&lease.run).await?;
        Ok(Some((lease, run)))
    }

    /// Gives the runs of all workers up for whoever claims them next: to be called where none can be alive.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release_runs(&self) -> Result<u64, StoreError> {
        let released = sqlx::query("UPDATE runs SET lease_until = 0 WHERE stage = 'running'")
            .execute(&self.write)
            .await?;
        Ok(released.rows_affected())
    }

    /// Keeps a run for longer, and says what it was told.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn renew(&self, lease: &Lease, until: Millis) -> Result<Told, NotKept> {
        let renewed = sqlx::query(
            "UPDATE runs SET lease_until = $1 WHERE id = $2 AND fence = $3 AND stage = 'running'",
        )
        .bind(until)
        .bind(&lease.run)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        if renewed.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        self.told(lease).await
    }

    /// What a run was told.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn told(&self, lease: &Lease) -> Result<Told, NotKept> {
        let row = sqlx::query("SELECT wish FROM runs WHERE id = $1 AND fence = $2 AND stage = 'running'")
            .bind(&lease.run)
            .bind(lease.fence)
            .fetch_optional(&self.read)
            .await?;
        let row = row.ok_or(NotKept::Lost)?;
        Ok(Told {
            wish: word(&row, "wish")?,
            steers: self.open_steers(&lease.run).await?,
        })
    }

    /// Appends lines to a journal that has `first` lines, and forgets the changes up to number `taken`, which they hold.
    /// Nothing is kept of it when another worker has claimed the run since.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn append(
        &self,
        lease: &Lease,
        first: u64,
        lines: &[String],
        taken: Option<i64>,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        let appended = sqlx::query(
            "UPDATE runs SET lines = lines + $1, touched_at = $2, claims = 0 \
             WHERE id = $3 AND fence = $4 AND stage = 'running' AND lines = $5",
        )
        .bind(number(lines.len()))
        .bind(now)
        .bind(&lease.run)
        .bind(lease.fence)
        .bind(i64::try_from(first).unwrap_or(i64::MAX))
        .execute(&mut *transaction)
        .await?;
        if appended.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        insert_lines(&mut transaction, &lease.run, first, lines).await?;
        if let Some(taken) = taken {
            sqlx::query("DELETE FROM steers WHERE run = $1 AND number <= $2")
                .bind(&lease.run)
                .bind(taken)
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Whether lines that may have been appended were: the journal has as many as it would have then, under the same lease.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn was_appended(&self, lease: &Lease, lines: u64) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT lines FROM runs WHERE id = $1 AND fence = $2")
            .bind(&lease.run)
            .bind(lease.fence)
            .fetch_optional(&self.read)
            .await?;
        Ok(row.map(|row| count(&row, "lines")).transpose()? == Some(lines))
    }

    /// Replaces the first line of a journal.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn replace_first_line(&self, lease: &Lease, line: &str) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        let fenced = sqlx::query(
            "UPDATE runs SET revision = revision + 1 WHERE id = $1 AND fence = $2 AND stage = 'running' AND lines > 0",
        )
        .bind(&lease.run)
        .bind(lease.fence)
        .execute(&mut *transaction)
        .await?;
        if fenced.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        sqlx::query("UPDATE lines SET body = $1 WHERE run = $2 AND line = 0")
            .bind(line)
            .bind(&lease.run)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Notes what lists show of a run.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn note(&self, lease: &Lease, progress: &Progress, times: &Times) -> Result<(), NotKept> {
        let noted = sqlx::query(
            "UPDATE runs SET progress = $1, times = $2 WHERE id = $3 AND fence = $4 AND stage = 'running'",
        )
        .bind(written(progress))
        .bind(written(times))
        .bind(&lease.run)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        if noted.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        Ok(())
    }

    /// Lets go of a run; what it was told since its worker last heard of it counts.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn leave(&self, lease: &Lease, left: &Left, now: Millis) -> Result<(), NotKept> {
        let done = sqlx::query(
            "UPDATE runs SET stage = CASE WHEN $1 IN ('queued', 'paused') AND wish = 'stop' THEN 'ended' \
             WHEN $1 = 'queued' AND wish = 'pause' THEN 'paused' ELSE $1 END, \
             status = $2, error = $3, touched_at = $4, wish = NULL, lease_until = 0, \
             claims = CASE WHEN $1 = 'queued' THEN 0 ELSE claims END \
             WHERE id = $5 AND fence = $6 AND stage = 'running'",
        )
        .bind(written(&left.stage))
        .bind(left.status.as_ref().map(written))
        .bind(&left.error)
        .bind(now)
        .bind(&lease.run)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        if done.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        Ok(())
    }
}
