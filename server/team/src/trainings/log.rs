//! The lines that a training's process writes into a file, as they go into the database.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use capo_api::TrainingKind;
use capo_core::journal::{Event, FileJournal, JournalError, Status};
use capo_core::reading::progress::{Progress, Times};
use capo_core::run_state::RunState;

use crate::http::Server;
use crate::store::{Lease, NotKept, Run, StoreError, Training};

/// Bytes of a file that are read at once.
const AT_ONCE: u64 = 4 << 20;

/// What the file is called in a training's folder that its lines come from.
pub(super) fn log_file(kind: TrainingKind) -> &'static str {
    match kind {
        TrainingKind::Sft => "training.jsonl",
        TrainingKind::Grpo => "journal.jsonl",
    }
}

/// The end of a file to which another process appends lines, and whose first line it may replace once, by a new file.
#[derive(Debug, Clone, Default)]
struct Tail {
    path: PathBuf,
    /// Where the next line begins.
    offset: u64,
    /// The first line, once it was read.
    first: Option<String>,
}

/// What a file has that it had not.
#[derive(Debug, Default, PartialEq)]
struct NewLines {
    /// Another first line.
    first: Option<String>,
    /// Whole lines, as far as they fit into memory.
    lines: Vec<String>,
}

impl Tail {
    fn of(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// What came since the last time.
    fn read(&mut self) -> io::Result<NewLines> {
        let mut came = NewLines::default();
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(came),
            opened => opened?,
        };
        // All from one handle: a new file may take this one's place at any moment.
        let mut file = BufReader::new(file);
        if let Some(first) = &mut self.first {
            let mut line = String::new();
            file.read_line(&mut line)?;
            let line = line.trim_end_matches('\n');
            if line != first {
                self.offset = self.offset + line.len() as u64 - first.len() as u64;
                line.clone_into(first);
                came.first = Some(line.to_owned());
            }
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let (mut bytes, mut most) = (Vec::new(), AT_ONCE);
        loop {
            file.by_ref().take(AT_ONCE).read_to_end(&mut bytes)?;
            match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => {
                    bytes.truncate(end + 1);
                    break;
                }
                // A longer line.
                None if bytes.len() as u64 == most => most += AT_ONCE,
                // A torn one.
                None => return Ok(came),
            }
        }
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        self.offset += text.len() as u64;
        came.lines = text.lines().map(str::to_owned).collect();
        if self.first.is_none() {
            self.first = came.lines.first().cloned();
        }
        Ok(came)
    }
}

/// The log of a training under way.
pub(super) struct Log {
    server: Server,
    lease: Lease,
    tail: Tail,
    /// Lines of the file that the database has.
    copied: u64,
    /// The run whose journal the lines are.
    search: Option<Search>,
}

struct Search {
    run: String,
    times: Times,
    began: Instant,
    before: f64,
}

impl Log {
    /// Finds up to where the database has the lines of the file.
    ///
    /// # Errors
    /// When the file does not read, the training is lost, or the database fails.
    pub(super) async fn open(
        server: &Server,
        training: &Training,
        lease: &Lease,
        folder: &Path,
    ) -> Result<Self, NotKept> {
        let mut log = Self {
            server: server.clone(),
            lease: lease.clone(),
            tail: Tail::of(folder.join(log_file(training.kind))),
            copied: 0,
            search: None,
        };
        let mut lines = Vec::new();
        loop {
            let came = log.read()?;
            if came.lines.is_empty() {
                break;
            }
            lines.extend(came.lines);
        }
        log.copied = match &training.run {
            Some(run) => {
                let run = server.store().run(run).await?;
                let shared = log.shared(&run, &lines).await?;
                log.search = Some(Search {
                    before: run.times.last(),
                    times: run.times,
                    began: Instant::now(),
                    run: run.id,
                });
                shared
            }
            None => training.reached.min(lines.len() as u64),
        };
        let copied = usize::try_from(log.copied).unwrap_or(usize::MAX);
        log.tail.offset = lines.iter().take(copied).map(|line| line.len() as u64 + 1).sum();
        Ok(log)
    }

    /// How many lines the journal in the database shares with the beginning of the file. The first one may have been replaced
    /// in the file alone.
    async fn shared(&self, run: &Run, lines: &[String]) -> Result<u64, NotKept> {
        let store = self.server.store();
        let mut shared = run.lines.min(lines.len() as u64);
        while shared > 1 {
            let last = store.line(&run.id, shared - 1).await?;
            if lines.get(usize::try_from(shared - 1).unwrap_or(usize::MAX)) == Some(&last) {
                break;
            }
            shared -= 1;
        }
        if let (1.., Some(first)) = (shared, lines.first())
            && *first != store.line(&run.id, 0).await?
        {
            self.replace_first(&run.id, first).await?;
        }
        Ok(shared)
    }

