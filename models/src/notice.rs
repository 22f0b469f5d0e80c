//! When a person is told that calls of a model wait.

use std::cell::Cell;
use std::time::Duration;

use capo_core::llm::FailureKind;
use capo_core::notice::{Notice, Observer, Wait};

use crate::connecting::{PATIENCE, QUIET, TOLD_AFTER};
use crate::failure::Failure;
use crate::time::Instant;

/// The waits of one client, and who is told of them.
#[derive(Clone)]
pub(crate) struct Notices {
    pub(crate) observer: Option<Observer>,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) host: String,
    /// Whether nobody here can tell connecting from waiting for an answer: in a browser, and behind a gate.
    pub(crate) is_blind: bool,
}

/// What people were told of a model's calls.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// When somebody was last told that they wait, until one is answered.
    told: Cell<Option<Instant>>,
    /// Whether any was ever answered, be it with a failure.
    is_answered: Cell<bool>,
}

impl Notices {
    /// A call waits before it is tried again.
    pub(crate) fn waiting(
        &self,
        trouble: &Trouble,
        failure: &Failure,
        message: &str,
        wait: Duration,
        next_try: (u32, u32),
    ) {
        if failure.status.is_some() {
            trouble.is_answered.set(true);
        }
        self.tell(trouble, || Wait {
            kind: failure.kind,
            message: message.to_owned(),
            seconds: wait.as_secs_f64(),
            is_asked: failure.wait.is_some(),
            next_try: Some(next_try),
            ..self.wait()
        });
    }

    /// The provider answered, and asked that the next calls wait.
    pub(crate) fn held(&self, trouble: &Trouble, wait: Duration) {
        // Those that are over before they are read happen all the time.
        if wait >= Duration::from_secs(1) {
            self.tell(trouble, || Wait {
                seconds: wait.as_secs_f64(),
                is_asked: true,
                ..self.wait()
            });
        }
    }

    /// A try that started at `started` has waited for a connection for [`TOLD_AFTER`]. Its own answer ends what is said.
    pub(crate) fn unconnected(&self, trouble: &Trouble, started: Instant) {
        self.tell(trouble, || Wait {
            kind: FailureKind::Unreachable,
            message: format!("no connection after {} s", TOLD_AFTER.as_secs()),
            seconds: PATIENCE.saturating_sub(TOLD_AFTER).as_secs_f64(),
            ..self.wait()
        });
        trouble.told.set(Some(started));
    }

    /// Whether a model that does not answer for [`QUIET`] may as well be out of reach.
    pub(crate) fn is_doubtful(&self, trouble: &Trouble) -> bool {
        self.is_blind && !trouble.is_answered.get()
    }

    /// No call was ever answered, and one that has `left` of its time is under way for [`QUIET`].
    pub(crate) fn unanswered(&self, trouble: &Trouble, left: Duration) {
        self.tell(trouble, || Wait {
            kind: FailureKind::Timeout,
            message: format!("it is slow, or out of reach, after {} s", QUIET.as_secs()),
            seconds: left.as_secs_f64(),
            ..self.wait()
        });
    }

    /// A try that started at `started` was answered.
    pub(crate) fn answered(&self, trouble: &Trouble, started: Instant) {
        let is_first = !trouble.is_answered.replace(true);
        if let Some(observer) = &self.observer
            && trouble
                .told
                .get()
                .is_some_and(|since| is_first || since <= started)
        {
            trouble.told.set(None);
            observer(&Notice::Answered {
                model: self.model.clone(),
                host: self.host.clone(),
            });
        }
    }

    fn tell(&self, trouble: &Trouble, wait: impl FnOnce() -> Wait) {
        if let Some(observer) = &self.observer {
            trouble.told.set(Some(Instant::now()));
            observer(&Notice::Waiting(wait()));
        }
    }

    fn wait(&self) -> Wait {
        Wait {
            model: self.model.clone(),
            provider: self.provider.clone(),
            host: self.host.clone(),
            kind: FailureKind::RateLimit,
            message: "the allowance is used up".to_owned(),
            seconds: 0.0,
            is_asked: false,
            next_try: None,
        }
    }
}
