//! The fold over a journal's events.
//!
//! One fold serves every reader: the page, the command line's progress, a stored run and a resumed
//! one. It keeps numbers and texts of prompts in memory; traces stay in the store and are read
//! again by their line.

mod ledger;
mod per_rollout;
mod rollouts;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use serde::Serialize;

use crate::journal::{
    BatchEvent, CandidateEvent, DiscardEvent, EffectName, Event, FailureEvent, FinishedEvent, LearnedEvent,
    LeaveOutEvent, LineId, Origin, PaidAnswer, RolloutEvent, RoundEvent, SteerEvent, StudyEvent, Tests,
};
use crate::llm::FailureKind;
use crate::study::budget::{Budget, Spent};
use crate::study::ids::{CandidateId, Round};
use crate::study::workload::Split;
use crate::study::{Constraint, Failures};

pub use ledger::{Ledger, Reused};
pub use per_rollout::{PerRollout, Spread};
pub(crate) use rollouts::is_decided;
pub use rollouts::{RolloutTable, Row, SetKey};

/// A prompt of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The text.
    pub prompt: Rc<str>,
    /// The round it was made in.
    pub round: Round,
    /// How it was made.
    pub origin: Origin,
    /// What it was made from.
    pub parents: Vec<CandidateId>,
    /// Unicode scalar values of the text.
    pub characters: usize,
}

/// What became of a rewrite.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The child, unless there is none.
    pub child: Option<CandidateId>,
    /// Why there is none.
    pub reason: Option<String>,
    /// The earlier rewrite that this one was to improve on.
    pub draft: Option<CandidateId>,
    /// What was asked for.
    pub origin: Origin,
    /// What was combined with the parent.
    pub others: Vec<CandidateId>,
    /// The line that tells of it.
    pub line: LineId,
}

/// A first answer of a rewriter that could not be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    /// Its text.
    pub answer: String,
    /// What was wrong with it.
    pub reason: String,
}

/// A rollout that could not be made and counts as the worst value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedRollout {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// Which part of the examples.
    pub split: Split,
    /// Name of the workload.
    pub workload: String,
    /// Id of the example.
    pub example: String,
    /// Number of the rollout of this prompt on this example, from 0.
    pub repeat: u32,
    /// What failed.
    pub reason: String,
}

impl FailedRollout {
    fn new(event: &RolloutEvent, reason: &str) -> Self {
        Self {
            candidate: event.candidate,
            split: event.split,
            workload: event.workload.clone(),
            example: event.example.clone(),
            repeat: event.repeat,
            reason: reason.to_owned(),
        }
    }
}

/// Everything known about a run from its journal.
#[derive(Debug, Default)]
pub struct RunState {
    study: Option<Rc<StudyEvent>>,
    candidates: IndexMap<CandidateId, Candidate>,
    rollouts: RolloutTable,
    critiques: HashMap<(CandidateId, Round), Rc<str>>,
    rewrites: IndexMap<(Round, CandidateId, u32), Rewritten>,
    failures: IndexMap<FailureKind, u64>,
    attempts: HashMap<EffectName, u32>,
    failed_tries: HashMap<EffectName, u32>,
    unusable: HashMap<EffectName, Unusable>,
    paid: HashMap<EffectName, Vec<PaidAnswer>>,
    discarded: IndexMap<CandidateId, DiscardEvent>,
    left_out: Vec<LeaveOutEvent>,
    failed: Vec<FailedRollout>,
    /// Ids of the held-out examples kept for the test, by workload.
    reserve: HashMap<String, HashSet<String>>,
    tests: Option<Tests>,
    /// Whether a budget was set, or the run branched off, after the last rollout of a test.
    goes_on_after_tests: bool,
    last_failure: Option<FailureEvent>,
    batches: Vec<BatchEvent>,
    rounds: Vec<RoundEvent>,
    learned: Vec<LearnedEvent>,
    /// Whether the search measured more repeats than the study's since the last complete round.
    measures_again: bool,
    spent_by_round: Vec<Spent>,
    reused_by_round: Vec<u64>,
    steers: Vec<SteerEvent>,
    finished: Option<Rc<FinishedEvent>>,
    ledger: Ledger,
    per_rollout: IndexMap<String, PerRollout>,
}

