//! A run on a thread of its own: its study joined, its journal opened, the search carried out.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capo_api::{RunStage, RunWish};
use capo_core::RunError;
use capo_core::arena::Clock;
use capo_core::control::Control;
use capo_core::journal::{Event, FinishedEvent, Journal, JournalError, Status};
use capo_core::reading::progress::{Progress, Times};
use capo_hosted::{Prepared, SharedKeys, Waiting, waits};
use capo_workloads::files::MemoryFiles;

use super::Shared;
use super::rows::{Database, Rows};
use crate::files::lacks_file;
use crate::http::Server;
use crate::secret::Secret;
use crate::shared_keys;
use crate::store::{Lease, Run, RunOutcome, Tested};
use crate::telemetry;
use crate::trainings::{Rewriters, Stopped};

/// How long a run that was told to stop waits for calls under way.
const MOMENT: Duration = Duration::from_millis(1_500);

/// Calls of a run at a time, whatever its study says: each holds connections of the server.
const MOST_CALLS: usize = 64;

/// How often what lists show of a run is noted, beside every round.
const NOTE: f64 = 2.0;

/// What came of carrying a run out.
#[derive(Debug, PartialEq)]
pub(super) enum Carried {
    /// It is left so.
    Left(RunOutcome),
    /// It cannot begin or go on.
    Failed(String),
    /// Another worker has claimed it, or the database does not answer.
    Lost,
}

struct Elapsed(Instant);

impl Clock for Elapsed {
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// What steers a run, as its thread hears of it.
struct Ear {
    control: Control,
    shared: Arc<Shared>,
    waiting: Rc<RefCell<Waiting>>,
    /// What ended or is to end it.
    wish: Cell<Option<RunWish>>,
    is_ending: Cell<bool>,
    is_lost: Cell<bool>,
}

impl Ear {
    /// Takes what there is to hear.
    fn listen(&self) {
        let (told, is_ending, is_lost) = self
            .shared
            .change(|news| (news.told.take(), news.is_ending, news.is_lost));
        if is_lost {
            self.is_lost.set(true);
            return self.control.abandon();
        }
        if let Some(told) = told {
            self.waiting.borrow_mut().replace(told.steers);
            if told.wish.is_some() && self.wish.replace(told.wish).is_none() {
                self.control.interrupt();
            }
        }
        let mut waiting = self.waiting.borrow_mut();
        if std::mem::take(&mut waiting.is_news) {
            let changes = waiting.changes.iter().map(|(_, change)| change.clone());
            self.control.steer_anew(changes.collect());
        }
        if is_ending && !self.is_ending.replace(true) {
            self.control.interrupt();
        }
    }

    /// Hears for as long as it is polled, while the thread waits for models.
    async fn keep_listening(&self) -> Infallible {
        let mut dropping: Option<Instant> = None;
        loop {
            self.listen();
            // One that is paused has its calls answered.
            let drops = self.is_ending.get() || self.wish.get() == Some(RunWish::Stop);
            match dropping {
                None if drops => dropping = Some(Instant::now() + MOMENT),
                Some(at) if Instant::now() >= at => self.control.abandon(),
                _ => {}
            }
            let patience = if dropping.is_some() {
                MOMENT / 10
            } else {
                Duration::from_secs(1)
            };
            // Whether it was told something or not, it looks.
            let _ = tokio::time::timeout(patience, self.shared.told.notified()).await;
        }
    }
}

/// Carries a run out on this thread until it ends, is told to rest, or is lost.
pub(super) fn carry_out(
    server: &Server,
    database: &Database,
    lease: &Lease,
    run: Run,
    origin: &str,
    pass: &Secret,
    shared: &Arc<Shared>,
) -> Carried {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Carried::Failed(format!("the system gives no event queue: {error}")),
    };
    let carried = async {
        match prepared(server, database, &run, origin, pass, shared) {
            Ok((prepared, keys, rewriters)) => {
                let models = (&keys, &rewriters);
                Box::pin(search(server, database, lease, run, prepared, models, shared)).await
            }
            Err(carried) => carried,
        }
    };
    tokio::task::LocalSet::new().block_on(&runtime, carried)
}

fn prepared(
    server: &Server,
    database: &Database,
    run: &Run,
    origin: &str,
    pass: &Secret,
    shared: &Arc<Shared>,
) -> Result<(Prepared, SharedKeys, Rewriters), Carried> {
    let (of, id, project) = (server.clone(), run.id.clone(), run.project.clone());
    let (origin, pass) = (origin.to_owned(), pass.reveal().to_owned());
    let read = database.wait(async move {
        let store = of.store();
        let study = store.run_study(&id).await?;
        let mut files = MemoryFiles::new();
        for (path, sha256) in &study.files {
            match of.file_content(&project, sha256).await? {
                Some(content) => files.insert(path.clone(), content),
                None => return Ok(Err(lacks_file(path, sha256))),
            }
        }
        let keys = shared_keys::of_project(store, &project, &origin, &pass).await?;
        let trainings = store.trainings(&project).await?;
        let trainings: Vec<_> = trainings.into_iter().map(|training| training.id).collect();
        Ok::<_, crate::store::StoreError>(Ok((study.text, files, keys, trainings)))
    });
    let read = read
        .map_err(|error| lost(run, &error))?
        .map_err(|error| lost(run, &error))?;
    let (study, files, keys, trainings) = read.map_err(Carried::Failed)?;
    let prepared = Prepared::new(&study, &files).map_err(Carried::Failed)?;
    let heard = Arc::clone(shared);
    let stopped: Stopped = Arc::new(move || heard.change(|news| news.is_to_end()));
    let mut named = prepared.rewriters();
    named.retain(|id| trainings.contains(id));
    let mut found = BTreeMap::new();
    if let Some(policies) = server.policies().filter(|_| !named.is_empty()) {
        let there = database.wait(policies.of_all(named, Arc::clone(&stopped)));
        found = there.map_err(|error| lost(run, &error))?;
        if found.values().any(Result::is_err) && stopped() {
            return Err(at_rest(shared));
        }
    }
    let rewriters = Rewriters {
        trainings: server.trainings().cloned(),
        found,
        stopped,
    };
    Ok((prepared, keys, rewriters))
}

