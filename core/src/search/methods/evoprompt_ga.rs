//! EvoPrompt by a genetic algorithm: tournaments, crossovers that are mutated, elitist survival (Guo et al. 2024,
//! Algorithm 2 with tournament selection).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::PrimalDual;
use super::fixed_score::{FixedRound, generations, others_than, paraphrases};
use super::{Effort, Method, Search, check_counts, distinct};
use crate::search::arena::{Arena, Edit, Halt, RewriteTask};
use crate::study::ids::CandidateId;

/// The hyperparameter of EvoPrompt's genetic algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvoPromptGa {
    /// N ≥ 2: candidates retained after a round, and children made in it.
    #[schemars(range(min = 2, max = 1000))]
    pub pool: usize,
}

impl Default for EvoPromptGa {
    fn default() -> Self {
        Self {
            pool: PrimalDual::default().pool,
        }
    }
}

impl Method for EvoPromptGa {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("pool", 2, self.pool)])
    }

    fn at_most(&self, rounds: u32) -> Effort {
        Effort::without_critic(rounds, self.pool)
    }

    fn pool(&self) -> usize {
        self.pool
    }
}

impl Search for EvoPromptGa {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        generations(arena, async move |round, scores| {
            let pool = round.ranked(&scores, usize::MAX);

            // 1. Two parents for each child; the seed alone has paraphrases for a first population.
            let tasks = if pool.len() < 2 {
                paraphrases(&pool, self.pool)
            } else {
                self.crossovers(&round, &pool)
            };
            let children = round.rewrites(&tasks, &round.batch).await?;

            // 2. The best N of parents and children.
            let scores = round.measure_with(&pool, children.into_iter().flatten()).await?;
            let retained = round.ranked(&scores, self.pool);
            let parents = distinct(tasks.iter().flat_map(RewriteTask::parents));
            round.close(scores, parents, retained).await
        })
        .boxed_local()
    }
}

impl EvoPromptGa {
    /// `pool` stands best first: of two that are drawn the first wins.
    fn crossovers(&self, round: &FixedRound<'_>, pool: &[CandidateId]) -> Vec<RewriteTask> {
        let mut tasks: Vec<RewriteTask> = Vec::with_capacity(self.pool);
        for child in 0..self.pool as u64 {
            let parent = round.winner("parents", child, pool);
            let mate = parent.and_then(|parent| round.winner("mates", child, &others_than(pool, parent)));
            if let Some((parent, mate)) = parent.zip(mate) {
                let index = tasks.iter().filter(|task| task.parent == parent).count() as u32;
                tasks.push(RewriteTask::edit(parent, index, Edit::Cross(mate)));
            }
        }
        tasks
    }
}
