//! The search of a run: its study joined, its journal opened, and what carries it out piece by piece.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use capo_core::arena::Clock;
use capo_core::control::Control;
use capo_core::journal::{Event, Journal};
use capo_core::reading::progress::Progress;
use capo_core::{Outcome, RunError};
use capo_hosted::{Prepared, waits};
use capo_models::{Turn, Yielding};
use capo_workloads::files::MemoryFiles;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use worker::wasm_bindgen_futures::spawn_local;
use worker::{Delay, Env, console_error};

use super::kept::Kept;
use super::keys::{Keys, MOST_CALLS};
use super::lines::Lines;
use crate::call::PRICES;
use crate::configuration::Configuration;
use crate::notify::Notify;
use crate::project::{Files, Project};
use crate::runtime::{moment, now};

/// After so many calls to models the object answers others first; clocks stand still while it computes.
const TURN: u32 = 16;

/// After so many the slice ends: simulated models compute, for which the runtime allows half a minute.
const SLICE: u32 = 2_000;

/// How often what lists show of a run is noted, in seconds, beside every round.
const NOTE: f64 = 2.0;

/// A search under way, which goes on whenever it is polled.
pub(super) struct Search {
    pub(super) outcome: LocalBoxFuture<'static, Result<Outcome, RunError>>,
    /// Notified when it has made as many calls as a slice may.
    pub(super) spent: Rc<Notify>,
}

/// Bytes of a study's data files in all, at most: an object has 128 MB of memory.
const MOST_FILES: usize = 32 << 20;

/// Reads a study with its data and the keys of its project, as it will run on the account of a member.
///
/// # Errors
/// When its project does not answer; within, what is wrong with it.
pub(super) async fn prepare(
    env: &Env,
    (project, member): (&str, &str),
    study: &str,
    files: &Files,
) -> worker::Result<Result<(Prepared, Keys), String>> {
    let configuration = Configuration::of(env)?;
    let keys = Keys::new(env.clone(), configuration, member, project);
    let store = Project::of(env, project)?;
    let mut content = MemoryFiles::new();
    let mut size = 0;
    for (path, sha256) in files {
        let Some(file) = store.read(sha256).await? else {
            return Ok(Err(format!(
                "The project does not have the data file `{path}` ({sha256}); upload it first."
            )));
        };
        size += file.len();
        if size > MOST_FILES {
            let most = MOST_FILES >> 20;
            return Ok(Err(format!(
                "The study's data files are larger than {most} MiB in all."
            )));
        }
        content.insert(path.clone(), file);
    }
    let prepared = Prepared::new(study, &content).and_then(|prepared| {
        prepared.check_models(&keys)?;
        if prepared.rewriters().is_empty() {
            Ok((prepared, keys))
        } else {
            Err("models: rewriters are trained on a team server, and only there they can be asked".to_owned())
        }
    });
    Ok(prepared)
}

struct Elapsed {
    /// In milliseconds since 1970.
    since: u64,
}

impl Clock for Elapsed {
    fn seconds(&self) -> f64 {
        now().saturating_sub(self.since) as f64 / 1_000.0
    }
}

impl Search {
    /// Opens the journal of a run; the search goes on where it ends.
    ///
    /// # Errors
    /// What is wrong with the study, its models or the journal.
    pub(super) fn begin(
        kept: &Rc<Kept>,
        env: &Env,
        (prepared, keys): (Prepared, Keys),
        control: &Control,
    ) -> Result<Self, String> {
        let waiting = Rc::clone(kept);
        let observer = waits(|| now().cast_signed(), move |waits| waiting.wait_for(waits));
        let models = prepared.models(&keys, None, &PRICES, control, Rc::clone(&observer))?;
        let spent = Rc::new(Notify::default());
        let models = Rc::new(Yielding::new(models, turns(Rc::clone(&spent))));
        let lines = kept.journal().map_err(|error| error.to_string())?;
        let journal = Journal::open(Box::new(Lines(Rc::clone(kept))), lines);
        let mut journal = journal.map_err(|error| error.to_string())?;
        observe(&mut journal, kept, env, control);
        let clock = Rc::new(Elapsed { since: now() });
        let mut options = prepared
            .setup
            .options(moment(now()), clock, control.clone(), observer);
        options.concurrency = options.concurrency.min(MOST_CALLS);
        let outcome = capo_core::optimize(prepared.setup.problem, journal, models, options);
        Ok(Self {
            outcome: outcome.boxed_local(),
            spent,
        })
    }
}

/// Gives others a turn now and then, and notifies when a slice's calls are spent.
fn turns(spent: Rc<Notify>) -> Turn {
    let calls = Cell::new(0_u32);
    Rc::new(move || {
        calls.set(calls.get().wrapping_add(1));
        if calls.get().is_multiple_of(SLICE) {
            spent.notify();
        }
        let is_due = calls.get().is_multiple_of(TURN);
        is_due.then(|| Delay::from(Duration::ZERO).boxed_local())
    })
}

/// Notes what lists show, and when lines came.
fn observe(journal: &mut Journal, kept: &Rc<Kept>, env: &Env, control: &Control) {
    let (kept, env, control) = (Rc::clone(kept), env.clone(), control.clone());
    let (before, clock, mut noted) = (
        kept.shown().times.last(),
        Elapsed { since: now() },
        f64::NEG_INFINITY,
    );
    journal.observe(Box::new(move |event, state| {
        kept.hear_news(&control);
        let seconds = before + clock.seconds();
        kept.note_time(seconds);
        if matches!(event, Event::Round(_) | Event::Finished(_)) || seconds - noted >= NOTE {
            noted = seconds;
            let changed = kept.change(|shown| shown.progress = Progress::of(state));
            if let Err(error) = changed {
                console_error!("the figures of a run could not be written: {error}");
            }
            let (kept, env) = (Rc::clone(&kept), env.clone());
            // The next note mends what is lost.
            spawn_local(async move {
                list(&kept, &env).await;
            });
        }
    }));
}

/// Has the project list a run as it is by now; false where it does not answer.
pub(super) async fn list(kept: &Kept, env: &Env) -> bool {
    let shown = kept.shown().clone();
    let noted = async { Project::of(env, &shown.project)?.note(shown.clone()).await };
    let noted = noted.await;
    if let Err(error) = &noted {
        console_error!("the project of a run does not answer: {error}");
    }
    noted.is_ok()
}
