//! Measuring candidates on batches of examples, and the means that come out.

use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;

use super::{Arena, Halt};
use crate::journal::run_state::{SetKey, is_decided};
use crate::journal::{LineId, RolloutEvent, RoundEvent};
use crate::reading::examples::{self, Examples};
use crate::reading::measured;
use crate::reading::metrics::{self, StudiedMetric};
use crate::search::problem::Constrained;
use crate::study::estimate::Estimate;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Means};
use crate::study::workload::{Split, Workload};

/// Examples of each workload, by position in the split, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub(super) split: Split,
    pub(super) examples: Vec<Vec<usize>>,
    pub(super) whole: bool,
}

impl Batch {
    /// Whether it holds no example at all.
    pub fn is_empty(&self) -> bool {
        self.examples.iter().all(Vec::is_empty)
    }

    /// Examples of all workloads together.
    pub(crate) fn len(&self) -> usize {
        self.examples.iter().map(Vec::len).sum()
    }

    /// Examples of the workload that has the most of them.
    pub(crate) fn largest(&self) -> usize {
        self.examples.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The split of its examples.
    pub(crate) fn split(&self) -> Split {
        self.split
    }

    /// Takes in the examples of another batch, which must be of the same split.
    pub fn join(&mut self, other: &Self) {
        debug_assert_eq!(self.split, other.split, "batches of different splits");
        for (own, others) in self.examples.iter_mut().zip(&other.examples) {
            own.extend(others);
            own.sort_unstable();
            own.dedup();
        }
        self.whole |= other.whole;
    }
}

/// How many repeats were asked for so far, by candidate, set and example: what the method may know at this point
/// of its course, whatever else the journal holds already.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    asked: HashMap<(CandidateId, SetKey), Vec<u32>>,
}

impl Arena {
    /// Every example of a split that is not kept for the test of the prompts that were found.
    pub fn whole(&self, split: Split) -> Batch {
        Batch {
            split,
            examples: self.problem.borrow().places(split),
            whole: true,
        }
    }

    /// The first so many examples of each workload that are kept for the test of the prompts that were found.
    pub(crate) fn reserve(&self, count: usize) -> Batch {
        let examples = Examples::reserve(self.journal.borrow().state(), count);
        let mut places = examples.places;
        for of_workload in &mut places {
            of_workload.sort_unstable();
        }
        Batch {
            split: examples.split,
            examples: places,
            whole: false,
        }
    }

    /// Examples by the places of their workload in the study and of their own in the split.
    pub(crate) fn chosen(&self, split: Split, places: impl IntoIterator<Item = (usize, usize)>) -> Batch {
        let mut examples = vec![Vec::new(); self.problem.borrow().workloads().len()];
        for (workload, example) in places {
            examples[workload].push(example);
        }
        for examples in &mut examples {
            examples.sort_unstable();
            examples.dedup();
        }
        Batch {
            split,
            examples,
            whole: false,
        }
    }

    /// The examples that a closed round was measured on, as its line names them.
    pub(crate) fn batch_of(&self, round: &RoundEvent) -> Batch {
        let whole = self.whole(Split::Optimize);
        let Some(named) = &round.batch else { return whole };
        let problem = self.problem.borrow();
        let of_workload = |workload: &Rc<dyn Workload>| {
            let named = named.get(workload.name()).into_iter().flatten();
            examples::named(workload.examples(Split::Optimize), named)
        };
        Batch {
            examples: problem.workloads().iter().map(of_workload).collect(),
            whole: false,
            ..whole
        }
    }

    /// The examples of a round: B_{i,t} drawn from the optimisation split, or all of it. All
    /// candidates of a round share them.
    pub fn batch(&self, round: u32) -> Batch {
        let problem = self.problem.borrow();
        let search = &problem.study().study;
        let Some(size) = self.batch_size(round) else {
            return self.whole(Split::Optimize);
        };
        let mut whole = true;
        let examples = (0..)
            .zip(problem.workloads())
            .map(|(index, workload)| {
                let set = SetKey {
                    workload: index,
                    split: Split::Optimize,
                };
                let all = 0..workload.examples(Split::Optimize).len();
                let available: Vec<usize> = all.filter(|example| !self.is_left_out(set, *example)).collect();
                whole &= size >= available.len();
                examples::batch(self.streams, search, round, index, &available, size)
            })
            .collect();
        Batch {
            split: Split::Optimize,
            examples,
            whole,
        }
    }

