//! A journal whose lines are rows of the database, written under a lease.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use capo_core::journal::{JournalStore, LineId, StoreError};
use capo_hosted::Waiting;
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, ready};
use tokio::runtime::Handle;

use crate::store::{Lease, NotKept, Store};
use crate::telemetry;

/// How often lines that could not be written are tried again, and the first pause before that: answers that were paid for
/// are worth some patience.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// Bytes of a journal that are read at once.
const AT_ONCE: usize = 1 << 20;

/// The database as the thread of a run reaches it. Its connections belong to the server's runtime, where every statement is
/// carried out.
#[derive(Clone)]
pub(super) struct Database {
    pub(super) handle: Handle,
    pub(super) store: Store,
}

impl Database {
    /// Waits for something of the database, which keeps this thread from all else meanwhile.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        asked: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = mpsc::channel();
        self.handle.spawn(async move {
            // Who waits waits for nothing else.
            let _ = tell.send(asked.await);
        });
        told.recv().map_err(|_| ended())
    }

    /// The lines of a journal, read as they are asked for.
    pub(super) fn lines(
        &self,
        run: &str,
        count: u64,
    ) -> impl Iterator<Item = Result<(LineId, String), StoreError>> {
        let (database, run) = (self.clone(), run.to_owned());
        let mut read = VecDeque::new();
        (0..count).map(move |line| {
            if read.is_empty() {
                let (store, run) = (database.store.clone(), run.clone());
                let lines = database.wait(async move { store.lines(&run, line, AT_ONCE).await })?;
                read.extend(lines.map_err(|error| StoreError(error.to_string()))?);
            }
            let next = read.pop_front().filter(|(number, _)| *number == line);
            next.ok_or_else(|| {
                StoreError(format!(
                    "line {} of the journal is missing in the database",
                    line + 1
                ))
            })
        })
    }
}

fn ended() -> StoreError {
    StoreError("the server is ending".into())
}

/// The rows of one run.
pub(super) struct Rows {
    database: Database,
    lease: Lease,
    now: Rc<dyn Fn() -> i64>,
    waiting: Rc<RefCell<Waiting>>,
    /// Lines that are in the database.
    kept: u64,
    buffered: Vec<String>,
    /// The change up to which the buffered lines hold them.
    taken: Option<i64>,
}

impl Rows {
    pub(super) fn new(
        database: Database,
        lease: Lease,
        kept: u64,
        now: Rc<dyn Fn() -> i64>,
        waiting: Rc<RefCell<Waiting>>,
    ) -> Self {
        Self {
            database,
            lease,
            now,
            waiting,
            kept,
            buffered: Vec::new(),
            taken: None,
        }
    }
}

impl JournalStore for Rows {
    fn append(&mut self, line: &str) -> Result<LineId, StoreError> {
        if let Some(number) = self.waiting.borrow_mut().note(line) {
            self.taken = Some(number);
        }
        self.buffered.push(line.to_owned());
        Ok(self.kept + self.buffered.len() as u64 - 1)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffered.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.buffered);
        let (store, lease, now) = (self.database.store.clone(), self.lease.clone(), (self.now)());
        let (first, taken, count) = (self.kept, self.taken.take(), lines.len() as u64);
        let appended = self.database.wait(async move {
            let append = || store.append(&lease, first, &lines, taken, now);
            append_once(&store, &lease, first + count, append).await
        })?;
        appended.map_err(|error| words(&error))?;
        self.kept += count;
        telemetry::appended(count);
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        // What is in the database survives the machine.
        ready(self.flush()).boxed_local()
    }

    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>> {
        if let Some(buffered) = line.checked_sub(self.kept) {
            let found = self.buffered.get(buffered as usize).cloned();
            let found = found.ok_or_else(|| StoreError(format!("the journal has no line {}", line + 1)));
            return ready(found).boxed_local();
        }
        let (store, run) = (self.database.store.clone(), self.lease.id.clone());
        let asked = self
            .database
            .handle
            .spawn(async move { store.line(&run, line).await });
        async move {
            let read = asked.await.map_err(|_| ended())?;
            read.map_err(|error| StoreError(error.to_string()))
        }
        .boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        let (store, lease, line) = (self.database.store.clone(), self.lease.clone(), line.to_owned());
        let asked = self
            .database
            .handle
            .spawn(async move { store.replace_first_line(&lease, &line).await });
        async move {
            let replaced = asked.await.map_err(|_| ended())?;
            replaced.map(|()| 0).map_err(|error| words(&error))
        }
        .boxed_local()
    }
}

/// Appends lines, after which the journal has so many; tries it again for as long as the database does not confirm it.
pub(super) async fn append_once<F: Future<Output = Result<(), NotKept>>>(
    store: &Store,
    lease: &Lease,
    lines: u64,
    append: impl Fn() -> F,
) -> Result<(), NotKept> {
    let mut tries = 0;
    loop {
        let error = match append().await {
            Err(NotKept::Store(error)) if tries < TRIES => error,
            // The answer to an earlier try may have been lost, and not what it wrote.
            Err(NotKept::Lost) if tries > 0 => {
                let was = store.was_appended(lease, lines).await?;
                return if was { Ok(()) } else { Err(NotKept::Lost) };
            }
            appended => return appended,
        };
        tries += 1;
        tracing::warn!(run = lease.id, %error, "lines of a journal could not be written; once more");
        tokio::time::sleep(PAUSE * tries).await;
    }
}

fn words(error: &NotKept) -> StoreError {
    StoreError(error.to_string())
}
