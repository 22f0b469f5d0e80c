//! Scores of prompts with standard errors: in a round, and as they stand now.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::journal::run_state::RunState;
use crate::reading::examples::Examples;
use crate::reading::metrics::{Aims, Part, StudiedMetric};
use crate::reading::{in_force, measured};
use crate::study::estimate::{Estimate, mean_of};
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Means, Multipliers, Score};
use crate::study::workload::Split;

/// A prompt's score with its standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Id of the prompt, the SHA-256 of its text.
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
    pub fn of(
        state: &RunState,
        aims: &Aims,
        candidate: CandidateId,
        score: &Score,
        examples: &Examples,
    ) -> Self {
        let certain = |mean| Estimate {
            mean,
            standard_error: 0.0,
            n: 0,
        };
        let with_error = |metric: &StudiedMetric, mean: f64| {
            let spread = measured::so_far(state, &candidate, metric, examples);
            spread.map_or(certain(mean), |spread| Estimate { mean, ..spread })
        };
        let cost = |(name, mean): (&String, &f64)| {
            let metric = aims.constraints.iter().find(|metric| metric.name() == name);
            let estimate = metric.map_or_else(|| certain(*mean), |metric| with_error(metric, *mean));
            (name.clone(), estimate)
        };
        Self {
            candidate,
            objective: with_error(&aims.objective, score.objective),
            costs: score.costs.iter().map(cost).collect(),
            lagrangian: score.lagrangian,
            feasible: score.feasible,
        }
    }

    /// Several prompts, such as P_best, as one: the first of them with the means of what they measured, and of their
    /// standard errors, which those of the means do not exceed.
    pub fn averaged(prompts: &[&Self]) -> Option<Self> {
        let first = prompts.first().copied()?;
        let mean = |of: &dyn Fn(&Self) -> Option<Estimate>| {
            let estimates: Vec<Estimate> = prompts.iter().filter_map(|scored| of(scored)).collect();
            Some(Estimate {
                mean: mean_of(estimates.iter().map(|estimate| estimate.mean))?,
                standard_error: mean_of(estimates.iter().map(|estimate| estimate.standard_error))?,
                n: estimates.iter().map(|estimate| estimate.n).min()?,
            })
        };
        let cost = |name: &String| Some((name.clone(), mean(&|scored| scored.costs.get(name).copied())?));
        Some(Self {
            objective: mean(&|scored| Some(scored.objective))?,
            costs: first.costs.keys().filter_map(cost).collect(),
            ..first.clone()
        })
    }

    /// The estimate of the study's objective or of one of its constraints.
    pub fn estimate(&self, metric: &StudiedMetric) -> Option<&Estimate> {
        match metric.part {
            Part::Objective => Some(&self.objective),
            Part::Constraint { .. } | Part::Measured => self.costs.get(metric.name()),
        }
    }

    /// The constraints whose thresholds it misses, on the exact means.
    pub fn missed<'a>(&'a self, limits: &'a Limits) -> impl Iterator<Item = &'a str> {
        limits.iter().filter_map(|(metric, limit)| {
            let cost = self.costs.get(metric)?.mean;
            (!limit.is_satisfied(cost)).then_some(metric.as_str())
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

/// Prompts that have a score, in order of appearance, with the score of now.
pub type Scores = IndexMap<CandidateId, Arc<Scored>>;

/// Every prompt that has a score with the score of now: the final one of a run that has ended, else
/// under the thresholds of the round that is under way or was the last and the multipliers of now. A prompt
/// that left the pool keeps the means it was last measured to have.
pub fn standings(state: &RunState, multipliers: &Multipliers) -> Scores {
    let aims = Aims::of(state);
    aims.map_or_else(Scores::new, |aims| {
        Standings::default().follow(state, &aims, multipliers)
    })
}

/// One prompt's score of now, as in [`standings`].
pub fn standing(state: &RunState, candidate: CandidateId, multipliers: &Multipliers) -> Option<Scored> {
    Some(
        Now::of(state, multipliers)
            .scored(state, &Aims::of(state)?, candidate)?
            .0,
    )
}

/// [`standings`] of a run that goes on: what was measured whole is scored again only when what
/// scores are made under has changed.
#[derive(Debug, Default)]
pub struct Standings {
    now: Option<Now>,
    settled: HashMap<CandidateId, Arc<Scored>>,
}

impl Standings {
    /// Every prompt that has a score, as the run stands now.
    pub fn follow(&mut self, state: &RunState, aims: &Aims, multipliers: &Multipliers) -> Scores {
        let now = Now::of(state, multipliers);
        if self.now.as_ref() != Some(&now) {
            self.settled.clear();
        }
        let mut score = |id: &CandidateId| {
            if let Some(settled) = self.settled.get(id) {
                return Some(Arc::clone(settled));
            }
            let (scored, is_settled) = now.scored(state, aims, *id)?;
            let scored = Arc::new(scored);
            if is_settled {
                self.settled.insert(*id, Arc::clone(&scored));
            }
            Some(scored)
        };
        let scores = state
            .candidates()
            .filter_map(|(id, _)| Some((*id, score(id)?)))
            .collect();
        self.now = Some(now);
        scores
    }
}

/// The prompt to show as the best: the returned one of a run that has ended, else the feasible one
/// of the highest objective, the higher J deciding between equals.
pub fn best_feasible(state: &RunState, standings: &Scores) -> Option<CandidateId> {
    let returned = state.finished().and_then(|finished| finished.best);
    let returned = returned.filter(|best| standings.get(best).is_some_and(|scored| scored.feasible));
    let best = || {
        let scored = standings.values().map(|scored| &**scored);
        best_of(scored.filter(|scored| scored.feasible))
    };
    returned.or_else(|| Some(best()?.candidate))
}

/// Of prompts that are feasible the one of the highest objective, the higher J deciding between equals, the first
/// where that decides nothing.
pub fn best_of<'a>(feasible: impl Iterator<Item = &'a Scored>) -> Option<&'a Scored> {
    let better = |one: &Scored, other: &Scored| {
        let by_objective = one.objective.mean.total_cmp(&other.objective.mean);
        by_objective
            .then(one.lagrangian.total_cmp(&other.lagrangian))
            .is_gt()
    };
    feasible.reduce(|best, next| if better(next, best) { next } else { best })
}

/// What scores of now are made under.
#[derive(Debug, PartialEq)]
struct Now {
    limits: Limits,
    multipliers: Multipliers,
    examples: Examples,
    /// Rounds that are closed.
    closed: usize,
    ended: bool,
}

impl Now {
    fn of(state: &RunState, multipliers: &Multipliers) -> Self {
        Self {
            limits: in_force::limits_now(state),
            multipliers: multipliers.clone(),
            examples: Examples::of_now(state),
            closed: state.rounds().len(),
            ended: state.finished().is_some(),
        }
    }

    /// The score, and whether more measurements leave it as it is.
    fn scored(&self, state: &RunState, aims: &Aims, candidate: CandidateId) -> Option<(Scored, bool)> {
        if let Some(finished) = state.finished()
            && let Some(score) = finished.final_scores.get(&candidate)
        {
            let whole = Examples::whole(state, Split::Optimize);
            return Some((Scored::of(state, aims, candidate, score, &whole), true));
        }
        if let Some(means) = means(state, aims, candidate, &self.examples) {
            return Some((self.judged(state, aims, candidate, means, &self.examples), true));
        }
        let (round, score) = latest(state, candidate)?;
        let means = Means {
            objective: score.objective,
            costs: score.costs.clone(),
            margins: score.margins.clone(),
        };
        let examples = Examples::of_round(state, round);
        Some((self.judged(state, aims, candidate, means, &examples), false))
    }

    fn judged(
        &self,
        state: &RunState,
        aims: &Aims,
        candidate: CandidateId,
        means: Means,
        examples: &Examples,
    ) -> Scored {
        let score = Score::new(means, &self.limits, &self.multipliers);
        let score = self.gated(state, candidate, score);
        Scored::of(state, aims, candidate, &score, examples)
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
fn means(state: &RunState, aims: &Aims, candidate: CandidateId, examples: &Examples) -> Option<Means> {
    if !measured::progress(state, &candidate, examples).is_whole() {
        return None;
    }
    let objective = measured::complete(state, &candidate, &aims.objective, examples)?.mean;
    let estimate = |metric: &StudiedMetric| {
        let estimate = measured::complete(state, &candidate, metric, examples)?;
        Some((metric.name().to_owned(), estimate))
    };
    let costs: Vec<(String, Estimate)> = aims.constraints.iter().map(estimate).collect::<Option<_>>()?;
    let caution = state.study().map_or(0.0, |event| event.study.study.caution);
    Some(Means::cautious(objective, costs, caution))
}

/// The score of a prompt in the last closed round that has one.
fn latest(state: &RunState, candidate: CandidateId) -> Option<(Round, &Score)> {
    let mut closed = state.rounds().iter().rev();
    closed.find_map(|round| Some((round.round, round.scores.get(&candidate)?)))
}
