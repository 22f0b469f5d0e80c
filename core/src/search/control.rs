//! Interruption and steering of a run from outside.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Shared, poll_fn};

use crate::batches::Batches;
use crate::journal::SteerEvent;

/// A handle on a running search; clones steer the same run.
///
/// ```
/// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
/// # use std::rc::Rc;
/// # use capo_core::{journal::{Journal, MemoryJournal}, optimize};
/// # use futures::executor::block_on;
/// use capo_core::arena::RunOptions;
/// use capo_core::control::Control;
/// use capo_core::journal::{SteerEvent, Status};
///
/// let control = Control::new();
/// let options = RunOptions { control: control.clone(), ..RunOptions::default() };
/// // Before the run or from anywhere while it runs: taken up at the next round boundary.
/// control.steer(SteerEvent { stop: true, ..SteerEvent::default() });
///
/// let journal = Journal::create(Box::new(MemoryJournal::new()));
/// let outcome = block_on(optimize(tiny::problem(tiny::STUDY)?, journal, Rc::new(tiny::Tiny), options))?;
/// assert_eq!(outcome.finished.status, Status::Stopped);
/// assert!(outcome.journal.state().rounds().is_empty());
/// # Ok::<(), capo_core::RunError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Control {
    inner: Rc<Inner>,
}

/// Something that happens once, and that any number of tasks may wait for.
#[derive(Debug)]
struct Signal {
    given: Cell<bool>,
    give: RefCell<Option<oneshot::Sender<()>>>,
    wait: Shared<oneshot::Receiver<()>>,
}

impl Default for Signal {
    fn default() -> Self {
        let (give, wait) = oneshot::channel();
        Self {
            given: Cell::new(false),
            give: RefCell::new(Some(give)),
            wait: wait.shared(),
        }
    }
}

impl Signal {
    fn give(&self) {
        self.given.set(true);
        // Dropping it is what those who wait hear.
        drop(self.give.take());
    }

    fn given(&self) -> impl Future<Output = ()> + use<> {
        self.wait.clone().map(|_| ())
    }
}

#[derive(Debug, Default)]
struct Inner {
    interrupted: Signal,
    abandoned: Signal,
    paused: Cell<bool>,
    queue: RefCell<Vec<SteerEvent>>,
    waker: RefCell<Option<Waker>>,
    batches: RefCell<Vec<Batches>>,
}

impl Control {
    /// A handle that has not said anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Start nothing new: no rollout, no further call of one, no further try of a call. Calls under
    /// way may still be answered; then the run returns with the best so far and can be resumed.
    pub fn interrupt(&self) {
        self.inner.interrupted.give();
        self.resume();
    }

    /// Whether [`Control::interrupt`] was called.
    pub fn is_interrupted(&self) -> bool {
        self.inner.interrupted.given.get()
    }

    /// Waits until [`Control::interrupt`] is called. Whoever waits before trying something again
    /// waits for this beside it.
    pub fn interrupted(&self) -> impl Future<Output = ()> + use<> {
        self.inner.interrupted.given()
    }

    /// Interrupt, and wait no longer for calls under way: they are dropped, and what they may have
    /// consumed is counted as an estimate. Said some moments after [`Control::interrupt`].
    pub fn abandon(&self) {
        self.interrupt();
        self.inner.abandoned.give();
    }

    /// Whether [`Control::abandon`] was called.
    pub fn is_abandoned(&self) -> bool {
        self.inner.abandoned.given.get()
    }

    /// Waits until [`Control::abandon`] is called.
    pub fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        self.inner.abandoned.given()
    }

    /// Says what calls of the run are handed in with.
    pub fn mind(&self, batches: Batches) {
        self.inner.batches.borrow_mut().push(batches);
    }

    /// Whether a batch is being handed in: it is paid for, and [`Control::abandon`] would lose it.
    pub fn is_handing_in(&self) -> bool {
        self.inner.batches.borrow().iter().any(Batches::is_handing_in)
    }

    /// Wait at the next round boundary.
    pub fn pause(&self) {
        self.inner.paused.set(true);
    }

    /// Go on after a pause.
    pub fn resume(&self) {
        self.inner.paused.set(false);
        if let Some(waker) = self.inner.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Change thresholds, multipliers or budget, or stop, at the next round boundary. `round` is
    /// filled in there.
    pub fn steer(&self, event: SteerEvent) {
        self.inner.queue.borrow_mut().push(event);
    }

    /// Takes back the thresholds and multipliers that `changes` names, as long as they wait for the
    /// next round boundary. Nothing of them is journaled then.
    pub fn withdraw(&self, changes: &SteerEvent) {
        self.inner.queue.borrow_mut().retain_mut(|event| {
            event.withdraw(changes);
            !event.is_empty()
        });
    }

    /// Puts changes in the place of all that wait for the next round boundary.
    pub fn steer_anew(&self, changes: Vec<SteerEvent>) {
        *self.inner.queue.borrow_mut() = changes;
    }

    pub(crate) fn take(&self) -> Vec<SteerEvent> {
        self.inner.queue.take()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.inner.paused.get()
    }

    pub(crate) async fn resumed(&self) {
        poll_fn(|context| {
            if self.inner.paused.get() {
                *self.inner.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn everybody_who_waits_hears_of_an_interruption() {
        let control = Control::new();
        let (one, other) = (control.interrupted(), control.clone().interrupted());
        assert!(control.interrupted().now_or_never().is_none());
        control.interrupt();
        assert!(control.is_interrupted() && !control.is_abandoned());
        assert!(one.now_or_never().is_some() && other.now_or_never().is_some());
        assert!(control.interrupted().now_or_never().is_some());
        assert!(control.abandoned().now_or_never().is_none());
    }

    #[test]
    fn who_abandons_interrupts() {
        let control = Control::new();
        control.abandon();
        assert!(control.is_interrupted() && control.is_abandoned());
        assert!(control.abandoned().now_or_never().is_some());
    }
}
