//! A session of a run: its journal opened, the search carried out, its end written down.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use capo_core::RunError;
use capo_core::arena::Halt;
use capo_core::control::Control;
use capo_core::evaluate::Evaluator;
use capo_core::journal::{Event, Journal, Status, SteerEvent, StoreError};
use capo_core::reading::progress::{Progress, Times};
use capo_core::run_state::RunState;
use capo_core::workload::Split;
use capo_models::{Notice, Turn, Yielding};
use futures::FutureExt as _;
use wasm_bindgen_futures::spawn_local;
use web_time::Instant;

use super::protocol::{DataFiles, Report};
use super::report;
use super::session::Session;
use crate::keys::Keys;
use crate::storage::{Check, Chunks, RunStatus, Saved, Storage, StorageError, StoredJournal, lock};

thread_local! {
    /// What steers the run under way.
    static CONTROL: RefCell<Option<Control>> = const { RefCell::new(None) };
    /// The journal of the run this worker had last. What of it only memory holds goes on into the
    /// run's next session.
    static JOURNAL: RefCell<Option<(String, StoredJournal)>> = const { RefCell::new(None) };
    /// What the list of runs says of a run that was interrupted.
    static INTERRUPTED: Cell<RunStatus> = const { Cell::new(RunStatus::Ended(Status::Stopped)) };
}

/// What is to be run.
pub(super) struct Work {
    pub(super) run: String,
    pub(super) study: String,
    pub(super) files: DataFiles,
    pub(super) keys: Keys,
    /// Whether this browser keeps it.
    pub(super) keep: bool,
    /// Lines of its journal that the page knows.
    pub(super) known: u64,
    /// Seconds that it has run for.
    pub(super) elapsed: f64,
    /// Make so many of its first rollouts alone.
    pub(super) pilot: Option<usize>,
    /// Measure this alone.
    pub(super) check: Option<Check>,
}

/// Runs or resumes a study, unless one is under way.
pub(super) fn begin(work: Work) {
    if CONTROL.with_borrow(Option::is_some) {
        return report(&Report::Busy);
    }
    let control = Control::new();
    CONTROL.set(Some(control.clone()));
    spawn_local(async move {
        let ended = Box::pin(carry_out(work, control)).await;
        CONTROL.set(None);
        report(&match ended {
            Ok(()) => Report::Ended,
            Err(message) => Report::Failed { message },
        });
    });
}

/// How long a run that was stopped waits for calls under way.
const LAST_CALLS: Duration = Duration::from_millis(1_500);

/// Starts nothing new of the run under way. One that is stopped, not paused, gives up calls that are not
/// answered in a moment.
pub(super) fn interrupt(listed: RunStatus) {
    INTERRUPTED.set(listed);
    with_control(Control::interrupt);
    if listed == RunStatus::Ended(Status::Stopped)
        && let Some(control) = CONTROL.with_borrow(Clone::clone)
    {
        spawn_local(async move {
            gloo_timers::future::sleep(LAST_CALLS).await;
            control.abandon();
        });
    }
}

/// Changes something in the run under way at its next round boundary.
pub(super) fn steer(change: SteerEvent) {
    with_control(|control| control.steer(change));
}

/// Takes such a change back.
pub(super) fn withdraw(change: &SteerEvent) {
    with_control(|control| control.withdraw(change));
}

fn with_control(tell: impl FnOnce(&Control)) {
    CONTROL.with_borrow(|control| control.as_ref().map(tell));
}

/// The lines of this worker's run that only memory holds.
pub(super) fn unsaved() -> Chunks {
    let journal = JOURNAL.with_borrow(Clone::clone);
    journal.map(|(_, journal)| journal.unsaved()).unwrap_or_default()
}

