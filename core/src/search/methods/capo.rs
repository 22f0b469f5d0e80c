//! CAPO: primal–dual search with a frozen rewriter, sampling of parents and retention of a pool (Algorithm 1).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effort, Method, Search, check_counts};
use crate::journal::RoundEvent;
use crate::random::normal;
use crate::random::without_replacement;
use crate::search::arena::{Arena, Batch, Guidance, Halt};
use crate::search::dual::{DualSettings, DualStep, DualStepName, LARGEST, Residuals};
use crate::study::Rounds;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers, Ranked, Score, top};

/// CAPO's hyperparameters; the defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Capo {
    /// k ≥ 1: parents sampled a round.
    #[schemars(range(min = 1, max = 1000))]
    pub parents: usize,
    /// γ: how strongly the sampling prefers high J.
    pub gamma: f64,
    /// Only the best so many candidates are eligible as parents; all when left out.
    #[schemars(range(min = 1, max = 1000))]
    pub mask: Option<usize>,
    /// How multipliers move.
    pub dual_step: DualStepName,
    /// What every primal–dual method shares.
    #[serde(flatten)]
    pub shared: PrimalDual,
}

impl Default for Capo {
    fn default() -> Self {
        Self {
            parents: 4,
            gamma: 1.0,
            mask: None,
            dual_step: DualStepName::Subgradient,
            shared: PrimalDual::default(),
        }
    }
}

/// Hyperparameters of every primal–dual method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrimalDual {
    /// Children of each parent, ≥ 1.
    #[schemars(range(min = 1, max = 1000))]
    pub children: u32,
    /// k1 ≥ 1: candidates retained after a round.
    #[schemars(range(min = 1, max = 1000))]
    pub pool: usize,
    /// k0 ≥ 1: candidates whose costs move the multipliers.
    #[schemars(range(min = 1, max = 1000))]
    pub best: usize,
    /// σ ≥ 0: standard deviation of normal noise added to the costs that the dual step and the
    /// feasibility gate see. Ranking and final evaluation stay clean.
    pub noise: f64,
    /// The dual step's own.
    #[serde(flatten)]
    pub dual: DualSettings,
}

impl Default for PrimalDual {
    fn default() -> Self {
        Self {
            children: 2,
            pool: 6,
            best: 1,
            noise: 0.0,
            dual: DualSettings::default(),
        }
    }
}

impl PrimalDual {
    pub(super) fn check(&self) -> Result<(), String> {
        check_counts(&[
            ("children", 1, self.children as usize),
            ("pool", 1, self.pool),
            ("best", 1, self.best),
        ])?;
        if !(0.0..=LARGEST).contains(&self.noise) {
            return Err(format!(
                "`noise` must be at least 0 and at most {LARGEST:e}, not {:e}",
                self.noise
            ));
        }
        self.dual.check()
    }

    /// The most the search can ask for when a round has at most `parents` parents.
    pub(super) fn at_most(&self, rounds: u32, parents: usize) -> Effort {
        Effort::over(rounds, |_, pool| {
            let chosen = pool.min(parents as u64);
            let children = chosen * u64::from(self.children);
            let asked = Effort {
                candidates: children,
                critiques: chosen,
                rewrites: children,
            };
            (asked, (pool + children).min(self.pool as u64))
        })
    }
}

impl Method for Capo {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("parents", 1, self.parents), ("mask", 1, self.mask.unwrap_or(1))])?;
        if !(-LARGEST..=LARGEST).contains(&self.gamma) {
            return Err(format!(
                "`gamma` must be a number between -{LARGEST:e} and {LARGEST:e}, not {:e}",
                self.gamma
            ));
        }
        self.shared.check()
    }

    fn at_most(&self, rounds: u32) -> Effort {
        self.shared.at_most(rounds, self.parents)
    }

    fn primal_dual(&self) -> Option<&PrimalDual> {
        Some(&self.shared)
    }
}

impl Search for Capo {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        let choose = move |round: Round, ranked: &[(CandidateId, f64)]| {
            // Optionally among the best only.
            let eligible = &ranked[..self.mask.unwrap_or(ranked.len()).min(ranked.len())];
            sample(arena, round, eligible, self.gamma, self.parents)
        };
        primal_dual(arena, &self.shared, self.dual_step, choose).boxed_local()
    }
}

/// Algorithm 1. `choose` picks the parents of a round from the pool, which it gets best first with
/// the number each candidate is ranked by.
pub(super) async fn primal_dual(
    arena: &Arena,
    settings: &PrimalDual,
    dual_step: DualStepName,
    choose: impl Fn(Round, &[(CandidateId, f64)]) -> Vec<CandidateId>,
) -> Result<(), Halt> {
    let mut step = settings.dual.build(dual_step);
    let mut multipliers = settings.dual.start(&arena.limits(Some(0)));
    let mut pool = arena.starts();
    let mut round: Round = 0;
    while arena.open_round(round, &mut multipliers).await? {
        let (batch, limits) = (arena.batch(round), arena.limits(Some(round)));

        // 1. Evaluate the pool; J under λ_t.
        pool = arena.measure(&pool, &batch).await?;
        if pool.is_empty() {
            return Err(arena.nobody_left());
        }
        let scores = arena.scores(&pool, &batch, &limits, &multipliers)?;
        let ranked = rank(arena, &*step, &scores, &limits, &multipliers);

        // 2. Parents.  3. Children; the expanded pool P_t ∪ children.
        let parents = choose(round, &ranked);
        let guidance = Guidance {
            round,
            batch: &batch,
            shown: &batch,
            limits: &limits,
            multipliers: &multipliers,
            children: settings.children,
        };
        let children = arena.offspring(&parents, guidance).await?;
        let mut expanded = pool.clone();
        expanded.extend(children.into_iter().filter(|child| !pool.contains(child)));
        let expanded = if expanded.len() == pool.len() && matches!(arena.search().rounds, Rounds::Open(_)) {
            arena.measure_again(&pool, &batch).await?
        } else {
            arena.measure(&expanded, &batch).await?
        };
        if expanded.is_empty() {
            return Err(arena.nobody_left());
        }

        // 4. The dual step.  5. P_{t+1}.
        let scores = arena.scores(&expanded, &batch, &limits, &multipliers)?;
        let closing = Closing {
            arena,
            settings,
            round,
            limits: &limits,
            multipliers: &multipliers,
        };
        (pool, multipliers) = closing
            .dual_step_and_retain(&mut *step, &expanded, scores, parents, &batch)
            .await?;
        round += 1;
    }
    Ok(())
}

