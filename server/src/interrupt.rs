//! Ctrl-C: the first one ends a run in good order, the second one at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::sync::Notify;

/// Exit code of a process that was told twice to end: as for a run that was stopped.
const STOPPED: i32 = 3;

/// Knows whether the person has asked for an end. Clones know the same.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    asked: Arc<AtomicBool>,
    notify: Arc<Notify>,
}

impl Interrupts {
    /// Listens from now on, for Ctrl-C and for the signal that service managers send. `said` is
    /// called at the first one; the second one ends the process.
    ///
    /// A thread of its own listens: a run over models in this process may keep its own thread busy
    /// for long.
    ///
    /// # Errors
    /// When the system gives no thread or no signals.
    pub fn listen(said: impl Fn() + Send + 'static) -> io::Result<Self> {
        let interrupts = Self::default();
        let heard = interrupts.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        thread::Builder::new().name("interrupts".into()).spawn(move || {
            runtime.block_on(async {
                while signal().await.is_ok() {
                    if heard.asked.swap(true, Ordering::SeqCst) {
                        std::process::exit(STOPPED);
                    }
                    said();
                    heard.notify.notify_one();
                }
            });
        })?;
        Ok(interrupts)
    }

    /// Whether an end was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until an end is asked for.
    pub async fn asked(&self) {
        while !self.is_asked() {
            self.notify.notified().await;
        }
    }
}

#[cfg(unix)]
async fn signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
