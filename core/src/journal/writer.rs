//! Writing events and folding them in one step.

use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use super::numbers::not_finite;
use super::reader::{JournalError, parse_line};
use super::store::{JournalStore, LineId, StoreError};
use super::{Event, StudyEvent};
use crate::journal::run_state::RunState;

/// Told of every event once it is in the journal; shows progress, feeds screens.
pub type Observer = Box<dyn FnMut(&Event, &RunState)>;

/// A store of lines with the fold over them.
pub struct Journal {
    store: Box<dyn JournalStore>,
    state: RunState,
    observer: Option<Observer>,
}

impl Journal {
    /// Opens a store whose lines so far are `lines`, in order.
    ///
    /// # Errors
    /// Naming the line that does not parse or does not fit what stands above it.
    pub fn open<L: AsRef<str>>(
        store: Box<dyn JournalStore>,
        lines: impl IntoIterator<Item = Result<(LineId, L), StoreError>>,
    ) -> Result<Self, JournalError> {
        let mut state = RunState::default();
        for (index, line) in lines.into_iter().enumerate() {
            let (id, line) = line?;
            let event = parse_line(line.as_ref(), index + 1)?;
            state.apply(&event, id).map_err(|reason| JournalError::Line {
                line: index + 1,
                reason,
            })?;
        }
        Ok(Self {
            store,
            state,
            observer: None,
        })
    }

    /// An empty journal.
    pub fn create(store: Box<dyn JournalStore>) -> Self {
        Self {
            store,
            state: RunState::default(),
            observer: None,
        }
    }

    /// Names who is told of each event from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// The fold over all events.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Appends an event and folds it.
    ///
    /// # Errors
    /// When it does not fit the journal, or cannot be written; journal and fold are then unchanged.
    pub fn record(&mut self, event: &Event) -> Result<(), StoreError> {
        let line = serde_json::to_string(event).map_err(|error| StoreError(error.to_string()))?;
        // Checked before it is written: a line that does not fit would make the journal unreadable.
        self.state.check(event).map_err(StoreError)?;
        if let Some(number) = not_finite(event) {
            return Err(StoreError(format!(
                "{number}, which no journal can hold; nothing was written"
            )));
        }
        let id = self.store.append(&line)?;
        self.state.apply(event, id).map_err(StoreError)?;
        if let Some(observer) = &mut self.observer {
            observer(event, &self.state);
        }
        Ok(())
    }

    /// Replaces the first line by a study whose thresholds are frozen. The future gives what
    /// [`Journal::adopt`] needs and does not borrow the journal.
    ///
    /// # Errors
    /// When it cannot be written; the journal is then unchanged.
    pub fn replace_study(&mut self, study: &StudyEvent) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        let line = serde_json::to_string(&Event::Study(Box::new(study.clone())))
            .map_err(|error| StoreError(error.to_string()))
            .and_then(|line| self.store.flush().map(|()| line));
        match line {
            Ok(line) => self.store.replace_first(&line),
            Err(error) => ready(Err(error)).boxed_local(),
        }
    }

    /// Takes the study of [`Journal::replace_study`] over into the fold.
    pub fn adopt(&mut self, study: StudyEvent, shift: i64) {
        self.state.freeze(study, shift);
    }

    /// See [`JournalStore::flush`].
    ///
    /// # Errors
    /// When the store fails.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.store.flush()
    }

    /// See [`JournalStore::sync`]. The future does not borrow the journal.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        match self.store.flush() {
            Ok(()) => self.store.sync(),
            Err(error) => ready(Err(error)).boxed_local(),
        }
    }

    /// Reads a line again and parses it. The future does not borrow the journal.
    ///
    /// # Errors
    /// When the store fails or the line is no event any more.
    pub fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<Event, StoreError>> {
        let text = self.store.read(line);
        async move {
            serde_json::from_str(&text.await?)
                .map_err(|error| StoreError(format!("a line read back is no event: {error}")))
        }
        .boxed_local()
    }
}
