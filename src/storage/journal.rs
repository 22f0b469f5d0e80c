//! A journal in IndexedDB.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use capo_core::journal::{JournalStore, LineId, StoreError};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{LocalBoxFuture, ready};
use idb::{CursorDirection, KeyRange, Query};
use js_sys::JsString;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::{LINES, SLIM, Storage, StorageError, all_of, key, slim};

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
        /// In order.
        lines: Vec<String>,
    },
    /// The first line, the study, was replaced by one with frozen thresholds.
    Study(String),
    /// The browser keeps no more; the journal goes on in memory.
    Refused(String),
}

/// Told what happens to the journal's lines.
type Observer = Rc<dyn Fn(Saved)>;

/// The journal of one run. Lines are handed to the browser whenever the run is about to wait. When
/// it refuses them they stay in memory, so that the run can go on and its journal be downloaded.
/// Clones share the same journal.
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
    /// Who waits until nothing is being written.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    writing: Cell<usize>,
    refused: Cell<bool>,
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

    /// Lines so far.
    pub fn len(&self) -> u64 {
        self.inner.next.get()
    }

    /// Whether there is no line yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines that only memory holds, whole, with the number of each chunk's first.
    pub fn unsaved(&self) -> Vec<(u64, Vec<String>)> {
        let unsaved = self.inner.unsaved.borrow();
        unsaved
            .iter()
            .map(|(first, chunk)| (*first, chunk.whole.clone()))
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
        self.inner.unsaved.borrow_mut().insert(first, chunk.clone());
        self.save(first, chunk);
    }

    /// Writes a chunk in the background.
    fn save(&self, first: u64, chunk: Chunk) {
        let Some(storage) = self.storage.clone().filter(|_| !self.inner.refused.get()) else {
            return;
        };
        self.inner.writing.set(self.inner.writing.get() + 1);
        let journal = self.clone();
        spawn_local(async move {
            let inner = &journal.inner;
            match storage
                .put_lines(&journal.run, first, &chunk.whole, &chunk.slim)
                .await
            {
                Ok(()) => {
                    inner.unsaved.borrow_mut().remove(&first);
                }
                Err(error) => {
                    if !inner.refused.replace(true) {
                        (journal.observer)(Saved::Refused(error.to_string()));
                    }
                }
            }
            inner.writing.set(inner.writing.get() - 1);
            if inner.writing.get() == 0 {
                for waiting in inner.waiting.take() {
                    // Who waited may be gone.
                    let _ = waiting.send(());
                }
            }
        });
    }

    async fn written(self) {
        if self.inner.writing.get() == 0 {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        self.inner.waiting.borrow_mut().push(sender);
        // The sender lives as long as something is being written.
        let _ = receiver.await;
    }

    /// A line that memory holds.
    fn remembered(&self, line: LineId) -> Option<String> {
        let unsaved = self.inner.unsaved.borrow();
        let (first, chunk) = unsaved.range(..=line).next_back()?;
        chunk.whole.get((line - first) as usize).cloned()
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
        self.hand_over();
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.clone().written().map(Ok).boxed_local()
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
                .ok_or_else(|| StoreError(format!("the journal has no line {}", line + 1)))
        }
        .boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        self.hand_over();
        let (journal, line) = (self.clone(), line.to_owned());
        async move {
            journal.clone().written().await;
            let mut chunk = match journal.inner.unsaved.borrow().get(&0) {
                Some(chunk) => chunk.clone(),
                None => Chunk::default(),
            };
            if chunk.whole.is_empty()
                && let Some(storage) = &journal.storage
            {
                let read = storage.chunk(&journal.run, 0).await;
                let (whole, slim) = read.map_err(|error| StoreError(error.to_string()))?;
                chunk = Chunk { whole, slim };
            }
            let first = chunk.whole.first_mut().zip(chunk.slim.first_mut());
            let (whole, slim) = first.ok_or_else(|| StoreError("the journal is empty".into()))?;
            whole.clone_from(&line);
            slim.clone_from(&line);
            journal.inner.unsaved.borrow_mut().insert(0, chunk.clone());
            journal.save(0, chunk);
            journal.clone().written().await;
            (journal.observer)(Saved::Study(line));
            Ok(0)
        }
        .boxed_local()
    }
}

impl Storage {
    /// Keeps lines of a journal; `first` is the number of the first.
    ///
    /// # Errors
    /// When the browser refuses; none of them is kept then.
    pub async fn put_lines(
        &self,
        run: &str,
        first: u64,
        whole: &[String],
        slim: &[String],
    ) -> Result<(), StorageError> {
        let at = key(run, first as f64);
        let text = |lines: &[String]| JsValue::from(JsString::from(lines.join("\n")));
        self.write(&[LINES, SLIM], |store| {
            store(LINES)?.put(&text(whole), Some(&at))?;
            store(SLIM)?.put(&text(slim), Some(&at))?;
            Ok(())
        })
        .await
    }

    /// All lines of a journal without traces, in chunks, in order.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn slim_chunks(&self, run: &str) -> Result<Vec<String>, StorageError> {
        self.chunks(SLIM, run).await
    }

    /// All lines of a journal, whole, in chunks, in order.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn whole_chunks(&self, run: &str) -> Result<Vec<String>, StorageError> {
        self.chunks(LINES, run).await
    }

    /// The same, by the number (from 0) of each chunk's first line.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn numbered_chunks(&self, run: &str) -> Result<BTreeMap<u64, String>, StorageError> {
        let keys = self.store(LINES)?.get_all_keys(Some(all_of(run)?), None)?.await?;
        let first = |key: JsValue| js_sys::Array::from(&key).get(1).as_f64();
        let firsts = keys.into_iter().filter_map(first);
        // Chunks only ever follow, so what was added since the keys were read has no part in it.
        Ok(firsts
            .map(|first| first as u64)
            .zip(self.whole_chunks(run).await?)
            .collect())
    }

    async fn chunks(&self, store: &str, run: &str) -> Result<Vec<String>, StorageError> {
        let found = self.store(store)?.get_all(Some(all_of(run)?), None)?.await?;
        Ok(found.into_iter().filter_map(|chunk| chunk.as_string()).collect())
    }

    async fn chunk(&self, run: &str, first: u64) -> Result<(Vec<String>, Vec<String>), StorageError> {
        let at = || key(run, first as f64);
        let lines = |text: Option<String>| {
            text.iter()
                .flat_map(|text| text.lines())
                .map(str::to_owned)
                .collect()
        };
        Ok((
            lines(self.text(LINES, at()).await?),
            lines(self.text(SLIM, at()).await?),
        ))
    }

    /// One line, whole; `None` when the journal has none of that number.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn line(&self, run: &str, line: LineId) -> Result<Option<String>, StorageError> {
        // The chunk with the last first line at or below it.
        let range = KeyRange::bound(&key(run, 0.0), &key(run, line as f64), None, None)?;
        let cursor = self
            .store(LINES)?
            .open_cursor(Some(Query::KeyRange(range)), Some(CursorDirection::Prev))?
            .await?;
        let Some(cursor) = cursor else { return Ok(None) };
        let first = js_sys::Array::from(&cursor.key()?)
            .get(1)
            .as_f64()
            .unwrap_or_default() as u64;
        let text = cursor.value()?.as_string().unwrap_or_default();
        Ok(text.lines().nth((line - first) as usize).map(str::to_owned))
    }
}
