//! GEPA: parents from the Pareto front over single examples, rewritten by what a few examples show, and merges of two
//! lineages (Agrawal et al. 2025, arXiv:2507.19457, Algorithms 1–4).

use std::collections::{HashMap, HashSet};

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capo::PrimalDual;
use super::fixed_score::{FixedRound, Scores, generations};
use super::pareto::leads;
use super::{Effort, Method, Search, check_counts, distinct};
use crate::random::{subset, without_replacement};
use crate::search::arena::{Arena, Batch, Edit, Halt, RewriteTask};
use crate::study::ids::CandidateId;

/// Pairs that are drawn in search of one that may be merged.
const DRAWS: u64 = 10;

/// A rewrite, and the text that came of it.
type Proposal = (RewriteTask, CandidateId);

/// GEPA's hyperparameters. A round is a rewrite of each of its parents, or one merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gepa {
    /// k ≥ 1: parents drawn a round.
    #[schemars(range(min = 1, max = 1000))]
    pub parents: usize,
    /// Examples of each workload that a rewrite is made by, and must be better on, ≥ 1.
    #[schemars(range(min = 1, max = 1000))]
    pub minibatch: usize,
    /// Merges that may be accepted; 0 for none.
    #[schemars(range(min = 0, max = 1000))]
    pub merges: u32,
}

impl Default for Gepa {
    fn default() -> Self {
        Self {
            parents: 4,
            minibatch: 3,
            merges: 0,
        }
    }
}

impl Method for Gepa {
    fn check(&self) -> Result<(), String> {
        check_counts(&[
            ("parents", 1, self.parents),
            ("minibatch", 1, self.minibatch),
            ("merges", 0, self.merges as usize),
        ])
    }

    fn at_most(&self, rounds: u32) -> Effort {
        let sizes = PrimalDual {
            children: 1,
            pool: usize::MAX,
            ..PrimalDual::default()
        };
        sizes.at_most(rounds, self.parents)
    }

    /// As many earlier prompts as CAPO takes; a front may be larger, and was measured on all examples.
    fn pool(&self) -> usize {
        PrimalDual::default().pool
    }

    fn takes_batches(&self) -> bool {
        false
    }
}

impl Search for Gepa {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        let mut lineages = Lineages::default();
        // The pool is everyone who was accepted: who leaves the front may come back to it.
        generations(arena, async move |round, scores| {
            let pool: Vec<CandidateId> = scores.keys().copied().collect();
            let front = front_of(&round, &scores);
            let part = arena.part(&round.batch, self.minibatch, round.number);

            // 1. Merge two lineages after a rewrite was accepted; else rewrite some of the front.
            let pair = if lineages.merges < self.merges && lineages.is_due {
                lineages.pair(&round, &front)
            } else {
                None
            };
            let parents = pair.map_or_else(|| self.draw(&round, &front), Vec::from);
            let mut proposals = match pair {
                Some([one, other]) => {
                    let merge = RewriteTask::edit(one, 0, Edit::Merge(other));
                    proposals(&round, &[merge], &round.batch).await?
                }
                None => reflect(&round, &parents, &part).await?,
            };
            proposals.retain(|(_, child)| !pool.contains(child));
            if proposals.is_empty() && round.is_open() {
                arena.measure_again(&parents, &part).await?;
            }

            // 2. What does better on the same few examples is measured on all of them, and stays.
            let accepted = accepted(&round, proposals, &part).await?;
            lineages.note(&accepted);
            let expanded = distinct(
                pool.into_iter()
                    .chain(accepted.into_iter().map(|(_, child)| child)),
            );
            let scores = round.measure(&expanded).await?;
            let pool = scores.keys().copied().collect();
            let retained = front_of(&round, &scores).into_keys().collect();
            round.close(scores, parents, retained).await?;
            Ok(pool)
        })
        .boxed_local()
    }
}

impl Gepa {
    /// Some of the front, each as likely as the number of examples that it leads on.
    fn draw(&self, round: &FixedRound<'_>, front: &IndexMap<CandidateId, usize>) -> Vec<CandidateId> {
        let weights: Vec<f64> = front.values().map(|leads| libm::log(*leads as f64)).collect();
        let drawn = without_replacement(&weights, 1.0, self.parents, &mut round.stream("parents", 0));
        let drawn = drawn.into_iter().filter_map(|place| front.get_index(place));
        drawn.map(|(candidate, _)| *candidate).collect()
    }
}

