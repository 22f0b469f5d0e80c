//! Storage of this browser: runs with their journals, in IndexedDB.
//!
//! A journal lies in two stores side by side, `lines` whole and `slim` without traces: a run is
//! opened from the slim lines, which are a tenth of its size, and a trace is read when somebody
//! looks at it. Both hold chunks of lines, keyed by the run and the number of their first line.
//!
//! A run of the team server is mirrored here when somebody opens it (`mirror.rs`), so that whatever
//! shows a run reads it from here.

mod benchmark;
mod choices;
mod journal;
mod lines;
pub mod lock;
mod mirror;
mod notes;
mod records;
mod report;

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{self, Either, FutureExt as _, Shared};
use idb::{Database, DatabaseEvent, Factory, ObjectStore, Query, Transaction, TransactionMode};
use js_sys::{Array, JsString};
use wasm_bindgen::{JsCast, JsValue};

use self::report::Reported;

pub use choices::{keep_choice, kept_choice, local_storage};
pub use journal::{Chunks, Saved, StoredJournal};
pub use lines::{Lines, NotKept};
pub use mirror::{ServerRun, mirror_id, server_id};
pub use notes::{Note, Notes, change_note};
pub use records::{Check, RunList, RunRecord, RunStatus};
pub use report::{is_report, runs_of_report};

/// Name of the database.
const NAME: &str = "capo";
/// Version of its layout.
const VERSION: u32 = 1;

/// Run id → [`RunRecord`].
const RUNS: &str = "runs";
/// (run id, first line) → whole lines.
const LINES: &str = "lines";
/// (run id, first line) → the same lines without traces.
const SLIM: &str = "slim";
/// (run id, path) → a data file the study names; and the files of the benchmark.
const FILES: &str = "files";
/// Name → what is kept encrypted.
const VAULT: &str = "vault";

/// Something this browser would not store or give back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub String);

impl From<idb::Error> for StorageError {
    fn from(error: idb::Error) -> Self {
        let said = error.to_string();
        // The browser's words for a database that is not there any more.
        if said.contains("InvalidStateError") {
            return Self("the stored data of this page were deleted; reload it".into());
        }
        Self(said)
    }
}

impl From<JsValue> for StorageError {
    fn from(value: JsValue) -> Self {
        let said = value.dyn_ref::<js_sys::Error>().map(js_sys::Error::message);
        Self(said.map_or_else(|| format!("{value:?}"), String::from))
    }
}

/// The database of this browser, or the runs of a report. Clones share one connection.
#[derive(Clone)]
pub struct Storage {
    kept: Backend,
    /// Done when the browser has ended the connection.
    ended: Shared<oneshot::Receiver<()>>,
}

/// Where runs lie.
#[derive(Clone)]
enum Backend {
    InDatabase(Rc<Database>),
    /// In the document, which is only read.
    InReport(Rc<[Reported]>),
}

thread_local! {
    static OPEN: RefCell<Option<Storage>> = const { RefCell::new(None) };
}

/// Closes the connection that was opened last.
fn let_go() {
    if let Some(Backend::InDatabase(database)) = OPEN.take().map(|open| open.kept) {
        database.close();
    }
}

