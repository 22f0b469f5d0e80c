// core/src/search/methods/random_search.rs
//! Random search: rewrites any of the best candidates, feasible ones first.

use capo_core::arena::{Arena, Guidance, Halt};
use capo_core::dual::DualSettings;
use capo_core::ids::Round;
use capo_core::journal::RoundEvent;
use capo_core::methods::{Effort, Method, Search};
use capo_core::random::subset;
use capo_core::score::{Score, top};
use capo_core::study::Rounds;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hyperparameters of random search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RandomSearch {
    /// Parents drawn each round, ≥ 1, every subset of the pool equally likely.
    pub parents: usize,
    /// Candidates kept after a round, ≥ 1.
    pub pool: usize,
}

impl Default for RandomSearch {
    fn default() -> Self {
        Self { parents: 2, pool: 4 }
    }
}

impl Method for RandomSearch {
    fn check(&self) -> Result<(), String> {
        if self.parents == 0 || self.pool == 0 {
            return Err("`parents` and `pool` must be at least 1".into());
        }
        Ok(())
    }

    fn at_most(&self, rounds: u32) -> Effort {
        let rewrites = u64::from(rounds) * self.parents.min(self.pool) as u64;
        Effort {
            candidates: 1 + rewrites,
            critiques: rewrites,
            rewrites,
        }
    }
}

impl Search for RandomSearch {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move {
            // Weights of 1 that never move: J is journaled, and the rewriter is shown the weights.
            let mut multipliers = DualSettings::default().start(&arena.limits(Some(0)));
            let mut pool = vec![arena.seed()];
            let mut round: Round = 0;
            while arena.open_round(round, &mut multipliers).await? {
                let (batch, limits) = (arena.batch(round), arena.limits(Some(round)));
                // Whoever cannot be run is discarded: the arena gives back the others.
                pool = arena.measure(&pool, &batch).await?;

                let mut stream = arena.streams().stream("parents", u64::from(round), 0);
                let drawn = subset(pool.len(), self.parents, &mut stream);
                let parents: Vec<_> = drawn.into_iter().map(|index| pool[index]).collect();
                let guidance = Guidance {
                    round,
                    batch: &batch,
                    shown: &batch,
                    limits: &limits,
                    multipliers: &multipliers,
                    children: 1,
                };
                let children = arena.offspring(&parents, guidance).await?;
                let mut expanded = pool.clone();
                expanded.extend(children.into_iter().filter(|child| !pool.contains(child)));
                let nothing_new = expanded.len() == pool.len();
                let expanded = if nothing_new && matches!(arena.search().rounds, Rounds::Open(_)) {
                    arena.measure_again(&pool, &batch).await?
                } else {
                    arena.measure(&expanded, &batch).await?
                };
                if expanded.is_empty() {
                    return Err(arena.nobody_left());
                }

                let scores = arena.scores(&expanded, &batch, &limits, &multipliers)?;
                // Objectives lie in [0, 1]: no infeasible candidate comes before a feasible one.
                let feasible_first = |score: &Score| score.objective - if score.feasible { 0.0 } else { 2.0 };
                let retained = top(arena.ranked(&scores, feasible_first), self.pool);
                let event = RoundEvent {
                    round,
                    next_multipliers: multipliers.clone(),
                    multipliers: multipliers.clone(),
                    scores,
                    parents,
                    best: retained[..1].to_vec(),
                    retained: retained.clone(),
                    batch: None,
                };
                arena.close_round(event, &batch).await?;
                (pool, round) = (retained, round + 1);
            }
            Ok(())
        }
        .boxed_local()
    }
}
