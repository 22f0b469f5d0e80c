//! Checkpoints of trainings: archives that lie as objects beside those of data files. Each is there once its row is.

use capo_api::CheckpointShown;
use sqlx::Row;

use super::columns::{document, number, written};
use super::leases::Lease;
use super::training_work::hold;
use super::trainings::Training;
use super::{Millis, NotKept, Store, StoreError};

/// How long an archive may be on its way: its object is deleted then.
const ON_ITS_WAY: Millis = 24 * 60 * 60 * 1000;

/// A checkpoint of a training, as an archive of its policy.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCheckpoint {
    /// The checkpoint as lists show it.
    pub shown: CheckpointShown,
    /// The object with what the archive holds.
    pub object: String,
    /// SHA-256 of the archive in hexadecimal digits.
    pub sha256: String,
}

impl Store {
    /// Names the object that is about to be written for a checkpoint by who has the training, in each try the same. Unless it is
    /// kept within a day, it is deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_checkpoint(
        &self,
        lease: &Lease,
        training: &Training,
        step: u64,
        now: Millis,
    ) -> Result<String, StoreError> {
        let object = format!("{}/{}-{}-{step}", training.project, lease.id, lease.fence);
        sqlx::query(
            "INSERT INTO leftovers (object, due_at) VALUES ($1, $2) \
             ON CONFLICT (object) DO UPDATE SET due_at = EXCLUDED.due_at",
        )
        .bind(&object)
        .bind(now + ON_ITS_WAY)
        .execute(&self.write)
        .await?;
        Ok(object)
    }

    /// Keeps a new checkpoint of a training, if there is one, and from now on only those that are `there`, as lists show
    /// them.
    ///
    /// # Errors
    /// When the training is lost, the object was deleted since it was begun, or the database fails.
    pub async fn keep_checkpoints(
        &self,
        lease: &Lease,
        new: Option<&KeptCheckpoint>,
        there: &[CheckpointShown],
        now: Millis,
    ) -> Result<(), NotKept> {
        let mut transaction = self.begin().await?;
        hold(&mut transaction, lease, (0, 0), now).await?;
        if let Some(new) = new {
            sqlx::query(
                "INSERT INTO checkpoints (training, step, shown, object, sha256) VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(&lease.id)
            .bind(number(new.shown.step))
            .bind(written(&new.shown))
            .bind(&new.object)
            .bind(&new.sha256)
            .execute(&mut *transaction)
            .await?;
            let begun = sqlx::query("DELETE FROM leftovers WHERE object = $1")
                .bind(&new.object)
                .execute(&mut *transaction)
                .await?;
            if begun.rows_affected() == 0 {
                return Err(StoreError::Missing("upload any more").into());
            }
        }
        let rows = sqlx::query("SELECT step FROM checkpoints WHERE training = $1")
            .bind(&lease.id)
            .fetch_all(&mut *transaction)
            .await?;
        for row in rows {
            let step: i64 = row.try_get("step")?;
            let shown = there.iter().find(|shown| number(shown.step) == step);
            let statement = match shown {
                Some(_) => "UPDATE checkpoints SET shown = $3 WHERE training = $1 AND step = $2",
                None => "DELETE FROM checkpoints WHERE training = $1 AND step = $2",
            };
            let query = sqlx::query(statement).bind(&lease.id).bind(step);
            let query = match shown {
                Some(shown) => query.bind(written(shown)),
                None => query,
            };
            query.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The checkpoints that are kept of a training (by id), by step.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn checkpoints(&self, training: &str) -> Result<Vec<KeptCheckpoint>, StoreError> {
        let rows =
            sqlx::query("SELECT shown, object, sha256 FROM checkpoints WHERE training = $1 ORDER BY step")
                .bind(training)
                .fetch_all(&self.read)
                .await?;
        let kept = rows.iter().map(|row| {
            Ok(KeptCheckpoint {
                shown: document(row, "shown")?,
                object: row.try_get("object")?,
                sha256: row.try_get("sha256")?,
            })
        });
        kept.collect()
    }

    /// The SHA-256 of all archives that are kept.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn archives(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query("SELECT sha256 FROM checkpoints")
            .fetch_all(&self.read)
            .await?;
        let archives = rows.iter().map(|row| row.try_get("sha256"));
        Ok(archives.collect::<Result<_, _>>()?)
    }
}
