//! A journal in a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use super::event::Event;
use super::reader::JournalError;
use super::store::{JournalStore, LineId, StoreError};
use super::writer::Journal;

/// How hard a file journal tries to survive a power cut. A killed process loses nothing that was
/// flushed under any of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fsync {
    /// Never ask the disk.
    Never,
    /// At round boundaries and at the end.
    #[default]
    Rounds,
    /// At every flush.
    Always,
}

/// Bytes buffered before they are written without being asked.
const BUFFER: usize = 64 * 1024;

/// A file of lines, locked against a second writer while it is open. A line's id is the byte
/// offset where it starts.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    file: File,
    fsync: Fsync,
    /// Length of the file on disk: where `buffer` will go.
    length: u64,
    buffer: Vec<u8>,
}

impl FileJournal {
    /// Opens or creates the journal at `path` and folds its lines.
    ///
    /// A last line that was cut off by a crash is dropped; anything else that does not parse is an
    /// error naming the line.
    ///
    /// ```
    /// # mod tiny { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny/mod.rs")); }
    /// # use std::rc::Rc;
    /// # use capo_core::{arena::RunOptions, optimize};
    /// # use futures::executor::block_on;
    /// use capo_core::journal::{FileJournal, Fsync};
    ///
    /// # let directory = std::env::temp_dir().join(format!("capo-doctest-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// let path = directory.join("run.journal.jsonl");
    /// let run = || {
    ///     let journal = FileJournal::open(&path, Fsync::Rounds)?;
    ///     let problem = tiny::problem(tiny::STUDY)?;
    ///     block_on(optimize(problem, journal, Rc::new(tiny::Tiny), RunOptions::default()))
    /// };
    /// let first = run()?.finished;
    /// let length = std::fs::metadata(&path).unwrap().len();
    ///
    /// // Over a finished journal there is nothing left to do or to pay.
    /// assert_eq!(run()?.finished, first);
    /// assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), capo_core::RunError>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be opened for writing, another process has it open, or a line is wrong.
    pub fn open(path: &Path, fsync: Fsync) -> Result<Journal, JournalError> {
        let failed = |what: &str, error: &std::io::Error| {
            StoreError(format!("journal {}: {what}: {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| failed("cannot be opened for writing", &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError(format!(
                    "journal {}: another process is writing to it; wait for that run or choose another file",
                    path.display()
                ))
                .into());
            }
            Err(TryLockError::Error(error)) => return Err(failed("cannot be locked", &error).into()),
        }
        let length = complete_length(&mut file).map_err(|error| failed("cannot be read", &error))?;
        let torn = file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() > length);
        if torn && length == 0 {
            refuse_stranger(&mut file).map_err(|error| failed("cannot be read", &error))??;
        }
        file.seek(SeekFrom::Start(0))
            .map_err(|error| failed("cannot be read", &error))?;
        let another_handle = || file.try_clone().map_err(|error| failed("cannot be read", &error));
        let (reader, tail) = (another_handle()?, another_handle()?);
        let lines = Lines {
            reader: BufReader::with_capacity(BUFFER, reader.take(length)),
            offset: 0,
            number: 0,
            path: path.to_owned(),
        };
        let store = Self {
            path: path.to_owned(),
            file,
            fsync,
            length,
            buffer: Vec::with_capacity(BUFFER),
        };
        let journal = Journal::open(Box::new(store), lines)?;
        // Only now is the file known to be a journal that may be cut.
        if torn {
            tail.set_len(length)
                .map_err(|error| failed("its torn last line cannot be cut off", &error))?;
        }
        Ok(journal)
    }

    /// Reads the journal at `path` without opening it for writing: `event` is called with every
    /// line's number (from 1) and event.
    ///
    /// # Errors
    /// When the file cannot be read or a line is wrong; a torn last line is ignored.
    pub fn read(
        path: &Path,
        mut event: impl FnMut(usize, Event) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let failed = |error: std::io::Error| StoreError(format!("journal {}: {error}", path.display()));
        let mut file = File::open(path).map_err(failed)?;
        let length = complete_length(&mut file).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let lines = Lines {
            reader: BufReader::with_capacity(BUFFER, file.take(length)),
            offset: 0,
            number: 0,
            path: path.to_owned(),
        };
        for (index, line) in lines.enumerate() {
            let (_, line) = line?;
            event(index + 1, super::parse_line(&line, index + 1)?)?;
        }
        Ok(())
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> StoreError {
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "; free some space and run the same command again, everything written so far is kept"
            }
            _ => "",
        };
        StoreError(format!("journal {}: {what}: {error}{hint}", self.path.display()))
    }

    /// Writes the buffer out. On failure the file is cut back to its last whole line, so that a
    /// full disk leaves no half-written one, and the buffer is kept for the next try.
    fn write_out(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(&self.buffer));
        if let Err(error) = written {
            let _ = self.file.set_len(self.length);
            return Err(self.failed("cannot be written", &error));
        }
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl JournalStore for FileJournal {
    fn append(&mut self, line: &str) -> Result<LineId, StoreError> {
        let id = self.length + self.buffer.len() as u64;
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER {
            self.write_out()?;
        }
        Ok(id)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.write_out()?;
        if self.fsync == Fsync::Always {
            self.file
                .sync_data()
                .map_err(|error| self.failed("cannot be synchronised to disk", &error))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let done = self.write_out().and_then(|()| match self.fsync {
            Fsync::Never => Ok(()),
            Fsync::Rounds | Fsync::Always => self
                .file
                .sync_data()
                .map_err(|error| self.failed("cannot be synchronised to disk", &error)),
        });
        ready(done).boxed_local()
    }

    fn read(&mut self, line: LineId) -> LocalBoxFuture<'static, Result<String, StoreError>> {
        let text = self.write_out().and_then(|()| {
            let mut text = String::new();
            self.file
                .seek(SeekFrom::Start(line))
                .and_then(|_| BufReader::new(&self.file).read_line(&mut text))
                .map_err(|error| self.failed("cannot be read back", &error))?;
            text.truncate(text.trim_end().len());
            Ok(text)
        });
        ready(text).boxed_local()
    }

    fn replace_first(&mut self, line: &str) -> LocalBoxFuture<'static, Result<i64, StoreError>> {
        ready(self.rewrite_with_first(line)).boxed_local()
    }
}

