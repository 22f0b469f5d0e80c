//! The only door to anything that costs money.
//!
//! A method is ordinary async code that asks the arena for measurements and children. The arena
//! looks in the journal before it pays, checks the budget before every effect, journals every
//! answer as it arrives and runs the effects of a batch concurrently. Running the same method over
//! the same journal therefore replays for free and goes on where the journal ends.

mod batches;
mod budget_gate;
mod caller;
mod failures;
mod feedback;
mod learning;
mod measure;
mod offspring;
mod parts;
mod pilot;
mod reuse;
mod rollouts;
mod rounds;
mod spending;
mod start;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;

use crate::batches::Batches;
use crate::journal::run_state::SetKey;
use crate::journal::{
    CandidateEvent, EarlierRuns, EffectName, Event, Journal, JournalError, Origin, SCHEMA, StoreError,
    StudyEvent,
};
use crate::llm::{FailureKind, Llm, Role};
use crate::notice::Observer;
use crate::random::Streams;
use crate::reading::{certify, in_force};
use crate::search::control::Control;
use crate::search::problem::Problem;
use crate::study::differences;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers, TieBreak};

pub use learning::{Family, LearnError, Learner, RewriteOutcome};
pub use measure::Batch;
pub use offspring::{Edit, Guidance, RewriteTask};
pub use start::Start;

/// The models of a study.
pub trait Models {
    /// The model that serves a role, fallbacks applied.
    fn model(&self, role: Role) -> Rc<dyn Llm>;

    /// What changes the rewriter while it searches; `None` where it stays as it is.
    fn learner(&self) -> Option<Rc<dyn Learner>> {
        None
    }

    /// The batches that the agent's calls are handed in with; `None` where each is made by itself.
    fn batches(&self) -> Option<Batches> {
        None
    }
}

/// Tells the time. Core has no clock of its own.
pub trait Clock {
    /// Seconds since some fixed moment.
    fn seconds(&self) -> f64;
}

/// A clock that stands still, for runs without a time budget and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stopped;

impl Clock for Stopped {
    fn seconds(&self) -> f64 {
        0.0
    }
}

/// How a run is carried out; no part of what it computes.
pub struct RunOptions {
    /// Rollouts under way at once. Critiques and rewrites, a few for each parent, are left to the
    /// models' own limits.
    pub concurrency: usize,
    /// Tries of one effect before this session of the run gives up. Retries of a single model call
    /// are the model's own business and not counted here.
    pub attempts: u32,
    /// Now, as RFC 3339 in UTC, for the journal's first line.
    pub started_at: String,
    /// Tells the time for the `seconds` budget.
    pub clock: Rc<dyn Clock>,
    /// How a person steers the run.
    pub control: Control,
    /// Who is told of waits for external agents; of those for models, who made the models knows.
    pub observer: Option<Observer>,
    /// What is taken over from earlier runs in place of paying for it.
    pub earlier: EarlierRuns,
    /// Prompts of earlier runs that the search starts from beside its own, where it has not begun.
    pub starts: Vec<Start>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            attempts: 2,
            started_at: "1970-01-01T00:00:00Z".into(),
            clock: Rc::new(Stopped),
            control: Control::new(),
            observer: None,
            earlier: EarlierRuns::default(),
            starts: Vec::new(),
        }
    }
}

/// Why a search did not go its whole way.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Halt {
    /// The budget does not allow the next effect.
    #[error("the budget is spent: {0}")]
    Budget(String),
    /// A person interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// An effect failed for good.
    #[error("{message}")]
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What failed, why, and what to do.
        message: String,
    },
    /// The journal cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A replayed journal does not say what this build computes.
    #[error("{0}")]
    Replay(String),
}

/// Which part of the run is under way; the search leaves room for the held-out evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Rounds.
    Search,
    /// With minibatches, the candidates of the final choice on the whole split.
    Settling,
    /// The test of the prompts that were found, on examples kept for it.
    Confirmation,
    /// The held-out evaluation at the end.
    Evaluation,
}

