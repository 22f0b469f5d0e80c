//! Connections that are slow to come about: a host that answers nothing is told of before its time is over.

#[cfg(not(target_arch = "wasm32"))]
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(not(target_arch = "wasm32"))]
use futures::future::{Either, select};

#[cfg(not(target_arch = "wasm32"))]
use crate::time;

/// How long a connection may take to come about: nobody waits a whole `timeout_seconds` to hear that there is nobody.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a try waits for its connection before people are told.
pub(crate) const TOLD_AFTER: Duration = Duration::from_secs(2);

/// How long a model that never answered may be quiet before people are told, where nobody knows of its connection.
pub(crate) const QUIET: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });

/// From when on a connection counts as slow: early enough to be known when people are to be told.
#[cfg(not(target_arch = "wasm32"))]
const SLOW: Duration = Duration::from_millis(1500);

/// How many connections to one place are slow right now. None in a browser, which does not tell connecting from
/// waiting for an answer.
#[derive(Clone, Default)]
pub(crate) struct Connecting(Arc<AtomicUsize>);

impl Connecting {
    pub(crate) fn is_slow(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Counts one while it lives.
#[cfg(not(target_arch = "wasm32"))]
struct Counted(Connecting);

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What comes of a connection, which is counted while it is slow.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) async fn counted<T>(connecting: Connecting, connection: impl Future<Output = T>) -> T {
    match select(pin!(connection), pin!(time::sleep(SLOW))).await {
        Either::Left((connected, _)) => connected,
        Either::Right(((), connection)) => {
            connecting.0.fetch_add(1, Ordering::Relaxed);
            let _counted = Counted(connecting);
            connection.await
        }
    }
}
