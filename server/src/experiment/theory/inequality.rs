//! The paper's inequalities: what is measured, and the terms of its bound.

use capo_core::estimate::Estimate;
use serde::Serialize;

use super::search::Round;

/// A term of a bound.
#[derive(Debug)]
pub(super) struct Term {
    /// As a formula.
    pub(super) name: &'static str,
    of: fn(&Round) -> f64,
}

/// One inequality, which holds in expectation.
#[derive(Debug)]
pub(super) struct Inequality {
    /// What is bounded, as a formula.
    pub(super) measured: &'static str,
    /// The paper's label.
    pub(super) label: &'static str,
    of: fn(&Round) -> f64,
    /// The terms, whose sum is the bound.
    pub(super) terms: &'static [Term],
}

const fn term(name: &'static str, of: fn(&Round) -> f64) -> Term {
    Term { name, of }
}

const CONTRACTED: Term = term("(1 − ρp)Δ_t", |round| round.contracted);
const REWRITTEN: Term = term("pη", |round| round.rewritten);
const PRUNED: Term = term("πB_max", |round| round.pruned);
const EXTRACTION: Term = term("ζ", |round| round.extraction);

/// The bound on the gap of the averages (`thm:capo_main_convergence_expectation`, part A).
pub(super) const GAP: Inequality = Inequality {
    measured: "gap of the averages",
    label: "thm:capo_main_convergence_expectation (A)",
    of: |round| round.gap,
    terms: &[
        term("D²/2S", |round| round.diameter),
        term("G²Σβ²/2S", |round| round.steps),
        term("Σβδ/S", |round| round.primal),
    ],
};

/// The same bound beside the gap over the problem's own Λ.
pub(super) const GAP_OF_PROBLEM: Inequality = Inequality {
    of: |round| round.gap_of_problem,
    ..GAP
};

/// What a round leaves of the pool's gap (`lem:app_discrete_pool_recursion`).
pub(super) const RECURSION: Inequality = Inequality {
    measured: "Δ_{t+1}(λ_t)",
    label: "lem:app_discrete_pool_recursion",
    of: |round| round.pool,
    terms: &[CONTRACTED, REWRITTEN, PRUNED],
};

/// The same after the multipliers have moved.
const DRIFT: Inequality = Inequality {
    measured: "Δ_{t+1}(λ_{t+1})",
    label: "lem:app_discrete_pool_recursion, drift",
    of: |round| round.pool_after,
    terms: &[CONTRACTED, REWRITTEN, PRUNED, term("2βG²", |round| round.drift)],
};

/// What the choice from the pool adds.
const SELECTED: Inequality = Inequality {
    measured: "δ_t, by the pool",
    label: "lem:app_discrete_pool_recursion, extraction",
    of: |round| round.selected,
    terms: &[term("Δ_{t+1}", |round| round.pool), EXTRACTION],
};

/// Both together (`thm:rewrite_oracle_reduction`).
const REDUCTION: Inequality = Inequality {
    measured: "δ_t",
    label: "thm:rewrite_oracle_reduction",
    terms: &[CONTRACTED, REWRITTEN, PRUNED, EXTRACTION],
    ..SELECTED
};

/// All that the paper states for every round.
pub(super) const ALL: [&Inequality; 5] = [&GAP, &RECURSION, &DRIFT, &SELECTED, &REDUCTION];

/// Means over seeds, by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Sides {
    /// Of what is bounded.
    pub(super) measured: Vec<Estimate>,
    /// Of each term of the bound.
    pub(super) terms: Vec<Vec<f64>>,
}

impl Sides {
    /// The bound at a round, counted from 0.
    pub(super) fn bound(&self, round: usize) -> f64 {
        self.terms.iter().map(|term| term[round]).sum()
    }

    /// In how many rounds the mean over seeds exceeds the bound, and the largest share of the bound that it comes to.
    pub(super) fn exceeded(&self) -> (usize, f64) {
        let share = |(round, measured): (usize, &Estimate)| measured.mean / self.bound(round);
        let shares = self.measured.iter().enumerate().map(share);
        shares.fold((0, 0.0), |(count, most), share| {
            (count + usize::from(share > 1.0), f64::max(most, share))
        })
    }
}

impl Inequality {
    /// Both sides over all seeds, which have rounds of the same number.
    pub(super) fn sides(&self, seeds: &[Vec<Round>]) -> Sides {
        let count = seeds.first().map_or(0, Vec::len);
        let means = |of: fn(&Round) -> f64| -> Vec<Estimate> {
            let values = |round: usize| {
                seeds
                    .iter()
                    .map(|rounds| of(&rounds[round]))
                    .collect::<Vec<f64>>()
            };
            (0..count)
                .filter_map(|round| Estimate::of(&values(round)))
                .collect()
        };
        let term = |term: &Term| means(term.of).iter().map(|estimate| estimate.mean).collect();
        Sides {
            measured: means(self.of),
            terms: self.terms.iter().map(term).collect(),
        }
    }

    /// In how many rounds of single seeds it does not hold.
    pub(super) fn exceeded_by_seed(&self, seeds: &[Vec<Round>]) -> usize {
        let bound = |round: &Round| self.terms.iter().map(|term| (term.of)(round)).sum::<f64>();
        let exceeds = |round: &&Round| (self.of)(round) > bound(round);
        seeds.iter().flatten().filter(exceeds).count()
    }
}
