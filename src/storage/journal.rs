//! A run's journal on its way into IndexedDB.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use capo_core::journal::{JournalStore, LineId, StoreError, slim};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{LocalBoxFuture, ready};
use wasm_bindgen_futures::spawn_local;

use super::{NotKept, Storage};

/// Some lines of a journal.
#[derive(Debug, Clone, Default)]
struct Chunk {
    whole: Vec<String>,
    slim: Vec<String>,
}

/// What happened to lines handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// These lines (without traces) follow those before; `first` is the number of the first.
    Lines {
        /// From 0.
        first: u64,
        /// Lines of the journal, in order.
        lines: Vec<String>,
    },
    /// The first line, the study, was replaced by one with frozen thresholds.
    Study(String),
    /// The browser keeps no more; the journal goes on in memory.
    Refused(String),
    /// What the browser kept is gone; the journal goes on in memory.
    Lost,
}

/// Characters of lines that are kept held in memory as well, in case the site data are cleared; beyond them the
/// oldest are let go.
const HELD: usize = 256 << 20;

/// Told what happens to the journal's lines.
type Observer = Rc<dyn Fn(Saved)>;

/// Whole lines of a journal in chunks, each with the number (from 0) of its first.
pub type Chunks = Vec<(u64, Vec<String>)>;

/// The journal of one run. Lines are handed to the browser whenever the run is about to wait, one
/// chunk after another, so that none is ever kept that follows a missing one. When the browser
/// refuses one, it and all after it stay in memory, so that the run can go on and its journal be
/// downloaded. Clones share the same journal.
#[derive(Clone)]
pub struct StoredJournal {
    storage: Option<Storage>,
    run: Rc<str>,
    inner: Rc<Inner>,
    observer: Observer,
}

#[derive(Default)]
struct Inner {
    /// Number of the next line.
    next: Cell<u64>,
    /// Lines not handed over yet.
    pending: RefCell<Chunk>,
    /// Chunks that are not known to be kept, by the number of their first line.
    unsaved: RefCell<BTreeMap<u64, Chunk>>,
    /// Chunks of this session that are kept, held in case that what is kept is deleted.
    kept: RefCell<BTreeMap<u64, Chunk>>,
    /// Their characters.
    held: Cell<usize>,
    /// Who waits until nothing is being written.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    writing: Cell<bool>,
    refused: Cell<bool>,
    /// Somebody else wrote this journal's next lines: it cannot go on.
    taken: Cell<bool>,
}

impl StoredJournal {
    /// The journal of `run`, which has `lines` lines so far. Without a storage it is kept in memory.
    pub fn new(storage: Option<Storage>, run: &str, lines: u64, observer: Observer) -> Self {
        let inner = Inner::default();
        inner.next.set(lines);
        inner.refused.set(storage.is_none());
        Self {
            storage,
            run: run.into(),
            inner: Rc::new(inner),
            observer,
        }
    }

    /// Takes over the lines that only the memory of an earlier session's journal holds, as far as
    /// they continue exactly where this one ends, and writes them. Returns how many do not: the run
    /// went on elsewhere without them.
    pub fn take_over(&self, earlier: &Self) -> u64 {
        earlier.hand_over();
        let mut left_out = 0;
        for (first, chunk) in earlier.inner.unsaved.take() {
            let lines = chunk.whole.len() as u64;
            if first == self.inner.next.get() {
                self.inner.next.set(first + lines);
                self.inner.unsaved.borrow_mut().insert(first, chunk);
            } else {
                left_out += lines;
            }
        }
        self.write();
        left_out
    }

    /// Lines so far.
    pub fn len(&self) -> u64 {
        self.inner.next.get()
    }

    /// Whether there is no line yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many lines from the first on memory holds.
    pub fn from_memory(&self) -> u64 {
        self.hand_over();
        let starts = self.inner.unsaved.borrow().contains_key(&0);
        if starts { self.len() } else { 0 }
    }

    /// The lines that only memory holds.
    pub fn unsaved(&self) -> Chunks {
        self.hand_over();
        let unsaved = self.inner.unsaved.borrow();
        unsaved
            .iter()
            .map(|(first, chunk)| (*first, chunk.whole.clone()))
            .collect()
    }

    /// The same without traces.
    pub fn unsaved_slim(&self) -> Vec<String> {
        let unsaved = self.inner.unsaved.borrow();
        unsaved
            .values()
            .flat_map(|chunk| chunk.slim.iter().cloned())
            .collect()
    }

    fn hand_over(&self) {
        let chunk = self.inner.pending.take();
        if chunk.whole.is_empty() {
            return;
        }
        let first = self.inner.next.get() - chunk.whole.len() as u64;
        (self.observer)(Saved::Lines {
            first,
            lines: chunk.slim.clone(),
        });
        self.inner.unsaved.borrow_mut().insert(first, chunk);
        self.write();
    }

    /// Writes in the background what is not kept yet, one chunk after another until one is refused.
    fn write(&self) {
        let inner = &self.inner;
        let Some(storage) = self.storage.clone() else {
            return;
        };
        if inner.writing.get() || inner.refused.get() || inner.taken.get() {
            return;
        }
        inner.writing.set(true);
        let journal = self.clone();
        spawn_local(async move {
            while let Some((first, chunk)) = journal.next_unsaved() {
                let kept = storage.add_lines(&journal.run, first, &chunk.whole, &chunk.slim);
                match kept.await {
                    Ok(()) => {
                        journal.inner.unsaved.borrow_mut().remove(&first);
                        journal.hold(first, chunk);
                    }
                    Err(NotKept::Taken) => {
                        journal.inner.taken.set(true);
                        break;
                    }
                    Err(NotKept::Refused(error)) => {
                        journal.inner.refused.set(true);
                        if !journal.is_lost(&storage).await {
                            (journal.observer)(Saved::Refused(error.to_string()));
                        }
                        break;
                    }
                }
            }
            journal.inner.writing.set(false);
            for waiting in journal.inner.waiting.take() {
                // Who waited may be gone.
                let _ = waiting.send(());
            }
        });
    }

