//! Records: what an experiment keeps of one finished run.

use std::collections::BTreeSet;

use capo_core::certificate::Verdict;
use capo_core::estimate::Estimate;
use capo_core::journal::{FinishedEvent, RoundEvent, Status};
use capo_core::metric::MetricSpec;
use capo_core::reading::examples::Examples;
use capo_core::reading::feasibility::{Feasibility, all_sat};
use capo_core::reading::metrics::Aims;
use capo_core::reading::{in_force, measured};
use capo_core::run_state::RunState;
use capo_core::study::Study;
use capo_core::summary::Failures;
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Variant;
use super::statistics::Share;

/// One trial of an experiment: a variant under one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// [`Variant::key`].
    pub variant: String,
    /// Seed of the search.
    pub seed: u64,
    /// How the run ended.
    pub status: Status,
    /// Whether the run went its whole way: the search ended by itself, and what it returned and
    /// what it started from were measured on the held-out examples, if there are any.
    pub complete: bool,
    /// What stopped it, in words, unless it went its whole way.
    pub reason: Option<String>,
    /// What could not be measured and what became of it, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Thresholds in force, by metric, after freezing relative ones.
    pub thresholds: IndexMap<String, f64>,
    /// The returned prompt on the optimisation split; `None` when none was measured on all of it.
    pub optimize: Option<Outcome>,
    /// The returned prompt on held-out examples; `None` when the budget left no room for that.
    pub evaluate: Option<Outcome>,
    /// What the test on examples kept for it says of the returned prompt; `None` where none is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certified: Option<Verdict>,
    /// The seed prompt on held-out examples.
    pub seed_prompt: Option<Outcome>,
    /// The texts that were measured; `None` when nothing was returned.
    pub prompts: Option<Prompts>,
    /// The returned prompt on at least 1,000 rollouts that neither search nor held-out evaluation saw; `None` where they
    /// would have to be paid for.
    pub fresh: Option<Outcome>,
    /// The seed prompt on the same.
    pub seed_prompt_fresh: Option<Outcome>,
    /// All that the search could have returned.
    #[serde(skip)]
    pub searched: Searched,
    /// Every round, in order.
    pub rounds: Vec<RoundRecord>,
    /// Multipliers after the last round.
    pub multipliers: IndexMap<String, f64>,
    /// Different prompts that the run had, the seed prompt included.
    pub candidates: usize,
    /// Rollouts paid, held-out evaluation included.
    pub rollouts: u64,
    /// Model calls paid, all roles.
    pub calls: u64,
    /// US dollars; `None` when a price is unknown.
    pub usd: Option<f64>,
}

/// What a run started from and what it returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Text of the seed prompt.
    pub seed: String,
    /// Text of the returned prompt.
    pub returned: String,
}

/// All that a search could have returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Searched {
    /// The prompts that were measured on every example of the search, in the order in which they came.
    pub visited: Vec<Visited>,
    /// Examples held out.
    pub held_out: usize,
}

/// A prompt that was measured on every example of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Visited {
    /// Its text.
    pub prompt: String,
    /// A value for each example, means over repeats, by metric: the objective and all constraints.
    pub values: IndexMap<String, Vec<f64>>,
    /// What it measures on the same examples when each is repeated once more than in the search; `None` unless that was
    /// tried.
    pub repeated: Option<IndexMap<String, Estimate>>,
    /// What it measures on fresh examples; `None` unless that was tried.
    pub fresh: Option<Outcome>,
}

/// A prompt's means on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Mean objective.
    pub objective: f64,
    /// Mean cost of every constraint, by metric.
    pub costs: IndexMap<String, f64>,
    /// Whether every mean cost is at or below its threshold.
    pub all_sat: bool,
    /// Standard errors over examples by metric, for held-out examples only: of the optimisation
    /// split a journal's last line keeps the means alone.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub standard_errors: IndexMap<String, f64>,
}

impl Outcome {
    /// The mean cost on a metric, if it is constrained.
    pub fn cost(&self, metric: &str) -> Option<f64> {
        self.costs.get(metric).copied()
    }
}

