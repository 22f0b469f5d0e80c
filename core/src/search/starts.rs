//! Prompts of earlier runs that a search starts from beside the study's own.

use std::collections::HashSet;
use std::rc::Rc;

use crate::journal::Origin;
use crate::journal::run_state::RunState;
use crate::reading::{measured, metrics};
use crate::search::methods;
use crate::search::problem::{Constrained, Problem};
use crate::study::StudyError;
use crate::study::ids::CandidateId;
use crate::study::score::{Limit, Limits};
use crate::study::workload::Split;

pub use crate::search::arena::Start;

/// What a prompt measured in the search of its run.
#[derive(Clone, Copy)]
struct RankKey {
    /// Whether on fewer examples than those that the run ended with: luck decides on few.
    is_partial: bool,
    /// The largest normalised residual, costs taken as cautiously as the study asks for, or 0.
    excess: f64,
    /// R.
    objective: f64,
}

/// The prompts of earlier runs, from which a search takes those that promise most.
pub struct Starts<'a> {
    problem: &'a Problem,
    seed: CandidateId,
    most: usize,
    seen: HashSet<CandidateId>,
    found: Vec<(RankKey, Start)>,
}

impl<'a> Starts<'a> {
    /// Those of a study's search; none has come in yet.
    ///
    /// # Errors
    /// A method that keeps a single prompt and has no place for more.
    pub fn of(problem: &'a Problem) -> Result<Self, StudyError> {
        let name = &problem.study().study.method;
        let most = methods::build(name, &problem.study().method)?.pool();
        if most < 2 {
            let problem =
                format!("`{name}` keeps one prompt, so it starts from the study's own alone; choose `capo`");
            return Err(StudyError::invalid("study.method", problem));
        }
        Ok(Self {
            problem,
            seed: CandidateId::of(problem.seed_prompt()),
            most,
            seen: HashSet::new(),
            found: Vec::new(),
        })
    }

    /// Takes in the prompts that a run measured on the examples of its search.
    ///
    /// # Errors
    /// Why its prompts are of no use, in words.
    pub fn take(&mut self, state: &RunState) -> Result<(), String> {
        self.check(state)?;
        let run = state.study().map(|begun| begun.id.clone()).unwrap_or_default();
        let limits = self.limits(state);
        let usable = |id: &CandidateId| *id != self.seed && !state.discarded().contains_key(id);
        let enough = examples_at_the_end(state);
        let key = |(id, candidate)| Some((id, candidate, self.rank_key(state, id, &limits, enough)?));
        let candidates = state.candidates().filter(|(id, _)| usable(id));
        let measured: Vec<_> = candidates.filter_map(key).collect();
        if measured.is_empty() {
            return Err("it measured no prompt in its search but this study's own".into());
        }
        for (id, candidate, key) in measured {
            if self.seen.insert(*id) {
                let (prompt, run) = (Rc::clone(&candidate.prompt), run.clone());
                self.found.push((key, Start { prompt, run }));
            }
        }
        Ok(())
    }

    /// As many as the method keeps, those measured on as many examples as their run ended with before the others: by the
    /// highest objective those that met the present thresholds, then by how little they exceed them the rest, the earlier of
    /// equals first.
    pub fn best(mut self) -> Vec<Start> {
        self.found.sort_by(|(one, _), (other, _)| {
            let by_examples = one.is_partial.cmp(&other.is_partial);
            let by_excess = by_examples.then(one.excess.total_cmp(&other.excess));
            by_excess.then(other.objective.total_cmp(&one.objective))
        });
        let best = self.found.into_iter().take(self.most);
        best.map(|(_, start)| start).collect()
    }

    /// A run that started from earlier prompts itself saw nothing of what it held out, and knows of no other example
    /// whether those prompts' searches did.
    fn check(&self, state: &RunState) -> Result<(), String> {
        let is_foreign = |origin: Origin| matches!(origin, Origin::From | Origin::Given);
        let holds_foreign = state.candidates().any(|(_, one)| is_foreign(one.origin));
        for workload in self.problem.workloads() {
            let name = workload.name();
            let there = state.study().and_then(|begun| begun.workloads.get(name));
            let there =
                there.ok_or_else(|| format!("its prompts were not measured on the workload `{name}`"))?;
            let held_out: HashSet<&String> = workload.examples(Split::Evaluate).iter().collect();
            if let Some(seen) = there.optimize.iter().find(|example| held_out.contains(example)) {
                return Err(format!(
                    "its search saw `{seen}`, which is held out here: figures would flatter its prompts; keep its seed \
                     and splits"
                ));
            }
            let unknown = |example: &&String| holds_foreign && !there.evaluate.contains(*example);
            if let Some(example) = workload.examples(Split::Evaluate).iter().find(unknown) {
                return Err(format!(
                    "it holds prompts from elsewhere, whose search may have seen `{example}`, which is held out here and \
                     was not there; keep its seed and splits"
                ));
            }
        }
        let constraints = self.problem.constraints().iter().map(|one| &one.source);
        for wanted in constraints.chain([self.problem.objective()]) {
            let (name, unit) = (wanted.name(), &wanted.spec.unit);
            let there = metrics::named(state, name).map(|there| there.spec);
            if there.is_none_or(|there| (&there.unit, there.direction) != (unit, wanted.spec.direction)) {
                return Err(format!("it did not measure `{name}` in the unit `{unit}`"));
            }
        }
        Ok(())
    }

    /// The study's thresholds; those relative to the seed by what the run measured of it, if it did.
    fn limits(&self, state: &RunState) -> Limits {
        let of_seed = measured::on_split(state, &self.seed, Split::Optimize).estimates;
        let limit = |constraint: &Constrained| {
            let metric = constraint.source.name();
            let relative = || Some(constraint.relative_to_seed? * of_seed.get(metric)?.mean);
            let threshold = constraint.threshold.or_else(relative)?;
            let scale = constraint.scale;
            Some((metric.to_owned(), Limit { threshold, scale }))
        };
        self.problem.constraints().iter().filter_map(limit).collect()
    }

    /// What a prompt measured, where `enough` examples are as many as its run ended with; `None` where not all was measured.
    fn rank_key(
        &self,
        state: &RunState,
        candidate: &CandidateId,
        limits: &Limits,
        enough: usize,
    ) -> Option<RankKey> {
        let measured = measured::on_split(state, candidate, Split::Optimize);
        let (measured, examples) = (measured.estimates, measured.examples.done);
        let caution = self.problem.study().study.caution;
        let mut excess = 0.0_f64;
        for (metric, limit) in limits {
            let cost = measured.get(metric)?;
            excess = excess.max(limit.residual(cost.mean + caution * cost.standard_error));
        }
        Some(RankKey {
            is_partial: examples < enough,
            excess,
            objective: measured.get(self.problem.objective().name())?.mean,
        })
    }
}

/// On how many examples a run measured each of the last prompts that it retained, at least; 0 before its first round's end.
fn examples_at_the_end(state: &RunState) -> usize {
    let retained = state
        .rounds()
        .last()
        .into_iter()
        .flat_map(|round| &round.retained);
    let examples = retained.map(|id| measured::on_split(state, id, Split::Optimize).examples.done);
    examples.min().unwrap_or(0)
}