/// A constraint as texts are shown it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConstraintText {
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What it measures.
    pub explanation: String,
    /// Threshold τ of the cost, in its unit.
    pub threshold: f64,
}

/// See the module's documentation.
pub struct Arena {
    problem: RefCell<Problem>,
    journal: RefCell<Journal>,
    models: Rc<dyn Models>,
    batches: Option<Batches>,
    options: RunOptions,
    streams: Streams,
    spending: spending::Spending,
    /// The last round that was opened.
    opened: Cell<Option<Round>>,
    repeats: RefCell<measure::Repeats>,
    /// Logical order of appearance, which arrival cannot change.
    order: RefCell<HashMap<CandidateId, usize>>,
    halted: RefCell<Option<Halt>>,
    /// Failed tries in this session.
    tries: RefCell<HashMap<EffectName, u32>>,
    /// Candidates that have left the search, and examples that count for nobody, as far as its course has
    /// come: a replayed journal may hold more.
    discarded: RefCell<HashSet<CandidateId>>,
    left_out: RefCell<HashSet<(SetKey, usize)>>,
    phase: Cell<Phase>,
    /// How many candidates the final choice may have to measure on the whole split.
    finalists: Cell<u64>,
    /// Whether it goes on after tests that have used up the examples kept for them.
    has_no_test: bool,
    /// Rounds closed by this process, replayed ones included.
    closed: Cell<u32>,
    /// λ after the last of them, as it was computed.
    multipliers: RefCell<Option<Multipliers>>,
    /// Whether every effect that is not in the journal halts the run.
    replays: Cell<bool>,
    /// Rounds that a replay goes through at most.
    most_rounds: Cell<Option<Round>>,
    /// What rollouts depend on beside prompt and repeat, by workload and example as their records have it.
    inputs: Vec<Vec<String>>,
    seed: CandidateId,
}

impl Arena {
    /// Opens a run: starts a journal, or joins one of the same study.
    ///
    /// # Errors
    /// A journal of another study (the differences are named), or one that cannot be written.
    pub fn open(
        mut problem: Problem,
        mut journal: Journal,
        models: Rc<dyn Models>,
        options: RunOptions,
    ) -> Result<Self, JournalError> {
        let id = problem.id();
        let budget = problem.study().budget;
        let workloads = problem.records();
        let recorded = journal.state().study().cloned();
        // A journal that goes on says itself what its rollouts depend on.
        let noted = recorded
            .as_ref()
            .map_or(&workloads, |recorded| &recorded.workloads);
        let of = |name: &String| {
            noted
                .get(name)
                .map_or_else(Vec::new, |record| record.inputs.clone())
        };
        let inputs = workloads.keys().map(of).collect();
        if let Some(recorded) = recorded {
            if !recorded.is_of(&id) {
                return Err(JournalError::OtherStudy(explain_difference(&recorded, &problem)));
            }
            for constraint in &recorded.study.constraints {
                if let Some(threshold) = constraint.threshold {
                    problem.freeze(&constraint.metric, threshold);
                }
            }
            if journal.state().budget() != budget {
                let round = journal.state().rounds().len() as u32;
                let steer = crate::journal::SteerEvent {
                    round,
                    budget: Some(budget),
                    ..Default::default()
                };
                journal.record(&Event::Steer(steer))?;
            }
            let failures = problem.study().failures;
            if journal.state().failures_in_force() != failures {
                let steer = crate::journal::SteerEvent {
                    round: journal.state().rounds().len() as u32,
                    failures: Some(failures),
                    ..Default::default()
                };
                journal.record(&Event::Steer(steer))?;
            }
        } else {
            journal.record(&Event::Study(Box::new(StudyEvent {
                schema: SCHEMA,
                id,
                study: problem.study().clone(),
                started_at: options.started_at.clone(),
                workloads,
                version: env!("CARGO_PKG_VERSION").into(),
            })))?;
        }
        let seed = CandidateId::of(problem.seed_prompt());
        if journal.state().candidate(&seed).is_none() {
            journal.record(&Event::Candidate(CandidateEvent {
                id: seed,
                round: 0,
                origin: Origin::Seed,
                parents: Vec::new(),
                from: None,
                prompt: problem.seed_prompt().to_string(),
            }))?;
        }
        if journal.state().is_before_search() {
            for start in &options.starts {
                start.record(&mut journal)?;
            }
        }
        let batches = models.batches();
        if let Some(batches) = &batches {
            options.control.mind(batches.clone());
            batches.journal();
            for batch in journal.state().batches() {
                batches.recall(&batch.id, &batch.requests);
            }
        }
        let state = journal.state();
        let has_no_test = state.goes_on_after_tests() && certify::is_spent(state);
        let spending = spending::Spending::from_ledger(journal.state().ledger(), options.clock.seconds());
        let arena = Self {
            streams: Streams::new(problem.study().study.seed),
            problem: RefCell::new(problem),
            journal: RefCell::new(journal),
            models,
            batches,
            options,
            spending,
            opened: Cell::new(None),
            repeats: RefCell::default(),
            order: RefCell::default(),
            halted: RefCell::new(None),
            tries: RefCell::default(),
            discarded: RefCell::default(),
            left_out: RefCell::default(),
            phase: Cell::new(Phase::Search),
            finalists: Cell::new(0),
            has_no_test,
            closed: Cell::new(0),
            multipliers: RefCell::new(None),
            replays: Cell::new(false),
            most_rounds: Cell::new(None),
            inputs,
            seed,
        };
        for start in arena.starts() {
            arena.enlist(start);
        }
        Ok(arena)
    }

