//! Failed rollouts: a person's decision or the study's `failures` say what becomes of them.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::measure::Batch;
use super::rollouts::{RolloutFailure, Wanted, place};
use super::{Arena, Halt, Phase};
use crate::journal::run_state::{FailedRollout, SetKey, is_decided};
use crate::journal::{DiscardEvent, EffectName, Event, LeaveOutEvent};
use crate::llm::FailureKind;
use crate::study::FailedExample;
use crate::study::ids::{CandidateId, Round};
use crate::study::metric::{Direction, Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use crate::study::workload::Trace;

impl Arena {
    /// Whether a candidate has left the search, as far as its course has come.
    pub(crate) fn is_discarded(&self, candidate: CandidateId) -> bool {
        self.discarded.borrow().contains(&candidate)
    }

    /// The error of a search in which every prompt was discarded.
    pub fn nobody_left(&self) -> Halt {
        let journal = self.journal.borrow();
        let last = journal.state().discarded().last();
        let why = last.map_or(String::new(), |(id, event)| {
            format!("; the last, {}, because {}", id.short(), event.reason)
        });
        Halt::Failed {
            kind: FailureKind::Tool,
            message: format!("no prompt is left that can be run{why}"),
        }
    }

    /// Heeds what the journal decided on missing rollouts up to here, and returns those that it decided
    /// nothing on.
    pub(super) fn heed_decisions(&self, missing: Vec<Wanted>) -> Vec<Wanted> {
        let journal = self.journal.borrow();
        let (state, now) = (journal.state(), self.moment());
        let is_open = |wanted: &Wanted| {
            let discarded = state.discarded().get(&wanted.candidate);
            if discarded.is_some_and(|event| is_decided(event.round, now)) {
                self.discarded.borrow_mut().insert(wanted.candidate);
                return false;
            }
            if state.rollouts().is_left_out_by(wanted.set, wanted.example, now) {
                self.left_out.borrow_mut().insert((wanted.set, wanted.example));
                return false;
            }
            true
        };
        missing.into_iter().filter(is_open).collect()
    }

    /// The round under way; none after the search.
    pub(super) fn moment(&self) -> Option<Round> {
        (self.phase.get() == Phase::Search).then(|| self.closed.get())
    }

    /// Whether an example counts for nobody any more, as far as the course of the run has come.
    pub(super) fn is_left_out(&self, set: SetKey, example: usize) -> bool {
        self.left_out.borrow().contains(&(set, example))
    }

    /// The examples of a batch that count for nobody any more, by the places of their workload and their own.
    pub(crate) fn left_out_of(&self, batch: &Batch) -> HashSet<(usize, usize)> {
        let of_workload = |(workload, examples): (u16, &Vec<usize>)| {
            let split = batch.split;
            let mut examples = examples.clone();
            examples.retain(|example| self.is_left_out(SetKey { workload, split }, *example));
            examples
                .into_iter()
                .map(move |example| (usize::from(workload), example))
        };
        (0..).zip(&batch.examples).flat_map(of_workload).collect()
    }

    /// Decides on rollouts of a batch that could not be made, and journals what was decided.
    pub(super) fn decide(&self, unmade: Vec<RolloutFailure>, batch: &Batch) -> Result<(), Halt> {
        // Nothing is decided by halves: what speaks for a model that went down speaks for all of them.
        if let Some(doubtful) = unmade.iter().find(|one| !self.is_lasting(one)) {
            return Err(self.ended_by(doubtful, 1));
        }
        let mut by_candidate: IndexMap<CandidateId, Vec<RolloutFailure>> = IndexMap::new();
        for failed in unmade {
            by_candidate
                .entry(failed.wanted.candidate)
                .or_default()
                .push(failed);
        }
        by_candidate.sort_by_key(|candidate, _| self.tie(*candidate).order);
        for (candidate, mut failed) in by_candidate {
            failed.retain(|one| !self.is_left_out(one.wanted.set, one.wanted.example));
            failed.sort_by_key(|failed| (failed.wanted.set, failed.wanted.example, failed.wanted.repeat));
            let Some(first) = failed.first() else { continue };
            let examples = self.failing(candidate, &failed);
            if self.is_beyond(&examples) {
                // That nothing succeeded however often it was tried may as well be the model's doing.
                if self.is_protected(candidate) || !failed.iter().any(is_evident) {
                    return Err(self.ended_by(first, examples.len()));
                }
                self.discard(candidate, first, examples.len())?;
                continue;
            }
            if self.policy() == FailedExample::LeaveOut
                && let Some(left_out) = self.leaves_too_many(&examples)
            {
                if self.is_protected(candidate) || !failed.iter().any(is_evident) {
                    return Err(self.ended_by(first, left_out));
                }
                self.discard(candidate, first, examples.len())?;
                continue;
            }
            for one in failed {
                let Wanted { set, example, .. } = one.wanted;
                // A batch of nothing would measure nothing.
                if self.policy() == FailedExample::LeaveOut && !self.is_last(batch, set, example) {
                    self.leave_out(&one)?;
                } else {
                    self.count_as_worst(&one)?;
                }
            }
        }
        Ok(())
    }

    /// Why a failure ends the run before the others of its batch are known, if it does: of a prompt that
    /// cannot be discarded, or where nothing succeeds at all.
    pub(super) fn too_many(
        &self,
        failed: &RolloutFailure,
        before: &[RolloutFailure],
        made: u64,
    ) -> Option<Halt> {
        if self.policy() == FailedExample::Stop {
            return Some(self.ended_by(failed, 1));
        }
        let of_it = before
            .iter()
            .filter(|one| one.wanted.candidate == failed.wanted.candidate);
        let examples = self.failing(failed.wanted.candidate, of_it.chain([failed]));
        let ends = self.is_beyond(&examples)
            && (self.is_protected(failed.wanted.candidate) || (made == 0 && !is_evident(failed)));
        ends.then(|| self.ended_by(failed, examples.len()))
    }

    /// The examples that a candidate fails on, those that count as the worst value already included.
    fn failing<'a>(
        &self,
        candidate: CandidateId,
        now: impl IntoIterator<Item = &'a RolloutFailure>,
    ) -> HashSet<(SetKey, usize)> {
        let journal = self.journal.borrow();
        let state = journal.state();
        let before = state
            .failed_rollouts()
            .iter()
            .filter(|failed| failed.candidate == candidate);
        let place = |failed: &FailedRollout| {
            state
                .rollouts()
                .place_of(&failed.workload, failed.split, &failed.example)
        };
        let now = now.into_iter().map(|one| (one.wanted.set, one.wanted.example));
        before.filter_map(place).chain(now).collect()
    }

    fn is_beyond(&self, examples: &HashSet<(SetKey, usize)>) -> bool {
        let mut by_set: HashMap<SetKey, usize> = HashMap::new();
        for (set, _) in examples {
            *by_set.entry(*set).or_default() += 1;
        }
        by_set
            .iter()
            .any(|(set, failing)| *failing > self.allowance(*set))
    }

    /// Whether an example is the only one left of its workload in a batch.
    fn is_last(&self, batch: &Batch, set: SetKey, example: usize) -> bool {
        let others = batch.examples[usize::from(set.workload)].iter();
        !others
            .into_iter()
            .any(|other| *other != example && !self.is_left_out(set, *other))
    }

    /// The candidates that fail on more examples than they may.
    pub(super) fn exceeding(&self, unmade: &[RolloutFailure]) -> HashSet<CandidateId> {
        let candidates: HashSet<CandidateId> = unmade.iter().map(|one| one.wanted.candidate).collect();
        let is_beyond = |candidate: &CandidateId| {
            let of_it = unmade.iter().filter(|one| one.wanted.candidate == *candidate);
            self.is_beyond(&self.failing(*candidate, of_it))
        };
        candidates.into_iter().filter(is_beyond).collect()
    }

    fn policy(&self) -> FailedExample {
        self.problem.borrow().study().failures.example
    }

    fn allowance(&self, set: SetKey) -> usize {
        let problem = self.problem.borrow();
        let examples = problem.workloads()[usize::from(set.workload)]
            .examples(set.split)
            .len();
        problem.study().failures.allowance(examples)
    }

    /// How many examples of a set would be left out with these, if that is more than may be.
    fn leaves_too_many(&self, more: &HashSet<(SetKey, usize)>) -> Option<usize> {
        let left_out = self.left_out.borrow();
        let with_these = |set: SetKey| {
            let places = left_out.iter().chain(more).filter(|(of, _)| *of == set);
            places.collect::<HashSet<_>>().len()
        };
        let mut sets = more.iter().map(|(set, _)| *set);
        sets.find_map(|set| Some(with_these(set)).filter(|count| *count > self.allowance(set)))
    }

    /// The seed stands for the problem itself, and whoever is evaluated was asked for by name.
    fn is_protected(&self, candidate: CandidateId) -> bool {
        candidate == self.seed || self.phase.get() == Phase::Evaluation
    }

    /// Whether a failure is to be decided on: what it says is evident, or several sessions have failed at it.
    fn is_lasting(&self, failed: &RolloutFailure) -> bool {
        let tries = || {
            let (journal, now) = (self.journal.borrow(), self.tries.borrow());
            let effect = self.effect(failed.wanted);
            let all = journal.state().failed_tries(&effect);
            let before = all.saturating_sub(now.get(&effect).copied().unwrap_or(0));
            // However often this session was asked for it, it is one session.
            before + (all - before).min(self.tries())
        };
        is_evident(failed) || tries() >= 2 * self.tries()
    }

    fn ended_by(&self, failed: &RolloutFailure, examples: usize) -> Halt {
        let failures = self.problem.borrow().study().failures;
        let bound = match (failures.example, examples) {
            (FailedExample::Stop, _) => String::new(),
            (_, 0 | 1) => "; run it again, or see [failures]".to_owned(),
            (_, examples) => format!(
                "; {examples} examples failed, more than the {} that `share` under [failures] lets pass",
                self.allowance(failed.wanted.set)
            ),
        };
        // A sentence that goes on.
        let said = if bound.is_empty() {
            failed.message.as_str()
        } else {
            failed.message.trim_end_matches('.')
        };
        let message = format!("{said}{bound}");
        self.failed(failed.kind, &place(&self.effect(failed.wanted)), &message)
    }

    fn discard(&self, candidate: CandidateId, failed: &RolloutFailure, examples: usize) -> Result<(), Halt> {
        let event = DiscardEvent {
            candidate,
            round: self.moment(),
            examples,
            reason: format!("{} failed: {}", self.name_of(failed.wanted), failed.message),
        };
        self.journal.borrow_mut().record(&Event::Discard(event))?;
        self.discarded.borrow_mut().insert(candidate);
        Ok(())
    }

    fn leave_out(&self, failed: &RolloutFailure) -> Result<(), Halt> {
        let Wanted {
            candidate,
            set,
            example,
            ..
        } = failed.wanted;
        if !self.left_out.borrow_mut().insert((set, example)) {
            return Ok(());
        }
        let EffectName::Rollout {
            split,
            workload,
            example,
            ..
        } = self.effect(failed.wanted)
        else {
            return Ok(());
        };
        let event = LeaveOutEvent {
            round: self.moment(),
            split,
            workload,
            example,
            candidate,
            reason: failed.message.clone(),
        };
        Ok(self.journal.borrow_mut().record(&Event::LeaveOut(event))?)
    }

    fn count_as_worst(&self, failed: &RolloutFailure) -> Result<(), Halt> {
        let Wanted { candidate, set, .. } = failed.wanted;
        let prompt = self.prompt(candidate);
        let metrics = self.problem.borrow().workloads()[usize::from(set.workload)]
            .metrics()
            .to_vec();
        let worst = |(position, spec): (usize, &MetricSpec)| {
            let bound = match spec.direction {
                Direction::Objective => spec.min,
                Direction::Cost => spec.max,
            };
            let journal = self.journal.borrow();
            let value = if spec.name == PROMPT_LENGTH {
                Some(prompt_length(&prompt))
            } else {
                bound.or_else(|| journal.state().rollouts().worst(set, position, spec.direction))
            };
            Some((spec.name.clone(), value?))
        };
        let measurements: Option<Measurements> = metrics.iter().enumerate().map(worst).collect();
        // What has no bound and was never measured has no worst value.
        let measurements = measurements.ok_or_else(|| self.ended_by(failed, 1))?;
        let trace = Trace {
            outcome: format!(
                "It could not be run and counts as the worst value: {}",
                failed.message
            ),
            ..Trace::default()
        };
        let usage = crate::study::usage::Usage::default();
        self.record_made(
            self.effect(failed.wanted),
            measurements,
            trace,
            usage,
            Some(failed.message.clone()),
        )
    }

    fn name_of(&self, wanted: Wanted) -> String {
        match self.effect(wanted) {
            EffectName::Rollout {
                workload, example, ..
            } => format!("example `{example}` of `{workload}`"),
            _ => String::new(),
        }
    }
}

/// Whether a failure says something of this rollout, and not of a model that is down: it is too long for the
/// model, or fails where others succeed.
fn is_evident(failed: &RolloutFailure) -> bool {
    failed.kind == FailureKind::ContextLength || failed.others_succeed
}
