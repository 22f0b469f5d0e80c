//! The worker's side: runs a study over a journal in IndexedDB and tells the page each line.

mod breath;
mod import;
mod lock;
pub mod protocol;
mod session;
mod trial;

use std::cell::RefCell;
use std::rc::Rc;

use capo_core::control::Control;
use capo_core::journal::{Event, Journal};
use capo_core::llm::Role;
use capo_core::run_state::RunState;
use capo_models::forecast::Forecast;
use capo_models::prices::PriceTable;
use capo_models::probe::ProbeError;
use js_sys::Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use self::breath::Breathing;
use self::protocol::{DataFiles, Order, ProbeFailure, Report};
use self::session::Session;
use crate::keys::Keys;
use crate::storage::{Progress, RunStatus, Saved, Storage, StoredJournal};

thread_local! {
    /// What steers the run under way.
    static CONTROL: RefCell<Option<Control>> = const { RefCell::new(None) };
    /// The journal of the run this worker has, once there was one.
    static JOURNAL: RefCell<Option<(String, StoredJournal)>> = const { RefCell::new(None) };
}

/// The scope of a worker, when this module was loaded by one.
pub fn scope() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Listens to the page from now on.
pub fn start(scope: &DedicatedWorkerGlobalScope) {
    let listen = Closure::<dyn Fn(MessageEvent)>::new(|message: MessageEvent| {
        let (order, attached) = unpack(&message.data());
        match serde_json::from_str(&order) {
            Ok(order) => take(order, attached),
            Err(error) => report(&Report::Failed {
                message: format!(
                    "the page and its worker do not understand each other ({error}); reload the page"
                ),
            }),
        }
    });
    scope.set_onmessage(Some(listen.as_ref().unchecked_ref()));
    listen.forget();
}

/// The text of a message and what came beside it.
fn unpack(data: &JsValue) -> (String, JsValue) {
    let parts = Array::from(data);
    (parts.get(0).as_string().unwrap_or_default(), parts.get(1))
}

fn report(report: &Report) {
    let (Some(scope), Ok(text)) = (scope(), serde_json::to_string(report)) else {
        return;
    };
    // Fails only when the page is gone.
    let _ = scope.post_message(&text.into());
}

fn take(order: Order, attached: JsValue) {
    match order {
        Order::Run {
            run,
            study,
            files,
            keys,
            keep,
        } => spawn_local(async move {
            let ended = carry_out(&run, &study, &files, &keys, keep).await;
            CONTROL.set(None);
            report(&match ended {
                Ok(()) => Report::Ended,
                Err(message) => Report::Failed { message },
            });
        }),
        Order::Interrupt => with_control(Control::interrupt),
        Order::Steer { change } => with_control(|control| control.steer(change)),
        Order::Forecast { ticket, study, files } => report(&Report::Forecast {
            ticket,
            forecast: forecast(&study, &files),
        }),
        Order::Unsaved => report(&Report::Unsaved { chunks: unsaved() }),
        Order::Probe {
            ticket,
            table,
            role,
            keys,
        } => spawn_local(async move {
            report(&Report::Probed {
                ticket,
                answer: probe(role, &table, &keys).await,
            });
        }),
        Order::TryAgent {
            ticket,
            workload,
            files,
            prompt,
            seed,
        } => spawn_local(async move {
            report(&Report::Probed {
                ticket,
                answer: trial::try_agent(&workload, &files, &prompt, seed).await,
            });
        }),
        Order::Branch { from, run, round } => spawn_local(async move {
            let branched = import::branch(&from, &run, round).await;
            report(&Report::Imported {
                run: branched.map(|()| run),
            });
        }),
        Order::Import { run, name } => spawn_local(async move {
            let imported = import::import(&run, &name, attached, |read, of| {
                report(&Report::Importing { read, of });
            });
            report(&Report::Imported {
                run: imported.await.map(|()| run),
            });
        }),
    }
}

fn with_control(tell: impl FnOnce(&Control)) {
    CONTROL.with_borrow(|control| control.as_ref().map(tell));
}

