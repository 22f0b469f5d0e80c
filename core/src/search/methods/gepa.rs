//! GEPA: parents from the Pareto front over single examples, rewritten by what a few examples show, and merges of two
//! lineages (Agrawal et al. 2025, arXiv:2507.19457, Algorithms 1–4).

use std::collections::{HashMap, HashSet};

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fixed_score::FixedRound;
use super::pareto::leads;
use super::{Effort, Method, Search, check_counts};
use crate::random::{subset, without_replacement};
use crate::search::arena::{Arena, Batch, Edit, Halt, RewriteTask};
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Multipliers, Score};

/// Pairs that are drawn in search of one that may be merged.
const DRAWS: u64 = 10;

/// GEPA's hyperparameters. A round is one rewrite or one merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gepa {
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
            minibatch: 3,
            merges: 5,
        }
    }
}

impl Method for Gepa {
    fn check(&self) -> Result<(), String> {
        check_counts(&[
            ("minibatch", 1, self.minibatch),
            ("merges", 0, self.merges as usize),
        ])
    }

    fn at_most(&self, rounds: u32) -> Effort {
        let rounds = u64::from(rounds);
        Effort {
            candidates: 1 + rounds,
            critiques: rounds,
            rewrites: rounds,
        }
    }

    /// A front may be larger: room is kept for as many as CAPO's pool has.
    fn pool(&self) -> usize {
        6
    }
}

impl Search for Gepa {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        async move {
            let mut weights = Multipliers::new();
            let mut front = vec![arena.seed()];
            let mut lineages = Lineages::default();
            let mut number: Round = 0;
            while let Some(round) = FixedRound::open(arena, number, &mut weights).await? {
                front = round.measure(&front).await?;
                let scores = round.scores(&front, &round.batch)?;
                let leads = leads_of(&round, &scores);
                let part = arena.part(&round.batch, self.minibatch, number);

                // 1. Merge two lineages after a rewrite was accepted; else rewrite one of the front.
                let pair = if lineages.merges < self.merges && lineages.is_due {
                    lineages.pair(&round, &leads)
                } else {
                    None
                };
                let parents = pair.map_or_else(|| vec![draw(&round, &leads)], Vec::from);
                let child = match pair {
                    Some([one, other]) => merge(&round, one, other).await?,
                    None => reflect(&round, parents[0], &part).await?,
                };

                // 2. What does better on the same few examples is measured on all of them.
                let child = child.filter(|child| !front.contains(child));
                let accepted = if let Some(child) = child {
                    accepts(&round, &parents, child, &part).await?.then_some(child)
                } else {
                    if round.is_open() {
                        arena.measure_again(&parents, &part).await?;
                    }
                    None
                };
                lineages.note(&parents, accepted);

                // 3. The front with it.
                let expanded: Vec<CandidateId> = front.iter().copied().chain(accepted).collect();
                let expanded = round.measure(&expanded).await?;
                let scores = round.scores(&expanded, &round.batch)?;
                let leads = leads_of(&round, &scores);
                front = round.ranked(&scores);
                front.retain(|candidate| leads[candidate] > 0);
                round.close(scores, parents, front.clone()).await?;
                number += 1;
            }
            Ok(())
        }
        .boxed_local()
    }
}

/// A rewrite by what the examples of `part` show of a parent; none where they show nothing to be better at.
async fn reflect(
    round: &FixedRound<'_>,
    parent: CandidateId,
    part: &Batch,
) -> Result<Option<CandidateId>, Halt> {
    let scores = round.scores(&[parent], part)?;
    let score = &scores[&parent];
    if score.objective >= 1.0 && score.feasible {
        return Ok(None);
    }
    let children = round.rewrites(&[RewriteTask::of(parent, 0)], part).await?;
    Ok(children.into_iter().flatten().next())
}

async fn merge(
    round: &FixedRound<'_>,
    one: CandidateId,
    other: CandidateId,
) -> Result<Option<CandidateId>, Halt> {
    let task = RewriteTask::edit(one, 0, Edit::Merge(other));
    let children = round.rewrites(&[task], &round.batch).await?;
    Ok(children.into_iter().flatten().next())
}

/// Whether a child has a higher J on `part` than its parent, or at least that of the better one of two.
async fn accepts(
    round: &FixedRound<'_>,
    parents: &[CandidateId],
    child: CandidateId,
    part: &Batch,
) -> Result<bool, Halt> {
    let all: Vec<CandidateId> = parents.iter().copied().chain([child]).collect();
    let measured = round.arena.measure(&all, part).await?;
    let mut scores = round.scores(&measured, part)?;
    let Some(score) = scores.shift_remove(&child) else {
        return Ok(false);
    };
    let of_parents = scores.values().map(|score| score.lagrangian);
    let best = of_parents.fold(f64::NEG_INFINITY, f64::max);
    Ok(score.lagrangian > best || (parents.len() > 1 && score.lagrangian >= best))
}

/// One of the front, as likely as the number of examples that it leads on.
fn draw(round: &FixedRound<'_>, leads: &IndexMap<CandidateId, usize>) -> CandidateId {
    let weights: Vec<f64> = leads.values().map(|leads| libm::log(*leads as f64)).collect();
    let mut stream = round
        .arena
        .streams()
        .stream("parents", u64::from(round.number), 0);
    let drawn = without_replacement(&weights, 1.0, 1, &mut stream);
    drawn
        .first()
        .and_then(|place| leads.get_index(*place))
        .map_or_else(|| round.arena.seed(), |(candidate, _)| *candidate)
}

/// On how many examples of the round each candidate leads, see [`leads`].
fn leads_of(round: &FixedRound<'_>, scores: &IndexMap<CandidateId, Score>) -> IndexMap<CandidateId, usize> {
    let best_first = round.ranked(scores);
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
    best_first.into_iter().zip(leads(&values)).collect()
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
    fn note(&mut self, parents: &[CandidateId], accepted: Option<CandidateId>) {
        let is_merge = parents.len() > 1;
        self.is_due = accepted.is_some() && !is_merge;
        self.merges += u32::from(accepted.is_some() && is_merge);
        if let Some(child) = accepted {
            self.parents.entry(child).or_insert_with(|| parents.to_vec());
        }
    }

    /// Two of the front, neither of which came of the other, that were not merged yet.
    fn pair(
        &mut self,
        round: &FixedRound<'_>,
        leads: &IndexMap<CandidateId, usize>,
    ) -> Option<[CandidateId; 2]> {
        let front = leads.iter().filter(|(_, leads)| **leads > 0);
        let front: Vec<CandidateId> = front.map(|(candidate, _)| *candidate).collect();
        for attempt in 0..DRAWS {
            let streams = round.arena.streams();
            let mut stream = streams.stream("merge", u64::from(round.number), attempt);
            let [one, other] = subset(front.len(), 2, &mut stream)[..] else {
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
