//! Everything the charts of the live page draw, round by round.

use std::sync::Arc;

use capo_core::ids::CandidateId;
use capo_core::methods;
use capo_core::reading::in_force;
use capo_core::reading::metrics::{Aims, StudiedMetric};
use capo_core::reading::standing::{Scored, Scores, Standings};
use capo_core::run_state::RunState;
use capo_core::score::{Limits, Multipliers};

use super::closed::Closed;
use super::rounds::{self, ScreenRound, on_screen, under_way, written_in};

/// Rounds by which the axis grows of a run that goes on until its budget is spent: not with each of them.
const STEP: ScreenRound = 10;

/// A run round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What is maximised.
    pub objective: StudiedMetric,
    /// One entry for each round on screen, from the seed (0) to the latest closed one.
    pub rounds: Arc<Vec<RoundPoint>>,
    /// Prompts of the round under way that are measured already.
    pub arriving: Vec<Arc<Scored>>,
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
    /// P_best as one; `None` when there is none.
    pub leading: Option<Scored>,
    /// Every other prompt of the round's expanded pool.
    pub others: Vec<Scored>,
    /// The pool after the round, best first: whether each is feasible.
    pub pool: Vec<PoolPlace>,
    /// The best feasible prompt up to this round, judged by this round's thresholds.
    pub best_feasible: Option<Scored>,
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
    /// The metric, with its unit and direction.
    pub metric: StudiedMetric,
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

    /// The highest λ used so far, or led to by the last closed round; 0 before the first.
    pub fn peak(&self) -> f64 {
        let used = self.multipliers.iter().copied().flatten();
        used.chain(self.next_multiplier).fold(0.0, f64::max)
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
        let aims = Aims::of(state)?;
        let standings = Standings::default().follow(state, &aims, &methods::multipliers_now(state));
        Some(Self::following(state, &aims, &standings, &mut Closed::default()))
    }

    /// The same of a run that goes on.
    pub(super) fn following(state: &RunState, aims: &Aims, standings: &Scores, closed: &mut Closed) -> Self {
        let cap = in_force::cap(state);
        let open = under_way(state);
        let is_new = |scored: &&Arc<Scored>| {
            let candidate = state.candidate(&scored.candidate);
            candidate.map(written_in) == open.map(on_screen)
        };
        let rounds = closed.follow(state, aims, standings);
        let used = Used {
            state,
            limits: closed.limits(),
            open: open.map(|open| {
                (
                    in_force::limits(state, Some(open)),
                    methods::multipliers(state, open),
                )
            }),
        };
        let constraints = aims
            .constraints
            .iter()
            .map(|metric| constraint(&used, metric, cap, standings))
            .collect();
        Self {
            objective: aims.objective.clone(),
            arriving: standings
                .values()
                .filter(|_| open.is_some())
                .filter(is_new)
                .cloned()
                .collect(),
            under_way: open.map(on_screen),
            planned: rounds::planned(state),
            rounds,
            constraints,
            cap,
        }
    }

    /// The best feasible prompt so far.
    pub fn best_feasible(&self) -> Option<&Scored> {
        self.rounds.last()?.best_feasible.as_ref()
    }

    /// The latest closed round on screen; 0 before the first.
    pub fn closed(&self) -> ScreenRound {
        self.latest().map_or(0, |point| point.round)
    }

    /// The last round that is drawn: the last one planned, or without a plan some more than there are as long as it goes on.
    pub fn last_round(&self) -> ScreenRound {
        let closed = self.closed();
        match (self.planned, self.under_way) {
            (Some(planned), _) => planned.max(closed),
            (None, Some(under_way)) => under_way.next_multiple_of(STEP),
            (None, None) => closed,
        }
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

/// Limits and multipliers by round of the journal, that under way the last.
struct Used<'a> {
    state: &'a RunState,
    limits: &'a [Limits],
    open: Option<(Limits, Multipliers)>,
}

impl Used<'_> {
    fn thresholds(&self, metric: &str) -> Vec<Option<f64>> {
        let open = self.open.iter().map(|(limits, _)| limits);
        let rounds = self.limits.iter().chain(open);
        rounds.map(|limits| Some(limits.get(metric)?.threshold)).collect()
    }

    fn multipliers(&self, metric: &str) -> Vec<Option<f64>> {
        let open = self.open.iter().map(|(_, multipliers)| multipliers);
        let closed = self.state.rounds().iter().map(|round| &round.multipliers);
        closed
            .chain(open)
            .map(|multipliers| multipliers.get(metric).copied())
            .collect()
    }
}

fn constraint(
    used: &Used<'_>,
    metric: &StudiedMetric,
    cap: Option<f64>,
    standings: &Scores,
) -> ConstraintSeries {
    let (state, name) = (used.state, metric.name());
    let by_round = used.thresholds(name);
    let multipliers = used.multipliers(name);
    let steps = state
        .steers()
        .iter()
        .filter_map(|steer| {
            let to = *steer.thresholds.as_ref()?.get(name)?;
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
    let recorded = scored.filter_map(|score| score.costs.get(name).copied());
    let now = standings
        .values()
        .filter_map(|scored| Some(scored.costs.get(name)?.mean));
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
            .and_then(|last| last.next_multipliers.get(name).copied()),
        lowest: recorded.chain(now).min_by(f64::total_cmp),
        steps,
        at_cap,
        metric: metric.clone(),
    }
}
