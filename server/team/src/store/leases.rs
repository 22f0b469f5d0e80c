//! Leases with fencing tokens: who works on which run and training, each its own job.
//!
//! A process claims a job for some seconds and renews that as long as it lives; each claim raises the job's fence, and nothing
//! is written under an earlier one. So one that was taken for dead, and is not, loses what it had under way, and nothing that
//! the journal has is asked for again.

use sqlx::any::{AnyArguments, AnyQueryResult, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::columns::rows;
use super::processes::FORSAKEN;
use super::{Millis, Store, StoreError, count};
use crate::secret;

/// How often a job is taken up without getting further before it is left alone.
const CLAIMS: u64 = 4;

/// From here on no job has lines.
const NO_LINE: i64 = 1 << 62;

/// Ids that lines hold by which room is looked for, a long one and some that take up pages: PostgreSQL keeps long ones apart,
/// and each kind may find room that the other one has not.
const ROOM: [usize; 9] = [512, 56, 56, 56, 56, 56, 56, 56, 56];

/// A process's right to work on a run or a training, until another one claims it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Id of the run or training.
    pub id: String,
    /// Rises with every claim.
    pub fence: i64,
}

/// Why what a process writes of a job is not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Another one has claimed it, or it was deleted.
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

/// A table of jobs, as statements name it.
pub(super) struct Jobs {
    pub(super) table: &'static str,
    /// The column that says where a job stands: `queued`, `running`, `failed`, or elsewhere.
    pub(super) stage: &'static str,
    /// The table of its lines, and the column there that says whose they are.
    lines: [&'static str; 2],
    /// What else is set when somebody takes one up.
    anew: &'static str,
    /// Why one is left alone.
    hopeless: &'static str,
}

impl Jobs {
    pub(super) const RUNS: Self = Self {
        table: "runs",
        stage: "stage",
        lines: ["lines", "run"],
        anew: ", status = NULL, certificates = NULL, waits = 'null'",
        hopeless: "each worker that took it up ended before it had a further line; the servers' logs say why",
    };
    pub(super) const TRAININGS: Self = Self {
        table: "trainings",
        stage: "state",
        lines: ["training_lines", "training"],
        anew: "",
        hopeless: "each process that worked on it ended before it got further; the server's log says more",
    };

    /// A change of a job under a lease, whose values are bound from `$3` on; `end` is what the statement ends with.
    pub(super) fn change(
        &self,
        lease: &Lease,
        set: &'static str,
        end: &'static str,
    ) -> Query<'static, Any, AnyArguments> {
        let Self { table, stage, .. } = self;
        let statement =
            format!("UPDATE {table} SET {set} WHERE id = $1 AND fence = $2 AND {stage} = 'running' {end}");
        sqlx::query(AssertSqlSafe(statement))
            .bind(&lease.id)
            .bind(lease.fence)
    }

    /// Sees whether there is room for lines of a job.
    async fn try_room(
        &self,
        transaction: &mut Transaction<'static, Any>,
        id: &str,
    ) -> Result<(), sqlx::Error> {
        let [lines, of] = self.lines;
        let values = rows(ROOM.len(), 2);
        let insert = format!("INSERT INTO {lines} ({of}, line, body) VALUES {values}");
        let mut insert = sqlx::query(AssertSqlSafe(insert)).bind(id);
        for (line, ids) in (NO_LINE..).zip(ROOM) {
            // What repeats itself takes up less.
            let body: String = (0..ids).map(|_| secret::id()).collect();
            insert = insert.bind(line).bind(body);
        }
        insert.execute(&mut **transaction).await?;
        let delete = format!("DELETE FROM {lines} WHERE {of} = $1 AND line >= $2");
        let deleted = sqlx::query(AssertSqlSafe(delete)).bind(id).bind(NO_LINE);
        deleted.execute(&mut **transaction).await?;
        Ok(())
    }

    /// Takes up the job of a row with its id, fence and claims, or says why it is left alone; nothing where somebody else was
    /// sooner.
    ///
    /// # Errors
    /// When the database fails, or has no room for lines of a job that somebody worked on before.
    pub(super) async fn take_up(
        &self,
        transaction: &mut Transaction<'static, Any>,
        row: &AnyRow,
        process: &str,
        (now, until): (Millis, Millis),
    ) -> Result<Option<(Lease, Option<&'static str>)>, StoreError> {
        let Self {
            table, stage, anew, ..
        } = self;
        let (id, fence): (String, i64) = (row.try_get("id")?, row.try_get("fence")?);
        if fence > 0 {
            // Whoever had it may have let go of it on a full disk: who takes it up there pays for what cannot be kept.
            self.try_room(transaction, &id).await?;
        }
        let error = (count(row, "claims")? >= CLAIMS).then_some(self.hopeless);
        let statement = format!(
            "UPDATE {table} SET {stage} = $1, error = $2, fence = $3 + 1, lease_until = $4, touched_at = $5, \
             claims = claims + 1, process = $7{anew} WHERE id = $6 AND fence = $3 AND {stage} IN ('queued', 'running')"
        );
        let taken = sqlx::query(AssertSqlSafe(statement))
            .bind(error.map_or("running", |_| "failed"))
            .bind(error)
            .bind(fence)
            .bind(until)
            .bind(now)
            .bind(&id)
            .bind(process)
            .execute(&mut **transaction)
            .await?;
        let fence = fence + 1;
        Ok((taken.rows_affected() > 0).then_some((Lease { id, fence }, error)))
    }
}

/// That a change under a lease found its job.
pub(super) fn held(changed: &AnyQueryResult) -> Result<(), NotKept> {
    match changed.rows_affected() {
        0 => Err(NotKept::Lost),
        _ => Ok(()),
    }
}

impl Store {
    /// Gives up the jobs of processes that were not heard of since a moment, for whoever claims them next.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn release_forsaken(&self, heard_since: Millis) -> Result<(), StoreError> {
        for Jobs { table, stage, .. } in [Jobs::RUNS, Jobs::TRAININGS] {
            let statement = format!(
                "UPDATE {table} SET lease_until = 0 WHERE {stage} = 'running' AND lease_until > 0 AND {FORSAKEN}"
            );
            sqlx::query(AssertSqlSafe(statement))
                .bind(heard_since)
                .execute(&self.write)
                .await?;
        }
        Ok(())
    }
}
