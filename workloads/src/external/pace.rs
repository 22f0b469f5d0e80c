//! Waiting for an agent that asks to slow down.

use std::cell::Cell;
use std::time::Duration;

use capo_core::llm::LlmError;
use capo_core::workload::Caller;
use futures_timer::Delay;
use web_time::Instant;

/// How often one rollout waits before it fails.
const WAITS: u32 = 5;

/// The first wait when the agent does not say how long; it doubles with every further one.
const FIRST: Duration = Duration::from_secs(1);

/// An agent that asks for more than this is not waited for.
const LONGEST: Duration = Duration::from_mins(5);

/// How often one that waits looks whether the run goes on.
const GLANCE: Duration = Duration::from_millis(500);

/// Until when no rollout may begin: what the agent tells one of them it tells all.
#[derive(Debug, Default)]
pub(super) struct Pace {
    until: Cell<Option<Instant>>,
}

impl Pace {
    /// How long to wait after an agent asked to slow down, the `slowed`-th time (from 0) of one
    /// rollout; `None` to give up.
    pub(super) fn waiting(slowed: u32, asked: Option<Duration>) -> Option<Duration> {
        let wait = asked.unwrap_or(FIRST * (1 << slowed.min(WAITS)));
        (slowed < WAITS && wait <= LONGEST).then_some(wait)
    }

    /// Lets nobody begin for a while.
    pub(super) fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        self.until.set(self.until.get().max(Some(until)));
    }

    /// Waits until rollouts may begin, or until the run wants no more of them.
    pub(super) async fn wait(&self, caller: &dyn Caller) -> Result<(), LlmError> {
        while let Some(until) = self.until.get() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            caller.may_go_on()?;
            Delay::new(left.min(GLANCE)).await;
            caller.may_go_on()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_as_asked_else_twice_as_long_each_time_and_not_forever() {
        let asked = Some(Duration::from_secs(20));
        assert_eq!(Pace::waiting(0, asked), asked);
        assert_eq!(Pace::waiting(4, asked), asked);
        assert_eq!(Pace::waiting(5, asked), None);
        assert_eq!(Pace::waiting(0, Some(Duration::from_hours(1))), None);
        assert_eq!(Pace::waiting(0, None), Some(FIRST));
        assert_eq!(Pace::waiting(3, None), Some(FIRST * 8));
        assert_eq!(Pace::waiting(u32::MAX, None), None);
    }
}
