//! Keeping a journal that comes from a file.

use capo_core::journal::{self, JournalError, SCHEMA, SteerEvent, parse_line};
use capo_core::run_state::RunState;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::storage::{Progress, RunRecord, RunStatus, Storage, StorageError, slim};

/// Lines kept at once.
const AT_ONCE: usize = 250;

/// Reads a file's journal and keeps it as `run`; `progress` is told lines read and lines in all.
///
/// # Errors
/// What is wrong with the file, with its name and line, or that the browser keeps nothing. Nothing
/// of it is kept then.
pub(super) async fn import(
    run: &str,
    name: &str,
    file: JsValue,
    progress: impl Fn(u64, u64),
) -> Result<(), String> {
    let file: web_sys::Blob = file
        .dyn_into()
        .map_err(|_| format!("{name} came without its content; choose it again"))?;
    let text = JsFuture::from(file.text()).await;
    let text = text.ok().and_then(|text| text.as_string());
    let text = text.ok_or_else(|| format!("{name} cannot be read; choose it again"))?;
    let storage = Storage::open().await.map_err(|error| error.to_string())?;
    // A torn last line, as a crash leaves it, has no line break.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let torn = &text[whole..];
    let last = (parse_line(torn, 2).is_ok() || whole == 0).then_some(torn);
    let lines: Vec<&str> = text[..whole].lines().chain(last).collect();
    let kept = keep(&storage, run, name, &lines, progress).await;
    if kept.is_err() {
        // What was kept of it is of no use to anybody.
        let _ = storage.delete_run(run).await;
    }
    let state = kept?;
    let record = record(run, &state, format!("from {name}"), text.len() as u64);
    let record = record.ok_or_else(|| format!("{name} is empty; a journal begins with its study."))?;
    storage.put_run(&record).await.map_err(|error| error.to_string())
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
    let chunks = storage.whole_chunks(from).await.map_err(failed)?;
    let lines = chunks.iter().flat_map(|chunk| chunk.lines());
    let lines = journal::branch(lines, round, SteerEvent::default()).map_err(|error| error.to_string())?;
    let size = lines.iter().map(String::len).sum::<usize>() as u64;
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let kept = keep(&storage, run, &parent.name, &lines, |_, _| {}).await;
    if kept.is_err() {
        // As above.
        let _ = storage.delete_run(run).await;
    }
    let record = record(run, &kept?, parent.about.clone(), size).map(|record| RunRecord {
        name: format!("{}, branched after round {round}", parent.name),
        study: parent.study,
        created: record.touched,
        ..record
    });
    let record = record.ok_or("The journal of the run to branch from is empty.")?;
    for (path, content) in storage.files(from).await.map_err(failed)? {
        storage.put_file(run, &path, &content).await.map_err(failed)?;
    }
    storage.put_run(&record).await.map_err(failed)
}

async fn keep(
    storage: &Storage,
    run: &str,
    name: &str,
    lines: &[&str],
    progress: impl Fn(u64, u64),
) -> Result<RunState, String> {
    let mut state = RunState::default();
    for (index, batch) in lines.chunks(AT_ONCE).enumerate() {
        let first = index * AT_ONCE;
        let mut slimmed = Vec::with_capacity(batch.len());
        for (offset, line) in batch.iter().enumerate() {
            let number = first + offset + 1;
            let slim = slim(line).into_owned();
            let event = parse_line(&slim, number).map_err(|error| unreadable(name, number, &slim, &error))?;
            let fits = state.apply(&event, number as u64 - 1);
            fits.map_err(|reason| wrong(name, &format!("journal line {number}: {reason}")))?;
            slimmed.push(slim);
        }
        let batch: Vec<String> = batch.iter().map(|line| (*line).to_owned()).collect();
        let kept = storage.put_lines(run, first as u64, &batch, &slimmed).await;
        kept.map_err(|error| error.to_string())?;
        progress((first + batch.len()) as u64, lines.len() as u64);
    }
    Ok(state)
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

fn wrong(name: &str, what: &str) -> String {
    let what = what.strip_prefix("journal ").unwrap_or(what);
    format!("{name}, {what} Nothing was imported and the file is unchanged.")
}

fn record(run: &str, state: &RunState, about: String, size: u64) -> Option<RunRecord> {
    let started = state.study()?;
    let study = &started.study;
    let began = js_sys::Date::new(&started.started_at.as_str().into()).get_time();
    Some(RunRecord {
        id: run.to_owned(),
        name: study.study.name.clone(),
        method: study.study.method.clone(),
        about,
        objective: study.objective.metric.clone(),
        status: state
            .finished()
            .map_or(RunStatus::Running, |finished| RunStatus::Ended(finished.status)),
        study: study.to_toml().unwrap_or_default(),
        created: began,
        touched: js_sys::Date::now(),
        size,
        progress: Progress::of(state),
    })
}
