//! A strongly concave problem of which everything is known in closed form.

use std::array::from_fn;

use capo_core::dual::Residuals;
use capo_core::score::{Limit, Limits, Means, Multipliers, Score};

/// θ: where a prompt lies in the surrogate space.
pub(super) type Point = [f64; 4];

/// The constraints; at the saddle point the third is slack.
const NAMES: [&str; 3] = ["first", "second", "third"];
/// The curvature of R in each coordinate.
const CURVATURE: Point = [1.0, 2.0, 4.0, 2.0];
/// Where R is largest.
const IDEAL: Point = [1.0; 4];
/// How much each coordinate adds to each cost. No two costs share a coordinate, so that each multiplier of the saddle
/// point has a formula of its own.
const COSTS: [Point; 3] = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
const THRESHOLDS: [f64; 3] = [0.5, 0.8, 1.5];

/// μ of A1, the least curvature.
pub(super) const STRONG_CONCAVITY: f64 = 1.0;
/// L of A1, the largest one.
pub(super) const SMOOTHNESS: f64 = 4.0;
/// λ_max of the problem's Λ, above every multiplier of the saddle point.
pub(super) const CAP: f64 = 2.0;
/// Where the seed prompt lies.
pub(super) const START: Point = [-1.0, -0.5, 0.0, 0.0];

/// Maximise R(θ) = 1 − ½ Σ h_i (θ_i − a_i)² with linear costs below their thresholds, over a box Θ.
#[derive(Debug)]
pub(super) struct Problem {
    limits: Limits,
    low: Point,
    high: Point,
}

impl Problem {
    /// The problem on a box that no rewrite leaves. `stray` is how far a coordinate strays from a step of ascent at most,
    /// in lengths of the step, which shortens the way to θ*(λ) by the share step · h_i.
    pub(super) fn new(stray: f64) -> Self {
        let least = best_response(&named([CAP; 3]));
        let limit = |threshold| Limit {
            threshold,
            scale: 1.0,
        };
        let room = |i: usize| stray / CURVATURE[i];
        Self {
            limits: named(THRESHOLDS.map(limit)),
            low: from_fn(|i| START[i].min(least[i] - room(i))),
            high: from_fn(|i| START[i].max(IDEAL[i] + room(i))),
        }
    }

    /// R and the costs of a point.
    pub(super) fn means(point: Point) -> Means {
        let distance = from_fn::<_, 4, _>(|i| CURVATURE[i] * (point[i] - IDEAL[i]).powi(2));
        Means {
            objective: 1.0 - 0.5 * distance.iter().sum::<f64>(),
            costs: named(COSTS.map(|cost| dot(cost, point))),
            ..Means::default()
        }
    }

    /// J.
    pub(super) fn lagrangian(&self, means: &Means, multipliers: &Multipliers) -> f64 {
        Score::new(means.clone(), &self.limits, multipliers).lagrangian
    }

    /// max over Θ of J(·, λ).
    pub(super) fn highest(&self, multipliers: &Multipliers) -> f64 {
        self.lagrangian(&Self::means(best_response(multipliers)), multipliers)
    }

    /// g.
    pub(super) fn residuals(&self, means: &Means) -> Residuals {
        let limits = self.limits.iter();
        limits
            .map(|(name, limit)| (name.clone(), limit.residual(means.costs[name])))
            .collect()
    }

    /// The primal–dual gap of a pair, max over Θ of J(·, λ) less min over `[0, cap]^m` of J(θ, ·).
    pub(super) fn gap(&self, point: Point, multipliers: &Multipliers, cap: f64) -> f64 {
        let means = Self::means(point);
        let violations: f64 = self.residuals(&means).values().map(|g| g.max(0.0)).sum();
        self.highest(multipliers) - (means.objective - cap * violations)
    }

    /// G_g of A2: the largest norm of g on Θ, whose coordinates may each be at the worse end.
    pub(super) fn constraint_bound(&self) -> f64 {
        let ends = [self.low, self.high].map(|end| self.residuals(&Self::means(end)));
        let largest = |name: &str| ends[0][name].abs().max(ends[1][name].abs());
        NAMES.map(|name| largest(name).powi(2)).iter().sum::<f64>().sqrt()
    }

    /// B_max of A6. The range of J(·, λ) is convex in λ, so that a corner of Λ has the largest.
    pub(super) fn range(&self) -> f64 {
        let corners = (0..8).map(|corner| {
            let best = best_response(&named(from_fn(|i| CAP * f64::from(corner >> i & 1))));
            let farthest = |i: usize| (best[i] - self.low[i]).max(self.high[i] - best[i]);
            (0..4)
                .map(|i| 0.5 * CURVATURE[i] * farthest(i).powi(2))
                .sum::<f64>()
        });
        corners.fold(0.0, f64::max)
    }
}

/// The gradient of J(·, λ).
pub(super) fn gradient(point: Point, multipliers: &Multipliers) -> Point {
    let best = best_response(multipliers);
    from_fn(|i| CURVATURE[i] * (best[i] - point[i]))
}

/// θ*(λ).
pub(super) fn best_response(multipliers: &Multipliers) -> Point {
    let weighted = |i: usize| -> f64 { multipliers.values().zip(COSTS).map(|(l, cost)| l * cost[i]).sum() };
    from_fn(|i| IDEAL[i] - weighted(i) / CURVATURE[i])
}

/// θ* and λ*: λ*_i is what brings cost i to its threshold, 0 where that is met at the ideal.
pub(super) fn saddle() -> (Point, Multipliers) {
    let multiplier = |i: usize| {
        let eased = from_fn(|j| COSTS[i][j] / CURVATURE[j]);
        ((dot(COSTS[i], IDEAL) - THRESHOLDS[i]) / dot(COSTS[i], eased)).max(0.0)
    };
    let multipliers = named(from_fn(multiplier));
    (best_response(&multipliers), multipliers)
}

/// By constraint, as the program has its multipliers.
pub(super) fn named<T>(values: [T; 3]) -> indexmap::IndexMap<String, T> {
    NAMES.map(str::to_owned).into_iter().zip(values).collect()
}

fn dot(left: Point, right: Point) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}