impl RunState {
    /// Says why an event does not fit what stands above it; nothing is changed.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn check(&self, event: &Event) -> Result<(), String> {
        if self.study.is_none() && !matches!(event, Event::Study(_)) {
            return Err("the first event must be `study`".into());
        }
        match event {
            Event::Study(_) if self.study.is_some() => Err("a second `study` event".into()),
            Event::Study(_) | Event::Failure(_) | Event::Batch(_) | Event::Steer(_) | Event::Finished(_) => {
                Ok(())
            }
            Event::Candidate(event) => {
                if CandidateId::of(&event.prompt) != event.id {
                    return Err(format!(
                        "candidate {} is not the hash of its prompt",
                        event.id.short()
                    ));
                }
                event.parents.iter().try_for_each(|parent| self.known(parent))
            }
            Event::Rollout(event) => {
                let candidate = self.index_of(&event.candidate)?;
                self.rollouts.check(candidate, event)
            }
            Event::Discard(event) => match self.discarded.get(&event.candidate) {
                // What was decided after one search says nothing of where the next one goes on.
                Some(before) if before.round.is_some() => Err(format!(
                    "candidate {} was discarded before",
                    event.candidate.short()
                )),
                _ => self.known(&event.candidate),
            },
            Event::LeaveOut(event) => {
                self.known(&event.candidate)?;
                self.rollouts.check_left_out(event)
            }
            Event::Critique(event) => self.known(&event.candidate),
            Event::Rewrite(event) => {
                self.known(&event.parent)?;
                let mut others = event.others.iter().chain(&event.draft).chain(&event.child);
                others.try_for_each(|other| self.known(other))
            }
            Event::Learned(event) => {
                let (expected, closed) = (self.learned.len() as Round, self.rounds.len() as Round);
                if event.round == expected && event.round < closed {
                    Ok(())
                } else {
                    Err(format!(
                        "the rewriter learned from round {} where round {expected} must come, of {closed} complete \
                         ones",
                        event.round
                    ))
                }
            }
            Event::Round(event) => {
                let expected = self.rounds.len() as Round;
                if event.round == expected {
                    Ok(())
                } else {
                    Err(format!("round {} where round {expected} must come", event.round))
                }
            }
        }
    }

    /// Folds one event in.
    ///
    /// # Errors
    /// See [`RunState::check`]; the state is then unchanged.
    pub fn apply(&mut self, event: &Event, line: LineId) -> Result<(), String> {
        self.check(event)?;
        match event {
            Event::Study(study) => {
                self.rollouts.declare(&study.workloads, study.study.study.repeats);
                let kept = study.workloads.iter();
                let kept =
                    kept.map(|(name, record)| (name.clone(), record.reserve.iter().cloned().collect()));
                self.reserve = kept.collect();
                self.study = Some(Rc::new((**study).clone()));
            }
            Event::Candidate(event) => self.add_candidate(event),
            Event::Rollout(event) => {
                let candidate = self.index_of(&event.candidate)?;
                self.rollouts.insert(candidate, event, line)?;
                if self.is_of_a_test(event) {
                    self.note_test(event.candidate);
                }
                let repeats = self.study.as_ref().map_or(1, |study| study.study.study.repeats);
                self.measures_again |= event.split == Split::Optimize && event.repeat >= repeats;
                match (&event.failed, &event.reused_from) {
                    (Some(reason), _) => self.failed.push(FailedRollout::new(event, reason)),
                    (None, Some(from)) => self.ledger.reuse(from, |reused| &mut reused.rollouts),
                    (None, None) => self.ledger.rollout(event.split, &event.usage),
                }
                if event.failed.is_none() {
                    let from = event.reused_from.as_ref();
                    let usage = from.map_or(&event.usage, |from| &from.usage);
                    let of_workload = self.per_rollout.entry(event.workload.clone());
                    of_workload.or_default().add(usage);
                }
                if !self.attempts.is_empty() {
                    let effect = event.effect();
                    self.attempts.remove(&effect);
                    self.failed_tries.remove(&effect);
                    self.paid.remove(&effect);
                }
            }
            Event::Discard(event) => {
                self.discarded.insert(event.candidate, event.clone());
            }
            Event::LeaveOut(event) => {
                self.rollouts.leave_out(event)?;
                self.left_out.push(event.clone());
            }
            Event::Critique(event) => {
                self.critiques
                    .insert((event.candidate, event.round), event.feedback.as_str().into());
                let from = event.reused_from.as_deref();
                self.ledger
                    .search(&event.usage, from, |reused| &mut reused.critiques);
            }
            Event::Rewrite(event) => {
                let rewritten = Rewritten {
                    child: event.child,
                    reason: event.reason.clone(),
                    draft: event.draft,
                    origin: event.origin,
                    others: event.others.clone(),
                    line,
                };
                self.rewrites
                    .insert((event.round, event.parent, event.index), rewritten);
                let from = event.reused_from.as_deref();
                self.ledger
                    .search(&event.usage, from, |reused| &mut reused.rewrites);
            }
            Event::Failure(event) => {
                *self.failures.entry(event.kind).or_default() += 1;
                self.attempts.insert(event.of.clone(), event.attempt);
                self.ledger.failure(event);
                if let Some(answer) = &event.answer {
                    let unusable = Unusable {
                        answer: answer.clone(),
                        reason: event.message.clone(),
                    };
                    self.unusable.insert(event.of.clone(), unusable);
                }
                if event.answers.is_empty() {
                    self.paid.remove(&event.of);
                } else {
                    self.paid.insert(event.of.clone(), event.answers.clone());
                }
                if !event.kind.is_of_everything() {
                    *self.failed_tries.entry(event.of.clone()).or_default() += 1;
                }
                self.last_failure = Some(event.clone());
            }
            Event::Batch(event) => self.batches.push(event.clone()),
            Event::Round(event) => {
                self.rounds.push(event.clone());
                self.measures_again = false;
                self.spent_by_round.push(self.ledger.spent());
                self.reused_by_round.push(self.ledger.reused().effects());
            }
            Event::Learned(event) => self.learned.push(event.clone()),
            Event::Steer(event) => {
                if let Some(branch) = &event.branch {
                    self.ledger = Ledger::default();
                    // Journals of earlier versions do not say it.
                    if branch.tests.is_some() {
                        self.tests.clone_from(&branch.tests);
                    }
                }
                self.goes_on_after_tests |= event.budget.is_some() || event.branch.is_some();
                self.steers.push(event.clone());
            }
            Event::Finished(event) => self.finished = Some(Rc::new((**event).clone())),
        }
        if !matches!(event, Event::Finished(_)) {
            self.finished = None;
        }
        Ok(())
    }

    fn is_of_a_test(&self, event: &RolloutEvent) -> bool {
        let kept = self.reserve.get(&event.workload);
        event.split == Split::Evaluate && kept.is_some_and(|kept| kept.contains(&event.example))
    }

    fn note_test(&mut self, candidate: CandidateId) {
        self.goes_on_after_tests = false;
        let thresholds = self.thresholds(|_| None, |_| true);
        let tests = self.tests.get_or_insert_with(|| Tests {
            thresholds,
            ..Tests::default()
        });
        if !tests.spent && !tests.prompts.contains(&candidate) {
            tests.prompts.push(candidate);
        }
    }

    fn add_candidate(&mut self, event: &CandidateEvent) {
        self.candidates.entry(event.id).or_insert_with(|| Candidate {
            prompt: event.prompt.as_str().into(),
            round: event.round,
            origin: event.origin,
            parents: event.parents.clone(),
            characters: event.prompt.chars().count(),
        });
    }

    fn known(&self, id: &CandidateId) -> Result<(), String> {
        self.index_of(id).map(|_| ())
    }

    fn index_of(&self, id: &CandidateId) -> Result<usize, String> {
        self.candidates
            .get_index_of(id)
            .ok_or_else(|| format!("candidate {} was never introduced", id.short()))
    }

    /// Replaces the study by one with frozen thresholds; `shift` is added to every line's id.
    pub fn freeze(&mut self, study: StudyEvent, shift: i64) {
        self.rollouts.shift_lines(shift);
        for rewritten in self.rewrites.values_mut() {
            rewritten.line = rewritten.line.wrapping_add_signed(shift);
        }
        self.study = Some(Rc::new(study));
    }

    /// The study; `None` for an empty journal.
    pub fn study(&self) -> Option<&Rc<StudyEvent>> {
        self.study.as_ref()
    }

    /// The batches of calls that providers took, in order.
    pub fn batches(&self) -> &[BatchEvent] {
        &self.batches
    }

    /// All candidates in order of appearance.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = (&CandidateId, &Candidate)> {
        self.candidates.iter()
    }

    /// One candidate.
    pub fn candidate(&self, id: &CandidateId) -> Option<&Candidate> {
        self.candidates.get(id)
    }

    /// Position of a candidate in order of appearance.
    pub fn position(&self, id: &CandidateId) -> Option<usize> {
        self.candidates.get_index_of(id)
    }

    /// All measurements.
    pub fn rollouts(&self) -> &RolloutTable {
        &self.rollouts
    }

    /// The feedback given for a candidate in a round.
    pub fn critique(&self, candidate: CandidateId, round: Round) -> Option<Rc<str>> {
        self.critiques.get(&(candidate, round)).cloned()
    }

    /// What became of a rewrite.
    pub fn rewrite(&self, round: Round, parent: CandidateId, index: u32) -> Option<&Rewritten> {
        self.rewrites.get(&(round, parent, index))
    }

    /// All rewrites by round, parent and which of the parent's children, in the journal's order.
    pub fn rewrites(&self) -> impl ExactSizeIterator<Item = (&(Round, CandidateId, u32), &Rewritten)> {
        self.rewrites.iter()
    }

    /// Whether a parent was criticised or rewritten in `round`, with whatever outcome, or measured once more.
    pub fn has_begun(&self, round: Round) -> bool {
        let attempted = |effect: &EffectName| match effect {
            EffectName::Critique { round: of, .. } | EffectName::Rewrite { round: of, .. } => *of == round,
            EffectName::Rollout { .. } => false,
        };
        self.critiques.keys().any(|(_, of)| *of == round)
            || self.rewrites.keys().any(|(of, ..)| *of == round)
            || self.attempts.keys().any(attempted)
            || (self.measures_again && round == self.rounds.len() as Round)
    }

    /// Whether nothing but the seed prompt was measured, and no round has begun: the search may be given further prompts to
    /// start from.
    pub fn is_before_search(&self) -> bool {
        let seed = self
            .candidates
            .values()
            .position(|one| one.origin == Origin::Seed);
        let only_the_seed = seed.is_none_or(|seed| self.rollouts.are_all_of(seed));
        only_the_seed && self.rounds.is_empty() && !self.has_begun(0)
    }

    /// Failures so far by kind.
    pub fn failures(&self) -> &IndexMap<FailureKind, u64> {
        &self.failures
    }

    /// The latest failure.
    pub fn last_failure(&self) -> Option<&FailureEvent> {
        self.last_failure.as_ref()
    }

    /// The first answer to a rewrite, when it could not be used.
    pub fn unusable(&self, effect: &EffectName) -> Option<&Unusable> {
        self.unusable.get(effect)
    }

    /// Failed tries of an effect that has not succeeded yet, without those that say nothing of it: an
    /// interruption, a model that cannot be reached.
    pub(crate) fn failed_tries(&self, effect: &EffectName) -> u32 {
        self.failed_tries.get(effect).copied().unwrap_or(0)
    }

    /// What models answered to a rollout that was not completed, in order.
    pub(crate) fn paid_answers(&self, effect: &EffectName) -> Vec<PaidAnswer> {
        self.paid.get(effect).cloned().unwrap_or_default()
    }

    /// Candidates that cannot be run, in the order in which they left the search.
    pub fn discarded(&self) -> &IndexMap<CandidateId, DiscardEvent> {
        &self.discarded
    }

    /// Examples that were left out for every prompt, in order.
    pub fn left_out(&self) -> &[LeaveOutEvent] {
        &self.left_out
    }

    /// Rollouts that could not be made and count as the worst value, in order.
    pub fn failed_rollouts(&self) -> &[FailedRollout] {
        &self.failed
    }

    /// Failed tries of an effect that has not succeeded yet.
    pub fn attempts(&self, effect: &EffectName) -> u32 {
        self.attempts.get(effect).copied().unwrap_or(0)
    }

    /// Complete rounds in order.
    pub fn rounds(&self) -> &[RoundEvent] {
        &self.rounds
    }

    /// What the rewriter learned from a round.
    pub fn learned(&self, round: Round) -> Option<&LearnedEvent> {
        self.learned.get(round as usize)
    }

    /// What had been spent at the end of each complete round, in order.
    pub fn spent_by_round(&self) -> &[Spent] {
        &self.spent_by_round
    }

    /// How many effects had been taken over from earlier runs at the end of each complete round, in order.
    pub(crate) fn reused_by_round(&self) -> &[u64] {
        &self.reused_by_round
    }

    /// The tests that have begun on the reserve; `None` before the first.
    pub fn tests(&self) -> Option<&Tests> {
        self.tests.as_ref()
    }

    /// Whether a budget was set, or the run branched off, after the last rollout of a test.
    pub(crate) fn goes_on_after_tests(&self) -> bool {
        self.goes_on_after_tests
    }

    /// Thresholds by metric: the study's, changed by the steers that apply; `open` says those that it leaves open.
    pub(crate) fn thresholds(
        &self,
        open: impl Fn(&Constraint) -> Option<f64>,
        applies: impl Fn(&SteerEvent) -> bool,
    ) -> IndexMap<String, f64> {
        let threshold = |constraint: &Constraint| {
            let threshold = constraint.threshold.or_else(|| open(constraint))?;
            Some((constraint.metric.clone(), threshold))
        };
        let constraints = self.study.iter().flat_map(|event| &event.study.constraints);
        let mut thresholds: IndexMap<String, f64> = constraints.filter_map(threshold).collect();
        for steer in self.steers.iter().filter(|steer| applies(steer)) {
            for (metric, threshold) in steer.thresholds.iter().flatten() {
                thresholds.insert(metric.clone(), *threshold);
            }
        }
        thresholds
    }

    /// What people changed, in order.
    pub fn steers(&self) -> &[SteerEvent] {
        &self.steers
    }

    /// How the run ended; `None` while it runs, and again once it was resumed.
    pub fn finished(&self) -> Option<&Rc<FinishedEvent>> {
        self.finished.as_ref()
    }

    /// What was spent.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the rollouts of a workload took; none before the first.
    pub fn per_rollout(&self, workload: &str) -> Option<&PerRollout> {
        self.per_rollout.get(workload)
    }

    /// What becomes of failed rollouts: the last policy that the run was opened with.
    pub fn failures_in_force(&self) -> Failures {
        self.steers
            .iter()
            .rev()
            .find_map(|steer| steer.failures)
            .or_else(|| self.study.as_ref().map(|study| study.study.failures))
            .unwrap_or_default()
    }

    /// The budget in force: the last one set while running, else the study's.
    pub fn budget(&self) -> Budget {
        self.steers
            .iter()
            .rev()
            .find_map(|steer| steer.budget)
            .or_else(|| self.study.as_ref().map(|study| study.study.budget))
            .unwrap_or_default()
    }
}
