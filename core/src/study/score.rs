//! Objective, costs, residuals and the Lagrangian score of one candidate.

use std::cmp::Ordering;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::study::estimate::Estimate;
use crate::study::ids::CandidateId;
use crate::study::numbers::{number, numbers};

/// A threshold is no further from 0 than this, so that residuals and their squares stay finite.
pub(crate) const LARGEST_THRESHOLD: f64 = 1e12;

/// A constraint as the formulas see it: threshold τ and scale s of the residual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// τ, in the metric's unit.
    pub threshold: f64,
    /// s > 0, in the metric's unit.
    pub scale: f64,
}

impl Limit {
    /// (cost − threshold) / scale; positive when violated. Always finite.
    pub fn residual(&self, cost: f64) -> f64 {
        finite((cost - self.threshold) / self.scale)
    }

    /// Whether a mean cost satisfies the constraint (`eq:constrained`): ≤ on the exact mean, no tolerance.
    pub fn is_satisfied(&self, cost: f64) -> bool {
        cost <= self.threshold
    }
}

/// A number, or the largest one of its sign where it left the range of numbers.
fn finite(number: f64) -> f64 {
    number.clamp(-f64::MAX, f64::MAX)
}

/// The constraints in force, by metric.
pub type Limits = IndexMap<String, Limit>;

/// Multipliers λ by metric, each in [0, λ_max].
pub type Multipliers = IndexMap<String, f64>;

/// What a candidate measured, before any multiplier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Means {
    /// R: mean objective, in [0, 1].
    pub objective: f64,
    /// C_i: mean cost by metric.
    pub costs: IndexMap<String, f64>,
    /// κ · SE(C_i) by metric, in the metric's unit; empty without caution.
    pub margins: IndexMap<String, f64>,
}

impl Means {
    /// Mean objective and estimates of the costs, with margins of `caution` standard errors.
    pub fn cautious(
        objective: f64,
        costs: impl IntoIterator<Item = (String, Estimate)>,
        caution: f64,
    ) -> Self {
        let mut means = Self {
            objective,
            ..Self::default()
        };
        for (metric, estimate) in costs {
            if caution > 0.0 {
                let margin = finite(caution * estimate.standard_error);
                means.margins.insert(metric.clone(), margin);
            }
            means.costs.insert(metric, estimate.mean);
        }
        means
    }
}

/// A candidate's score under given multipliers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// R: mean objective.
    #[serde(deserialize_with = "number")]
    pub objective: f64,
    /// C_i: mean cost by metric.
    #[serde(deserialize_with = "numbers")]
    pub costs: IndexMap<String, f64>,
    /// κ · SE(C_i) by metric, by which a cautious search takes costs for larger than they were measured; empty
    /// without caution.
    #[serde(
        default,
        deserialize_with = "numbers",
        skip_serializing_if = "IndexMap::is_empty"
    )]
    pub margins: IndexMap<String, f64>,
    /// J = R − Σ λ_i (C_i + κ · SE(C_i) − τ_i)/s_i (`eq:lagrangian`; κ is ours, 0 unless stated).
    #[serde(deserialize_with = "number")]
    pub lagrangian: f64,
    /// Whether every constraint in force is satisfied on the mean, margins aside.
    pub feasible: bool,
}

impl Score {
    /// C + κ · SE(C) of a metric that was measured, in its unit: what residuals are made of.
    pub fn cautious_cost(&self, metric: &str) -> f64 {
        cautious(&self.costs, &self.margins, metric)
    }

    /// The score of `means` (Lagrangian Prompt Ranking; `scale` is ours).
    ///
    /// A constraint in force without a multiplier counts with λ = 0.
    ///
    /// ```
    /// use capo_core::score::{Limit, Limits, Means, Multipliers, Score};
    ///
    /// let limits = Limits::from([("calls".to_owned(), Limit { threshold: 2.0, scale: 1.0 })]);
    /// let multipliers = Multipliers::from([("calls".to_owned(), 0.5)]);
    /// let means = Means { objective: 0.75, costs: [("calls".to_owned(), 3.0)].into(), ..Means::default() };
    /// let score = Score::new(means, &limits, &multipliers);
    /// assert_eq!(score.lagrangian, 0.75 - 0.5 * (3.0 - 2.0));
    /// assert!(!score.feasible);
    /// ```
    pub fn new(means: Means, limits: &Limits, multipliers: &Multipliers) -> Self {
        let mut lagrangian = means.objective;
        let mut feasible = true;
        for (metric, limit) in limits {
            let residual = limit.residual(cautious(&means.costs, &means.margins, metric));
            let weighted = multipliers.get(metric).copied().unwrap_or(0.0) * residual;
            lagrangian = finite(lagrangian - finite(weighted));
            feasible &= limit.is_satisfied(means.costs[metric]);
        }
        Self {
            objective: means.objective,
            costs: means.costs,
            margins: means.margins,
            lagrangian,
            feasible,
        }
    }
}

fn cautious(costs: &IndexMap<String, f64>, margins: &IndexMap<String, f64>, metric: &str) -> f64 {
    costs[metric] + margins.get(metric).copied().unwrap_or(0.0)
}

/// What breaks ties between equal scores: fewer characters, then earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TieBreak {
    /// Unicode scalar values of the prompt.
    pub characters: usize,
    /// Order of appearance in the run.
    pub order: usize,
}

/// A candidate with the number it is ranked by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The prompt that is ranked.
    pub candidate: CandidateId,
    /// The higher the better; J, or J with a method's own term.
    pub rank_by: f64,
    /// For equal `rank_by`.
    pub tie: TieBreak,
}