    /// Holds a chunk that is kept, and lets go of the oldest when there is much.
    fn hold(&self, first: u64, chunk: Chunk) {
        let size = |chunk: &Chunk| chunk.whole.iter().map(String::len).sum::<usize>();
        let mut kept = self.inner.kept.borrow_mut();
        let mut held = self.inner.held.get() + size(&chunk);
        kept.insert(first, chunk);
        while held > HELD {
            let Some((_, oldest)) = kept.pop_first() else {
                break;
            };
            held -= size(&oldest);
        }
        self.inner.held.set(held);
    }

    /// Whether what was kept is there no more; then memory takes its place, and whoever listens is told.
    async fn is_lost(&self, storage: &Storage) -> bool {
        // A connection that has ended says so by an error: the browser ends it when the data are deleted.
        if matches!(storage.has_record(&self.run).await, Ok(true)) {
            return false;
        }
        self.inner.refused.set(true);
        let kept = self.inner.kept.take();
        self.inner.unsaved.borrow_mut().extend(kept);
        (self.observer)(Saved::Lost);
        true
    }

    fn next_unsaved(&self) -> Option<(u64, Chunk)> {
        let unsaved = self.inner.unsaved.borrow();
        unsaved
            .first_key_value()
            .map(|(first, chunk)| (*first, chunk.clone()))
    }

    /// Hands over what is left, and waits until all is kept or refused.
    pub async fn settle(&self) {
        self.hand_over();
        self.written().await;
    }

    async fn written(&self) {
        if !self.inner.writing.get() {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        self.inner.waiting.borrow_mut().push(sender);
        // The sender lives as long as something is being written.
        let _ = receiver.await;
    }

    fn is_its_own(&self) -> Result<(), StoreError> {
        if self.inner.taken.get() {
            let line = self
                .inner
                .unsaved
                .borrow()
                .keys()
                .next()
                .map_or(0, |first| first + 1);
            return Err(StoreError(format!(
                "{}: what this tab was answered from line {line} of the journal on is not kept. Close the other \
                 tab, then resume the run",
                NotKept::Taken
            )));
        }
        Ok(())
    }

    /// A line that memory holds.
    fn remembered(&self, line: LineId) -> Option<String> {
        let of = |chunks: &BTreeMap<u64, Chunk>| {
            let (first, chunk) = chunks.range(..=line).next_back()?;
            chunk.whole.get((line - first) as usize).cloned()
        };
        of(&self.inner.unsaved.borrow()).or_else(|| of(&self.inner.kept.borrow()))
    }

    /// Replaces the first line where memory holds it, and says whether that is all there is of it.
    fn replace_remembered(&self, line: &str) -> bool {
        let replace = |chunks: &mut BTreeMap<u64, Chunk>| {
            let first = chunks.get_mut(&0);
            first
                .map(|chunk| {
                    line.clone_into(&mut chunk.whole[0]);
                    line.clone_into(&mut chunk.slim[0]);
                })
                .is_some()
        };
        replace(&mut self.inner.kept.borrow_mut());
        replace(&mut self.inner.unsaved.borrow_mut())
    }
}

impl JournalStore for StoredJournal {
    fn append(&mut self, line: &str) -> Result<LineId, StoreError> {
        let mut pending = self.inner.pending.borrow_mut();
        pending.slim.push(slim(line).into_owned());
        pending.whole.push(line.to_owned());
        let id = self.inner.next.get();
        self.inner.next.set(id + 1);
        Ok(id)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.is_its_own()?;
        self.hand_over();
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let journal = self.clone();
        async move {
            journal.written().await;
            journal.is_its_own()
        }
        .boxed_local()
    }

    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>> {
        self.hand_over();
        if let Some(text) = self.remembered(line) {
            return ready(Ok(text)).boxed_local();
        }
        let (storage, run) = (self.storage.clone(), Rc::clone(&self.run));
        async move {
            let found = match storage {
                Some(storage) => storage.line(&run, line).await,
                None => Ok(None),
            };
            found
                .map_err(|error| StoreError(error.to_string()))?
                .ok_or_else(|| {
                    StoreError(format!(
                        "this browser does not have line {} of the journal any more",
                        line + 1
                    ))
                })
        }
        .boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        self.hand_over();
        let (journal, line) = (self.clone(), line.to_owned());
        async move {
            journal.written().await;
            journal.is_its_own()?;
            if !journal.replace_remembered(&line) {
                let storage = journal.storage.as_ref();
                let storage = storage.ok_or_else(|| StoreError("the journal is empty".into()))?;
                let replaced = storage.replace_first_line(&journal.run, &line).await;
                if let Err(error) = replaced
                    && !journal.is_lost(storage).await
                {
                    return Err(StoreError(format!(
                        "the thresholds relative to the seed prompt could not be kept: {error}. Delete runs that \
                         are not needed, then resume this one"
                    )));
                }
            }
            (journal.observer)(Saved::Study(line));
            Ok(0)
        }
        .boxed_local()
    }
}
