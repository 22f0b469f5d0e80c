//! A run: one Durable Object each, with its journal in the object's storage.
//!
//! Alarms carry the search out, a slice at a time. Between slices it stays in the object's memory, and what is under way is
//! answered; an object that was ended meanwhile takes it up from the journal, at the next alarm.

mod events;
mod kept;
mod keys;
mod lines;
mod orders;
mod search;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use capo_api::{NewBranch, Role, RunDetail, RunOrder, RunOrigin, RunShown, RunStage, RunWish};
use capo_core::control::Control;
use capo_core::journal::{self, Journal, MemoryJournal, Status};
use capo_core::reading::progress::{Progress, Times};
use capo_hosted::by_hand;
use futures::TryStreamExt as _;
use futures::future::{Either, select};
use serde::{Deserialize, Serialize};
// The macro names it.
use worker::wasm_bindgen;
use worker::{Delay, DurableObject, Env, Request, Response, State, Stub, console_error, durable_object};

use self::kept::Kept;
use self::search::{Search, list, prepare};
use crate::configuration::Configuration;
use crate::ledger::Ledger;
use crate::object::{self, Lines};
use crate::places::{AGAIN, Ready};
use crate::project::{Files, Project};
use crate::refusal::Refusal;
use crate::runtime::{millis, moment, now};

/// How long a slice may take: an alarm has a quarter of an hour.
const SLICE: Duration = Duration::from_mins(9);

/// What an object is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// To be a run, whose journal so far comes along.
    Begin(Box<Begin>),
    /// To say what it is.
    Show,
    /// To hand over its journal from a line on.
    Journal(u64),
    /// To say what is new about it, from a line of its journal on.
    Events(u64),
    /// What people tell a run.
    Order(RunOrder),
    /// To have the run of another id share its beginning.
    Branch(String, NewBranch),
    /// To have another name.
    Rename(String),
    /// To be no run any more.
    Delete,
}

/// A run that is to begin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) id: String,
    pub(crate) project: String,
    pub(crate) name: String,
    pub(crate) study: String,
    pub(crate) files: Files,
    pub(crate) start_at: Option<String>,
    pub(crate) origin: RunOrigin,
    /// Whether it waits until somebody resumes it.
    pub(crate) is_paused: bool,
}

/// Who tells it.
#[derive(Debug, Serialize, Deserialize)]
struct RunRequest {
    by: String,
    asked: Command,
}

/// Tells the run of an id something, on behalf of a member, with lines of a journal along.
pub(crate) async fn ask(
    env: &Env,
    id: &str,
    by: &str,
    asked: Command,
    lines: Vec<String>,
) -> Result<Response, Refusal> {
    let run: Stub = env.durable_object("RUN_OBJECTS")?.get_by_name(id)?;
    let by = by.to_owned();
    Ok(object::ask_with(&run, &RunRequest { by, asked }, lines).await?)
}

/// How long it is until something is tried again that failed for reasons of the run's surroundings.
const LATER: Duration = Duration::from_mins(1);

/// The object itself.
#[durable_object(alarm)]
pub struct RunObject {
    state: State,
    env: Env,
    kept: RefCell<Option<Rc<Kept>>>,
    /// Between two slices.
    search: RefCell<Option<Search>>,
    /// Steers the search while there is one.
    control: RefCell<Option<Control>>,
}

impl DurableObject for RunObject {
    fn new(state: State, env: Env) -> Self {
        Self {
            state,
            env,
            kept: RefCell::default(),
            search: RefCell::default(),
            control: RefCell::default(),
        }
    }

    async fn fetch(&self, mut request: Request) -> worker::Result<Response> {
        let (told, lines) = object::order_with(&mut request).await?;
        self.answer(told, lines).await.or_else(Refusal::into_response)
    }

    async fn alarm(&self) -> worker::Result<Response> {
        let Some(kept) = self.kept()? else {
            return Response::empty();
        };
        if goes_on(&kept.shown()) {
            // Set before anything is done: whatever ends this object, the next one goes on.
            self.wake(&kept).await?;
            if kept.shown().start_at.is_none() {
                match self.slice(&kept).await {
                    Ok(Some(left)) => self.leave(&kept, left).await?,
                    Ok(None) => {}
                    Err(error) => {
                        console_error!("a run could not be taken up; once more in a minute: {error}");
                        self.state.storage().set_alarm(LATER).await?;
                    }
                }
            }
        } else {
            self.list(&kept).await?;
        }
        Response::empty()
    }
}

