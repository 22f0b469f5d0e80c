//! Scores of prompts with standard errors: in a round, and as they stand now.

use capo_core::estimate::Estimate;
use capo_core::ids::{CandidateId, Round};
use capo_core::run_state::RunState;
use capo_core::score::{Limits, Means, Multipliers, Score};
use capo_core::workload::Split;
use indexmap::IndexMap;

use super::in_force::{self, Examples};
use super::measured;
use super::studied::{self, Part, Studied};

/// A prompt's score with its standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Which prompt.
    pub candidate: CandidateId,
    /// R, in [0, 1].
    pub objective: Estimate,
    /// C by metric, every constraint of the study.
    pub costs: IndexMap<String, Estimate>,
    /// J under the multipliers of the round.
    pub lagrangian: f64,
    /// Whether it satisfies every constraint in force.
    pub feasible: bool,
}

impl Scored {
    /// A score with the standard errors over the examples it was made on.
    pub fn of(state: &RunState, candidate: CandidateId, score: &Score, examples: &Examples) -> Self {
        let with_error = |metric: &Studied, mean: f64| {
            let values: Vec<f64> = measured::values(state, &candidate, metric, examples)
                .into_iter()
                .flatten()
                .collect();
            let spread = Estimate::of(&values);
            Estimate {
                mean,
                standard_error: spread.map_or(0.0, |spread| spread.standard_error),
                n: values.len(),
            }
        };
        let certain = |mean| Estimate {
            mean,
            standard_error: 0.0,
            n: 0,
        };
        let constraints = studied::constraints(state);
        let cost = |(name, mean): (&String, &f64)| {
            let metric = constraints.iter().find(|metric| metric.name() == name);
            let estimate = metric.map_or_else(|| certain(*mean), |metric| with_error(metric, *mean));
            (name.clone(), estimate)
        };
        Self {
            candidate,
            objective: studied::objective(state).map_or_else(
                || certain(score.objective),
                |metric| with_error(&metric, score.objective),
            ),
            costs: score.costs.iter().map(cost).collect(),
            lagrangian: score.lagrangian,
            feasible: score.feasible,
        }
    }

    /// The estimate of the study's objective or of one of its constraints.
    pub fn estimate(&self, metric: &Studied) -> Option<&Estimate> {
        match metric.part {
            Part::Objective => Some(&self.objective),
            Part::Constraint { .. } | Part::Measured => self.costs.get(metric.name()),
        }
    }

    /// The constraints whose thresholds it misses, on the exact means.
    pub fn missed<'a>(&'a self, limits: &'a Limits) -> impl Iterator<Item = &'a str> {
        limits.iter().filter_map(|(metric, limit)| {
            let cost = self.costs.get(metric)?.mean;
            (!limit.admits(cost)).then_some(metric.as_str())
        })
    }

    /// The largest normalised residual, max over constraints of (cost − τ)/s, with its constraint;
    /// `None` without constraints.
    pub fn worst_residual<'a>(&self, limits: &'a Limits) -> Option<(&'a str, f64)> {
        limits
            .iter()
            .filter_map(|(metric, limit)| {
                Some((metric.as_str(), limit.residual(self.costs.get(metric)?.mean)))
            })
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

/// Every prompt that has a score, in order of appearance, with the score of now: the final one of a
/// run that has ended, else under the thresholds and multipliers of the round that is under way or
/// was the last. A prompt that left the pool keeps the means it was last measured to have.
pub fn standings(state: &RunState) -> IndexMap<CandidateId, Scored> {
    let now = Now::of(state);
    let candidates = state.candidates();
    candidates
        .filter_map(|(id, _)| Some((*id, now.scored(state, *id)?)))
        .collect()
}

/// One prompt's score of now, as in [`standings`].
pub fn standing(state: &RunState, candidate: CandidateId) -> Option<Scored> {
    Now::of(state).scored(state, candidate)
}

/// The prompt to show as the best: the returned one of a run that has ended, else the feasible one
/// of the highest objective, the higher J deciding between equals.
pub fn best_feasible(state: &RunState, standings: &IndexMap<CandidateId, Scored>) -> Option<CandidateId> {
    let returned = state.finished().and_then(|finished| finished.best);
    let returned = returned.filter(|best| standings.get(best).is_some_and(|scored| scored.feasible));
    returned.or_else(|| {
        standings
            .values()
            .filter(|scored| scored.feasible)
            .reduce(|best, next| if better(next, best) { next } else { best })
            .map(|scored| scored.candidate)
    })
}

/// Whether one feasible prompt is to be preferred to another.
pub(super) fn better(one: &Scored, other: &Scored) -> bool {
    let by_objective = one.objective.mean.total_cmp(&other.objective.mean);
    by_objective
        .then(one.lagrangian.total_cmp(&other.lagrangian))
        .is_gt()
}

/// What scores of now are made under.
struct Now {
    limits: Limits,
    multipliers: Multipliers,
    examples: Examples,
}

impl Now {
    fn of(state: &RunState) -> Self {
        Self {
            limits: in_force::limits_now(state),
            multipliers: in_force::multipliers_now(state),
            examples: Examples::of_now(state),
        }
    }

    fn scored(&self, state: &RunState, candidate: CandidateId) -> Option<Scored> {
        if let Some(finished) = state.finished()
            && let Some(score) = finished.final_scores.get(&candidate)
        {
            let whole = Examples::whole(state, Split::Optimize);
            return Some(Scored::of(state, candidate, score, &whole));
        }
        if let Some(means) = means(state, candidate, &self.examples) {
            return Some(self.judged(state, candidate, means, &self.examples));
        }
        let (round, score) = latest(state, candidate)?;
        let means = Means {
            objective: score.objective,
            costs: score.costs.clone(),
        };
        Some(self.judged(state, candidate, means, &Examples::of_round(state, round)))
    }

    fn judged(&self, state: &RunState, candidate: CandidateId, means: Means, examples: &Examples) -> Scored {
        let score = Score::new(means, &self.limits, &self.multipliers);
        Scored::of(state, candidate, &self.gated(state, candidate, score), examples)
    }

    /// Where feedback is noisy, the gate has spoken on the same costs and thresholds already.
    fn gated(&self, state: &RunState, candidate: CandidateId, score: Score) -> Score {
        let gated = latest(state, candidate).filter(|(round, known)| {
            known.costs == score.costs && in_force::limits(state, Some(*round)) == self.limits
        });
        Score {
            feasible: gated.map_or(score.feasible, |(_, known)| known.feasible),
            ..score
        }
    }
}

/// Means of a prompt that was measured on all of the examples.
fn means(state: &RunState, candidate: CandidateId, examples: &Examples) -> Option<Means> {
    if !measured::progress(state, &candidate, examples).is_whole() {
        return None;
    }
    let mean = |metric: &Studied| Some(measured::complete(state, &candidate, metric, examples)?.mean);
    let costs = studied::constraints(state)
        .iter()
        .map(|metric| Some((metric.name().to_owned(), mean(metric)?)))
        .collect::<Option<_>>()?;
    Some(Means {
        objective: mean(&studied::objective(state)?)?,
        costs,
    })
}

/// The score of a prompt in the last closed round that has one.
fn latest(state: &RunState, candidate: CandidateId) -> Option<(Round, &Score)> {
    let mut closed = state.rounds().iter().rev();
    closed.find_map(|round| Some((round.round, round.scores.get(&candidate)?)))
}