/// The best candidate of one round, by that round's Lagrangian score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundRecord {
    /// Round number, from 0.
    pub round: u32,
    /// Multipliers λ of the round: what it round ranked by; constraints that have not entered are absent.
    pub multipliers: IndexMap<String, f64>,
    /// Objective of its best candidate.
    pub objective: f64,
    /// Costs of its best candidate, by metric.
    pub costs: IndexMap<String, f64>,
    /// Lagrangian score of its best candidate.
    pub lagrangian: f64,
}

impl RunRecord {
    /// What the fold of a journal says about a run that has ended; `None` while it has not.
    pub fn of(variant: &str, seed: u64, state: &RunState) -> Option<Self> {
        let finished = state.finished()?;
        let objective = &state.study()?.study.objective.metric;
        let thresholds = in_force::thresholds(state, None);
        let usage = state.ledger().usage().total();
        let measured = Examples::whole(state, Split::Evaluate).is_empty()
            || !(finished.evaluation.is_empty() || finished.seed_evaluation.is_empty());
        Some(Self {
            variant: variant.to_owned(),
            seed,
            status: finished.status,
            complete: measured && matches!(finished.status, Status::Feasible | Status::Infeasible),
            reason: finished.reason.clone(),
            failures: Failures::of(state).map_or_else(Vec::new, |failures| failures.sentences()),
            optimize: searched(finished),
            evaluate: outcome(&finished.evaluation, objective, &thresholds),
            certified: Feasibility::of(state, finished).certified,
            seed_prompt: outcome(&finished.seed_evaluation, objective, &thresholds),
            prompts: prompts(state, finished),
            fresh: None,
            seed_prompt_fresh: None,
            searched: Searched::of(state),
            thresholds,
            rounds: state.rounds().iter().filter_map(RoundRecord::of).collect(),
            multipliers: finished.multipliers.clone(),
            candidates: state.candidates().count(),
            rollouts: state.ledger().rollouts(),
            calls: usage.calls,
            usd: usage.usd,
        })
    }
}

fn prompts(state: &RunState, finished: &FinishedEvent) -> Option<Prompts> {
    let (_, seed) = state.candidates().next()?;
    let returned = state.candidate(&finished.best?)?;
    Some(Prompts {
        seed: seed.prompt.to_string(),
        returned: returned.prompt.to_string(),
    })
}

fn searched(finished: &FinishedEvent) -> Option<Outcome> {
    let score = finished.final_scores.get(&finished.best?)?;
    Some(Outcome {
        objective: score.objective,
        costs: score.costs.clone(),
        all_sat: score.feasible,
        standard_errors: IndexMap::new(),
    })
}

/// Means and standard errors of a prompt against thresholds.
pub(super) fn outcome(
    estimates: &IndexMap<String, Estimate>,
    objective: &str,
    thresholds: &IndexMap<String, f64>,
) -> Option<Outcome> {
    let costs: IndexMap<String, f64> = thresholds
        .keys()
        .map(|metric| Some((metric.clone(), estimates.get(metric)?.mean)))
        .collect::<Option<_>>()?;
    Some(Outcome {
        objective: estimates.get(objective)?.mean,
        all_sat: all_sat(thresholds, |metric| costs.get(metric).copied())?,
        costs,
        standard_errors: estimates
            .iter()
            .map(|(metric, e)| (metric.clone(), e.standard_error))
            .collect(),
    })
}

impl Visited {
    /// Standard errors between a cost and its threshold within which it may be feasible by luck alone, or not.
    const NEAR: f64 = 1.5;

    /// What the search measured on a metric.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(self.values.get(metric)?)
    }

    /// By how many standard errors the worst cost lies above its threshold.
    pub fn excess(&self, thresholds: &IndexMap<String, f64>) -> f64 {
        let above = thresholds.iter().filter_map(|(metric, threshold)| {
            let cost = self.estimate(metric)?;
            Some((cost.mean - threshold) / cost.standard_error)
        });
        above.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether a cost is near its threshold, and none is further above its own.
    pub fn is_near(&self, thresholds: &IndexMap<String, f64>) -> bool {
        let distances = thresholds.iter().filter_map(|(metric, threshold)| {
            let cost = self.estimate(metric).filter(|cost| cost.standard_error > 0.0)?;
            Some((cost.mean - threshold) / cost.standard_error)
        });
        let distances: Vec<f64> = distances.collect();
        distances.iter().all(|distance| *distance <= Self::NEAR)
            && distances.iter().any(|distance| *distance >= -Self::NEAR)
    }
}