/// How a run is left.
struct RunOutcome {
    stage: RunStage,
    status: Option<Status>,
    error: Option<String>,
}

impl RunOutcome {
    fn failed(error: String) -> Self {
        Self {
            stage: RunStage::Failed,
            status: None,
            error: Some(error),
        }
    }
}

fn goes_on(run: &RunShown) -> bool {
    matches!(run.stage, RunStage::Queued | RunStage::Running)
}

impl RunObject {
    /// The run, if this object is one.
    fn kept(&self) -> worker::Result<Option<Rc<Kept>>> {
        if self.kept.borrow().is_none() {
            let loaded = Kept::load(self.state.storage().sql())?;
            *self.kept.borrow_mut() = loaded.map(Rc::new);
        }
        Ok(self.kept.borrow().clone())
    }

    /// Has an alarm carry the run out, at once or when it is to start.
    async fn wake(&self, kept: &Kept) -> worker::Result<()> {
        let start_at = kept.shown().start_at.as_deref().and_then(|at| millis(at).ok());
        let wait = start_at.map_or(0, |at| at.saturating_sub(now()));
        // One that was kept before its form was checked, and says nothing, is over too.
        if wait == 0 && kept.shown().start_at.is_some() {
            kept.change(|shown| shown.start_at = None)?;
        }
        let storage = self.state.storage();
        storage.set_alarm(Duration::from_millis(wait)).await
    }

    /// Whether it may go on beside the other runs of the member on whose account it asks.
    async fn has_place(&self, kept: &Kept) -> worker::Result<bool> {
        let most = Configuration::of(&self.env)?.runs_per_member;
        let ready = Ready::new(&kept.shown(), most);
        Ledger::of(&self.env)?.place(ready).await
    }

    /// Gives its place to others; false where nobody heard of it.
    async fn leave_place(&self, kept: &Kept) -> bool {
        let run = kept.shown().id.clone();
        let left = async { Ledger::of(&self.env)?.leave(run).await };
        let left = left.await;
        if let Err(error) = &left {
            console_error!("a run's place could not be given to others: {error}");
        }
        left.is_ok()
    }

    /// Carries the search out for a while; returns how the run is left once it ends.
    async fn slice(&self, kept: &Rc<Kept>) -> worker::Result<Option<RunOutcome>> {
        let has_place = self.has_place(kept).await?;
        // Meanwhile it may have been told to rest, or deleted.
        if kept.is_gone() || !goes_on(&kept.shown()) {
            self.leave_place(kept).await;
            return Ok(None);
        }
        if !has_place {
            self.state.storage().set_alarm(AGAIN).await?;
            return Ok(None);
        }
        let search = self.search.take();
        let mut search = match search {
            Some(search) => search,
            None => match self.take_up(kept).await? {
                Ok(search) => search,
                Err(error) => return Ok(Some(RunOutcome::failed(error))),
            },
        };
        let ended = {
            let (spent, over) = (pin!(search.spent.notified()), pin!(Delay::from(SLICE)));
            match select(&mut search.outcome, select(spent, over)).await {
                Either::Left((outcome, _)) => Some(outcome),
                Either::Right(_) => None,
            }
        };
        let Some(outcome) = ended else {
            *self.search.borrow_mut() = Some(search);
            return Ok(None);
        };
        Ok(Some(match outcome {
            Ok(outcome) => RunOutcome {
                stage: match (outcome.finished.status, kept.shown().wish) {
                    (Status::Stopped, Some(RunWish::Pause)) => RunStage::Paused,
                    _ => RunStage::Ended,
                },
                status: Some(outcome.finished.status),
                error: None,
            },
            Err(error) => RunOutcome::failed(error.to_string()),
        }))
    }