/// How a run is left that was told to end before its search went on.
fn at_rest(shared: &Shared) -> Carried {
    shared.change(|news| {
        let stage = match news.told.as_ref().and_then(|told| told.wish) {
            _ if news.is_lost => return Carried::Lost,
            Some(RunWish::Pause) => RunStage::Paused,
            Some(RunWish::Stop) => RunStage::Ended,
            None => RunStage::Queued,
        };
        Carried::Left(RunOutcome {
            stage,
            status: Some(Status::Stopped),
            error: None,
            tested: None,
        })
    })
}

async fn search(
    server: &Server,
    database: &Database,
    lease: &Lease,
    run: Run,
    prepared: Prepared,
    (keys, rewriters): (&SharedKeys, &Rewriters),
    shared: &Arc<Shared>,
) -> Carried {
    let waiting = Rc::new(RefCell::new(Waiting::default()));
    let ear = Rc::new(Ear {
        control: Control::new(),
        shared: Arc::clone(shared),
        waiting: Rc::clone(&waiting),
        wish: Cell::new(None),
        is_ending: Cell::new(false),
        is_lost: Cell::new(false),
    });
    let observer = {
        let (server, shared) = (server.clone(), Arc::clone(shared));
        waits(
            move || server.now(),
            move |waits| shared.change(|news| news.waits = Some(waits)),
        )
    };
    let (prices, heard) = (server.prices(), Rc::clone(&observer));
    let models = match prepared.models(keys, Some(rewriters), prices, &ear.control, heard) {
        Ok(models) => Rc::new(models),
        Err(error) => return Carried::Failed(error),
    };
    let now = {
        let server = server.clone();
        Rc::new(move || server.now())
    };
    let rows = Rows::new(database.clone(), lease.clone(), run.lines, now, waiting);
    let journal = Journal::open(Box::new(rows), database.lines(&run.id, run.lines));
    let mut journal = match journal {
        Ok(journal) => journal,
        Err(JournalError::Store(error)) => return lost(&run, &error),
        Err(error) => return Carried::Failed(error.to_string()),
    };
    let times = Rc::new(RefCell::new(run.times.clone()));
    observe(&mut journal, &ear, &run, &times);
    let clock = Rc::new(Elapsed(Instant::now()));
    let started_at = crate::http::moment(server.now());
    let mut options = prepared
        .setup
        .options(started_at, clock, ear.control.clone(), observer);
    options.concurrency = options.concurrency.min(MOST_CALLS);
    let outcome = tokio::select! {
        outcome = capo_core::optimize(prepared.setup.problem, journal, models, options) => outcome,
        never = ear.keep_listening() => match never {},
    };
    match outcome {
        Ok(outcome) => {
            let state = outcome.journal.state();
            let figures = (Progress::of(state), times.borrow().clone());
            shared.change(|news| news.figures = Some(figures));
            if ear.is_lost.get() {
                Carried::Lost
            } else {
                Carried::Left(RunOutcome {
                    tested: Some(Tested::all(state)),
                    ..ear.left(&outcome.finished)
                })
            }
        }
        // The database, or another worker's claim: whoever claims it goes on where the journal ends.
        Err(RunError::Journal(JournalError::Store(error))) => lost(&run, &error),
        Err(error) => Carried::Failed(error.to_string()),
    }
}

/// The database does not answer, or another worker has claimed the run: whoever claims it next goes on where the journal ends.
fn lost(run: &Run, error: &dyn std::fmt::Display) -> Carried {
    tracing::warn!(run = run.id, %error, "a run was let go of");
    Carried::Lost
}

/// Notes what lists show, and hears what the run is told while models in this process keep the thread busy.
fn observe(journal: &mut Journal, ear: &Rc<Ear>, run: &Run, times: &Rc<RefCell<Times>>) {
    let (ear, began, before) = (Rc::clone(ear), Instant::now(), run.times.last());
    let (mut line, times, mut noted) = (run.lines, Rc::clone(times), f64::NEG_INFINITY);
    journal.observe(Box::new(move |event, state| {
        ear.listen();
        let seconds = before + began.elapsed().as_secs_f64();
        times.borrow_mut().note(line, seconds);
        if matches!(event, Event::Rollout(_)) {
            telemetry::rolled_out();
        }
        line += 1;
        if matches!(event, Event::Round(_) | Event::Finished(_)) || seconds - noted >= NOTE {
            noted = seconds;
            let figures = (Progress::of(state), times.borrow().clone());
            ear.shared.change(|news| news.figures = Some(figures));
        }
    }));
}

impl Ear {
    /// How a run is left that ended so.
    fn left(&self, finished: &FinishedEvent) -> RunOutcome {
        let stage = match (finished.status, self.wish.get()) {
            (Status::Stopped, Some(RunWish::Pause)) => RunStage::Paused,
            (Status::Stopped, None) if self.is_ending.get() => RunStage::Queued,
            _ => RunStage::Ended,
        };
        RunOutcome {
            stage,
            status: Some(finished.status),
            error: None,
            tested: None,
        }
    }
}
