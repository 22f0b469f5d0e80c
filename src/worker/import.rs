//! Keeping a journal that comes from a file or branches off another.

use capo_core::journal::{self, JournalError, SCHEMA, SteerEvent, parse_line, slim};
use capo_core::run_state::RunState;
use wasm_bindgen::{JsCast, JsValue};

use super::pieces::Pieces;
use super::protocol::HowFar;
use crate::gzip;
use crate::storage::{RunRecord, Storage, StorageError, lock};

/// Lines kept at once.
const AT_ONCE: usize = 250;

/// Reads a file's journal and keeps it as `run`, unless another run has the same; `progress` is told how far that is. Returns
/// the run that has it.
///
/// # Errors
/// What is wrong with the file, with its name and line, or that the browser keeps nothing. Nothing
/// of it is kept then.
pub(super) async fn import(
    run: &str,
    name: &str,
    file: JsValue,
    progress: impl Fn(HowFar),
) -> Result<String, String> {
    let file: web_sys::Blob = file
        .dyn_into()
        .map_err(|_| format!("{name} came without its content; choose it again"))?;
    let file = gzip::unpacked(file).await.map_err(|_| {
        let why = if gzip::unpacks() {
            "it is not whole, or not what gzip packed"
        } else {
            "this browser unpacks nothing; any from 2023 on does"
        };
        format!("{name} cannot be unpacked: {why}. Nothing was imported and the file is unchanged.")
    })?;
    let storage = Storage::open().await.map_err(|error| error.to_string())?;
    // Lines without a record are swept, unless somebody holds the run.
    let _held = lock::hold(run).await.map_err(|error| error.to_string())?;
    let kept = read(&storage, run, name, Pieces::of(file), progress).await;
    let recorded = match kept {
        Ok(record) => recorded(&storage, record)
            .await
            .map_err(|error| error.to_string()),
        Err(message) => Err(message),
    };
    if recorded.as_ref().is_ok_and(|kept| kept == run) {
        return recorded;
    }
    // What was kept of it is of no use to anybody.
    let _ = storage.delete_run(run).await;
    recorded
}

/// Records a run whose lines are kept, unless another one of this browser has the same. Returns which one has them.
async fn recorded(storage: &Storage, record: RunRecord) -> Result<String, StorageError> {
    let runs = storage.runs().await?.runs.into_iter();
    let alike = runs.filter(|other| other.server.is_none() && other.progress == record.progress);
    let alike: Vec<String> = alike.map(|other| other.id).collect();
    if !alike.is_empty() {
        let lines = storage.whole_lines(&record.id).await?;
        for other in alike {
            // One that cannot be read is another.
            let others = storage.whole_lines(&other).await;
            if others.is_ok_and(|others| others.numbered().eq(lines.numbered())) {
                return Ok(other);
            }
        }
    }
    storage.put_run(&record).await?;
    Ok(record.id)
}

async fn read(
    storage: &Storage,
    run: &str,
    name: &str,
    mut file: Pieces,
    progress: impl Fn(HowFar),
) -> Result<RunRecord, String> {
    let mut keeping = Keeping::new(storage, run, name);
    loop {
        let number = keeping.lines() + 1;
        let line = file.line().await;
        let line = line.map_err(|reason| {
            format!("{name}, line {number}: {reason}. Nothing was imported and the file is unchanged.")
        })?;
        let Some((line, whole)) = line else { break };
        // A torn last line, as a crash leaves it, has no line break.
        if !whole && number > 1 && parse_line(&line, number).is_err() {
            break;
        }
        if keeping.take(line).await? {
            progress(HowFar {
                lines: keeping.lines() as u64,
                read: file.taken(),
                of: file.size(),
            });
        }
    }
    if keeping.lines() == 0 {
        return Err(format!("{name} is empty; a journal begins with its study."));
    }
    let without = if keeping.is_slim {
        ", without traces: to be read only"
    } else {
        ""
    };
    RunRecord::of(run, &keeping.finish().await?, format!("from {name}{without}"))
}