/// Candidates with the number that each is ranked by, best first.
pub(super) fn rank(
    arena: &Arena,
    step: &dyn DualStep,
    scores: &IndexMap<CandidateId, Score>,
    limits: &Limits,
    multipliers: &Multipliers,
) -> Vec<(CandidateId, f64)> {
    let mut ranked = arena.ranked(scores, |score| step.rank_by(score, limits, multipliers));
    ranked.sort_by(Ranked::order);
    ranked
        .iter()
        .map(|entry| (entry.candidate, entry.rank_by))
        .collect()
}

/// `count` parents of a round without replacement, q_j ∝ exp(γ J_j).
pub(super) fn sample(
    arena: &Arena,
    round: Round,
    eligible: &[(CandidateId, f64)],
    gamma: f64,
    count: usize,
) -> Vec<CandidateId> {
    let scores: Vec<f64> = eligible.iter().map(|(_, score)| *score).collect();
    let mut stream = arena.streams().stream("parents", u64::from(round), 0);
    let chosen = without_replacement(&scores, gamma, count, &mut stream);
    chosen.into_iter().map(|index| eligible[index].0).collect()
}

/// The end of a round.
pub(super) struct Closing<'a> {
    pub(super) arena: &'a Arena,
    pub(super) settings: &'a PrimalDual,
    pub(super) round: Round,
    pub(super) limits: &'a Limits,
    /// Multipliers λ_t of the round.
    pub(super) multipliers: &'a Multipliers,
}

impl Closing<'_> {
    /// The dual step and retention: moves the multipliers, retains a pool out of `expanded` and closes the round: P_{t+1} and λ_{t+1}. The
    /// scores may be of more candidates, which are journaled with the others.
    ///
    /// P_best = top k0 by J under λ_t;  λ ← clip(λ + β (mean cost of P_best − τ)/s, 0, λ_max) (`eq:lambda_update`);
    /// P_{t+1} = top k1 by J under λ_t.
    pub(super) async fn dual_step_and_retain(
        &self,
        step: &mut dyn DualStep,
        expanded: &[CandidateId],
        scores: IndexMap<CandidateId, Score>,
        parents: Vec<CandidateId>,
        batch: &Batch,
    ) -> Result<(Vec<CandidateId>, Multipliers), Halt> {
        let Self {
            arena,
            settings,
            round,
            limits,
            multipliers,
        } = *self;
        let scores = gated(scores, arena, settings, round, limits);
        let mut ranked = arena.ranked(&scores, |score| step.rank_by(score, limits, multipliers));
        ranked.retain(|entry| expanded.contains(&entry.candidate));
        let best = top(ranked.clone(), settings.best);
        let residuals = mean_residuals(&best, &scores, limits, |candidate, place| {
            noise(arena, settings.noise, round, candidate, place)
        });
        let next_multipliers = step.step(multipliers, &residuals);
        let retained = top(ranked, settings.pool);
        let event = RoundEvent {
            round,
            multipliers: multipliers.clone(),
            scores,
            parents,
            best,
            next_multipliers: next_multipliers.clone(),
            retained: retained.clone(),
            batch: None,
        };
        arena.close_round(event, batch).await?;
        Ok((retained, next_multipliers))
    }
}

/// Scores whose feasibility was judged on noisy costs, when there is noise.
fn gated(
    mut scores: IndexMap<CandidateId, Score>,
    arena: &Arena,
    settings: &PrimalDual,
    round: Round,
    limits: &Limits,
) -> IndexMap<CandidateId, Score> {
    if settings.noise > 0.0 {
        for (&candidate, score) in &mut scores {
            score.feasible = limits.iter().enumerate().all(|(place, (metric, limit))| {
                limit
                    .is_satisfied(score.costs[metric] + noise(arena, settings.noise, round, candidate, place))
            });
        }
    }
    scores
}

/// N(0, σ²) for one cost of one candidate in one round, the same wherever it is looked at.
pub(crate) fn noise(arena: &Arena, sigma: f64, round: Round, candidate: CandidateId, place: usize) -> f64 {
    if sigma == 0.0 {
        return 0.0;
    }
    let purpose = format!("noise/{candidate}");
    sigma * normal(&mut arena.streams().stream(&purpose, u64::from(round), place as u64))
}

/// Mean over P_best of (cost + noise − τ)/s, by metric.
fn mean_residuals(
    best: &[CandidateId],
    scores: &IndexMap<CandidateId, Score>,
    limits: &Limits,
    noise: impl Fn(CandidateId, usize) -> f64,
) -> Residuals {
    limits
        .iter()
        .enumerate()
        .map(|(place, (metric, limit))| {
            let residual =
                |id: &CandidateId| limit.residual(scores[id].cautious_cost(metric) + noise(*id, place));
            (
                metric.clone(),
                best.iter().map(residual).sum::<f64>() / best.len() as f64,
            )
        })
        .collect()
}