/// Makes rewrites, told by the failures on the examples of `part`, as far as they give a text.
async fn proposals(
    round: &FixedRound<'_>,
    tasks: &[RewriteTask],
    part: &Batch,
) -> Result<Vec<Proposal>, Halt> {
    let children = round.rewrites(tasks, part).await?;
    let made = tasks.iter().zip(children);
    Ok(made.filter_map(|(task, child)| Some((*task, child?))).collect())
}

/// Rewrites by what the examples of `part` show of parents, but for those of whom they show nothing to be better at.
async fn reflect(
    round: &FixedRound<'_>,
    parents: &[CandidateId],
    part: &Batch,
) -> Result<Vec<Proposal>, Halt> {
    let mut scores = round.scores(parents, part)?;
    scores.retain(|_, score| score.objective < 1.0 || !score.feasible);
    let tasks: Vec<RewriteTask> = scores.keys().map(|parent| RewriteTask::of(*parent, 0)).collect();
    proposals(round, &tasks, part).await
}

/// Those of a higher J on `part` than their parent, or of at least that of the better one of two.
async fn accepted(
    round: &FixedRound<'_>,
    mut proposals: Vec<Proposal>,
    part: &Batch,
) -> Result<Vec<Proposal>, Halt> {
    let family = |(task, child): &Proposal| task.parents().into_iter().chain([*child]);
    let all = distinct(proposals.iter().flat_map(family));
    let measured = round.arena.measure(&all, part).await?;
    let scores = round.scores(&measured, part)?;
    proposals.retain(|(task, child)| {
        let lagrangian = |candidate: &CandidateId| scores.get(candidate).map(|score| score.lagrangian);
        let parents = task.parents();
        let best = parents
            .iter()
            .filter_map(lagrangian)
            .fold(f64::NEG_INFINITY, f64::max);
        lagrangian(child).is_some_and(|child| child > best || (parents.len() > 1 && child >= best))
    });
    Ok(proposals)
}

/// The front over single examples, best first, with the number of examples that each leads on, see [`leads`].
fn front_of(round: &FixedRound<'_>, scores: &Scores) -> IndexMap<CandidateId, usize> {
    let best_first = round.ranked(scores, usize::MAX);
    let by_example = |candidate: &CandidateId| {
        let FixedRound {
            arena,
            batch,
            limits,
            weights,
            ..
        } = round;
        arena.score_by_example(*candidate, batch, limits, weights)
    };
    let values: Vec<Vec<f64>> = best_first.iter().map(by_example).collect();
    let leading = best_first.into_iter().zip(leads(&values));
    leading.filter(|(_, leads)| *leads > 0).collect()
}

/// Who came of whom, and what was merged.
#[derive(Default)]
struct Lineages {
    parents: HashMap<CandidateId, Vec<CandidateId>>,
    tried: HashSet<[CandidateId; 2]>,
    /// How many merges were accepted.
    merges: u32,
    /// Whether the round before accepted a rewrite.
    is_due: bool,
}

impl Lineages {
    fn note(&mut self, accepted: &[Proposal]) {
        let merges = accepted
            .iter()
            .filter(|(task, _)| task.edit != Edit::Improve)
            .count();
        self.is_due = accepted.len() > merges;
        self.merges += merges as u32;
        for (task, child) in accepted {
            let parents = task.parents();
            // A text may come once more of those that came of it.
            let is_older = |parent: &CandidateId| parent == child || self.came_of(*parent, *child);
            if !parents.iter().any(is_older) {
                self.parents.entry(*child).or_insert(parents);
            }
        }
    }

    /// Two of the front, neither of which came of the other, that were not merged yet.
    fn pair(
        &mut self,
        round: &FixedRound<'_>,
        front: &IndexMap<CandidateId, usize>,
    ) -> Option<[CandidateId; 2]> {
        let front: Vec<CandidateId> = front.keys().copied().collect();
        for attempt in 0..DRAWS {
            let [one, other] = subset(front.len(), 2, &mut round.stream("merge", attempt))[..] else {
                return None;
            };
            let (one, other) = (front[one], front[other]);
            let is_related = self.came_of(one, other) || self.came_of(other, one);
            if !is_related && self.tried.insert([one.min(other), one.max(other)]) {
                return Some([one, other]);
            }
        }
        None
    }

    fn came_of(&self, candidate: CandidateId, ancestor: CandidateId) -> bool {
        let mut parents = self.parents.get(&candidate).into_iter().flatten();
        parents.any(|parent| *parent == ancestor || self.came_of(*parent, ancestor))
    }
}
