//! Claims on runs by workers, and what these write of them.

use capo_api::{RunStage, RunWish};
use capo_core::journal::{Status, SteerEvent};
use capo_core::reading::progress::{Progress, Times};
use capo_hosted::Waits;
use sqlx::AssertSqlSafe;

use super::columns::{number, written, written_word};
use super::journals::insert_lines;
use super::leases::{Jobs, Lease, NotKept, held};
use super::runs::Run;
use super::{Millis, Store, StoreError, Tested, count};

/// What a run was told, as its worker sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Instructions {
    /// To pause or to stop.
    pub wish: Option<RunWish>,
    /// Changes that no round has taken up yet, by number.
    pub steers: Vec<(i64, SteerEvent)>,
}

/// How a worker leaves a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// Where it stands from now on.
    pub stage: RunStage,
    /// How its journal ends.
    pub status: Option<Status>,
    /// Why it could not begin or go on.
    pub error: Option<String>,
    /// What it tested, if it came to an end.
    pub tested: Option<Vec<Tested>>,
}

impl Store {
    /// Claims the run that has waited longest: one that is queued, or one whose worker was not heard of. Of one member no more
    /// than so many run at a time.
    ///
    /// # Errors
    /// When the database fails, or has no room for lines of a run that somebody worked on before.
    pub async fn claim(
        &self,
        now: Millis,
        until: Millis,
        most_of_member: u32,
    ) -> Result<Option<(Lease, Run)>, StoreError> {
        let ready = "((stage = 'queued' AND (start_at IS NULL OR start_at <= $1)) \
                     OR (stage = 'running' AND lease_until <= $1)) \
                     AND NOT EXISTS (SELECT 1 FROM trainings WHERE run = runs.id)";
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
        let times = (now, until);
        let taken = Jobs::RUNS
            .take_up(&mut transaction, &row, &self.process, times)
            .await?;
        transaction.commit().await?;
        let Some((lease, None)) = taken else {
            return Ok(None);
        };
        let run = self.run(&lease.id).await?;
        Ok(Some((lease, run)))
    }

    /// Keeps a run for longer, and says what it was told.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn renew(&self, lease: &Lease, until: Millis) -> Result<Instructions, NotKept> {
        let renewed = Jobs::RUNS.change(lease, "lease_until = $3", "").bind(until);
        held(&renewed.execute(&self.write).await?)?;
        self.instructions(lease).await
    }

    /// What a run was told.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn instructions(&self, lease: &Lease) -> Result<Instructions, NotKept> {
        let row = sqlx::query("SELECT wish FROM runs WHERE id = $1 AND fence = $2 AND stage = 'running'")
            .bind(&lease.id)
            .bind(lease.fence)
            .fetch_optional(&self.read)
            .await?;
        let row = row.ok_or(NotKept::Lost)?;
        Ok(Instructions {
            wish: written_word(&row, "wish")?,
            steers: self.open_steers(&lease.id).await?,
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
        let set = "lines = lines + $3, touched_at = $4, claims = 0";
        let appended = Jobs::RUNS
            .change(lease, set, "AND lines = $5")
            .bind(number(lines.len()))
            .bind(now)
            .bind(number(first));
        held(&appended.execute(&mut *transaction).await?)?;
        insert_lines(&mut transaction, &lease.id, first, lines).await?;
        if let Some(taken) = taken {
            sqlx::query("DELETE FROM steers WHERE run = $1 AND number <= $2")
                .bind(&lease.id)
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
            .bind(&lease.id)
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
        let revised = Jobs::RUNS.change(lease, "revision = revision + 1", "AND lines > 0");
        held(&revised.execute(&mut *transaction).await?)?;
        sqlx::query("UPDATE lines SET body = $1 WHERE run = $2 AND line = 0")
            .bind(line)
            .bind(&lease.id)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Notes what lists show of a run.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn note(&self, lease: &Lease, progress: &Progress, times: &Times) -> Result<(), NotKept> {
        let noted = Jobs::RUNS
            .change(lease, "progress = $3, times = $4", "")
            .bind(written(progress))
            .bind(written(times));
        held(&noted.execute(&self.write).await?)
    }

    /// Notes the model that a run waits for.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn note_waits(&self, lease: &Lease, waits: &Waits) -> Result<(), NotKept> {
        let noted = Jobs::RUNS.change(lease, "waits = $3", "").bind(written(waits));
        held(&noted.execute(&self.write).await?)
    }

    /// Lets go of a run; what it was told since its worker last heard of it counts.
    ///
    /// # Errors
    /// When it is lost, or the database fails.
    pub async fn leave(&self, lease: &Lease, left: &RunOutcome, now: Millis) -> Result<(), NotKept> {
        let set = "stage = CASE WHEN $3 IN ('queued', 'paused') AND wish = 'stop' THEN 'ended' \
                   WHEN $3 = 'queued' AND wish = 'pause' THEN 'paused' ELSE $3 END, \
                   status = $4, error = $5, touched_at = $6, wish = NULL, lease_until = 0, certificates = $7, waits = 'null', \
                   claims = CASE WHEN $3 = 'queued' THEN 0 ELSE claims END";
        let done = Jobs::RUNS
            .change(lease, set, "")
            .bind(written(&left.stage))
            .bind(left.status.as_ref().map(written))
            .bind(&left.error)
            .bind(now)
            .bind(left.tested.as_ref().map(written));
        held(&done.execute(&self.write).await?)
    }
}