    /// Begins a search where the journal ends.
    async fn take_up(&self, kept: &Rc<Kept>) -> worker::Result<Result<Search, String>> {
        // From now on it hears what people say.
        let control = Control::new();
        *self.control.borrow_mut() = Some(control.clone());
        // What it was told when it was ended in the middle.
        if kept.shown().wish.is_some() {
            control.interrupt();
        }
        if !kept.claim()? {
            return Ok(Err(
                "each time it was taken up it ended before it had a further line; the worker's log says why"
                    .into(),
            ));
        }
        kept.change(|shown| shown.stage = RunStage::Running)?;
        let (study, files) = kept.study()?;
        let of = {
            let shown = kept.shown();
            (shown.project.clone(), shown.started_by.clone())
        };
        let prepared = match prepare(&self.env, (&of.0, &of.1), &study, &files).await {
            Ok(prepared) => prepared,
            Err(error) => {
                // It is none of the run's doing.
                kept.unclaim()?;
                *self.control.borrow_mut() = None;
                return Err(error);
            }
        };
        kept.hear_anew(&control)?;
        Ok(prepared.and_then(|prepared| Search::begin(kept, &self.env, prepared, &control)))
    }

    async fn leave(&self, kept: &Rc<Kept>, outcome: RunOutcome) -> worker::Result<()> {
        *self.control.borrow_mut() = None;
        kept.unclaim()?;
        kept.wait_for(None);
        kept.change(|shown| {
            shown.stage = outcome.stage;
            shown.status = outcome.status;
            shown.error = outcome.error;
            shown.wish = None;
        })?;
        self.rest().await?;
        self.list(kept).await
    }

    /// Has an alarm see to what lists show of a run that rests, should they not hear of it now.
    async fn rest(&self) -> worker::Result<()> {
        self.state.storage().set_alarm(LATER).await
    }

    /// Has the project list the run as it is by now; of one that rests until it has, and its place is given to others.
    async fn list(&self, kept: &Kept) -> worker::Result<()> {
        let is_listed = list(kept, &self.env).await;
        let rests = !goes_on(&kept.shown());
        if rests && !(self.leave_place(kept).await && is_listed) {
            self.rest().await?;
        }
        Ok(())
    }

    async fn answer(&self, RunRequest { by, asked }: RunRequest, lines: Lines) -> Result<Response, Refusal> {
        if let Command::Begin(begin) = asked {
            return self.begin(&by, *begin, lines).await;
        }
        let missing = || Refusal::no_such("run");
        let kept = self.kept()?.ok_or_else(missing)?;
        let project = kept.shown().project.clone();
        let role = match asked {
            Command::Show | Command::Journal(_) | Command::Events(_) => Role::Viewer,
            _ => Role::Editor,
        };
        let configuration = Configuration::read(&self.env).map_err(|_| Refusal::misconfigured())?;
        let member = configuration.named(&by).ok_or_else(missing)?;
        member.require(&project, role, "run")?;
        // Should its alarm be lost, whoever looks at it has it go on.
        if goes_on(&kept.shown())
            && self.control.borrow().is_none()
            && self.state.storage().get_alarm().await?.is_none()
        {
            self.wake(&kept).await?;
        }
        match asked {
            Command::Begin(_) => return Err(Refusal::missing()),
            Command::Show => {
                let (study, files) = kept.study()?;
                let run = kept.shown().clone();
                return Ok(Response::from_json(&RunDetail { run, study, files })?);
            }
            Command::Journal(from) => return Ok(events::journal(kept, from)?),
            Command::Events(from) => return Ok(events::events(kept, from)?),
            Command::Branch(id, new) => return self.branch(&kept, &by, id, new).await,
            Command::Order(order) => self.obey(&kept, &by, order).await?,
            Command::Rename(name) => kept.change(|shown| shown.name = name)?,
            Command::Delete => {
                self.delete(&kept).await?;
                return Ok(Response::empty()?.with_status(204));
            }
        }
        self.list(&kept).await?;
        Ok(Response::from_json(&*kept.shown())?)
    }

