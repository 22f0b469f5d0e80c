//! Ending work before its time.

use std::fmt;
use std::sync::Arc;

use crate::error::RequestError;

/// Says whether work is to end before its time. Drawing and learning keep their thread busy, so that nothing else on
/// it could tell them: they ask between two passes through the decoder, from whatever thread computes.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use capo_rewriter::stop::Stop;
///
/// let asked = Arc::new(AtomicBool::new(false));
/// let heard = Arc::clone(&asked);
/// let stop = Stop::new(move || heard.load(Ordering::Relaxed));
/// assert!(stop.check().is_ok());
/// asked.store(true, Ordering::Relaxed);
/// assert!(stop.check().is_err());
/// ```
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Work ends once `is_asked` is true. It is called for every token that is drawn, and must not wait.
    pub fn new(is_asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_asked))
    }

    /// # Errors
    ///
    /// [`RequestError::Interrupted`] once work is to end.
    pub fn check(&self) -> Result<(), RequestError> {
        if (self.0)() {
            return Err(RequestError::Interrupted);
        }
        Ok(())
    }
}

impl Default for Stop {
    /// All work goes its whole way.
    fn default() -> Self {
        Self::new(|| false)
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stop({:?})", self.check())
    }
}
