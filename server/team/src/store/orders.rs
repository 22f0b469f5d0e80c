//! Orders to a run: to pause, to stop, to go on, and changes that its next round takes up.

use capo_api::{RunStage, RunWish};
use capo_core::journal::SteerEvent;
use sqlx::{Any, Row, Transaction};

use super::columns::{document, written};
use super::runs::Run;
use super::{Actor, Member, Millis, Store, StoreError, audit};

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
             certificates = NULL, study = COALESCE($1, study), touched_at = $2, member = $4, author = NULL \
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
