//! Who works on trainings: a training is its own job, claimed and fenced as a run is.

use capo_api::{RunStage, TrainingState};
use capo_core::journal::Status;
use capo_core::reading::progress::{Progress, Times};
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::{number, written, written_word};
use super::journals::insert_lines;
use super::processes::FORSAKEN;
use super::trainings::{Training, stand};
use super::{Millis, NotKept, Store, StoreError, count};

/// How often a training is taken up without getting further before it is left alone.
const CLAIMS: u64 = 4;

/// A process's right to work on a training, until another one claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingLease {
    /// Id of the training.
    pub training: String,
    /// Rises with every claim.
    pub fence: i64,
}

/// How a training is left.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingLeft {
    /// Where it stands from now on.
    pub state: TrainingState,
    /// Why it could not begin or go on.
    pub error: Option<String>,
    /// Whether that it was taken up does not count: the server ended in good order.
    pub in_order: bool,
}

/// Makes sure that a training is still whose lease this is, and notes how far its file has come.
pub(super) async fn hold(
    transaction: &mut Transaction<'static, Any>,
    lease: &TrainingLease,
    reached: u64,
    now: Millis,
) -> Result<(), NotKept> {
    let held = sqlx::query(
        "UPDATE trainings SET touched_at = $1, claims = CASE WHEN reached < $2 THEN 0 ELSE claims END, \
         reached = CASE WHEN reached < $2 THEN $2 ELSE reached END WHERE id = $3 AND fence = $4 AND state = 'running'",
    )
    .bind(now)
    .bind(number(reached))
    .bind(&lease.training)
    .bind(lease.fence)
    .execute(&mut **transaction)
    .await?;
    if held.rows_affected() == 0 {
        return Err(NotKept::Lost);
    }
    Ok(())
}

