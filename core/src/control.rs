//! How a person steers a run from outside.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::poll_fn;
use indexmap::IndexMap;

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

#[derive(Debug, Default)]
struct Inner {
    interrupted: Cell<bool>,
    paused: Cell<bool>,
    queue: RefCell<Vec<SteerEvent>>,
    waker: RefCell<Option<Waker>>,
}

impl Control {
    /// A handle that has not said anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Start nothing new: what is under way ends and is journaled, then the run returns with the
    /// best so far and can be resumed.
    pub fn interrupt(&self) {
        self.inner.interrupted.set(true);
        self.resume();
    }

    /// Whether [`Control::interrupt`] was called.
    pub fn is_interrupted(&self) -> bool {
        self.inner.interrupted.get()
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
        let without = |waiting: &mut Option<IndexMap<String, f64>>, named: &Option<IndexMap<String, f64>>| {
            if let (Some(values), Some(named)) = (waiting.as_mut(), named) {
                values.retain(|metric, _| !named.contains_key(metric));
                if values.is_empty() {
                    *waiting = None;
                }
            }
        };
        self.inner.queue.borrow_mut().retain_mut(|event| {
            without(&mut event.thresholds, &changes.thresholds);
            without(&mut event.multipliers, &changes.multipliers);
            *event != SteerEvent::default()
        });
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
