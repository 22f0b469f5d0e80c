//! The search under the assumptions, and with each of them broken in turn.

use super::oracle::stray;
use super::problem::{CAP, Point, Problem};

/// How far a measured R is off the true one, at most.
pub(super) const OBJECTIVE_NOISE: f64 = 0.02;

/// A search with what the paper says of it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The assumption that is broken, and how.
    pub(super) broken: &'static str,
    /// What of the theorems still applies.
    pub(super) applies: &'static str,
    /// β_t = β_1 / t to this power.
    pub(super) decay: f64,
    /// λ_max.
    pub(super) cap: f64,
    /// What every rewrite adds to where it goes.
    pub(super) bias: Point,
    /// How far a measured cost is off the true one, at most.
    pub(super) cost_noise: f64,
}

const ASSUMED: Case = Case {
    name: "as assumed",
    broken: "none",
    applies: "all",
    decay: 0.75,
    cap: CAP,
    bias: [0.0; 4],
    cost_noise: 0.0,
};

/// The first breaks nothing.
pub(super) static CASES: [Case; 6] = [
    ASSUMED,
    Case {
        name: "constant steps",
        broken: "Σβ² < ∞: β_t = β_1",
        applies: "(A) and the recursion; no limit",
        decay: 0.0,
        ..ASSUMED
    },
    Case {
        name: "summable steps",
        broken: "Σβ = ∞: β_t = β_1/t²",
        applies: "(A) and the recursion; no limit",
        decay: 2.0,
        ..ASSUMED
    },
    Case {
        name: "biased rewriter",
        broken: "B1 with ε = 0: every rewrite is shifted",
        applies: "(A); not the recursion, no limit",
        bias: [0.4, -0.3, 0.0, 0.2],
        ..ASSUMED
    },
    Case {
        name: "cap too low",
        broken: "λ* ∈ Λ: λ_max = 0.5",
        applies: "all within the cap; nothing for the problem",
        cap: 0.5,
        ..ASSUMED
    },
    Case {
        name: "noisy costs",
        broken: "λ is moved by g(θ_t): by costs ± 0.5",
        applies: "the recursion; not (A), no limit",
        cost_noise: 0.5,
        ..ASSUMED
    },
];

impl Case {
    /// The problem on a box that the rewrites do not leave.
    pub(super) fn problem(&self) -> Problem {
        Problem::new(stray(self.bias))
    }

    /// ζ of A7: two candidates that are measured wrong the worst way.
    pub(super) fn extraction(&self) -> f64 {
        2.0 * (OBJECTIVE_NOISE + 3.0 * self.cap * self.cost_noise)
    }

    /// D_Λ².
    pub(super) fn squared_diameter(&self) -> f64 {
        3.0 * self.cap.powi(2)
    }
}
