//! DCAPO: the primal–dual search of a rewriter that learns from it, with admission to the pool by line (Algorithm 2).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::{Closing, PrimalDual, rank, sample};
use super::{Effort, Method, Search, check_counts, distinct};
use crate::search::arena::{Arena, Edit, Family, Guidance, Halt, RewriteOutcome, RewriteTask};
use crate::search::dual::DualStepName;
use crate::study::Rounds;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::Score;

/// DCAPO's hyperparameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dcapo {
    /// B ≥ 1: parents sampled a round.
    #[schemars(range(min = 1, max = 1000))]
    pub parents: usize,
    /// γ: how strongly the sampling prefers high J; 0 draws parents uniformly.
    pub gamma: f64,
    /// D ≥ 1: each child is rewritten again by the evidence on it until there are so many.
    #[schemars(range(min = 1, max = 1000))]
    pub depth: u32,
    /// How multipliers move.
    pub dual_step: DualStepName,
    /// What every primal–dual method shares; `children` is G ≥ 1: the siblings of each parent and depth.
    #[serde(flatten)]
    pub shared: PrimalDual,
}

impl Default for Dcapo {
    fn default() -> Self {
        Self {
            parents: 4,
            gamma: 1.0,
            depth: 1,
            dual_step: DualStepName::Subgradient,
            shared: PrimalDual::default(),
        }
    }
}

impl Method for Dcapo {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("parents", 1, self.parents), ("depth", 1, self.depth as usize)])?;
        if !self.gamma.is_finite() {
            return Err(format!("`gamma` must be a finite number, not {}", self.gamma));
        }
        self.shared.check()
    }

    fn at_most(&self, rounds: u32) -> Effort {
        Effort::over(rounds, |round, pool| {
            let parents = pool.min(self.parents as u64);
            let lines = parents * u64::from(self.shared.children);
            let rewrites = lines * u64::from(self.depth);
            let asked = Effort {
                candidates: rewrites,
                rewrites,
                // The seed is first rewritten without feedback.
                critiques: if round == 0 { 0 } else { parents } + rewrites - lines,
            };
            (asked, (pool + lines).min(self.shared.pool as u64))
        })
    }

    fn learns(&self) -> bool {
        true
    }

    fn primal_dual(&self) -> Option<&PrimalDual> {
        Some(&self.shared)
    }
}

impl Search for Dcapo {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move {
            let mut step = self.shared.dual.build(self.dual_step);
            let mut multipliers = self.shared.dual.start(&arena.limits(Some(0)));
            let mut pool = arena.starts();
            let mut round: Round = 0;
            while arena.open_round(round, &mut multipliers).await? {
                let (batch, limits) = (arena.batch(round), arena.limits(Some(round)));

                // 1. Evaluate the pool; sample B parents under λ_t.
                pool = arena.measure(&pool, &batch).await?;
                if pool.is_empty() {
                    return Err(arena.nobody_left());
                }
                let scores = arena.scores(&pool, &batch, &limits, &multipliers)?;
                let ranked = rank(arena, &*step, &scores, &limits, &multipliers);
                let parents = sample(arena, round, &ranked, self.gamma, self.parents);

                // 2. G lines of D rewrites of each, measured on the same examples.
                let guidance = Guidance {
                    round,
                    batch: &batch,
                    shown: &batch,
                    limits: &limits,
                    multipliers: &multipliers,
                    children: self.shared.children,
                };
                let lines = self.lines(arena, &parents, guidance).await?;

                // 3. Admit the best child of each line, the top k1 of them.
                let made = lines.iter().flatten().filter_map(|link| link.child);
                let everyone = distinct(pool.iter().copied().chain(made));
                if everyone.len() == pool.len() && matches!(arena.search().rounds, Rounds::Open(_)) {
                    pool = arena.measure_again(&pool, &batch).await?;
                }
                let scores = arena.scores(&everyone, &batch, &limits, &multipliers)?;
                let ranked = rank(arena, &*step, &scores, &limits, &multipliers);
                let admitted = self.admitted(&lines, &ranked);
                let expanded = distinct(pool.iter().copied().chain(admitted));

                // 4. Dual step and retention as in CAPO.  5. The rewriter learns.
                let families = families(arena, round, &parents, &lines, &scores);
                let closing = Closing {
                    arena,
                    settings: &self.shared,
                    round,
                    limits: &limits,
                    multipliers: &multipliers,
                };
                (pool, multipliers) = closing
                    .dual_step_and_retain(&mut *step, &expanded, scores, parents, &batch)
                    .await?;
                arena.learn(round, &families).await?;
                round += 1;
            }
            Ok(())
        }
        .boxed_local()
    }
}