    /// From now on every effect that is not in the journal halts the run, as if the budget had ended
    /// there: the course that the journal tells, and not a step more. The same once it has gone through `most` rounds.
    pub(crate) fn only_replay(&self, most: Option<Round>) {
        self.replays.set(true);
        self.most_rounds.set(most);
    }

    /// The seed prompt's candidate.
    pub fn seed(&self) -> CandidateId {
        self.seed
    }

    /// What a search starts from: the seed, then the prompts taken from earlier runs.
    pub fn starts(&self) -> Vec<CandidateId> {
        let journal = self.journal.borrow();
        let taken = journal
            .state()
            .candidates()
            .filter(|(_, candidate)| candidate.origin == Origin::From);
        std::iter::once(self.seed)
            .chain(taken.map(|(id, _)| *id))
            .collect()
    }

    /// The run's streams of randomness.
    pub fn streams(&self) -> Streams {
        self.streams
    }

    /// Settings of the search: rounds, repeats, batch.
    pub fn search(&self) -> crate::study::Search {
        self.problem.borrow().study().study.clone()
    }

    /// The constraints in force in `round`; `None` stands for the end of the run.
    pub fn limits(&self, round: Option<u32>) -> Limits {
        in_force::limits_by(self.journal.borrow().state(), round, self.opened.get())
    }

    /// What breaks ties for a candidate.
    pub fn tie(&self, candidate: CandidateId) -> TieBreak {
        let characters = self
            .journal
            .borrow()
            .state()
            .candidate(&candidate)
            .map_or(usize::MAX, |candidate| candidate.characters);
        TieBreak {
            characters,
            order: self.order.borrow().get(&candidate).copied().unwrap_or(usize::MAX),
        }
    }

    /// A candidate's text.
    pub fn prompt(&self, candidate: CandidateId) -> Rc<str> {
        self.journal
            .borrow()
            .state()
            .candidate(&candidate)
            .map_or_else(|| "".into(), |found| found.prompt.clone())
    }

    /// Closes the run and gives the journal back.
    pub fn into_journal(self) -> Journal {
        self.journal.into_inner()
    }

    pub(crate) fn journal(&self) -> &RefCell<Journal> {
        &self.journal
    }

    pub(crate) fn problem(&self) -> &RefCell<Problem> {
        &self.problem
    }

