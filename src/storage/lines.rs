//! The lines of journals as they lie in IndexedDB.

use std::collections::BTreeMap;

use capo_core::journal::LineId;
use futures::future::join;
use idb::{CursorDirection, KeyRange, Query, TransactionMode};
use js_sys::{Array, JsString};
use wasm_bindgen::JsValue;

use super::{LINES, SLIM, Storage, StorageError, key};

/// Lines of a journal from the one asked for on, up to the first that is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Number (from 0) of the first line of the first chunk.
    pub first: u64,
    /// Whole chunks that follow one another.
    pub chunks: Vec<String>,
    /// Number of the line after the last.
    pub end: u64,
    /// Whether others lie beyond a missing line, where they are of no use.
    pub torn: bool,
}

impl Lines {
    /// Joins chunks, which are keyed by the number of their first line, up to the first gap.
    fn joined(numbered: BTreeMap<u64, String>, from: u64) -> Self {
        let mut lines = Self {
            first: from,
            end: from,
            ..Self::default()
        };
        for (first, chunk) in numbered {
            if first != lines.end {
                lines.torn = true;
                break;
            }
            lines.end += chunk.lines().count() as u64;
            lines.chunks.push(chunk);
        }
        lines
    }

    /// Each line with its number.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &str)> {
        (self.first..).zip(self.chunks.iter().flat_map(|chunk| chunk.lines()))
    }
}

/// Why lines were not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// Lines of this number are there already: somebody else writes this journal.
    #[error("another tab wrote to this run at the same time")]
    Taken,
    /// The browser refuses them.
    #[error(transparent)]
    Refused(#[from] StorageError),
}

impl Storage {
    /// Keeps new lines of a journal; `first` is the number of the first.
    ///
    /// # Errors
    /// When the browser refuses or there are such lines already; none of these is kept then.
    pub async fn add_lines(
        &self,
        run: &str,
        first: u64,
        whole: &[String],
        slim: &[String],
    ) -> Result<(), NotKept> {
        let at = key(run, first as f64);
        let text = |lines: &[String]| JsValue::from(JsString::from(lines.join("\n")));
        let kept = self.write(&[LINES, SLIM], |store| {
            store(LINES)?.add(&text(whole), Some(&at))?;
            store(SLIM)?.add(&text(slim), Some(&at))?;
            Ok(())
        });
        let Err(error) = kept.await else { return Ok(()) };
        match self.text(SLIM, at).await {
            Ok(Some(_)) => Err(NotKept::Taken),
            _ => Err(error.into()),
        }
    }

    /// Replaces the first line of a journal.
    ///
    /// # Errors
    /// When there is none, or the browser refuses; it is then as it was.
    pub async fn replace_first_line(&self, run: &str, line: &str) -> Result<(), StorageError> {
        let stores = [LINES, SLIM];
        let transaction = self
            .database()?
            .transaction(&stores, TransactionMode::ReadWrite)?;
        let at = key(run, 0.0);
        for name in stores {
            let store = transaction.object_store(name)?;
            let chunk = store.get(Query::Key(at.clone()))?.await?;
            let chunk = chunk.and_then(|chunk| chunk.as_string());
            let chunk = chunk.ok_or_else(|| StorageError("the journal has no first line".into()))?;
            let replaced = match chunk.split_once('\n') {
                Some((_, others)) => format!("{line}\n{others}"),
                None => line.to_owned(),
            };
            store.put(&JsString::from(replaced).into(), Some(&at))?;
        }
        self.committed(transaction).await
    }