/// Runs or resumes a study.
async fn carry_out(run: &str, study: &str, files: &DataFiles, keys: &Keys, keep: bool) -> Result<(), String> {
    let control = Control::new();
    CONTROL.set(Some(control.clone()));
    let session = Session::new(study, files)?;
    let models = Rc::new(Breathing::new(session.models(keys)?));
    let storage = if keep { storage().await } else { None };
    let _held = if keep { Some(lock::hold(run).await?) } else { None };
    let mut journal = open(run, storage.clone()).await?;
    if let Some(storage) = storage.clone() {
        let run = run.to_owned();
        journal.observe(Box::new(move |event, state| note(&storage, &run, event, state)));
    }
    let options = session.options(control);
    let outcome = capo_core::optimize(session.problem, journal, models, options).await;
    let mut journal = outcome.map_err(|error| error.to_string())?.journal;
    journal.sync().await.map_err(|error| error.to_string())?;
    if let Some(storage) = storage {
        keep_record(&storage, run, journal.state()).await;
    }
    Ok(())
}

/// What this browser keeps, if it keeps anything.
async fn storage() -> Option<Storage> {
    match Storage::open().await {
        Ok(storage) => Some(storage),
        Err(error) => {
            report(&Report::Refused {
                reason: error.to_string(),
            });
            None
        }
    }
}

/// Opens a run's journal: the one this worker has, else the browser's.
async fn open(run: &str, storage: Option<Storage>) -> Result<Journal, String> {
    let known = JOURNAL.with_borrow(Clone::clone).filter(|(id, _)| id == run);
    let mut lines: Vec<String> = Vec::new();
    if let Some(storage) = &storage {
        let chunks = storage
            .slim_chunks(run)
            .await
            .map_err(|error| error.to_string())?;
        lines.extend(chunks.iter().flat_map(|chunk| chunk.lines()).map(str::to_owned));
    }
    let store = if let Some((_, store)) = known {
        for (first, whole) in store.unsaved() {
            lines.truncate(first as usize);
            lines.extend(whole);
        }
        store
    } else {
        let store = StoredJournal::new(storage, run, lines.len() as u64, Rc::new(told));
        JOURNAL.set(Some((run.to_owned(), store.clone())));
        store
    };
    let numbered = (0_u64..).zip(lines).map(Ok);
    Journal::open(Box::new(store), numbered).map_err(|error| error.to_string())
}

/// The lines of this worker's run that only memory holds.
fn unsaved() -> Vec<(u64, Vec<String>)> {
    JOURNAL.with_borrow(|journal| {
        journal
            .as_ref()
            .map(|(_, journal)| journal.unsaved())
            .unwrap_or_default()
    })
}

/// Tells the page what became of lines.
fn told(saved: Saved) {
    report(&match saved {
        Saved::Lines { first, lines } => Report::Lines { first, lines },
        Saved::Study(line) => Report::Study { line },
        Saved::Refused(reason) => Report::Refused { reason },
    });
}

/// Keeps what the list of runs shows up to date, round by round.
fn note(storage: &Storage, run: &str, event: &Event, state: &RunState) {
    if !matches!(event, Event::Round(_)) {
        return;
    }
    let (storage, run, progress) = (storage.clone(), run.to_owned(), Progress::of(state));
    spawn_local(async move {
        if let Ok(Some(mut record)) = storage.run(&run).await {
            record.progress = progress;
            record.touched = js_sys::Date::now();
            // Refused lines are reported; a list that is behind is mended by the next round.
            let _ = storage.put_run(&record).await;
        }
    });
}

/// Writes how a run ended into the list of runs.
async fn keep_record(storage: &Storage, run: &str, state: &RunState) {
    let Ok(Some(mut record)) = storage.run(run).await else {
        return;
    };
    if let Some(finished) = state.finished() {
        record.status = RunStatus::Ended(finished.status);
    }
    record.progress = Progress::of(state);
    record.touched = js_sys::Date::now();
    // As above.
    let _ = storage.put_run(&record).await;
}

fn forecast(study: &str, files: &DataFiles) -> Result<Box<serde_json::Value>, String> {
    let session = Session::new(study, files)?;
    let forecast = Forecast::new(&session.problem, &session.specs, &PriceTable::shipped());
    let forecast = forecast.map_err(|error| error.to_string())?;
    serde_json::to_value(forecast)
        .map(Box::new)
        .map_err(|error| error.to_string())
}

/// Asks a model whether it answers.
async fn probe(role: Role, table: &serde_json::Value, keys: &Keys) -> Result<f64, ProbeFailure> {
    match capo_models::probe::probe(role, table, keys).await {
        Ok(answered) => Ok(answered.seconds),
        Err(error) => Err(ProbeFailure {
            message: error.to_string(),
            unreachable: matches!(error, ProbeError::Unreachable { .. }),
        }),
    }
}
