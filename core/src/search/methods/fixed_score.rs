//! The rounds of methods that rank by the fixed J, with a weight of 1 on every constraint (`eq:baseline_fixed_score`).

use indexmap::IndexMap;
use rand_chacha::ChaCha12Rng;

use super::distinct;
use crate::journal::RoundEvent;
use crate::random::subset;
use crate::search::arena::{Arena, Batch, Edit, Guidance, Halt, RewriteTask};
use crate::study::Rounds;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers, Score, top};

/// λ̄ of every constraint, from the round on in which it enters.
const WEIGHT: f64 = 1.0;

/// Candidates with their scores.
pub(super) type Scores = IndexMap<CandidateId, Score>;

/// Rounds until the search is over. `generation` makes the pool of the next one, from the scores of this one's.
pub(super) async fn generations<'a>(
    arena: &'a Arena,
    mut generation: impl AsyncFnMut(FixedRound<'a>, Scores) -> Result<Vec<CandidateId>, Halt>,
) -> Result<(), Halt> {
    let mut weights = Multipliers::new();
    let mut pool = arena.starts();
    let mut number: Round = 0;
    while let Some(round) = FixedRound::open(arena, number, &mut weights).await? {
        let scores = round.measure(&pool).await?;
        pool = generation(round, scores).await?;
        number += 1;
    }
    Ok(())
}

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
    async fn open(arena: &'a Arena, number: Round, weights: &mut Multipliers) -> Result<Option<Self>, Halt> {
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

    /// A stream of the round's randomness.
    pub(super) fn stream(&self, purpose: &str, index: u64) -> ChaCha12Rng {
        let streams = self.arena.streams();
        streams.stream(purpose, u64::from(self.number), index)
    }

    /// The better of two that are drawn from a pool which stands best first, as far as it has two.
    pub(super) fn winner(&self, purpose: &str, index: u64, pool: &[CandidateId]) -> Option<CandidateId> {
        let drawn = subset(pool.len(), 2, &mut self.stream(purpose, index));
        drawn.first().map(|place| pool[*place])
    }

    /// Measures candidates on the round's batch; there must be some that can be run.
    pub(super) async fn measure(&self, candidates: &[CandidateId]) -> Result<Scores, Halt> {
        let measured = self.arena.measure(candidates, &self.batch).await?;
        if measured.is_empty() {
            return Err(self.arena.nobody_left());
        }
        self.scores(&measured, &self.batch)
    }

    /// [`measure`](Self::measure) for the pool and children. Where there is nothing new, a search until the budget is
    /// spent measures the pool once more.
    pub(super) async fn measure_with(
        &self,
        pool: &[CandidateId],
        children: impl IntoIterator<Item = CandidateId>,
    ) -> Result<Scores, Halt> {
        let expanded = distinct(pool.iter().copied().chain(children));
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
    pub(super) fn scores(&self, candidates: &[CandidateId], batch: &Batch) -> Result<Scores, Halt> {
        self.arena.scores(candidates, batch, &self.limits, &self.weights)
    }

    /// The first `count` of them by J, best first.
    pub(super) fn ranked(&self, scores: &Scores, count: usize) -> Vec<CandidateId> {
        top(self.arena.ranked(scores, |score| score.lagrangian), count)
    }

    /// Closes the round, whose best is the first by J, and returns P_{t+1}, which is `retained`.
    pub(super) async fn close(
        self,
        scores: Scores,
        parents: Vec<CandidateId>,
        retained: Vec<CandidateId>,
    ) -> Result<Vec<CandidateId>, Halt> {
        let best = self.ranked(&scores, 1);
        let event = RoundEvent {
            round: self.number,
            next_multipliers: self.weights.clone(),
            multipliers: self.weights,
            scores,
            parents,
            best,
            retained: retained.clone(),
            batch: None,
        };
        self.arena.close_round(event, &self.batch).await?;
        Ok(retained)
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