    /// Measures candidates on a batch, as often as the study says. What is in the journal is not
    /// paid again. Returns the candidates that could be run, in the order given: the others are discarded.
    ///
    /// # Errors
    /// When the budget, a person or a failure stops it; everything that was answered is journaled.
    pub async fn measure(&self, candidates: &[CandidateId], batch: &Batch) -> Result<Vec<CandidateId>, Halt> {
        let repeats = self.problem.borrow().study().study.repeats;
        self.measure_until(candidates, batch, |_| repeats).await
    }

    /// Measures candidates once more than so far.
    ///
    /// # Errors
    /// See [`Arena::measure`].
    pub async fn measure_again(
        &self,
        candidates: &[CandidateId],
        batch: &Batch,
    ) -> Result<Vec<CandidateId>, Halt> {
        self.measure_until(candidates, batch, |so_far| so_far + 1).await
    }

    async fn measure_until(
        &self,
        candidates: &[CandidateId],
        batch: &Batch,
        target: impl Fn(u32) -> u32,
    ) -> Result<Vec<CandidateId>, Halt> {
        let mut wanted = Vec::new();
        for &candidate in candidates
            .iter()
            .filter(|candidate| !self.is_discarded(**candidate))
        {
            for (workload, examples) in (0..).zip(&batch.examples) {
                let set = SetKey {
                    workload,
                    split: batch.split,
                };
                for &example in examples
                    .iter()
                    .filter(|example| !self.is_left_out(set, **example))
                {
                    let so_far = self.repeats_of(candidate, set, example);
                    wanted.push((candidate, set, example, so_far, target(so_far)));
                }
            }
        }
        let mut missing = Vec::new();
        {
            let journal = self.journal.borrow();
            let state = journal.state();
            for &(candidate, set, example, so_far, until) in &wanted {
                let position = state.position(&candidate).unwrap_or(usize::MAX);
                for repeat in so_far..until {
                    if state.rollouts().line(position, set, example, repeat).is_none() {
                        missing.push(super::rollouts::Wanted {
                            candidate,
                            set,
                            example,
                            repeat,
                        });
                    }
                }
            }
        }
        let unmade = self.run_rollouts(self.heed_decisions(missing)).await?;
        self.decide(unmade, batch)?;
        for (candidate, set, example, so_far, until) in wanted {
            if !self.is_discarded(candidate) && !self.is_left_out(set, example) {
                self.absorb(candidate, set, example, so_far, until)?;
            }
        }
        let is_left = |candidate: &CandidateId| !self.is_discarded(*candidate);
        Ok(candidates.iter().copied().filter(is_left).collect())
    }

    /// The rollouts of a candidate on a batch, read back from the journal, by example and repeat.
    pub(crate) async fn rollouts(
        &self,
        candidate: CandidateId,
        batch: &Batch,
    ) -> Result<Vec<RolloutEvent>, Halt> {
        let lines: Vec<LineId> = {
            let journal = self.journal.borrow();
            let state = journal.state();
            let position = state.position(&candidate).unwrap_or(usize::MAX);
            let of_set = |(workload, examples): (u16, &Vec<usize>)| {
                let (split, examples) = (batch.split, examples.clone());
                let set = SetKey { workload, split };
                examples.into_iter().map(move |example| (set, example))
            };
            let places = (0..).zip(&batch.examples).flat_map(of_set);
            let counting = places.filter(|(set, example)| !self.is_left_out(*set, *example));
            let repeats = counting.flat_map(|(set, example)| {
                let repeats = 0..self.repeats_of(candidate, set, example);
                repeats.map(move |repeat| (set, example, repeat))
            });
            let line = |(set, example, repeat)| state.rollouts().line(position, set, example, repeat);
            repeats.filter_map(line).collect()
        };
        let mut rollouts = Vec::with_capacity(lines.len());
        for line in lines {
            rollouts.push(self.read_rollout(line).await?);
        }
        Ok(rollouts)
    }