/// One rewrite of a line.
#[derive(Debug, Clone, Copy)]
struct Link {
    task: RewriteTask,
    child: Option<CandidateId>,
}

impl Dcapo {
    /// The rewrites of each line by depth (`eq:dcapo_policy`, `eq:dcapo_rewrite`), the lines of one parent together.
    async fn lines(
        &self,
        arena: &Arena,
        parents: &[CandidateId],
        guidance: Guidance<'_>,
    ) -> Result<Vec<Vec<Link>>, Halt> {
        let siblings = self.shared.children;
        let mut lines: Vec<Vec<Link>> = vec![Vec::new(); parents.len() * siblings as usize];
        for depth in 0..self.depth {
            let tasks: Vec<RewriteTask> = lines
                .iter()
                .enumerate()
                .map(|(line, links)| {
                    let draft = links.iter().rev().find_map(|link| link.child);
                    RewriteTask {
                        parent: parents[line / siblings as usize],
                        index: depth * siblings + line as u32 % siblings,
                        draft,
                        blind: guidance.round == 0 && draft.is_none(),
                        edit: Edit::Improve,
                    }
                })
                .collect();
            let children = arena.rewrites(&tasks, guidance).await?;
            let measured = distinct(children.iter().copied().flatten());
            let measured = arena.measure(&measured, guidance.batch).await?;
            for (line, (task, child)) in lines.iter_mut().zip(tasks.into_iter().zip(children)) {
                let child = child.filter(|child| measured.contains(child));
                line.push(Link { task, child });
            }
        }
        Ok(lines)
    }

    /// Admission: the best child of each line, and of these the top k1. `ranked` is best first.
    fn admitted(&self, lines: &[Vec<Link>], ranked: &[(CandidateId, f64)]) -> Vec<CandidateId> {
        let place = |child: &CandidateId| ranked.iter().position(|(candidate, _)| candidate == child);
        let best = |line: &Vec<Link>| line.iter().filter_map(|link| link.child).min_by_key(place);
        let mut of_lines = distinct(lines.iter().filter_map(best));
        of_lines.sort_by_key(place);
        of_lines.truncate(self.shared.pool);
        of_lines
    }
}

/// What the rewriter learns from.
fn families(
    arena: &Arena,
    round: Round,
    parents: &[CandidateId],
    lines: &[Vec<Link>],
    scores: &IndexMap<CandidateId, Score>,
) -> Vec<Family> {
    let lagrangian = |candidate: &CandidateId| scores[candidate].lagrangian;
    let family = |parent: &CandidateId| {
        let mut attempts: Vec<(u32, RewriteOutcome)> = Vec::new();
        for line in lines {
            for (depth, link) in (1..).zip(line).filter(|(_, link)| link.task.parent == *parent) {
                let attempt = RewriteOutcome {
                    seed: arena.rewrite_seed(round, link.task),
                    depth,
                    child: link.child.map(|child| (child, lagrangian(&child))),
                };
                attempts.push((link.task.index, attempt));
            }
        }
        attempts.sort_by_key(|(index, _)| *index);
        Family {
            parent: *parent,
            lagrangian: lagrangian(parent),
            attempts: attempts.into_iter().map(|(_, attempt)| attempt).collect(),
        }
    };
    parents.iter().map(family).collect()
}
