//! MOPO: NSGA-II over the objective and every cost, thresholds aside (Resendiz and Klinger 2025; Deb et al. 2002).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::PrimalDual;
use super::fixed_score::{FixedRound, Scores, generations, others_than};
use super::pareto::ranks;
use super::{Effort, Method, Search};
use crate::search::arena::{Arena, Edit, Halt, RewriteTask};
use crate::study::ids::CandidateId;
use crate::study::score::Score;

/// MOPO's hyperparameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mopo {
    /// b ≥ 1: offspring of each candidate, mutations and crossovers in turn.
    #[schemars(range(min = 1, max = 1000))]
    pub children: u32,
    /// n ≥ 1: candidates retained after a round.
    #[schemars(range(min = 1, max = 1000))]
    pub pool: usize,
}

impl Default for Mopo {
    fn default() -> Self {
        let PrimalDual { children, pool, .. } = PrimalDual::default();
        Self { children, pool }
    }
}

impl Mopo {
    fn sizes(&self) -> PrimalDual {
        PrimalDual {
            children: self.children,
            pool: self.pool,
            ..PrimalDual::default()
        }
    }
}

impl Method for Mopo {
    fn check(&self) -> Result<(), String> {
        self.sizes().check()
    }

    fn at_most(&self, rounds: u32) -> Effort {
        self.sizes().at_most(rounds, self.pool)
    }

    fn pool(&self) -> usize {
        self.pool
    }
}

impl Search for Mopo {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        generations(arena, async move |round, scores| {
            let pool = survivors(&round, &scores, scores.len());
            let tasks: Vec<RewriteTask> = (0..pool.len())
                .flat_map(|place| self.tasks(&round, &pool, place))
                .collect();
            let children = round.rewrites(&tasks, &round.batch).await?;

            // (R, −C_1, …, −C_m) (`eq:mopo_baseline_vector`): the best fronts, of the last one who stands alone.
            let scores = round.measure_with(&pool, children.into_iter().flatten()).await?;
            let retained = survivors(&round, &scores, self.pool);
            round.close(scores, pool, retained).await
        })
        .boxed_local()
    }
}

impl Mopo {
    /// The offspring of one of the pool, which stands best first: every other one is a crossover with the better of two
    /// others.
    fn tasks(&self, round: &FixedRound<'_>, pool: &[CandidateId], place: usize) -> Vec<RewriteTask> {
        let parent = pool[place];
        let others = others_than(pool, parent);
        let task = |index: u32| {
            let better = round.winner(&format!("mate/{parent}"), u64::from(index), &others);
            match better {
                Some(better) if index % 2 == 1 => RewriteTask::edit(parent, index, Edit::Cross(better)),
                _ => RewriteTask::of(parent, index),
            }
        };
        (0..self.children).map(task).collect()
    }
}

/// The first so many by front, then by crowding distance, then as everywhere.
fn survivors(round: &FixedRound<'_>, scores: &Scores, count: usize) -> Vec<CandidateId> {
    // A cost of 0 is no −0, which is another number in an order of all.
    let gains = |score: &Score| {
        let costs = round
            .limits
            .keys()
            .map(|metric| 0.0 - score.cautious_cost(metric))
            .collect();
        [vec![score.objective], costs].concat()
    };
    let values: Vec<Vec<f64>> = scores.values().map(gains).collect();
    let mut order: Vec<(CandidateId, (usize, f64))> = scores.keys().copied().zip(ranks(&values)).collect();
    order.sort_by(|(a, (front, distance)), (b, (other_front, other_distance))| {
        let by_rank = front.cmp(other_front).then(other_distance.total_cmp(distance));
        by_rank.then_with(|| round.arena.tie(*a).cmp(&round.arena.tie(*b)))
    });
    order
        .into_iter()
        .take(count)
        .map(|(candidate, _)| candidate)
        .collect()
}