/// What those who work on trainings do.
impl Store {
    /// Claims the training that has waited longest: one that is queued, or one whose worker was not heard of.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_training(
        &self,
        now: Millis,
        until: Millis,
    ) -> Result<Option<(TrainingLease, Training)>, StoreError> {
        let row = sqlx::query(
            "SELECT id, fence, claims FROM trainings WHERE state = 'queued' OR (state = 'running' AND lease_until <= $1) \
             ORDER BY created_at, id LIMIT 1",
        )
        .bind(now)
        .fetch_optional(&self.read)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let (id, fence): (String, i64) = (row.try_get("id")?, row.try_get("fence")?);
        let is_hopeless = count(&row, "claims")? >= CLAIMS;
        let (state, error) = if is_hopeless {
            let error =
                "each process that worked on it ended before it got further; the server's log says more";
            ("failed", Some(error))
        } else {
            ("running", None)
        };
        let mut transaction = self.begin().await?;
        let claimed = sqlx::query(
            "UPDATE trainings SET state = $1, error = $2, fence = $3 + 1, lease_until = $4, touched_at = $5, \
             claims = claims + 1, process = $7 WHERE id = $6 AND fence = $3 AND state IN ('queued', 'running')",
        )
        .bind(state)
        .bind(error)
        .bind(fence)
        .bind(until)
        .bind(now)
        .bind(&id)
        .bind(&*self.process)
        .execute(&mut *transaction)
        .await?;
        if claimed.rows_affected() == 0 {
            return Ok(None);
        }
        let stage = if is_hopeless {
            RunStage::Failed
        } else {
            RunStage::Running
        };
        stand(&mut transaction, &id, stage, error, now).await?;
        transaction.commit().await?;
        if is_hopeless {
            return Ok(None);
        }
        let training = self.training(&id).await?;
        let lease = TrainingLease {
            training: id,
            fence: fence + 1,
        };
        Ok(Some((lease, training)))
    }

    /// Gives up the trainings of processes that were not heard of since a moment, for whoever claims them next.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn release_forsaken_trainings(&self, heard_since: Millis) -> Result<(), StoreError> {
        let statement = format!(
            "UPDATE trainings SET lease_until = 0 WHERE state = 'running' AND lease_until > 0 AND {FORSAKEN}"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(heard_since)
            .execute(&self.write)
            .await?;
        Ok(())
    }

    /// Keeps a training for longer, and says whether it was told to stop.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn renew_training(&self, lease: &TrainingLease, until: Millis) -> Result<bool, NotKept> {
        let renewed = sqlx::query(
            "UPDATE trainings SET lease_until = $1 WHERE id = $2 AND fence = $3 AND state = 'running'",
        )
        .bind(until)
        .bind(&lease.training)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        if renewed.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        Ok(self.training(&lease.training).await?.stopping)
    }

    /// Appends lines to the log of a training, whose file has `reached` lines by then.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn append_to_training(
        &self,
        lease: &TrainingLease,
        lines: &[String],
        reached: u64,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, reached, now).await?;
        let row = sqlx::query("SELECT lines FROM trainings WHERE id = $1")
            .bind(&lease.training)
            .fetch_one(&mut *transaction)
            .await?;
        let first: i64 = row.try_get("lines")?;
        for (line, body) in (first..).zip(lines) {
            sqlx::query("INSERT INTO training_lines (training, line, body) VALUES ($1, $2, $3)")
                .bind(&lease.training)
                .bind(line)
                .bind(body)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query("UPDATE trainings SET lines = lines + $1 WHERE id = $2")
            .bind(number(lines.len()))
            .bind(&lease.training)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Makes the journal of a training's run the first `first` lines that it has, with these behind them.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn append_to_search(
        &self,
        lease: &TrainingLease,
        run: &str,
        first: u64,
        lines: &[String],
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, first + lines.len() as u64, now).await?;
        let kept = number(first);
        // What the file lost when the machine did.
        let cut = sqlx::query("DELETE FROM lines WHERE run = $1 AND line >= $2")
            .bind(run)
            .bind(kept)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("UPDATE runs SET lines = $1, revision = revision + $2, touched_at = $3 WHERE id = $4")
            .bind(kept + number(lines.len()))
            .bind(i64::from(cut.rows_affected() > 0))
            .bind(now)
            .bind(run)
            .execute(&mut *transaction)
            .await?;
        insert_lines(&mut transaction, run, first, lines).await?;
        Ok(transaction.commit().await?)
    }

    /// Replaces the first line of the journal of a training's run.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn replace_first_of_search(
        &self,
        lease: &TrainingLease,
        run: &str,
        line: &str,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, 0, now).await?;
        sqlx::query("UPDATE runs SET revision = revision + 1 WHERE id = $1")
            .bind(run)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("UPDATE lines SET body = $1 WHERE run = $2 AND line = 0")
            .bind(line)
            .bind(run)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Notes what lists show of a training's run, and how its journal ends.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn note_search(
        &self,
        lease: &TrainingLease,
        run: &str,
        (progress, times, status): (&Progress, &Times, Option<Status>),
    ) -> Result<(), NotKept> {
        let noted = sqlx::query(
            "UPDATE runs SET progress = $1, times = $2, status = $3 WHERE id = $4 AND EXISTS \
             (SELECT 1 FROM trainings WHERE id = $5 AND fence = $6 AND state = 'running')",
        )
        .bind(written(progress))
        .bind(written(times))
        .bind(status.as_ref().map(written))
        .bind(run)
        .bind(&lease.training)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        if noted.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        Ok(())
    }

    /// Lets go of a training; that it was told to stop since its worker last heard of it counts.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn leave_training(
        &self,
        lease: &TrainingLease,
        left: &TrainingLeft,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(
            "UPDATE trainings SET state = CASE WHEN $1 = 'queued' AND stopping = 1 THEN 'stopped' ELSE $1 END, \
             error = $2, stopping = 0, lease_until = 0, touched_at = $3, claims = CASE WHEN $4 = 1 THEN 0 ELSE claims END \
             WHERE id = $5 AND fence = $6 AND state = 'running' RETURNING state",
        )
        .bind(written(&left.state))
        .bind(&left.error)
        .bind(now)
        .bind(i64::from(left.in_order))
        .bind(&lease.training)
        .bind(lease.fence)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = done else {
            return Err(NotKept::Lost);
        };
        let stage = match written_word(&row, "state")?.unwrap_or(left.state) {
            TrainingState::Failed => RunStage::Failed,
            TrainingState::Queued | TrainingState::Running => RunStage::Queued,
            TrainingState::Stopped | TrainingState::Done => RunStage::Ended,
        };
        let error = left.error.as_deref();
        stand(&mut transaction, &lease.training, stage, error, now).await?;
        Ok(transaction.commit().await?)
    }
}
