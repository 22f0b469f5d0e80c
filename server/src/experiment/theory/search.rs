//! A search of the problem as the program's, with both sides of the inequalities in each round.

use std::array::from_fn;

use capo_core::dual::{DualStep, Subgradient};
use capo_core::random::{Streams, without_replacement};
use capo_core::score::Means;

use super::case::{Case, OBJECTIVE_NOISE};
use super::oracle::{CONTRACTION, Prompt, RESIDUAL, nearest, point, rewrite, uniform};
use super::problem::{CAP, Problem, START, gradient, named};

/// T at the end of a search.
pub(super) const ROUNDS: u32 = 200;
const FIRST_STEP: f64 = 0.5;
const POOL: usize = 6;
const PARENTS: usize = 4;
const CHILDREN: u64 = 2;

/// What round t of one seed came to; averages are over the rounds up to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    /// The gap of the averages over the search's own Λ.
    pub(super) gap: f64,
    /// The same over the problem's Λ, in which its saddle point lies.
    pub(super) gap_of_problem: f64,
    /// D_Λ² / 2 S_t.
    pub(super) diameter: f64,
    /// G_g² Σ β² / 2 S_t.
    pub(super) steps: f64,
    /// Σ β δ / S_t.
    pub(super) primal: f64,
    /// δ_t.
    pub(super) selected: f64,
    /// Δ_{t+1}(λ_t).
    pub(super) pool: f64,
    /// Δ_{t+1}(λ_{t+1}).
    pub(super) pool_after: f64,
    /// (1 − ρ p_t) Δ_t(λ_t).
    pub(super) contracted: f64,
    /// p_t η_t.
    pub(super) rewritten: f64,
    /// B_max where the best of the expanded pool was pruned.
    pub(super) pruned: f64,
    /// ζ_t.
    pub(super) extraction: f64,
    /// 2 β_t G_g².
    pub(super) drift: f64,
    /// The largest violation of a threshold by the average.
    pub(super) violation: f64,
}

/// A prompt with what is true of it and what was measured.
#[derive(Debug, Clone)]
struct Candidate {
    prompt: Prompt,
    truth: Means,
    measured: Means,
}

impl Candidate {
    /// A prompt has the same noise whenever it is written.
    fn of(prompt: Prompt, case: &Case, streams: Streams) -> Self {
        let truth = Problem::means(point(prompt));
        let text = format!("{prompt:?}");
        let noise = |index| 2.0 * uniform(streams, &text, 0, index) - 1.0;
        let mut measured = truth.clone();
        measured.objective += OBJECTIVE_NOISE * noise(0);
        for (cost, index) in measured.costs.values_mut().zip(1..) {
            *cost += case.cost_noise * noise(index);
        }
        Self {
            prompt,
            truth,
            measured,
        }
    }
}

/// All rounds of a seed.
pub(super) fn search(case: &Case, seed: u64) -> Vec<Round> {
    let (streams, problem) = (Streams::new(seed), case.problem());
    let (constraint_bound, range) = (problem.constraint_bound(), problem.range());
    let mut lambda = named([case.cap.min(1.0); 3]);
    let mut pool = vec![Candidate::of(nearest(START), case, streams)];
    let (mut total, mut squares, mut primal) = (0.0, 0.0, 0.0);
    let (mut point_sum, mut lambda_sum) = ([0.0; 4], [0.0; 3]);
    let mut rounds = Vec::new();
    for t in 1..=u64::from(ROUNDS) {
        let highest = problem.highest(&lambda);
        let gap = |one: &Candidate| highest - problem.lagrangian(&one.truth, &lambda);
        let measured = |one: &Candidate| problem.lagrangian(&one.measured, &lambda);

        let (best, before) = least(&pool, gap);
        let scores: Vec<f64> = pool.iter().map(measured).collect();
        let probability = probability_of_drawing(&scores, best);
        let parents = without_replacement(&scores, 1.0, PARENTS, &mut streams.stream("parents", t, 0));
        let mut expanded = pool.clone();
        for (parent, place) in parents.into_iter().zip(0..) {
            let parent = pool[parent].prompt;
            let slope = gradient(point(parent), &lambda);
            for child in 0..CHILDREN {
                let draws = (streams, t, 4 * (CHILDREN * place + child));
                let child = rewrite(parent, slope, case.bias, draws);
                if expanded.iter().all(|one| one.prompt != child) {
                    expanded.push(Candidate::of(child, case, streams));
                }
            }
        }
        let best = expanded[least(&expanded, gap).0].prompt;
        expanded.sort_by(|a, b| measured(b).total_cmp(&measured(a)));
        expanded.truncate(POOL);
        pool = expanded;

        let beta = FIRST_STEP / (t as f64).powf(case.decay);
        let (chosen, selected) = (&pool[0], gap(&pool[0]));
        total += beta;
        squares += beta * beta;
        primal += beta * selected;
        point_sum = from_fn(|i| point_sum[i] + beta * point(chosen.prompt)[i]);
        lambda_sum = from_fn(|i| lambda_sum[i] + beta * lambda[i]);
        let averages = (
            point_sum.map(|sum| sum / total),
            lambda_sum.map(|sum| sum / total),
        );
        let mut step = Subgradient { beta, cap: case.cap };
        let next = step.step(&lambda, &problem.residuals(&chosen.measured));
        let highest_next = problem.highest(&next);
        let violations = problem.residuals(&Problem::means(averages.0));
        rounds.push(Round {
            gap: problem.gap(averages.0, &named(averages.1), case.cap),
            gap_of_problem: problem.gap(averages.0, &named(averages.1), CAP),
            diameter: case.squared_diameter() / (2.0 * total),
            steps: constraint_bound.powi(2) * squares / (2.0 * total),
            primal: primal / total,
            selected,
            pool: least(&pool, gap).1,
            pool_after: least(&pool, |one| highest_next - problem.lagrangian(&one.truth, &next)).1,
            contracted: (1.0 - CONTRACTION * probability) * before,
            rewritten: probability * RESIDUAL,
            pruned: f64::from(pool.iter().all(|one| one.prompt != best)) * range,
            extraction: case.extraction(),
            drift: 2.0 * beta * constraint_bound.powi(2),
            violation: violations.values().fold(0.0, |most, g| g.max(most)),
        });
        lambda = next;
    }
    rounds
}

/// The first candidate with the least of a number, and the number.
fn least(candidates: &[Candidate], number: impl Fn(&Candidate) -> f64) -> (usize, f64) {
    let numbers = candidates.iter().map(number).enumerate();
    numbers.fold(
        (0, f64::INFINITY),
        |best, next| {
            if next.1 < best.1 { next } else { best }
        },
    )
}

/// p_t of A5: how likely one of the pool is among the parents, who are drawn with probabilities ∝ exp(J).
pub(super) fn probability_of_drawing(scores: &[f64], wanted: usize) -> f64 {
    fn among(weights: &[f64], drawn: u32, wanted: usize, count: usize) -> f64 {
        let left = || (0..weights.len()).filter(|i| drawn >> i & 1 == 0);
        let total: f64 = left().map(|i| weights[i]).sum();
        let later = |i: usize| match (i == wanted, count) {
            (true, _) => 1.0,
            (false, 1) => 0.0,
            (false, _) => among(weights, drawn | 1 << i, wanted, count - 1),
        };
        left().map(|i| weights[i] / total * later(i)).sum()
    }
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
    among(&weights, 0, wanted, PARENTS)
}
