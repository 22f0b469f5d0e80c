//! Everything the charts of the live page draw, round by round.

use capo_core::estimate::Estimate;
use capo_core::ids::{CandidateId, Round};
use capo_core::run_state::RunState;
use capo_core::score::Limits;
use indexmap::IndexMap;

use super::in_force::{self, Examples};
use super::rounds::{self, ScreenRound, on_screen, under_way, written_in};
use super::standing::{self, Scored, better};
use super::studied::{self, Part, Studied};

/// A run round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is maximised.
    pub objective: Studied,
    /// One entry for each round on screen, from the seed (0) to the latest closed one.
    pub rounds: Vec<RoundPoint>,
    /// Prompts of the round under way that are measured already.
    pub arriving: Vec<Scored>,
    /// The round on screen that is under way; `None` when none is.
    pub under_way: Option<ScreenRound>,
    /// The last round the study plans; `None` when it goes on until the budget is spent.
    pub planned: Option<ScreenRound>,
    /// Cost and multiplier of each constraint, in the study's order.
    pub constraints: Vec<ConstraintSeries>,
    /// λ_max, for methods that have one.
    pub cap: Option<f64>,
}

/// What was known after a round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundPoint {
    /// The round on screen; 0 is the seed.
    pub round: ScreenRound,
    /// P_best, the best by J; the seed itself in round 0.
    pub best: Vec<CandidateId>,
    /// Mean over P_best; `None` when there is none.
    pub leading: Option<Leading>,
    /// Every other prompt of the round's expanded pool.
    pub others: Vec<Scored>,
    /// The pool after the round, best first: whether each is feasible.
    pub pool: Vec<PoolPlace>,
    /// The best feasible prompt up to this round, judged by this round's thresholds.
    pub best_feasible: Option<Scored>,
}

/// The best by J of a round; when several move the multipliers, their mean, and the mean of their
/// standard errors, which that of the mean does not exceed.
#[derive(Debug, Clone, PartialEq)]
pub struct Leading {
    /// R.
    pub objective: Estimate,
    /// C by metric.
    pub costs: IndexMap<String, Estimate>,
    /// Whether the first of them is feasible.
    pub feasible: bool,
}

impl Leading {
    /// The estimate of the study's objective or of one of its constraints.
    pub fn estimate(&self, metric: &Studied) -> Option<&Estimate> {
        match metric.part {
            Part::Objective => Some(&self.objective),
            Part::Constraint { .. } | Part::Measured => self.costs.get(metric.name()),
        }
    }
}

/// A place of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPlace {
    /// Who holds it.
    pub candidate: CandidateId,
    /// Whether that prompt is feasible.
    pub feasible: bool,
}

/// Threshold and multiplier of one constraint by round.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstraintSeries {
    /// Which metric.
    pub metric: Studied,
    /// τ by round on screen, from 0 to the round under way or the last; `None` before the
    /// constraint enters, or while a relative threshold is not measured.
    pub thresholds: Vec<Option<f64>>,
    /// Changes of the threshold by hand.
    pub steps: Vec<Step>,
    /// λ used in each round on screen, likewise; there is none over the seed.
    pub multipliers: Vec<Option<f64>>,
    /// λ that the last closed round led to.
    pub next_multiplier: Option<f64>,
    /// Rounds on screen in which λ was at its cap.
    pub at_cap: Vec<ScreenRound>,
    /// The lowest mean cost of any prompt measured so far.
    pub lowest: Option<f64>,
}

/// A threshold changed by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The first round on screen it applies to.
    pub round: ScreenRound,
    /// τ before; `None` if there was none.
    pub from: Option<f64>,
    /// τ from then on.
    pub to: f64,
}

impl ConstraintSeries {
    /// τ as it stands now.
    pub fn threshold(&self) -> Option<f64> {
        self.thresholds.last().copied().flatten()
    }

