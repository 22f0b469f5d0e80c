//! What the methods share that rank by the fixed J, with a weight of 1 on every constraint (`eq:baseline_fixed_score`).

use indexmap::IndexMap;

use crate::journal::RoundEvent;
use crate::search::arena::{Arena, Batch, Edit, Guidance, Halt, RewriteTask};
use crate::study::Rounds;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers, Score, top};

/// λ̄ of every constraint, from the round on in which it enters.
const WEIGHT: f64 = 1.0;

/// A round under way.
pub(super) struct FixedRound<'a> {
    pub(super) arena: &'a Arena,
    pub(super) number: Round,
    pub(super) batch: Batch,
    pub(super) limits: Limits,
    pub(super) weights: Multipliers,
}

impl<'a> FixedRound<'a> {
    /// Opens a round; none when the search is over. `weights` are those of the round before: they move only where a
    /// person moves them.
    pub(super) async fn open(
        arena: &'a Arena,
        number: Round,
        weights: &mut Multipliers,
    ) -> Result<Option<Self>, Halt> {
        for metric in arena.limits(Some(number)).into_keys() {
            weights.entry(metric).or_insert(WEIGHT);
        }
        if !arena.open_round(number, weights).await? {
            return Ok(None);
        }
        Ok(Some(Self {
            arena,
            number,
            batch: arena.batch(number),
            limits: arena.limits(Some(number)),
            weights: weights.clone(),
        }))
    }

    /// Measures candidates on the round's batch; there must be some that can be run.
    pub(super) async fn measure(&self, candidates: &[CandidateId]) -> Result<Vec<CandidateId>, Halt> {
        let measured = self.arena.measure(candidates, &self.batch).await?;
        if measured.is_empty() {
            return Err(self.arena.nobody_left());
        }
        Ok(measured)
    }

    /// [`measure`](Self::measure) for the pool and children. Where there is nothing new, a search until the budget is
    /// spent measures the pool once more.
    pub(super) async fn measure_with(
        &self,
        pool: &[CandidateId],
        children: impl IntoIterator<Item = CandidateId>,
    ) -> Result<Vec<CandidateId>, Halt> {
        let mut expanded = pool.to_vec();
        for child in children {
            if !expanded.contains(&child) {
                expanded.push(child);
            }
        }
        if expanded.len() == pool.len() && self.is_open() {
            self.arena.measure_again(pool, &self.batch).await?;
        }
        self.measure(&expanded).await
    }

    /// Whether the search goes on until its budget is spent.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.arena.search().rounds, Rounds::Open(_))
    }

    /// Makes rewrites, with feedback by the failures on the examples of `shown`, and returns the child of each, if it gave
    /// one. The indices of the tasks say how many rewrites of a parent there are.
    pub(super) async fn rewrites(
        &self,
        tasks: &[RewriteTask],
        shown: &Batch,
    ) -> Result<Vec<Option<CandidateId>>, Halt> {
        let guidance = Guidance {
            round: self.number,
            batch: &self.batch,
            shown,
            limits: &self.limits,
            multipliers: &self.weights,
            children: tasks.iter().map(|task| task.index + 1).max().unwrap_or(1),
        };
        self.arena.rewrites(tasks, guidance).await
    }

    /// Scores on a batch on which all of them were measured.
    pub(super) fn scores(
        &self,
        candidates: &[CandidateId],
        batch: &Batch,
    ) -> Result<IndexMap<CandidateId, Score>, Halt> {
        self.arena.scores(candidates, batch, &self.limits, &self.weights)
    }

    /// All of them by J, best first.
    pub(super) fn ranked(&self, scores: &IndexMap<CandidateId, Score>) -> Vec<CandidateId> {
        top(self.arena.ranked(scores, |score| score.lagrangian), scores.len())
    }

    /// Closes the round, whose best is the first by J. `retained` is P_{t+1}.
    pub(super) async fn close(
        self,
        scores: IndexMap<CandidateId, Score>,
        parents: Vec<CandidateId>,
        retained: Vec<CandidateId>,
    ) -> Result<(), Halt> {
        let best = self.ranked(&scores).into_iter().take(1).collect();
        let event = RoundEvent {
            round: self.number,
            next_multipliers: self.weights.clone(),
            multipliers: self.weights,
            scores,
            parents,
            best,
            retained,
            batch: None,
        };
        self.arena.close_round(event, &self.batch).await
    }
}

/// As many paraphrases of a small pool as it lacks, in turn.
pub(super) fn paraphrases(pool: &[CandidateId], size: usize) -> Vec<RewriteTask> {
    (pool.len()..size)
        .map(|place| {
            let (parent, index) = (pool[place % pool.len()], place / pool.len() - 1);
            RewriteTask::edit(parent, index as u32, Edit::Paraphrase)
        })
        .collect()
}

/// A pool without one of its candidates.
pub(super) fn others_than(pool: &[CandidateId], candidate: CandidateId) -> Vec<CandidateId> {
    pool.iter().copied().filter(|other| *other != candidate).collect()
}