    /// Rollouts that [`Arena::measure`] would have to pay for.
    pub(crate) fn missing(&self, candidates: &[CandidateId], batch: &Batch) -> u64 {
        let repeats = self.problem.borrow().study().study.repeats;
        let journal = self.journal.borrow();
        let (state, now) = (journal.state(), self.moment());
        let mut missing = 0;
        // What the journal has decided at this point of the course was never asked for again.
        let is_discarded = |candidate: &CandidateId| {
            let discarded = state.discarded().get(candidate);
            self.is_discarded(*candidate) || discarded.is_some_and(|event| is_decided(event.round, now))
        };
        for candidate in candidates.iter().filter(|candidate| !is_discarded(candidate)) {
            let position = state.position(candidate).unwrap_or(usize::MAX);
            for (workload, examples) in (0..).zip(&batch.examples) {
                let set = SetKey {
                    workload,
                    split: batch.split,
                };
                let made = |example: &usize| state.rollouts().repeats(position, set, *example).min(repeats);
                let counts = |example: &&usize| {
                    let decided = state.rollouts().is_left_out_by(set, **example, now);
                    !decided && !self.is_left_out(set, **example)
                };
                missing += examples
                    .iter()
                    .filter(counts)
                    .map(|example| self.unpaid(*candidate, set, *example, made(example)..repeats))
                    .sum::<u64>();
            }
        }
        missing
    }

    /// Whether rounds measure fewer examples than there are, at first at least.
    pub(crate) fn has_minibatches(&self) -> bool {
        self.measured_in(0) < self.measured_of(usize::MAX)
    }

    /// How many examples the last round that was closed measured.
    pub(crate) fn measured_in_last_round(&self) -> usize {
        self.measured_in(self.closed.get().saturating_sub(1))
    }

    fn measured_in(&self, round: Round) -> usize {
        self.measured_of(self.batch_size(round).unwrap_or(usize::MAX))
    }

    /// How many examples a batch of such a size has over all workloads.
    fn measured_of(&self, size: usize) -> usize {
        let problem = self.problem.borrow();
        let workloads = problem.workloads().iter();
        workloads
            .map(|workload| workload.examples(Split::Optimize).len().min(size))
            .sum()
    }

    /// Examples of each workload that a round measures, see [`examples::batch_size`].
    fn batch_size(&self, round: Round) -> Option<usize> {
        let journal = self.journal.borrow();
        let rounds = journal.state().rounds();
        let before = &rounds[..rounds.len().min(round as usize)];
        examples::batch_size(&self.problem.borrow().study().study, before)
    }

    /// Repeats of a candidate on all examples of a batch together, as far as its course has come.
    pub(crate) fn repeats_on(&self, candidate: CandidateId, batch: &Batch) -> u64 {
        let mut repeats = 0;
        for (workload, examples) in (0..).zip(&batch.examples) {
            let set = SetKey {
                workload,
                split: batch.split,
            };
            let counts = examples
                .iter()
                .filter(|example| !self.is_left_out(set, **example));
            repeats += counts
                .map(|example| u64::from(self.repeats_of(candidate, set, *example)))
                .sum::<u64>();
        }
        repeats
    }

    pub(super) fn repeats_of(&self, candidate: CandidateId, set: SetKey, example: usize) -> u32 {
        let repeats = self.repeats.borrow();
        let of_set = repeats.asked.get(&(candidate, set));
        of_set.and_then(|asked| asked.get(example)).copied().unwrap_or(0)
    }

    /// Lets the method know the repeats of an example up to a number.
    fn absorb(
        &self,
        candidate: CandidateId,
        set: SetKey,
        example: usize,
        from: u32,
        until: u32,
    ) -> Result<(), Halt> {
        let journal = self.journal.borrow();
        let state = journal.state();
        let position = state.position(&candidate).unwrap_or(usize::MAX);
        let is_missing = |repeat: &u32| state.rollouts().line(position, set, example, *repeat).is_none();
        if let Some(repeat) = (from..until).find(is_missing) {
            return Err(Halt::Replay(format!(
                "rollout {example}/{repeat} of candidate {} is missing",
                candidate.short()
            )));
        }
        let mut repeats = self.repeats.borrow_mut();
        let asked = repeats.asked.entry((candidate, set)).or_default();
        if asked.len() <= example {
            asked.resize(example + 1, 0);
        }
        asked[example] = asked[example].max(until);
        Ok(())
    }