async fn carry_out(work: Work, control: Control) -> Result<(), String> {
    let session = Session::new(&work.study, work.files.clone()).await?;
    let models = session.models(&work.keys, &control, Rc::new(tell_of_wait))?;
    let models = Rc::new(Yielding::new(models, turn()));
    // Held until every line is written: another tab begins where the last one lies.
    let _held = if work.keep {
        Some(lock::hold(&work.run).await.map_err(|error| error.to_string())?)
    } else {
        None
    };
    let storage = if work.keep {
        storage(&work.run).await
    } else {
        Err(Unkept::Unasked)
    };
    if let Err(Unkept::Deleted) = storage {
        return Err("This run is not in this browser any more: it was deleted.".into());
    }
    let opened = open(&work, storage.as_ref().ok().cloned()).await?;
    if let Err(Unkept::Refused(reason)) = &storage {
        report(&Report::Refused {
            reason: reason.clone(),
        });
    }
    let storage = storage.ok();
    let mut journal = opened.journal;
    let times = Rc::new(RefCell::new(match &storage {
        Some(storage) => times_of(storage, &work.run).await,
        None => Times::default(),
    }));
    if let Some(storage) = storage.clone() {
        let (run, times, began) = (work.run.clone(), Rc::clone(&times), Instant::now());
        let store = opened.store.clone();
        journal.observe(Box::new(move |event, state| {
            // The line of this event is the last one.
            let line = store.len().saturating_sub(1);
            times
                .borrow_mut()
                .note(line, work.elapsed + began.elapsed().as_secs_f64());
            note(&storage, &run, event, state, &times.borrow());
        }));
    }
    let options = session.options(control, Rc::new(tell_of_wait));
    let problem = session.0.problem;
    let ended = if let Some(check) = &work.check {
        measure(check, Evaluator::open(problem, journal, models, options)).await
    } else if let Some(rollouts) = work.pilot {
        let piloted = capo_core::pilot(problem, journal, models, options, rollouts).await;
        piloted.map(|piloted| (piloted.journal, piloted.halt, None))
    } else {
        let outcome = capo_core::optimize(problem, journal, models, options).await;
        outcome.map(|outcome| (outcome.journal, None, None))
    };
    opened.store.settle().await;
    let (journal, halt, checked) = ended.map_err(|error| error.to_string())?;
    if let Some(storage) = storage {
        let times = times.borrow().clone();
        let ended = journal.state().finished().map(|finished| finished.status);
        keep_record(
            &storage,
            &work.run,
            journal.state(),
            times,
            (ended.or(checked), halt.as_ref()),
        )
        .await;
    }
    if let Some(status) = checked {
        report(&Report::Checked { status });
    }
    match halt {
        Some(Halt::Failed { message, .. }) => return Err(message),
        Some(halt) if work.check.is_some() && halt != Halt::Interrupted => return Err(halt.to_string()),
        halt if work.pilot.is_some() && is_piloted(halt.as_ref()) => report(&Report::Piloted),
        _ => {}
    }
    Ok(())
}

/// Measures the prompt of a check and the seed prompt of its study, what is in the journal not anew; how the former came out
/// once both are, or that the budget is spent.
async fn measure(
    check: &Check,
    evaluator: Result<Evaluator, RunError>,
) -> Result<(Journal, Option<Halt>, Option<Status>), RunError> {
    let evaluator = evaluator?;
    let names = check.among(evaluator.examples(Split::Evaluate));
    let batch = evaluator.batch(Split::Evaluate, Some(&names));
    let batch = batch.map_err(|error| StoreError(error.to_string()))?;
    let measured = match evaluator.measure(&check.prompt, &batch).await {
        Ok(measured) => {
            let seed = evaluator.measure(&evaluator.seed_prompt(), &batch).await;
            seed.map(|_| measured.is_feasible())
        }
        Err(halt) => Err(halt),
    };
    let journal = evaluator.close().await?;
    Ok(match measured {
        Ok(Some(true)) => (journal, None, Some(Status::Feasible)),
        Ok(_) => (journal, None, Some(Status::Infeasible)),
        // More of it can be asked for, as of a search.
        Err(Halt::Budget(_)) => (journal, None, Some(Status::Budget)),
        Err(halt) => (journal, Some(halt), None),
    })
}

/// How long a worker computes before it looks at its messages.
const TURN: Duration = Duration::from_millis(40);

/// Turns of the worker's event loop.
fn turn() -> Turn {
    let last = Rc::new(Cell::new(Instant::now()));
    Rc::new(move || {
        (last.get().elapsed() >= TURN).then(|| {
            let last = Rc::clone(&last);
            async move {
                gloo_timers::future::sleep(Duration::ZERO).await;
                last.set(Instant::now());
            }
            .boxed_local()
        })
    })
}

fn tell_of_wait(notice: &Notice) {
    report(&Report::Waits {
        notice: notice.clone(),
    });
}

/// Why a run is kept by nothing but this worker's memory.
enum Unkept {
    /// Nobody wants it kept.
    Unasked,
    /// Its record is gone.
    Deleted,
    /// The browser keeps nothing, and says so.
    Refused(String),
}

async fn storage(run: &str) -> Result<Storage, Unkept> {
    let refused = |error: StorageError| Unkept::Refused(error.to_string());
    let storage = Storage::open().await.map_err(refused)?;
    let record = storage.run(run).await.map_err(refused)?;
    record.map(|_| storage).ok_or(Unkept::Deleted)
}

struct Opened {
    journal: Journal,
    store: StoredJournal,
}