    /// The lines of a journal without traces, from the chunk that holds line `from` on.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn slim_lines(&self, run: &str, from: u64) -> Result<Lines, StorageError> {
        self.lines(SLIM, run, from).await
    }

    /// All lines of a journal, whole.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn whole_lines(&self, run: &str) -> Result<Lines, StorageError> {
        self.lines(LINES, run, 0).await
    }

    async fn lines(&self, store: &str, run: &str, from: u64) -> Result<Lines, StorageError> {
        if let Some(reported) = self.reported(run) {
            return Ok(Lines::joined([(0, reported.text(store == SLIM))].into(), 0));
        }
        let begin = match from {
            0 => 0,
            from => self
                .chunk_of(store, run, from)
                .await?
                .map_or(from, |(first, _)| first),
        };
        let range = || KeyRange::bound(&key(run, begin as f64), &key(run, Array::new()), None, None);
        let store = self.store(store)?;
        let keys = store.get_all_keys(Some(Query::KeyRange(range()?)), None)?;
        let chunks = store.get_all(Some(Query::KeyRange(range()?)), None)?;
        // Both to their ends: the browser answers the second even where the first failed.
        let (keys, chunks) = join(keys.into_future(), chunks.into_future()).await;
        let (keys, chunks) = (keys?, chunks?);
        let numbered = keys.iter().zip(chunks);
        let numbered = numbered.filter_map(|(key, chunk)| Some((first_line(key)?, chunk.as_string()?)));
        Ok(Lines::joined(numbered.collect(), begin))
    }

    /// Deletes the lines of a journal from number `from` on, where a chunk begins.
    ///
    /// # Errors
    /// When the browser refuses; all are kept then.
    pub async fn cut_lines(&self, run: &str, from: u64) -> Result<(), StorageError> {
        let range = || KeyRange::bound(&key(run, from as f64), &key(run, Array::new()), None, None);
        self.write(&[LINES, SLIM], |store| {
            for name in [LINES, SLIM] {
                store(name)?.delete(Query::KeyRange(range()?))?;
            }
            Ok(())
        })
        .await
    }

    /// One line, whole; `None` when the journal has none of that number.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn line(&self, run: &str, line: LineId) -> Result<Option<String>, StorageError> {
        self.line_in(LINES, run, line).await
    }

    /// One line without its trace; `None` when the journal has none of that number.
    ///
    /// # Errors
    /// When the browser does not give it back.
    pub async fn slim_line(&self, run: &str, line: LineId) -> Result<Option<String>, StorageError> {
        self.line_in(SLIM, run, line).await
    }

    async fn line_in(&self, store: &str, run: &str, line: LineId) -> Result<Option<String>, StorageError> {
        if let Some(reported) = self.reported(run) {
            return Ok(reported.line(line, store == SLIM));
        }
        let chunk = self.chunk_of(store, run, line).await?;
        Ok(chunk.and_then(|(first, chunk)| chunk.lines().nth((line - first) as usize).map(str::to_owned)))
    }

    /// The last chunk that begins at or above `line`, with the number of its first line.
    async fn chunk_of(
        &self,
        store: &str,
        run: &str,
        line: LineId,
    ) -> Result<Option<(u64, String)>, StorageError> {
        let range = KeyRange::bound(&key(run, 0.0), &key(run, line as f64), None, None)?;
        let cursor = self
            .store(store)?
            .open_cursor(Some(Query::KeyRange(range)), Some(CursorDirection::Prev))?
            .await?;
        let Some(cursor) = cursor else { return Ok(None) };
        Ok(first_line(&cursor.key()?).zip(cursor.value()?.as_string()))
    }

    /// Ids of runs that have lines but no record, as an import leaves them whose tab was closed.
    ///
    /// # Errors
    /// When the browser does not give them back.
    pub async fn unlisted(&self) -> Result<Vec<String>, StorageError> {
        let mut unlisted = Vec::new();
        let mut after = JsValue::from(Array::new());
        loop {
            // Arrays sort after each other by their parts: the next is the first line of another run.
            let range = KeyRange::lower_bound(&after, Some(true))?;
            let next = self
                .store(SLIM)?
                .get_all_keys(Some(Query::KeyRange(range)), Some(1))?;
            let next = next.await?.into_iter().next();
            let Some(run) = next.and_then(|key| Array::from(&key).get(0).as_string()) else {
                return Ok(unlisted);
            };
            if !self.has_record(&run).await? {
                unlisted.push(run.clone());
            }
            after = key(&run, Array::new());
        }
    }
}

/// The number of a chunk's first line, off its key.
fn first_line(key: &JsValue) -> Option<u64> {
    Array::from(key).get(1).as_f64().map(|first| first as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(chunks: &[(u64, &str)], from: u64) -> Lines {
        let numbered = chunks.iter().map(|(first, chunk)| (*first, (*chunk).to_owned()));
        Lines::joined(numbered.collect(), from)
    }

    #[test]
    fn chunks_that_follow_one_another_are_whole() {
        let lines = joined(&[(2, "c\nd"), (4, "e")], 2);
        let numbered: Vec<(u64, &str)> = lines.numbered().collect();
        assert_eq!(numbered, [(2, "c"), (3, "d"), (4, "e")]);
        assert_eq!((lines.end, lines.torn), (5, false));
        assert_eq!(joined(&[], 7).end, 7);
    }

    #[test]
    fn what_lies_beyond_a_missing_line_is_left_out() {
        let lines = joined(&[(0, "a\nb"), (3, "d"), (4, "e")], 0);
        assert_eq!((lines.chunks.len(), lines.end, lines.torn), (1, 2, true));
        let beheaded = joined(&[(3, "d")], 0);
        assert_eq!((beheaded.end, beheaded.torn), (0, true));
        // A chunk that was written over from within lies twice.
        assert!(joined(&[(0, "a\nb\nc"), (2, "x")], 0).torn);
    }
}
