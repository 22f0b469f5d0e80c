//! Heartbeats of servers and workers, and what becomes of what those left that live no more.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Millis, Store, StoreError, in_millis};

/// How often a process says that it lives.
const BEAT: Duration = Duration::from_secs(20);

/// One of which nothing was heard for so many beats is no more.
const SILENCE: u32 = 6;

/// That no process which was heard of since `$1` has a row.
pub(super) const FORSAKEN: &str =
    "NOT EXISTS (SELECT 1 FROM processes WHERE processes.id = process AND processes.heard_at >= $1)";

/// This machine's clock, in milliseconds since 1970.
fn local() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}

impl Store {
    /// The clock that all processes of a database share, in milliseconds since 1970: that of PostgreSQL as it was read last,
    /// else the machine's.
    pub fn clock(&self) -> impl Fn() -> Millis + Send + Sync + 'static + use<> {
        let ahead = Arc::clone(&self.ahead);
        move || local() + ahead.load(Relaxed)
    }

    /// Reads the clock that all share.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn read_clock(&self) -> Result<(), StoreError> {
        if self.is_sqlite {
            return Ok(());
        }
        let mut connection = self.write.acquire().await?;
        let before = local();
        let select = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        let shared: Millis = sqlx::query_scalar(select).fetch_one(&mut *connection).await?;
        // Somewhere on the way it was read.
        let here = before + (local() - before) / 2;
        self.ahead.store(shared - here, Relaxed);
        Ok(())
    }

    /// Says now and then that this process lives, and takes over what others left, for as long as it is polled.
    pub async fn keep_alive(&self) {
        let clock = self.clock();
        let (mut beats, mut last) = (0, clock());
        loop {
            tokio::time::sleep(BEAT).await;
            // Where it cannot be read, nor can it be said that this process lives.
            let read = self.read_clock().await;
            let now = clock();
            // A machine that slept, or whose clock was set, has heard nobody meanwhile.
            if !(0..2 * in_millis(BEAT)).contains(&(now - last)) {
                beats = 0;
            }
            last = now;
            // Where the database did not answer for a while nobody was heard: those who live come first.
            let beaten = match read {
                Ok(()) => self.beat(now).await,
                Err(error) => Err(error),
            };
            let done = match beaten {
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
    /// aside counts in full, and their runs and trainings are anybody's. Returns how many calls to models that were.
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