impl FileJournal {
    /// Writes a new file beside the old one and renames it into place, so that a crash leaves one
    /// or the other whole.
    fn rewrite_with_first(&mut self, line: &str) -> Result<i64, StoreError> {
        self.write_out()?;
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let rewrite = || -> std::io::Result<(File, u64)> {
            let mut old = String::new();
            let mut reader = &self.file;
            reader.seek(SeekFrom::Start(0))?;
            reader.read_to_string(&mut old)?;
            let rest = old.split_once('\n').map_or("", |(_, rest)| rest);
            let new = format!("{line}\n{rest}");
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&beside)?;
            file.lock()?;
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.write_all(new.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, &self.path)?;
            Ok((file, new.len() as u64))
        };
        match rewrite() {
            Ok((file, length)) => {
                let shift = length.cast_signed() - self.length.cast_signed();
                self.file = file;
                self.length = length;
                Ok(shift)
            }
            Err(error) => {
                let _ = std::fs::remove_file(&beside);
                Err(self.failed("thresholds cannot be frozen", &error))
            }
        }
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        // Every path that matters has flushed and reported already; a failure here has no listener.
        let _ = self.write_out();
    }
}

/// Whether a file without a whole line begins as a journal does that a crash cut short.
fn refuse_stranger(file: &mut File) -> std::io::Result<Result<(), JournalError>> {
    const START: &[u8] = br#"{"event":"study""#;
    let mut start = Vec::with_capacity(START.len());
    file.seek(SeekFrom::Start(0))?;
    file.take(START.len() as u64).read_to_end(&mut start)?;
    if START.starts_with(&start) {
        return Ok(Ok(()));
    }
    let reason = "not a Capo journal: its first line must be a `study` event".to_owned();
    Ok(Err(JournalError::Line { line: 1, reason }))
}

/// Length of the file up to its last line break.
fn complete_length(file: &mut File) -> std::io::Result<u64> {
    let total = file.metadata()?.len();
    let mut block = vec![0; BUFFER];
    let mut end = total;
    while end > 0 {
        let start = end.saturating_sub(BUFFER as u64);
        let block = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(block)?;
        if let Some(position) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + position as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

struct Lines {
    reader: BufReader<std::io::Take<File>>,
    offset: u64,
    /// Lines given so far.
    number: usize,
    path: PathBuf,
}

impl Iterator for Lines {
    type Item = Result<(LineId, String), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        let failed = |what: String| StoreError(format!("journal {}: {what}", self.path.display()));
        match self.reader.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(read) => {
                let id = self.offset;
                self.offset += read as u64;
                self.number += 1;
                line.pop_if(|last| *last == b'\n');
                let text = String::from_utf8(line);
                Some(
                    text.map(|line| (id, line))
                        .map_err(|_| failed(format!("line {} is not UTF-8", self.number))),
                )
            }
            Err(error) => Some(Err(failed(error.to_string()))),
        }
    }
}
