//! Which servers and workers live, and what becomes of what the others left.

use std::time::Duration;

use super::{Millis, Store, StoreError};

/// How often a process says that it lives.
const BEAT: Duration = Duration::from_secs(20);

/// One of which nothing was heard for so many beats is no more, as far as machines' clocks agree.
const SILENCE: u32 = 6;

/// That no process which was heard of since `$1` has a row.
pub(super) const FORSAKEN: &str =
    "NOT EXISTS (SELECT 1 FROM processes WHERE processes.id = process AND processes.heard_at >= $1)";

fn in_millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

impl Store {
    /// Says now and then that this process lives, and takes over what others left, for as long as it is polled.
    pub async fn keep_alive(&self, clock: impl Fn() -> Millis) {
        let (mut beats, mut last) = (0, clock());
        loop {
            tokio::time::sleep(BEAT).await;
            let now = clock();
            // A machine that slept, or whose clock was set, has heard nobody meanwhile.
            if !(0..2 * in_millis(BEAT)).contains(&(now - last)) {
                beats = 0;
            }
            last = now;
            // Where the database did not answer for a while nobody was heard: those who live come first.
            let done = match self.beat(now).await {
                Ok(()) if beats < SILENCE => {
                    beats += 1;
                    continue;
                }
                Ok(()) => self.take_over(now, false).await,
                Err(error) => Err(error),
            };
            match done {
                Ok(0) => {}
                Ok(calls) => tracing::warn!(
                    calls,
                    "calls of processes that ended without a word count in full"
                ),
                Err(error) => {
                    beats = 0;
                    tracing::error!(%error, "what ended processes left could not be taken over");
                }
            }
        }
    }

    /// Says that this process lives: to be called before it works, and by [`Store::keep_alive`] from then on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn beat(&self, now: Millis) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO processes (id, heard_at) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET heard_at = excluded.heard_at",
        )
        .bind(&*self.process)
        .bind(now)
        .execute(&self.write)
        .await?;
        Ok(())
    }

    /// Takes over what processes left that ended without a word, all others where this is the only one: what they had set
    /// aside counts in full, and their runs are anybody's. Returns how many calls to models that were.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_over(&self, now: Millis, is_only_process: bool) -> Result<usize, StoreError> {
        let heard_since = if is_only_process {
            Millis::MAX
        } else {
            now - in_millis(BEAT * SILENCE)
        };
        let settled = self.settle_forgotten(now, heard_since).await?;
        self.release_forsaken(heard_since).await?;
        sqlx::query("DELETE FROM processes WHERE heard_at < $1")
            .bind(heard_since)
            .execute(&self.write)
            .await?;
        Ok(settled)
    }
}