    /// λ used after a round on screen: in the next one, or in none any more.
    pub fn multiplier_after(&self, round: ScreenRound) -> Option<f64> {
        let used = self.multipliers.get(round as usize + 1).copied();
        used.unwrap_or(self.next_multiplier)
    }

    /// The first round on screen of those in which λ has been at its cap ever since.
    pub fn at_cap_since(&self) -> Option<ScreenRound> {
        let last = (self.multipliers.len() as ScreenRound).checked_sub(1)?;
        let mut since = None;
        for (back, round) in self.at_cap.iter().rev().enumerate() {
            if *round + back as ScreenRound != last {
                break;
            }
            since = Some(*round);
        }
        since
    }
}

impl Series {
    /// The series of a run; `None` before its study is known.
    pub fn new(state: &RunState) -> Option<Self> {
        let objective = studied::objective(state)?;
        let cap = in_force::cap(state);
        let standings = standing::standings(state);
        let open = under_way(state);
        let arriving = |round: Round| -> Vec<Scored> {
            let is_new = |scored: &&Scored| {
                let candidate = state.candidate(&scored.candidate);
                candidate.is_some_and(|candidate| written_in(candidate) == on_screen(round))
            };
            standings.values().filter(is_new).cloned().collect()
        };
        let rounds = points(state, &standings);
        let constraints = studied::constraints(state)
            .into_iter()
            .map(|metric| constraint(state, metric, cap, &standings))
            .collect();
        Some(Self {
            objective,
            arriving: open.map_or_else(Vec::new, arriving),
            under_way: open.map(on_screen),
            planned: rounds::planned(state),
            rounds,
            constraints,
            cap,
        })
    }

    /// The best feasible prompt so far.
    pub fn best_feasible(&self) -> Option<&Scored> {
        self.rounds.last()?.best_feasible.as_ref()
    }

    /// What the latest closed round knew.
    pub fn latest(&self) -> Option<&RoundPoint> {
        self.rounds.last()
    }

    /// The series of a constraint.
    pub fn constraint(&self, metric: &str) -> Option<&ConstraintSeries> {
        self.constraints
            .iter()
            .find(|series| series.metric.name() == metric)
    }
}

/// The seed, then every closed round.
fn points(state: &RunState, standings: &IndexMap<CandidateId, Scored>) -> Vec<RoundPoint> {
    let mut known: IndexMap<CandidateId, Scored> = IndexMap::new();
    let mut limits = in_force::limits(state, Some(0));
    let mut points: Vec<RoundPoint> = seed_point(state, standings).into_iter().collect();
    for closed in state.rounds() {
        let of_round = in_force::limits(state, Some(closed.round));
        if of_round != limits {
            limits = of_round;
            for earlier in known.values_mut() {
                let feasible = earlier.missed(&limits).next().is_none();
                earlier.feasible = feasible;
            }
        }
        let examples = Examples::of_round(state, closed.round);
        let scored: IndexMap<CandidateId, Scored> = closed
            .scores
            .iter()
            .map(|(id, score)| (*id, Scored::of(state, *id, score, &examples)))
            .collect();
        known.extend(scored.clone());
        let place = |id: &CandidateId| PoolPlace {
            candidate: *id,
            feasible: scored.get(id).is_some_and(|scored| scored.feasible),
        };
        let best: Vec<&Scored> = closed.best.iter().filter_map(|id| scored.get(id)).collect();
        points.push(RoundPoint {
            round: on_screen(closed.round),
            best: closed.best.clone(),
            leading: leading(&best),
            others: scored
                .values()
                .filter(|scored| !closed.best.contains(&scored.candidate))
                .cloned()
                .collect(),
            pool: closed.retained.iter().map(place).collect(),
            best_feasible: best_of(known.values()),
        });
    }
    points
}

