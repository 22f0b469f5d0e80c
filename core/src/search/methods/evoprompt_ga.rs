//! EvoPrompt by a genetic algorithm: tournaments, crossovers that are mutated, elitist survival (Guo et al. 2024,
//! Algorithm 2 with tournament selection).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::PrimalDual;
use super::fixed_score::{FixedRound, others_than, paraphrases};
use super::{Effort, Method, Search, check_counts};
use crate::random::subset;
use crate::search::arena::{Arena, Edit, Halt, RewriteTask};
use crate::study::ids::{CandidateId, Round};
use crate::study::score::Multipliers;

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
        let PrimalDual { pool, .. } = PrimalDual::default();
        Self { pool }
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
        async move {
            let mut weights = Multipliers::new();
            let mut pool = arena.starts();
            let mut number: Round = 0;
            while let Some(round) = FixedRound::open(arena, number, &mut weights).await? {
                pool = round.measure(&pool).await?;
                pool = round.ranked(&round.scores(&pool, &round.batch)?);

                // 1. Two parents for each child; the seed alone has paraphrases for a first population.
                let tasks = if pool.len() < 2 {
                    paraphrases(&pool, self.pool)
                } else {
                    self.crossovers(&round, &pool)
                };
                let children = round.rewrites(&tasks, &round.batch).await?;

                // 2. The best N of parents and children.
                let expanded = round.measure_with(&pool, children.into_iter().flatten()).await?;
                let scores = round.scores(&expanded, &round.batch)?;
                pool = round.ranked(&scores);
                pool.truncate(self.pool);
                round.close(scores, parents_of(&tasks), pool.clone()).await?;
                number += 1;
            }
            Ok(())
        }
        .boxed_local()
    }
}

impl EvoPromptGa {
    /// `pool` stands best first: of two that are drawn the first wins.
    fn crossovers(&self, round: &FixedRound<'_>, pool: &[CandidateId]) -> Vec<RewriteTask> {
        let mut tasks: Vec<RewriteTask> = Vec::with_capacity(self.pool);
        for child in 0..self.pool as u64 {
            let streams = round.arena.streams();
            let winner = |purpose: &str, among: &[CandidateId]| {
                let mut stream = streams.stream(purpose, u64::from(round.number), child);
                subset(among.len(), 2, &mut stream)
                    .first()
                    .map(|place| among[*place])
            };
            let parent = winner("parents", pool);
            let mate = parent.and_then(|parent| winner("mates", &others_than(pool, parent)));
            if let Some((parent, mate)) = parent.zip(mate) {
                let index = tasks.iter().filter(|task| task.parent == parent).count() as u32;
                tasks.push(RewriteTask::edit(parent, index, Edit::Cross(mate)));
            }
        }
        tasks
    }
}

/// Of whom something was made, each once.
fn parents_of(tasks: &[RewriteTask]) -> Vec<CandidateId> {
    let mut parents: Vec<CandidateId> = Vec::new();
    for parent in tasks.iter().flat_map(RewriteTask::parents) {
        if !parents.contains(&parent) {
            parents.push(parent);
        }
    }
    parents
}
