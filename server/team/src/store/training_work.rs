//! Claims on trainings by workers: a training is its own job, claimed and fenced as a run is.

use capo_api::{RunStage, TrainingState};
use capo_core::journal::Status;
use capo_core::reading::progress::{Progress, Times};
use sqlx::{Any, Row, Transaction};

use super::columns::{number, written, written_word};
use super::journals::insert_lines;
use super::leases::{Jobs, Lease, NotKept, held};
use super::trainings::{Training, stand};
use super::{Millis, Store, StoreError};

/// How a training is left.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingOutcome {
    /// Where it stands from now on.
    pub state: TrainingState,
    /// Why it could not begin or go on.
    pub error: Option<String>,
    /// Whether that it was taken up does not count: the server ended in good order.
    pub in_order: bool,
}

/// Makes sure that a training is still whose lease this is, and notes how far its file has come and how many lines its log
/// gets. Returns how many it had.
pub(super) async fn hold(
    transaction: &mut Transaction<'static, Any>,
    lease: &Lease,
    (reached, lines): (u64, usize),
    now: Millis,
) -> Result<i64, NotKept> {
    let set = "touched_at = $3, claims = CASE WHEN reached < $4 THEN 0 ELSE claims END, \
               reached = CASE WHEN reached < $4 THEN $4 ELSE reached END, lines = lines + $5";
    let noted = Jobs::TRAININGS
        .change(lease, set, "RETURNING lines")
        .bind(now)
        .bind(number(reached))
        .bind(number(lines))
        .fetch_optional(&mut **transaction)
        .await?;
    Ok(noted.ok_or(NotKept::Lost)?.try_get::<i64, _>("lines")? - number(lines))
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
    ) -> Result<Option<(Lease, Training)>, StoreError> {
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
        let mut transaction = self.begin().await?;
        let times = (now, until);
        let taken = Jobs::TRAININGS
            .take_up(&mut transaction, &row, &self.process, times)
            .await?;
        let Some((lease, error)) = taken else {
            return Ok(None);
        };
        let stage = error.map_or(RunStage::Running, |_| RunStage::Failed);
        stand(&mut transaction, &lease.id, stage, error, now).await?;
        transaction.commit().await?;
        if error.is_some() {
            return Ok(None);
        }
        let training = self.training(&lease.id).await?;
        Ok(Some((lease, training)))
    }

    /// Keeps a training for longer, and says whether it was told to stop.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn renew_training(&self, lease: &Lease, until: Millis) -> Result<bool, NotKept> {
        let renewed = Jobs::TRAININGS.change(lease, "lease_until = $3", "").bind(until);
        held(&renewed.execute(&self.write).await?)?;
        Ok(self.training(&lease.id).await?.stopping)
    }

    /// Appends lines to the log of a training, whose file has `reached` lines by then.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn append_to_training(
        &self,
        lease: &Lease,
        lines: &[String],
        reached: u64,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        let first = hold(&mut transaction, lease, (reached, lines.len()), now).await?;
        for (line, body) in (first..).zip(lines) {
            sqlx::query("INSERT INTO training_lines (training, line, body) VALUES ($1, $2, $3)")
                .bind(&lease.id)
                .bind(line)
                .bind(body)
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Makes the journal of a training's run the first `first` lines that it has, with these behind them.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn append_to_search(
        &self,
        lease: &Lease,
        run: &str,
        first: u64,
        lines: &[String],
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, (first + lines.len() as u64, 0), now).await?;
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
        lease: &Lease,
        run: &str,
        line: &str,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, (0, 0), now).await?;
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
        lease: &Lease,
        run: &str,
        (progress, times, status): (&Progress, &Times, Option<Status>),
    ) -> Result<(), NotKept> {
        let noted = sqlx::query(
            "UPDATE runs SET progress = $1, times = $2, status = $3, certificates = NULL WHERE id = $4 AND EXISTS \
             (SELECT 1 FROM trainings WHERE id = $5 AND fence = $6 AND state = 'running')",
        )
        .bind(written(progress))
        .bind(written(times))
        .bind(status.as_ref().map(written))
        .bind(run)
        .bind(&lease.id)
        .bind(lease.fence)
        .execute(&self.write)
        .await?;
        held(&noted)
    }

    /// Lets go of a training; that it was told to stop since its worker last heard of it counts.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn leave_training(
        &self,
        lease: &Lease,
        left: &TrainingOutcome,
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        let set = "state = CASE WHEN $3 = 'queued' AND stopping = 1 THEN 'stopped' ELSE $3 END, error = $4, stopping = 0, \
                   lease_until = 0, touched_at = $5, claims = CASE WHEN $6 = 1 THEN 0 ELSE claims END";
        let done = Jobs::TRAININGS
            .change(lease, set, "RETURNING state")
            .bind(written(&left.state))
            .bind(&left.error)
            .bind(now)
            .bind(i64::from(left.in_order))
            .fetch_optional(&mut *transaction)
            .await?;
        let row = done.ok_or(NotKept::Lost)?;
        let stage = match written_word(&row, "state")?.unwrap_or(left.state) {
            TrainingState::Failed => RunStage::Failed,
            TrainingState::Queued | TrainingState::Running => RunStage::Queued,
            TrainingState::Stopped | TrainingState::Done => RunStage::Ended,
        };
        let error = left.error.as_deref();
        stand(&mut transaction, &lease.id, stage, error, now).await?;
        Ok(transaction.commit().await?)
    }
}
