//! Best-arm identification with bandits: which of many candidates are measured on all examples.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fixed_score::FixedRound;
use crate::search::arena::Halt;
use crate::study::ids::CandidateId;
use crate::study::score::{Score, top};

/// The share of all examples that a bandit may run at most, over all candidates.
const SHARE: f64 = 0.5;
/// Steps in which upper confidence bounds measure a candidate on all examples.
const STEPS: usize = 8;

/// How the best candidates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// Each is measured on all examples.
    All,
    /// Those with the highest upper confidence bounds are measured on more examples.
    Ucb,
    /// The worst one is dropped after each phase, and the others are measured on more examples.
    SuccessiveRejects,
    /// The worse half is dropped after each phase, and the others are measured on more examples.
    SuccessiveHalving,
}

impl Selection {
    /// The newcomers that may be among the best `count` of them and of a pool which is measured on all examples.
    pub(super) async fn choose(
        self,
        round: &FixedRound<'_>,
        pool: &[CandidateId],
        newcomers: Vec<CandidateId>,
        count: usize,
    ) -> Result<Vec<CandidateId>, Halt> {
        if self == Self::All || newcomers.is_empty() {
            return Ok(newcomers);
        }
        let all: Vec<CandidateId> = pool.iter().chain(&newcomers).copied().collect();
        let mut arms = Arms {
            round,
            examples: round.batch.largest(),
            scores: IndexMap::new(),
            run: HashMap::new(),
        };
        let mut best = if self == Self::Ucb {
            arms.by_upper_bounds(&all, count).await?
        } else {
            let mut left = all;
            for (examples, keeps) in self.phases(left.len(), count, arms.examples) {
                arms.pull(&left, examples).await?;
                left = arms.best(&left, keeps);
            }
            left
        };
        best.retain(|candidate| newcomers.contains(candidate));
        Ok(best)
    }

    /// Phases of successive rejects (Audibert et al. 2010) or successive halving (Karnin et al. 2013): on how many examples
    /// each candidate has been measured at the end of one, and how many go on.
    fn phases(self, arms: usize, count: usize, examples: usize) -> Vec<(usize, usize)> {
        let budget = SHARE * (arms * examples) as f64;
        let harmonic: f64 = 0.5 + (2..=arms).map(|arm| 1.0 / arm as f64).sum::<f64>();
        let halvings = f64::from(arms.next_power_of_two().trailing_zeros());
        let (mut phases, mut left, mut run) = (Vec::new(), arms, 0.0_f64);
        while left > count {
            let keeps = if self == Self::SuccessiveRejects {
                run = (budget - arms as f64) / harmonic / left as f64;
                left - 1
            } else {
                run += budget / halvings / left as f64;
                left.div_ceil(2).max(count)
            };
            phases.push(((run.ceil() as usize).clamp(1, examples.max(1)), keeps));
            left = keeps;
        }
        phases
    }
}

/// Candidates, each measured on the first so many examples of the round's order.
struct Arms<'a> {
    round: &'a FixedRound<'a>,
    /// Examples of the workload that has the most of them.
    examples: usize,
    scores: IndexMap<CandidateId, Score>,
    run: HashMap<CandidateId, usize>,
}

impl Arms<'_> {
    /// Measures candidates on so many examples; who cannot be run has no score.
    async fn pull(&mut self, candidates: &[CandidateId], examples: usize) -> Result<(), Halt> {
        let round = self.round;
        let part = round.arena.beginning(&round.batch, examples, round.number);
        let measured = self.round.arena.measure(candidates, &part).await?;
        for candidate in candidates {
            self.run.insert(*candidate, examples);
            self.scores.shift_remove(candidate);
        }
        self.scores.extend(self.round.scores(&measured, &part)?);
        Ok(())
    }

    /// The best so many of some by what each was measured on.
    fn best(&self, of: &[CandidateId], count: usize) -> Vec<CandidateId> {
        let mut ranked = self.round.arena.ranked(&self.scores, |score| score.lagrangian);
        ranked.retain(|entry| of.contains(&entry.candidate));
        top(ranked, count)
    }

    /// UCB (Auer et al. 2002): the `count` highest bounds at a time are measured a step further.
    async fn by_upper_bounds(&mut self, all: &[CandidateId], count: usize) -> Result<Vec<CandidateId>, Halt> {
        let step = self.examples.div_ceil(STEPS).max(1);
        self.pull(all, step).await?;
        let (mut pulls, most) = (all.len(), SHARE * (STEPS * all.len()) as f64);
        while (pulls as f64) < most {
            let run = &self.run;
            let bound = |entry: &CandidateId, lagrangian: f64| {
                let steps = run[entry] as f64 / step as f64;
                lagrangian + (libm::log(pulls as f64) / steps).sqrt()
            };
            let mut open = self.round.arena.ranked(&self.scores, |score| score.lagrangian);
            open.retain(|entry| run[&entry.candidate] < self.examples);
            for entry in &mut open {
                entry.rank_by = bound(&entry.candidate, entry.rank_by);
            }
            let mut further: BTreeMap<usize, Vec<CandidateId>> = BTreeMap::new();
            for candidate in top(open, count) {
                let examples = (run[&candidate] + step).min(self.examples);
                further.entry(examples).or_default().push(candidate);
            }
            if further.is_empty() {
                break;
            }
            for (examples, candidates) in further {
                pulls += candidates.len();
                self.pull(&candidates, examples).await?;
            }
        }
        Ok(self.best(all, count))
    }
}

#[cfg(test)]
mod tests {
    use super::Selection;

    #[test]
    fn phases_grow_and_stay_within_the_share() {
        for selection in [Selection::SuccessiveRejects, Selection::SuccessiveHalving] {
            for (arms, count, examples) in [(36, 4, 200), (12, 4, 64), (5, 1, 1000), (9, 8, 100)] {
                let phases = selection.phases(arms, count, examples);
                assert_eq!(phases.last().map(|(_, keeps)| *keeps), Some(count));
                let (mut left, mut before, mut rollouts) = (arms, 0, 0);
                for (run, keeps) in phases {
                    assert!(run >= before && run <= examples && keeps < left);
                    rollouts += left * (run - before);
                    (left, before) = (keeps, run);
                }
                let most = arms * examples / 2 + arms * arms;
                assert!(rollouts <= most, "{selection:?}: {rollouts} of {most}");
            }
        }
        assert_eq!(
            Selection::SuccessiveHalving.phases(8, 1, 24),
            [(4, 4), (12, 2), (24, 1)]
        );
        assert!(Selection::SuccessiveRejects.phases(4, 4, 24).is_empty());
    }
}