/// The seed alone: as the first round scored it, or as soon as it is measured.
fn seed_point(state: &RunState, standings: &IndexMap<CandidateId, Scored>) -> Option<RoundPoint> {
    let seed = super::lineage::seed(state)?;
    let recorded = state.rounds().first().and_then(|first| first.scores.get(&seed));
    let scored = match recorded {
        Some(score) => Scored::of(state, seed, score, &Examples::of_round(state, 0)),
        None => standings.get(&seed)?.clone(),
    };
    Some(RoundPoint {
        round: 0,
        best: vec![seed],
        leading: leading(&[&scored]),
        others: Vec::new(),
        pool: vec![PoolPlace {
            candidate: seed,
            feasible: scored.feasible,
        }],
        best_feasible: scored.feasible.then_some(scored),
    })
}

fn best_of<'a>(known: impl Iterator<Item = &'a Scored>) -> Option<Scored> {
    known
        .filter(|scored| scored.feasible)
        .reduce(|best, next| if better(next, best) { next } else { best })
        .cloned()
}

fn leading(best: &[&Scored]) -> Option<Leading> {
    let first = best.first()?;
    let mean = |pick: &dyn Fn(&Scored) -> Option<Estimate>| {
        let estimates: Vec<Estimate> = best.iter().filter_map(|scored| pick(scored)).collect();
        let share = estimates.len() as f64;
        Estimate {
            mean: estimates.iter().map(|estimate| estimate.mean).sum::<f64>() / share,
            standard_error: estimates
                .iter()
                .map(|estimate| estimate.standard_error)
                .sum::<f64>()
                / share,
            n: estimates.iter().map(|estimate| estimate.n).min().unwrap_or(0),
        }
    };
    let cost = |name: &String| {
        let estimate = mean(&|scored| scored.costs.get(name).copied());
        (name.clone(), estimate)
    };
    Some(Leading {
        objective: mean(&|scored| Some(scored.objective)),
        costs: first.costs.keys().map(cost).collect(),
        feasible: first.feasible,
    })
}

fn constraint(
    state: &RunState,
    metric: Studied,
    cap: Option<f64>,
    standings: &IndexMap<CandidateId, Scored>,
) -> ConstraintSeries {
    let name = metric.name().to_owned();
    let rounds = state.rounds().len() as Round + Round::from(under_way(state).is_some());
    let in_round = |limits: &Limits| limits.get(&name).map(|limit| limit.threshold);
    let by_round: Vec<Option<f64>> = (0..rounds)
        .map(|round| in_round(&in_force::limits(state, Some(round))))
        .collect();
    let multipliers: Vec<Option<f64>> = (0..rounds)
        .map(|round| in_force::multipliers(state, round).get(&name).copied())
        .collect();
    let steps = state
        .steers()
        .iter()
        .filter_map(|steer| {
            let to = *steer.thresholds.as_ref()?.get(&name)?;
            let before = steer.round.checked_sub(1);
            Some(Step {
                round: on_screen(steer.round),
                from: before.and_then(|before| *by_round.get(before as usize)?),
                to,
            })
        })
        .collect();
    let at_cap = (1..)
        .zip(&multipliers)
        .filter(|(_, multiplier)| {
            multiplier
                .zip(cap)
                .is_some_and(|(multiplier, cap)| multiplier >= cap)
        })
        .map(|(round, _)| round)
        .collect();
    let scored = state.rounds().iter().flat_map(|round| round.scores.values());
    let recorded = scored.filter_map(|score| score.costs.get(&name).copied());
    let now = standings
        .values()
        .filter_map(|scored| Some(scored.costs.get(&name)?.mean));
    ConstraintSeries {
        // The seed is judged by the thresholds of the first round.
        thresholds: by_round
            .first()
            .copied()
            .into_iter()
            .chain(by_round.iter().copied())
            .collect(),
        multipliers: std::iter::once(None).chain(multipliers).collect(),
        next_multiplier: state
            .rounds()
            .last()
            .and_then(|last| last.next_multipliers.get(&name).copied()),
        lowest: recorded.chain(now).min_by(f64::total_cmp),
        steps,
        at_cap,
        metric,
    }
}