impl Ranked {
    /// Best first: higher score, then fewer characters, then earlier.
    pub fn order(&self, other: &Self) -> Ordering {
        other
            .rank_by
            .total_cmp(&self.rank_by)
            .then(self.tie.cmp(&other.tie))
    }
}

/// The best `count` candidates, best first.
///
/// ```
/// use capo_core::ids::CandidateId;
/// use capo_core::score::{Ranked, TieBreak, top};
///
/// let entry = |prompt: &str, rank_by, order| Ranked {
///     candidate: CandidateId::of(prompt),
///     rank_by,
///     tie: TieBreak { characters: prompt.len(), order },
/// };
/// let pool = vec![entry("Be long.", 0.5, 0), entry("Be bad.", 0.1, 1), entry("Short.", 0.5, 2)];
/// // The shorter of two equals comes first.
/// assert_eq!(top(pool, 2), [CandidateId::of("Short."), CandidateId::of("Be long.")]);
/// ```
pub fn top(mut ranked: Vec<Ranked>, count: usize) -> Vec<CandidateId> {
    ranked.sort_by(Ranked::order);
    ranked
        .into_iter()
        .take(count)
        .map(|entry| entry.candidate)
        .collect()
}

/// A candidate as the final choice sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choosable<T> {
    /// What is chosen, such as the id of a prompt.
    pub candidate: T,
    /// Whether it may be taken for its objective: it is feasible, as surely as is asked.
    pub passes: bool,
    /// R: mean objective.
    pub objective: f64,
    /// How likely it is to hold on new examples, where that is known.
    pub probability: f64,
}

/// Whom the final choice takes: the highest objective of those that pass, else the likeliest to hold. Of equals the first.
///
/// ```
/// use capo_core::score::{Choosable, choice};
///
/// let of = |candidate, passes, objective, probability| Choosable { candidate, passes, objective, probability };
/// let (over, inside) = (of("over", false, 0.9, 0.4), of("inside", true, 0.5, 0.8));
/// assert_eq!(choice([over, inside]), Some("inside"));
/// assert_eq!(choice([over, of("further over", false, 1.0, 0.1)]), Some("over"));
/// ```
pub fn choice<T>(candidates: impl IntoIterator<Item = Choosable<T>>) -> Option<T> {
    let worth = |one: &Choosable<T>| {
        if one.passes {
            one.objective
        } else {
            one.probability
        }
    };
    let best = candidates.into_iter().reduce(|best, next| {
        let order = best.passes.cmp(&next.passes);
        if order.then(worth(&best).total_cmp(&worth(&next))).is_lt() {
            next
        } else {
            best
        }
    });
    best.map(|best| best.candidate)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranked(prompt: &str, rank_by: f64, characters: usize, order: usize) -> Ranked {
        Ranked {
            candidate: CandidateId::of(prompt),
            rank_by,
            tie: TieBreak { characters, order },
        }
    }

    #[test]
    fn slack_earns_and_violation_costs() {
        let limits = Limits::from([
            (
                "a".to_owned(),
                Limit {
                    threshold: 0.5,
                    scale: 1.0,
                },
            ),
            (
                "b".to_owned(),
                Limit {
                    threshold: 5.0,
                    scale: 4.0,
                },
            ),
        ]);
        let multipliers = Multipliers::from([("a".to_owned(), 2.0), ("b".to_owned(), 1.0)]);
        let means = Means {
            objective: 0.6,
            costs: [("a".to_owned(), 0.4), ("b".to_owned(), 7.0)].into(),
            ..Means::default()
        };
        let score = Score::new(means, &limits, &multipliers);
        // 0.6 − 2·(0.4 − 0.5) − 1·(7 − 5)/4 = 0.3
        assert!((score.lagrangian - 0.3).abs() < 1e-12);
        assert!(!score.feasible);
    }

    #[test]
    fn a_cost_at_its_threshold_is_feasible() {
        assert!(
            Limit {
                threshold: 0.35,
                scale: 1.0
            }
            .is_satisfied(0.35)
        );
        assert!(
            !Limit {
                threshold: 0.35,
                scale: 1.0
            }
            .is_satisfied(0.350_000_000_000_1)
        );
    }

    #[test]
    fn ties_go_to_the_shorter_then_to_the_earlier() {
        let entries = vec![
            ranked("long", 1.0, 9, 0),
            ranked("late", 1.0, 3, 2),
            ranked("early", 1.0, 3, 1),
        ];
        assert_eq!(
            top(entries, 2),
            [CandidateId::of("early"), CandidateId::of("late")]
        );
    }

    proptest! {
        #[test]
        fn top_does_not_depend_on_the_order_given(
            scores in proptest::collection::vec((-2i8..2, 0usize..3), 1..12),
            count in 0usize..14,
            turn in 0usize..12,
        ) {
            let entries: Vec<Ranked> = scores
                .iter()
                .enumerate()
                .map(|(order, &(score, characters))| ranked(&order.to_string(), f64::from(score), characters, order))
                .collect();
            let mut turned = entries.clone();
            turned.rotate_left(turn % entries.len());
            let best = top(entries.clone(), count);
            prop_assert_eq!(&best, &top(turned, count));
            prop_assert_eq!(best.len(), count.min(entries.len()));
            let score_of = |id: &CandidateId| entries.iter().find(|e| e.candidate == *id).unwrap().rank_by;
            prop_assert!(best.windows(2).all(|pair| score_of(&pair[0]) >= score_of(&pair[1])));
        }
    }
}