    /// Mean objective and costs of a candidate over a batch, every constraint of the study
    /// included; `None` unless it was measured on all of it.
    pub fn means(&self, candidate: CandidateId, batch: &Batch) -> Option<Means> {
        let problem = self.problem.borrow();
        let objective = self.estimate(candidate, problem.objective(), batch)?.mean;
        let costs = problem
            .constraints()
            .iter()
            .map(|constraint| {
                let cost = self.estimate(candidate, &constraint.source, batch)?;
                Some((constraint.source.spec.name.clone(), cost))
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Means::cautious(objective, costs, problem.study().study.caution))
    }

    /// By what a candidate measured on a batch: the predictive probability that its mean cost on as many new examples as
    /// are held out stays within the limit, the least over the constraints, see [`Estimate::probability_at_most`]. 0
    /// unless it was measured on all of the batch.
    pub(crate) fn probability_of_holding(
        &self,
        candidate: CandidateId,
        batch: &Batch,
        limits: &Limits,
    ) -> f64 {
        let held_out: Vec<usize> = self
            .whole(Split::Evaluate)
            .examples
            .iter()
            .map(Vec::len)
            .collect();
        self.least(candidate, batch, limits, |workload, estimate, threshold| {
            estimate.probability_at_most(threshold, held_out[workload])
        })
    }

    /// By the same: the predictive probability that so many new examples show the mean cost to be within the limit, which
    /// takes about `errors` of their standard errors; the least over the constraints.
    pub(crate) fn probability_of_a_certificate(
        &self,
        candidate: CandidateId,
        batch: &Batch,
        limits: &Limits,
        (examples, errors): (usize, f64),
    ) -> f64 {
        self.least(candidate, batch, limits, |_, estimate, threshold| {
            let standard_error = estimate.standard_error * (estimate.n as f64 / examples as f64).sqrt();
            estimate.probability_at_most(threshold - errors * standard_error, examples)
        })
    }

    /// The least over the constraints of a probability, told the workload's position, the mean cost and the threshold; 0
    /// unless the candidate was measured on all of the batch.
    fn least(
        &self,
        candidate: CandidateId,
        batch: &Batch,
        limits: &Limits,
        probability: impl Fn(usize, Estimate, f64) -> f64,
    ) -> f64 {
        let problem = self.problem.borrow();
        let of_constraint = |constraint: &Constrained| {
            let source = &constraint.source;
            let Some(limit) = limits.get(&source.spec.name) else {
                return 1.0;
            };
            let estimate = self.estimate(candidate, source, batch);
            estimate.map_or(0.0, |estimate| {
                probability(usize::from(source.workload), estimate, limit.threshold)
            })
        };
        problem
            .constraints()
            .iter()
            .map(of_constraint)
            .fold(1.0, f64::min)
    }

    /// Estimate over examples of the mean over repeats, so that an example measured more often weighs
    /// no more than the others; `None` unless it was measured on all of the batch.
    pub(crate) fn estimate(
        &self,
        candidate: CandidateId,
        metric: &StudiedMetric,
        batch: &Batch,
    ) -> Option<Estimate> {
        let values: Vec<f64> = self
            .per_example(candidate, metric, batch)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        let measured = values.len() == self.counting(metric, batch);
        measured.then(|| Estimate::of(&values)).flatten()
    }

    /// The examples of a batch on which a metric is measured, without those that are left out.
    fn counting(&self, metric: &StudiedMetric, batch: &Batch) -> usize {
        let set = SetKey {
            workload: metric.workload,
            split: batch.split,
        };
        let examples = batch.examples[usize::from(metric.workload)].iter();
        examples
            .filter(|example| !self.is_left_out(set, **example))
            .count()
    }

    /// A candidate's value of one metric on each example of a batch (mean over repeats), where it
    /// was measured.
    pub(super) fn per_example(
        &self,
        candidate: CandidateId,
        metric: &StudiedMetric,
        batch: &Batch,
    ) -> Vec<(usize, f64)> {
        let set = SetKey {
            workload: metric.workload,
            split: batch.split,
        };
        let journal = self.journal.borrow();
        let state = journal.state();
        let position = state.position(&candidate);
        let Some(row) = position.and_then(|candidate| state.rollouts().row(candidate, set)) else {
            return Vec::new();
        };
        let counting = batch.examples[usize::from(metric.workload)]
            .iter()
            .filter(|example| !self.is_left_out(set, **example));
        counting
            .filter_map(|&example| {
                let repeats = self.repeats_of(candidate, set, example);
                Some((example, measured::mean(&row, metric.position, example, repeats)?))
            })
            .collect()
    }

    /// Held-out (or other) estimates of a candidate by metric: the study's objective and
    /// constraints first, then everything else its workloads measure.
    pub(crate) fn estimates(&self, candidate: CandidateId, batch: &Batch) -> IndexMap<String, Estimate> {
        let all = metrics::all(self.journal.borrow().state());
        let mut estimates = IndexMap::new();
        for metric in all {
            if let Some(estimate) = self.estimate(candidate, &metric, batch) {
                estimates.insert(metric.spec.name.clone(), estimate);
            }
        }
        estimates
    }
}