impl Searched {
    fn of(state: &RunState) -> Self {
        let examples = Examples::whole(state, Split::Optimize);
        let aims = Aims::of(state);
        let visited = state.candidates().filter_map(|(id, candidate)| {
            let values = aims.iter().flat_map(Aims::iter).map(|metric| {
                let values = measured::values(state, id, metric, &examples).into_iter();
                Some((metric.name().to_owned(), values.collect::<Option<_>>()?))
            });
            Some(Visited {
                prompt: candidate.prompt.to_string(),
                values: values.collect::<Option<_>>()?,
                repeated: None,
                fresh: None,
            })
        });
        Self {
            visited: visited.collect(),
            held_out: Examples::whole(state, Split::Evaluate).len(),
        }
    }
}

impl RoundRecord {
    fn of(event: &RoundEvent) -> Option<Self> {
        let best = event.scores.get(event.best.first()?)?;
        Some(Self {
            round: event.round,
            multipliers: event.multipliers.clone(),
            objective: best.objective,
            costs: best.costs.clone(),
            lagrangian: best.lagrangian,
        })
    }
}

/// Everything a report is made from.
#[derive(Debug)]
pub struct Runs<'a> {
    /// The study that was varied.
    pub base: &'a Study,
    /// Its variants, in order.
    pub variants: &'a [Variant],
    /// What the workload measures, for units.
    pub metrics: &'a [MetricSpec],
    /// Runs that have ended, in any order.
    pub records: &'a [RunRecord],
}

impl Runs<'_> {
    /// The runs of one variant.
    pub fn of<'b>(&'b self, variant: &'b Variant) -> impl Iterator<Item = &'b RunRecord> {
        self.records
            .iter()
            .filter(move |record| record.variant == variant.key)
    }

    /// How many runs of a variant returned a prompt that meets every threshold on some examples. A run without a result
    /// there counts as one that did not; of none, where no run at all has one.
    pub fn all_sat(&self, variant: &Variant, on: impl Fn(&RunRecord) -> Option<&Outcome>) -> Share {
        let is_measured = self.records.iter().any(|record| on(record).is_some());
        let runs = self.of(variant).filter(|_| is_measured);
        Share::of(runs.map(|record| on(record).is_some_and(|outcome| outcome.all_sat)))
    }

    /// The constrained metrics, in the base study's order.
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        self.base
            .constraints
            .iter()
            .map(|constraint| constraint.metric.as_str())
    }

    /// A metric's unit, or the empty string for one the workload does not list.
    pub fn unit(&self, metric: &str) -> &str {
        self.metrics
            .iter()
            .find(|spec| spec.name == metric)
            .map_or("", |spec| spec.unit.as_str())
    }

    /// The threshold of a metric if it is the same in all the given runs.
    pub fn common_threshold<'b>(
        metric: &str,
        records: impl IntoIterator<Item = &'b RunRecord>,
    ) -> Option<f64> {
        let mut thresholds = records
            .into_iter()
            .map(|record| record.thresholds.get(metric).copied());
        let first = thresholds.next()??;
        thresholds
            .all(|threshold| threshold == Some(first))
            .then_some(first)
    }

    /// The last round any run reached, counted from 0; 0 without rounds.
    pub fn last_round(&self) -> u32 {
        self.records
            .iter()
            .flat_map(|record| &record.rounds)
            .map(|round| round.round)
            .max()
            .unwrap_or(0)
    }

    /// How many seeds ran.
    pub fn seeds(&self) -> usize {
        self.records
            .iter()
            .map(|record| record.seed)
            .collect::<BTreeSet<_>>()
            .len()
    }
}