/// Keeps a run that shares another one's journal up to `round`.
///
/// # Errors
/// When the other run never came so far, or the browser keeps nothing.
pub(super) async fn branch(from: &str, run: &str, round: u32) -> Result<(), String> {
    let failed = |error: StorageError| error.to_string();
    let storage = Storage::open().await.map_err(failed)?;
    let parent = storage.run(from).await.map_err(failed)?;
    let parent = parent.ok_or("The run to branch from is not kept in this browser.")?;
    let whole = storage.whole_lines(from).await.map_err(failed)?;
    let lines = whole.numbered().map(|(_, line)| line);
    let lines = journal::branch(lines, round, SteerEvent::default()).map_err(|error| error.to_string())?;
    // As above.
    let _held = lock::hold(run).await.map_err(|error| error.to_string())?;
    let kept = branched(&storage, &parent, run, round, lines).await;
    if kept.is_err() {
        // As above.
        let _ = storage.delete_run(run).await;
    }
    kept
}

async fn branched(
    storage: &Storage,
    parent: &RunRecord,
    run: &str,
    round: u32,
    lines: Vec<String>,
) -> Result<(), String> {
    let failed = |error: StorageError| error.to_string();
    let mut keeping = Keeping::new(storage, run, &parent.name);
    for line in lines {
        keeping.take(line).await?;
    }
    let record = RunRecord::of(run, &keeping.finish().await?, parent.about.clone())?;
    for (path, content) in storage.files(&parent.id).await.map_err(failed)? {
        storage.put_file(run, &path, &content).await.map_err(failed)?;
    }
    let record = RunRecord {
        name: format!("{}, branched after round {round}", parent.name),
        study: parent.study.clone(),
        created: record.touched,
        ..record
    };
    storage.put_run(&record).await.map_err(failed)
}

/// A journal that is being kept, line by line.
struct Keeping<'a> {
    storage: &'a Storage,
    run: &'a str,
    /// What messages call it.
    name: &'a str,
    state: RunState,
    kept: usize,
    whole: Vec<String>,
    slim: Vec<String>,
    /// Whether a rollout came without its trace.
    is_slim: bool,
}

impl<'a> Keeping<'a> {
    fn new(storage: &'a Storage, run: &'a str, name: &'a str) -> Self {
        Self {
            storage,
            run,
            name,
            state: RunState::default(),
            kept: 0,
            whole: Vec::new(),
            slim: Vec::new(),
            is_slim: false,
        }
    }

    /// Lines so far.
    fn lines(&self) -> usize {
        self.kept + self.whole.len()
    }

    /// Takes the next line and says whether some were kept.
    async fn take(&mut self, line: String) -> Result<bool, String> {
        let number = self.lines() + 1;
        let slim = slim(&line).into_owned();
        let event =
            parse_line(&slim, number).map_err(|error| unreadable(self.name, number, &slim, &error))?;
        let fits = self.state.apply(&event, number as u64 - 1);
        fits.map_err(|reason| {
            format!(
                "{}, line {number}: {reason}. Nothing was imported and the file is unchanged.",
                self.name
            )
        })?;
        self.is_slim |= line.contains(r#""without_trace":true"#);
        self.slim.push(slim);
        self.whole.push(line);
        if self.whole.len() < AT_ONCE {
            return Ok(false);
        }
        self.keep().await.map(|()| true)
    }

    async fn keep(&mut self) -> Result<(), String> {
        let (whole, slim) = (std::mem::take(&mut self.whole), std::mem::take(&mut self.slim));
        if whole.is_empty() {
            return Ok(());
        }
        let kept = self.storage.add_lines(self.run, self.kept as u64, &whole, &slim);
        kept.await.map_err(|error| error.to_string())?;
        self.kept += whole.len();
        Ok(())
    }

    async fn finish(mut self) -> Result<RunState, String> {
        self.keep().await?;
        Ok(self.state)
    }
}

/// What is wrong with a line: a newer schema in the first, or no journal line at all.
fn unreadable(name: &str, number: usize, line: &str, error: &JournalError) -> String {
    #[derive(serde::Deserialize)]
    struct Header {
        schema: u32,
    }
    let header = serde_json::from_str::<Header>(line).ok().filter(|_| number == 1);
    if let Some(Header { schema }) = header.filter(|header| header.schema > SCHEMA) {
        return format!(
            "{name} was written by a newer Capo (schema {schema}, this page reads {SCHEMA}). Nothing was imported \
             and the file is unchanged. Reload to get the newer page, then drop it again."
        );
    }
    let reason = match error {
        JournalError::Line { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    format!(
        "{name}, line {number}: not a journal line ({reason}). Lines before it are fine. Nothing was imported and \
         the file is unchanged."
    )
}
