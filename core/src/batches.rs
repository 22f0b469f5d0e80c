//! Batches of calls that a provider works on for hours: they outlive the process that waits for them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::channel::oneshot;

use crate::notice::{BatchUnderWay, Notice};

/// The batches of one model, which its clones share: those that a run's journal tells of, and those under way.
///
/// A provider charges for a batch whoever waits for it, so its id must be durable first. Who hands one in notes it here;
/// the arena journals it as soon as that call waits, and tells a later process's model what the journal says. A batch is
/// noted before it has an id as well, by what finds it in the provider's list, and handed in once that [is
/// written](Batches::written).
#[derive(Debug, Clone, Default)]
pub struct Batches(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    being_handed_in: usize,
    noted: Vec<(String, Vec<String>)>,
    /// All names that batches were noted by, now or before.
    known: HashSet<String>,
    is_journaled: bool,
    unwritten: Vec<oneshot::Sender<()>>,
    /// The last batch of each request that was handed in before and that nobody asked for since.
    earlier: HashMap<String, (String, usize)>,
    news: Vec<Notice>,
    under_way: Vec<BatchUnderWay>,
}

/// A batch is being handed in while this lives.
#[derive(Debug)]
pub struct HandingIn(Batches);

impl Drop for HandingIn {
    fn drop(&mut self) {
        self.0.state().being_handed_in -= 1;
    }
}

impl Batches {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns of a batch that was handed in before, in the order of the journal: the last that a request is in counts.
    pub fn recall(&self, id: &str, requests: &[String]) {
        let batch = (id.to_owned(), requests.len());
        let earlier = requests.iter().map(|request| (request.clone(), batch.clone()));
        let mut state = self.state();
        state.known.insert(id.to_owned());
        state.earlier.extend(earlier);
    }

    /// Whether a batch was noted by this name, now or before.
    pub fn knows(&self, id: &str) -> bool {
        self.state().known.contains(id)
    }

    /// The batch that a request is in since before, and how many calls that has. Asked for again, it is in
    /// none: what comes of that one is for one caller.
    pub fn claim(&self, request: &str) -> Option<(String, usize)> {
        self.state().earlier.remove(request)
    }

    /// Says that a batch is being handed in: until it is noted, nobody should be dropped who waits for it.
    pub fn hand_in(&self) -> HandingIn {
        self.state().being_handed_in += 1;
        HandingIn(self.clone())
    }

    /// Whether a batch is being handed in.
    pub fn is_handing_in(&self) -> bool {
        self.state().being_handed_in > 0
    }

    /// Notes a batch that the provider took, or is about to be given. Whoever notes it waits for something at once, and
    /// the journal has it then.
    pub fn note(&self, id: &str, requests: Vec<String>) {
        let mut state = self.state();
        state.known.insert(id.to_owned());
        state.noted.push((id.to_owned(), requests));
    }

    /// Waits until what was noted is in the journal, where one is kept. Whether it is: not if it cannot be written.
    pub fn written(&self) -> impl Future<Output = bool> + use<> {
        let (written, waiting) = oneshot::channel();
        let mut state = self.state();
        if state.is_journaled {
            state.unwritten.push(written);
        } else {
            let _ = written.send(());
        }
        waiting.map(|heard| heard.is_ok())
    }

    /// Says that a journal is kept.
    pub(crate) fn journal(&self) {
        self.state().is_journaled = true;
    }

    /// Those who wait until what they noted is written.
    pub(crate) fn take_unwritten(&self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.state().unwritten)
    }

    /// The batches noted since this was asked last.
    pub fn take_noted(&self) -> Vec<(String, Vec<String>)> {
        std::mem::take(&mut self.state().noted)
    }

    /// Says that a batch is waited for from now on.
    pub fn wait_for(&self, batch: BatchUnderWay) {
        let mut state = self.state();
        state.news.push(Notice::Batch(batch.clone()));
        state.under_way.push(batch);
    }

    /// Whether a batch is waited for.
    pub fn are_under_way(&self) -> bool {
        !self.state().under_way.is_empty()
    }

    /// Says what a person is to be told of the wait.
    pub fn tell(&self, notice: Notice) {
        self.state().news.push(notice);
    }

    /// Says that it is not waited for any more.
    pub fn ended(&self, id: &str) {
        self.state().under_way.retain(|other| other.id != id);
    }

    /// What a person is to be told, since this was asked last.
    pub fn take_news(&self) -> Vec<Notice> {
        std::mem::take(&mut self.state().news)
    }

    /// The batches that are waited for, once nobody waits for them any more.
    pub(crate) fn take_under_way(&self) -> Vec<BatchUnderWay> {
        std::mem::take(&mut self.state().under_way)
    }
}