    /// Replaces the journal's first line by a study with frozen thresholds.
    pub(crate) async fn freeze(&self, study: StudyEvent) -> Result<(), Halt> {
        let replacing = self.journal.borrow_mut().replace_study(&study);
        let shift = replacing.await?;
        self.journal.borrow_mut().adopt(study, shift);
        Ok(())
    }

    /// Rounds closed by this process, replayed ones included.
    pub(crate) fn rounds_closed(&self) -> u32 {
        self.closed.get()
    }

    /// λ after the last round that was closed.
    pub(crate) fn last_multipliers(&self) -> Option<Multipliers> {
        self.multipliers.borrow().clone()
    }

    /// Rollouts that count as the worst value.
    pub(crate) fn failed_rollouts(&self) -> usize {
        self.journal.borrow().state().failed_rollouts().len()
    }

    /// Rollouts made and under way.
    pub(crate) fn rollouts_spent(&self) -> u64 {
        self.spending.rollouts()
    }

    /// Whether the budget bounds the number of rollouts.
    pub(crate) fn rollouts_are_bounded(&self) -> bool {
        self.journal.borrow().state().budget().rollouts.is_some()
    }

    /// Says how many candidates the final choice may have to measure on the whole split, so that the
    /// search leaves room for them.
    pub(crate) fn expect_finalists(&self, finalists: u64) {
        self.finalists.set(finalists);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        *self.halted.borrow_mut() = None;
    }

    /// Introduces a candidate that needed no model, or finds the one of the same text.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn introduce(
        &self,
        prompt: &str,
        round: u32,
        origin: Origin,
        parents: Vec<CandidateId>,
    ) -> Result<CandidateId, Halt> {
        let id = self.find_or_add(prompt, round, origin, parents)?;
        self.enlist(id);
        Ok(id)
    }

    /// The constraints in force as texts are shown them.
    pub fn constraint_texts(&self, limits: &Limits) -> Vec<ConstraintText> {
        let problem = self.problem.borrow();
        let in_force = problem.constraints().iter().filter_map(|constraint| {
            let spec = &constraint.source.spec;
            let limit = limits.get(&spec.name)?;
            Some(ConstraintText {
                metric: spec.name.clone(),
                unit: spec.unit.clone(),
                explanation: spec.explanation.clone(),
                threshold: limit.threshold,
            })
        });
        in_force.collect()
    }

    /// Finds the candidate of a text, or introduces it without a place in the logical order yet.
    pub(crate) fn find_or_add(
        &self,
        prompt: &str,
        round: u32,
        origin: Origin,
        parents: Vec<CandidateId>,
    ) -> Result<CandidateId, StoreError> {
        let id = CandidateId::of(prompt);
        let known = self.journal.borrow().state().candidate(&id).is_some();
        if !known {
            let event = CandidateEvent {
                id,
                round,
                origin,
                parents,
                from: None,
                prompt: prompt.to_owned(),
            };
            self.journal.borrow_mut().record(&Event::Candidate(event))?;
        }
        Ok(id)
    }

    /// Gives a candidate its place in the logical order. Called in an order that does not depend
    /// on arrival.
    pub(crate) fn enlist(&self, candidate: CandidateId) {
        let mut order = self.order.borrow_mut();
        let next = order.len();
        order.entry(candidate).or_insert(next);
    }

    /// Candidates in logical order.
    pub(crate) fn enlisted(&self) -> Vec<CandidateId> {
        let order = self.order.borrow();
        let mut candidates: Vec<(usize, CandidateId)> =
            order.iter().map(|(id, place)| (*place, *id)).collect();
        candidates.sort_unstable();
        candidates.into_iter().map(|(_, id)| id).collect()
    }
}

fn explain_difference(recorded: &StudyEvent, problem: &Problem) -> Vec<String> {
    let mut lines = differences(&recorded.study.identity(), &problem.study().identity(), 8);
    lines.extend(problem.changed_data(recorded));
    lines
}
