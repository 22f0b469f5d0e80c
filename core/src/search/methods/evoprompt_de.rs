//! EvoPrompt by differential evolution: each candidate against a child made with two donors and the best (Guo et al.
//! 2024, Algorithm 3).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::PrimalDual;
use super::fixed_score::{FixedRound, generations, others_than, paraphrases};
use super::{Effort, Method, Search, check_counts};
use crate::random::without_replacement;
use crate::search::arena::{Arena, Edit, Halt, RewriteTask};
use crate::study::ids::CandidateId;

/// The hyperparameter of EvoPrompt's differential evolution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvoPromptDe {
    /// N ≥ 3: candidates, each of which has one child a round.
    #[schemars(range(min = 3, max = 1000))]
    pub pool: usize,
}

impl Default for EvoPromptDe {
    fn default() -> Self {
        Self {
            pool: PrimalDual::default().pool,
        }
    }
}

impl Method for EvoPromptDe {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("pool", 3, self.pool)])
    }

    fn at_most(&self, rounds: u32) -> Effort {
        Effort::without_critic(rounds, self.pool)
    }

    fn pool(&self) -> usize {
        self.pool
    }
}

impl Search for EvoPromptDe {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        generations(arena, async move |round, scores| {
            let pool = round.ranked(&scores, usize::MAX);

            // 1. A child of each, of two others and of the best; too few have paraphrases for a population.
            let evolves = pool.len() >= 3;
            let tasks = if evolves {
                differences(&round, &pool)
            } else {
                paraphrases(&pool, self.pool)
            };
            let children = round.rewrites(&tasks, &round.batch).await?;
            let made = children.iter().copied().flatten();
            let scores = round.measure_with(&pool, made).await?;

            // 2. A child takes its parent's place where its J is higher.
            let mut retained = round.ranked(&scores, usize::MAX);
            if evolves {
                let lagrangian =
                    |candidate: &CandidateId| scores.get(candidate).map(|score| score.lagrangian);
                let winner = |(task, child): (&RewriteTask, Option<CandidateId>)| {
                    let better = child.filter(|child| lagrangian(child) > lagrangian(&task.parent));
                    better.unwrap_or(task.parent)
                };
                let winners: Vec<CandidateId> = tasks.iter().zip(children).map(winner).collect();
                retained.retain(|candidate| winners.contains(candidate));
            }
            retained.truncate(self.pool);
            round.close(scores, pool, retained).await
        })
        .boxed_local()
    }
}

/// The child that each of the pool, which stands best first, is to have.
fn differences(round: &FixedRound<'_>, pool: &[CandidateId]) -> Vec<RewriteTask> {
    let task = |(place, parent): (u64, &CandidateId)| {
        let others = others_than(pool, *parent);
        let mut stream = round.stream("donors", place);
        let drawn = without_replacement(&vec![0.0; others.len()], 1.0, 2, &mut stream);
        let donors = [others[drawn[0]], others[drawn[1]], pool[0]];
        RewriteTask::edit(*parent, 0, Edit::Differ(donors))
    };
    (0..).zip(pool).map(task).collect()
}
