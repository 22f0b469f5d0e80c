//! What trainings came to: archives that lie as objects beside those of data files. Each is there once its row is.

use capo_api::CheckpointShown;
use sqlx::Row;

use super::columns::{document, number, written};
use super::leases::Lease;
use super::training_work::hold;
use super::trainings::Training;
use super::{Millis, NotKept, Store, StoreError};

/// The step under which lies what all checkpoints of a training start from.
const INPUT: i64 = -1;

/// How long an archive may be on its way: its object is deleted then.
const ON_ITS_WAY: Millis = 24 * 60 * 60 * 1000;

/// An archive of a training: a checkpoint, or what all of them start from.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCheckpoint {
    /// The checkpoint as lists show it; `None` of what all start from.
    pub shown: Option<CheckpointShown>,
    /// The object with what the archive holds.
    pub object: String,
    /// SHA-256 of the archive in hexadecimal digits.
    pub sha256: String,
}

impl Store {
    /// Names an object that is about to be written for a training. Unless it is kept within a day, it is deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_checkpoint(&self, training: &Training, now: Millis) -> Result<String, StoreError> {
        self.begin_object(&training.project, now + ON_ITS_WAY).await
    }

    /// Keeps an archive of a training, if there is one, and of its checkpoints from now on only those that are `there`, as
    /// lists show them.
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
            .bind(new.shown.as_ref().map_or(INPUT, |shown| number(shown.step)))
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
        let rows = sqlx::query("SELECT step FROM checkpoints WHERE training = $1 AND step <> $2")
            .bind(&lease.id)
            .bind(INPUT)
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

    /// The archives of a training by its id: what all checkpoints start from, and then these, by step.
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
}
