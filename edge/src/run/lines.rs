//! A journal whose lines are rows of the run's object.

use std::rc::Rc;

use capo_core::journal::{JournalStore, LineId, StoreError};
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, ready};

use super::kept::Kept;

/// Bytes of a line, which storage takes as one value.
const MOST_LINE: usize = 2_000_000;

/// The journal of a run.
pub(super) struct Lines(pub(super) Rc<Kept>);

/// The storage in words.
pub(super) fn words(error: &worker::Error) -> StoreError {
    StoreError(error.to_string())
}

impl JournalStore for Lines {
    fn append(&mut self, line: &str) -> Result<LineId, StoreError> {
        if line.len() > MOST_LINE {
            return Err(StoreError(format!(
                "a line of {} bytes is larger than the runtime stores; run this study on a server",
                line.len()
            )));
        }
        self.0.append(line).map_err(|error| words(&error))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        // Nothing leaves the object before what was written lies on a disk.
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        ready(Ok(())).boxed_local()
    }

    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>> {
        let found = self
            .0
            .lines(line, 1)
            .map_err(|error| words(&error))
            .and_then(|lines| {
                let found = lines.into_iter().next().filter(|(number, _)| *number == line);
                let found = found.map(|(_, body)| body);
                found.ok_or_else(|| StoreError(format!("the journal has no line {}", line + 1)))
            });
        ready(found).boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        ready(
            self.0
                .replace_first(line)
                .map(|()| 0)
                .map_err(|error| words(&error)),
        )
        .boxed_local()
    }
}
