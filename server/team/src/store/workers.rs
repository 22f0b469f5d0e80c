//! Who works on which run, and what workers write of it.
//!
//! A run is its own job. A worker claims it for some seconds and renews that as long as it lives; each claim raises the
//! run's fence, and nothing is written under an earlier one. So a worker that was taken for dead, and is not, loses what it
//! had under way, and nothing that the journal has is asked for again.

use capo_api::{RunStage, RunWish};
use capo_core::journal::{Status, SteerEvent};
use capo_core::reading::progress::{Progress, Times};
use sqlx::{AssertSqlSafe, Row};

use super::columns::{number, written, written_word};
use super::journals::insert_lines;
use super::processes::FORSAKEN;
use super::runs::Run;
use super::{Millis, Store, StoreError, Tested, count};

/// How often a run is taken up without a further line before it is left alone.
const CLAIMS: u64 = 4;

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
    /// What it tested, if it came to an end.
    pub tested: Option<Vec<Tested>>,
}

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
             certificates = NULL, claims = claims + 1, process = $5 WHERE id = $4",
        )
        .bind(lease.fence)
        .bind(until)
        .bind(now)
        .bind(&lease.run)
        .bind(&*self.process)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        let run = self.run(&lease.run).await?;
        Ok(Some((lease, run)))
    }

    /// Gives up the runs of processes that were not heard of since a moment, for whoever claims them next.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn release_forsaken(&self, heard_since: Millis) -> Result<(), StoreError> {
        let statement = format!(
            "UPDATE runs SET lease_until = 0 WHERE stage = 'running' AND lease_until > 0 AND {FORSAKEN}"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(heard_since)
            .execute(&self.write)
            .await?;
        Ok(())
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
            wish: written_word(&row, "wish")?,
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
        .bind(number(first))
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
             status = $2, error = $3, touched_at = $4, wish = NULL, lease_until = 0, certificates = $7, \
             claims = CASE WHEN $1 = 'queued' THEN 0 ELSE claims END \
             WHERE id = $5 AND fence = $6 AND stage = 'running'",
        )
        .bind(written(&left.stage))
        .bind(left.status.as_ref().map(written))
        .bind(&left.error)
        .bind(now)
        .bind(&lease.run)
        .bind(lease.fence)
        .bind(left.tested.as_ref().map(written))
        .execute(&self.write)
        .await?;
        if done.rows_affected() == 0 {
            return Err(NotKept::Lost);
        }
        Ok(())
    }
}
