//! Stores of journal lines.

use futures::future::LocalBoxFuture;

/// Names a line within its store; what the number means is the store's business.
pub type LineId = u64;

/// A store that cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Where a journal's lines lie: a file, memory, IndexedDB, rows of a database.
pub trait JournalStore {
    /// Adds one line (without its line break). May buffer.
    ///
    /// # Errors
    /// When nothing can be written. The run then ends; what reached the store before is kept.
    fn append(&mut self, line: &str) -> Result<LineId, StoreError>;

    /// Hands buffered lines over, so that they survive this process. Called whenever the run is
    /// about to wait for an answer, so that no answer is lost that was paid for.
    ///
    /// # Errors
    /// When the lines cannot be written.
    fn flush(&mut self) -> Result<(), StoreError>;

    /// Makes everything handed over survive the machine, as far as the store's policy asks for it.
    /// Called at round boundaries and at the end.
    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>>;

    /// Reads one line again.
    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>>;

    /// Replaces the first line, keeping all others. Only used before round 0, to freeze thresholds
    /// that are relative to the seed prompt. Returns what must be added to the id of every other
    /// line.
    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>>;
}
