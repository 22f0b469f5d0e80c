//! Time that works natively and in a browser tab, where the standard clock panics.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

pub(crate) use rig_core::wasm_compat::{sleep, timeout};
pub(crate) use web_time::Instant;

/// The wall clock, as time since 1970-01-01T00:00:00Z.
pub(crate) fn since_epoch() -> Duration {
    web_time::SystemTime::now()
        .duration_since(web_time::UNIX_EPOCH)
        .unwrap_or_default()
}

/// What comes of `wait`; nothing, and `wait` is dropped, if `signal` is given before.
pub(crate) async fn unless<T>(signal: impl Future<Output = ()>, wait: impl Future<Output = T>) -> Option<T> {
    match select(pin!(signal), pin!(wait)).await {
        Either::Left(_) => None,
        Either::Right((outcome, _)) => Some(outcome),
    }
}

/// A fresh random fraction in [0, 1) for jitter. It only spreads waiting over time: no answer,
/// score or file depends on it, so it need not be reproducible.
pub(crate) fn jitter() -> f64 {
    use std::cell::RefCell;

    thread_local! {
        static GENERATOR: RefCell<fastrand::Rng> =
            RefCell::new(fastrand::Rng::with_seed(since_epoch().as_nanos() as u64));
    }
    GENERATOR.with_borrow_mut(fastrand::Rng::f64)
}