    fn read(&mut self) -> Result<NewLines, StoreError> {
        let path = self.tail.path.display().to_string();
        self.tail
            .read()
            .map_err(|error| StoreError::Unreadable(format!("{path}: {error}")))
    }

    /// Copies what came since the last time.
    ///
    /// # Errors
    /// When the file does not read, the training is lost, or the database fails: then the same comes again.
    pub(super) async fn copy(&mut self) -> Result<(), NotKept> {
        loop {
            let before = self.tail.clone();
            let came = self.read()?;
            if came == NewLines::default() {
                return Ok(());
            }
            if let Err(error) = self.keep(&came).await {
                self.tail = before;
                return Err(error);
            }
            self.copied += came.lines.len() as u64;
            if came.lines.iter().any(|line| ends_a_round(line)) {
                self.note().await?;
            }
        }
    }

    async fn keep(&mut self, came: &NewLines) -> Result<(), NotKept> {
        if let (Some(search), Some(first)) = (&self.search, &came.first) {
            self.replace_first(&search.run, first).await?;
        }
        let (store, now, lines) = (self.server.store(), self.server.now(), &came.lines);
        if lines.is_empty() {
            return Ok(());
        }
        let Some(search) = &mut self.search else {
            let reached = self.copied + lines.len() as u64;
            return store.append_to_training(&self.lease, lines, reached, now).await;
        };
        store
            .append_to_search(&self.lease, &search.run, self.copied, lines, now)
            .await?;
        let seconds = search.before + search.began.elapsed().as_secs_f64();
        search.times.note(self.copied, seconds);
        Ok(())
    }

    async fn replace_first(&self, run: &str, line: &str) -> Result<(), NotKept> {
        let (store, now) = (self.server.store(), self.server.now());
        store.replace_first_of_search(&self.lease, run, line, now).await
    }

    /// Notes what lists show of the search.
    pub(super) async fn note(&self) -> Result<(), NotKept> {
        let Some(search) = &self.search else {
            return Ok(());
        };
        let path = self.tail.path.clone();
        let read = tokio::task::spawn_blocking(move || folded(&path)).await;
        match read {
            Ok(Ok((progress, status))) => {
                let figures = (&progress, &search.times, status);
                self.server
                    .store()
                    .note_search(&self.lease, &search.run, figures)
                    .await
            }
            Ok(Err(error)) => {
                tracing::warn!(run = search.run, %error, "the journal of a training does not read");
                Ok(())
            }
            // The server ends.
            Err(_) => Ok(()),
        }
    }
}

/// Whether a line of a journal changes what lists show.
fn ends_a_round(line: &str) -> bool {
    let ends = [r#"{"event":"round""#, r#"{"event":"finished""#];
    ends.iter().any(|end| line.starts_with(end))
}

/// The numbers of a journal, and how it ends.
fn folded(path: &Path) -> Result<(Progress, Option<Status>), JournalError> {
    let mut state = RunState::default();
    FileJournal::read(path, |line, event: Event| {
        let applied = state.apply(&event, line as u64);
        applied.map_err(|reason| JournalError::Line { line, reason })
    })?;
    let status = state.finished().map(|finished| finished.status);
    Ok((Progress::of(&state), status))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_come_once_and_whole_also_when_the_first_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut tail = Tail::of(path.clone());
        assert_eq!(tail.read().unwrap(), NewLines::default(), "there is no file yet");
        let came = |lines: &[&str]| NewLines {
            first: None,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        };
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(tail.read().unwrap(), came(&["one", "two"]));
        assert_eq!(tail.read().unwrap(), NewLines::default());
        fs::write(&path, "another one\ntwo\nthree\n").unwrap();
        let expected = NewLines {
            first: Some("another one".into()),
            ..came(&["three"])
        };
        assert_eq!(tail.read().unwrap(), expected);
        let long = "x".repeat(usize::try_from(AT_ONCE).unwrap() + 9);
        fs::write(&path, format!("another one\ntwo\nthree\n{long}\nfive")).unwrap();
        assert_eq!(tail.read().unwrap(), came(&[&long]));
    }
}