/// Opens a run's journal: the lines that this browser keeps, read anew whatever this worker knew of
/// them, and after them those that only its memory holds.
async fn open(work: &Work, storage: Option<Storage>) -> Result<Opened, String> {
    let run = work.run.as_str();
    let (mut left_out, mut lines): (Vec<String>, Vec<String>) = Default::default();
    if let Some(storage) = &storage {
        let stored = storage.slim_lines(run, 0).await;
        let stored = stored.map_err(|error| error.to_string())?;
        if stored.torn {
            let cut = storage.cut_lines(run, stored.end).await;
            cut.map_err(|error| error.to_string())?;
            left_out.push(torn(stored.end));
        }
        lines.extend(stored.numbered().map(|(_, line)| line.to_owned()));
    }
    let earlier = JOURNAL.with_borrow(Clone::clone).filter(|(id, _)| id == run);
    let earlier = earlier.map(|(_, earlier)| earlier);
    let in_memory = earlier.as_ref().map_or(0, StoredJournal::from_memory);
    if storage.is_none() && in_memory < work.known {
        return Err(format!(
            "The journal, of which this tab shows {} lines, is neither given back by this browser nor held in \
             memory as a whole. Nothing was asked again. If the list of runs has this run, reload the page and \
             resume it; else set its study up anew.",
            work.known
        ));
    }
    let kept = lines.len() as u64;
    let store = StoredJournal::new(storage, run, kept, Rc::new(told));
    JOURNAL.set(Some((run.to_owned(), store.clone())));
    if let Some(earlier) = earlier {
        let others = store.take_over(&earlier);
        if others > 0 {
            left_out.push(format!(
                "{others} lines of the journal that only this tab’s memory held were left out: the run went on in \
                 another tab without them."
            ));
        }
    }
    let unsaved = store.unsaved_slim();
    lines.extend_from_slice(&unsaved);
    report(&Report::Opened {
        kept,
        unsaved,
        left_out,
    });
    let numbered = (0_u64..).zip(lines).map(Ok);
    let journal = Journal::open(Box::new(store.clone()), numbered).map_err(|error| error.to_string())?;
    Ok(Opened { journal, store })
}

/// That lines beyond line `end` are left out.
pub(crate) fn torn(end: u64) -> String {
    format!(
        "Line {} of the journal is missing in this browser. What lay beyond it is of no use and was left out: the \
         run goes on from there.",
        end + 1
    )
}

/// Tells the page what became of lines.
fn told(saved: Saved) {
    report(&match saved {
        Saved::Lines { first, lines } => Report::Lines { first, lines },
        Saved::Study(line) => Report::Study { line },
        Saved::Refused(reason) => Report::Refused { reason },
        Saved::Lost => Report::Lost,
    });
}

/// Keeps what the list of runs shows up to date, round by round.
fn note(storage: &Storage, run: &str, event: &Event, state: &RunState, times: &Times) {
    if !matches!(event, Event::Round(_)) {
        return;
    }
    let (storage, run, progress) = (storage.clone(), run.to_owned(), Progress::of(state));
    let times = times.clone();
    spawn_local(async move {
        // Refused lines are reported; a list that is behind is mended by the next round.
        let _ = storage
            .change_run(&run, |record| {
                record.progress = progress;
                record.times = times;
                record.touched = js_sys::Date::now();
            })
            .await;
    });
}

/// When the lines of a run came that there are.
async fn times_of(storage: &Storage, run: &str) -> Times {
    let record = storage.run(run).await.ok().flatten();
    record.map(|record| record.times).unwrap_or_default()
}

/// Whether first rollouts that were halted so are made, as far as the budget goes.
fn is_piloted(halt: Option<&Halt>) -> bool {
    matches!(halt, None | Some(Halt::Budget(_)))
}

/// Writes how a run ended into the list of runs; one of which first rollouts alone were to be made, or a check, by what halted
/// those.
async fn keep_record(
    storage: &Storage,
    run: &str,
    state: &RunState,
    times: Times,
    (ended, halt): (Option<Status>, Option<&Halt>),
) {
    // As above.
    let _ = storage
        .change_run(run, |record| {
            match ended {
                Some(Status::Stopped) => record.status = INTERRUPTED.get(),
                Some(status) => record.status = RunStatus::Ended(status),
                None if is_piloted(halt) && record.check.is_none() => {
                    record.status = RunStatus::Paused;
                    record.pilot = None;
                }
                None if halt == Some(&Halt::Interrupted) => record.status = INTERRUPTED.get(),
                None => record.status = RunStatus::Ended(Status::Failed),
            }
            record.progress = Progress::of(state);
            record.times = times;
            record.touched = js_sys::Date::now();
        })
        .await;
}