impl Storage {
    /// Opens the database, once for each page and worker.
    ///
    /// # Errors
    /// When the browser refuses (private windows, storage switched off, a disk that is full), or a report does not read.
    pub async fn open() -> Result<Self, StorageError> {
        if let Some(open) = OPEN.with_borrow(Clone::clone) {
            return Ok(open);
        }
        if is_report() {
            let storage = Self {
                kept: Backend::InReport(report::read()?.into()),
                ended: oneshot::channel().1.shared(),
            };
            OPEN.with_borrow_mut(|open| *open = Some(storage.clone()));
            return Ok(storage);
        }
        let mut request = Factory::new()?.open(NAME, Some(VERSION))?;
        request.on_upgrade_needed(|event| {
            let Ok(database) = event.database() else { return };
            for store in [RUNS, LINES, SLIM, FILES, VAULT] {
                // A store that cannot be made is missed, and named, by whoever needs it.
                let _ = database.create_object_store(store, idb::ObjectStoreParams::new());
            }
        });
        let mut database = request.await?;
        // Cleared site data end the connection: the next who asks opens another.
        let (end, ended) = oneshot::channel();
        database.on_close(move |_| {
            // Who waits may be gone.
            let _ = end.send(());
            let_go();
        });
        // Somebody deletes the database. What waits for that would wait as long as this page is open, and what is
        // written meanwhile is lost: it is told at once.
        database.on_version_change(|_| let_go());
        // They must live when the browser calls them, whoever holds the connection then.
        database.forget_callbacks();
        let storage = Self {
            kept: Backend::InDatabase(Rc::new(database)),
            ended: ended.shared(),
        };
        OPEN.with_borrow_mut(|open| *open = Some(storage.clone()));
        Ok(storage)
    }

    fn database(&self) -> Result<&Database, StorageError> {
        match &self.kept {
            Backend::InDatabase(database) => Ok(database),
            Backend::InReport(_) => Err(StorageError(
                "this is a report: it has the runs it was made of, and keeps nothing".into(),
            )),
        }
    }

    /// The run of this id, if this is a report that has it.
    fn reported(&self, id: &str) -> Option<&Reported> {
        match &self.kept {
            Backend::InDatabase(_) => None,
            Backend::InReport(all) => all.iter().find(|reported| reported.record.id == id),
        }
    }

    /// Writes in one transaction; nothing of it is kept when it fails.
    async fn write(
        &self,
        stores: &[&str],
        put: impl FnOnce(&dyn Fn(&str) -> Result<ObjectStore, StorageError>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let transaction = self.database()?.transaction(stores, TransactionMode::ReadWrite)?;
        put(&|store| Ok(transaction.object_store(store)?))?;
        self.committed(transaction).await
    }

    /// Waits until what a transaction writes is kept.
    async fn committed(&self, mut transaction: Transaction) -> Result<(), StorageError> {
        // Not the transaction's own future: that is done at a failed request's `error` already, and what listens for
        // the `abort` that follows would be gone when it comes.
        let (kept, committed) = oneshot::channel();
        transaction.on_complete(move |_| {
            // Who waits may be gone.
            let _ = kept.send(());
        });
        let (gone, aborted) = oneshot::channel();
        transaction.on_abort(move |_| {
            let _ = gone.send(());
        });
        // A connection that the browser ended may never say what became of its transactions.
        let not_kept = future::select(aborted, self.ended.clone());
        if let Either::Left((Ok(()), _)) = future::select(committed, not_kept).await {
            return Ok(());
        }
        // Whatever it says later must find somebody.
        transaction.forget_callbacks();
        // The browser tells no reason that a person could act on.
        Err(StorageError(
            "the browser did not keep it; its storage may be full".into(),
        ))
    }

    fn store(&self, store: &str) -> Result<ObjectStore, StorageError> {
        let transaction = self
            .database()?
            .transaction(&[store], TransactionMode::ReadOnly)?;
        Ok(transaction.object_store(store)?)
    }

    async fn text(&self, store: &str, key: JsValue) -> Result<Option<String>, StorageError> {
        let found = self.store(store)?.get(Query::Key(key))?.await?;
        Ok(found.and_then(|value| value.as_string()))
    }
}

/// The key of something numbered or named within a run.
fn key(run: &str, within: impl Into<JsValue>) -> JsValue {
    Array::of2(&JsString::from(run), &within.into()).into()
}

/// Everything of one run: arrays sort after numbers and strings.
fn all_of(run: &str) -> Result<Query, StorageError> {
    let upper = key(run, Array::new());
    let range = idb::KeyRange::bound(&Array::of1(&JsString::from(run)), &upper, None, None)?;
    Ok(Query::KeyRange(range))
}