    /// Makes this object a run, once it is known that it can run.
    async fn begin(&self, by: &str, begin: Begin, mut lines: Lines) -> Result<Response, Refusal> {
        let Begin {
            id,
            project,
            name,
            study,
            files,
            start_at,
            origin,
            is_paused,
        } = begin;
        let start_at = start_at.as_deref().map(millis).transpose();
        let start_at = start_at.map_err(Refusal::invalid)?;
        let prepared = prepare(&self.env, (&project, by), &study, &files).await?;
        let (prepared, _) = prepared.map_err(Refusal::invalid)?;
        let facts = prepared.setup.problem.study();
        let at = moment(now());
        let shown = RunShown {
            id,
            project: project.clone(),
            name,
            started_by: by.to_owned(),
            origin,
            stage: if is_paused {
                RunStage::Paused
            } else {
                RunStage::Queued
            },
            wish: None,
            status: None,
            error: None,
            method: facts.study.method.clone(),
            objective: facts.objective.metric.clone(),
            created_at: at.clone(),
            start_at: start_at.map(moment),
            touched_at: at,
            lines: 0,
            revision: 0,
            progress: Progress::default(),
            times: Times::default(),
        };
        let storage = self.state.storage();
        let kept = Kept::create(storage.sql(), shown, &study, &files)?;
        let begun = async {
            while let Some(line) = lines.try_next().await.map_err(worker::Error::from)? {
                kept.append(&line)?;
            }
            let journal = Journal::open(Box::new(MemoryJournal::new()), kept.journal()?);
            let journal = journal.map_err(|error| Refusal::invalid(error.to_string()))?;
            kept.change(|shown| shown.progress = Progress::of(journal.state()))?;
            let shown = kept.shown().clone();
            Ok::<_, Refusal>(Project::of(&self.env, &project)?.add(shown, files).await?)
        };
        if let Err(refusal) = begun.await {
            // What nobody has in a list nobody finds.
            storage.delete_all().await?;
            return Err(refusal);
        }
        let kept = Rc::new(kept);
        *self.kept.borrow_mut() = Some(Rc::clone(&kept));
        if !is_paused {
            self.wake(&kept).await?;
        }
        Ok(Response::from_json(&*kept.shown())?.with_status(201))
    }

    /// Makes another object a run that shares the beginning of this one.
    async fn branch(&self, kept: &Kept, by: &str, id: String, new: NewBranch) -> Result<Response, Refusal> {
        let change = by_hand(new.change).map_err(Refusal::invalid)?;
        let mut broken = None;
        let whole = kept.journal()?.map_while(|line| match line {
            Ok((_, line)) => Some(line),
            Err(error) => {
                broken = Some(error);
                None
            }
        });
        let lines = journal::branch(whole, new.round, change);
        if let Some(error) = broken {
            return Err(worker::Error::from(error.to_string()).into());
        }
        let lines = lines.map_err(|error| Refusal::invalid(error.to_string()))?;
        let (study, files) = kept.study()?;
        let (project, run) = {
            let shown = kept.shown();
            (shown.project.clone(), shown.id.clone())
        };
        let begin = Begin {
            id: id.clone(),
            project,
            name: new.name.as_str().to_owned(),
            study,
            files,
            start_at: None,
            origin: RunOrigin::Branch {
                run,
                round: new.round,
            },
            is_paused: !new.start,
        };
        ask(&self.env, &id, by, Command::Begin(Box::new(begin)), lines).await
    }

    async fn delete(&self, kept: &Kept) -> Result<(), Refusal> {
        let is_under_way = || self.control.borrow().is_some() || kept.shown().stage == RunStage::Running;
        if is_under_way() {
            return Err(Refusal::conflict("This is under way; stop it first."));
        }
        let (id, project) = {
            let shown = kept.shown();
            (shown.id.clone(), shown.project.clone())
        };
        let project = Project::of(&self.env, &project)?;
        // Nothing takes it up meanwhile.
        self.state.storage().delete_alarm().await?;
        self.leave_place(kept).await;
        // First, so that no list has what is not there.
        if let Err(refusal) = project.forget(&id).await {
            let goes_on = goes_on(&kept.shown());
            if goes_on {
                self.wake(kept).await?;
            }
            return Err(refusal.into());
        }
        kept.leave();
        *self.kept.borrow_mut() = None;
        let storage = self.state.storage();
        storage.delete_alarm().await?;
        Ok(storage.delete_all().await?)
    }
}
