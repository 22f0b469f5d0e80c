//! A journal in memory.

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use super::store::{JournalStore, LineId, StoreError};

/// Lines in memory, for tests, previews and runs that nobody wants to keep. Clones share the same
/// lines, so that a caller can look at what a run writes.
///
/// ```
/// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
/// # use std::rc::Rc;
/// # use capo_core::{arena::RunOptions, optimize};
/// # use futures::executor::block_on;
/// use capo_core::journal::{Journal, MemoryJournal};
///
/// let store = MemoryJournal::new();
/// let journal = Journal::create(Box::new(store.clone()));
/// block_on(optimize(tiny::problem(tiny::STUDY)?, journal, Rc::new(tiny::Tiny), RunOptions::default()))?;
/// assert!(store.lines()[0].starts_with(r#"{"event":"study","schema":1,"#));
///
/// // The lines are all there is: they open again as they are.
/// let lines = store.lines().to_vec();
/// let numbered = (0..).zip(&lines).map(Ok);
/// let again = Journal::open(Box::new(MemoryJournal::from_lines(lines.clone())), numbered)?;
/// assert_eq!(again.state().rounds().len(), 2);
/// # Ok::<(), capo_core::RunError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    lines: Rc<RefCell<Vec<String>>>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// A journal of these lines.
    pub fn from_lines(lines: Vec<String>) -> Self {
        Self {
            lines: Rc::new(RefCell::new(lines)),
        }
    }

    /// The lines so far.
    pub fn lines(&self) -> Ref<'_, [String]> {
        Ref::map(self.lines.borrow(), Vec::as_slice)
    }
}

impl JournalStore for MemoryJournal {
    fn append(&mut self, line: &str) -> Result<LineId, StoreError> {
        let mut lines = self.lines.borrow_mut();
        lines.push(line.to_owned());
        Ok(lines.len() as LineId - 1)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        ready(Ok(())).boxed_local()
    }

    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>> {
        let found = self.lines.borrow().get(line as usize).cloned();
        ready(found.ok_or_else(|| StoreError(format!("the journal has no line {}", line + 1)))).boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        let mut lines = self.lines.borrow_mut();
        let replaced = match lines.first_mut() {
            Some(first) => {
                line.clone_into(first);
                Ok(0)
            }
            None => Err(StoreError("the journal is empty".into())),
        };
        ready(replaced).boxed_local()
    }
}
