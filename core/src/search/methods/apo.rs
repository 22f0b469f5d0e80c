//! APO (ProTeGi): edits along a textual gradient, paraphrases of them, a beam of the best (Pryzant et al. 2023,
//! Algorithms 1–4).

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fixed_score::{FixedRound, generations};
use super::{Effort, Method, Search, check_counts};
use crate::random::subset;
use crate::search::arena::{Arena, Edit, Halt, RewriteTask};
use crate::study::ids::CandidateId;

pub use super::bandits::Selection;

/// Edits along the gradient of one of the beam.
const EDITS: u32 = 4;
/// Paraphrases of each edit.
const PARAPHRASES: u32 = 2;
/// Successors of one of the beam that take part in the selection.
const SUCCESSORS: usize = 8;

/// APO's hyperparameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Apo {
    /// b ≥ 1: candidates retained after a round.
    #[schemars(range(min = 1, max = 1000))]
    pub beam: usize,
    /// How they are selected.
    pub selection: Selection,
}

impl Default for Apo {
    fn default() -> Self {
        Self {
            beam: 4,
            selection: Selection::Ucb,
        }
    }
}

impl Method for Apo {
    fn check(&self) -> Result<(), String> {
        check_counts(&[("beam", 1, self.beam)])
    }

    fn at_most(&self, rounds: u32) -> Effort {
        Effort::over(rounds, |_, beam| {
            let successors = beam * SUCCESSORS as u64;
            let asked = Effort {
                candidates: successors,
                critiques: beam,
                rewrites: beam * u64::from(EDITS * (1 + PARAPHRASES)),
            };
            (asked, (beam + successors).min(self.beam as u64))
        })
    }

    fn pool(&self) -> usize {
        self.beam
    }

    /// Its bandits say how many examples tell.
    fn takes_batches(&self) -> bool {
        false
    }
}

impl Search for Apo {
    fn search<'a>(&'a self, arena: &'a Arena) -> LocalBoxFuture<'a, Result<(), Halt>> {
        generations(arena, async move |round, scores| {
            let beam: Vec<CandidateId> = scores.into_keys().collect();

            // 1. Successors: edits along the gradient, which is the critic's, and paraphrases of these.
            let successors = successors(&round, &beam).await?;

            // 2. The best b of the beam and them, by the bandit first, which runs some on a part of the examples.
            let chosen = self
                .selection
                .choose(&round, &beam, successors, self.beam)
                .await?;
            let scores = round.measure_with(&beam, chosen).await?;
            let retained = round.ranked(&scores, self.beam);
            round.close(scores, beam, retained).await
        })
        .boxed_local()
    }
}

/// What takes part in the selection beside the beam.
async fn successors(round: &FixedRound<'_>, beam: &[CandidateId]) -> Result<Vec<CandidateId>, Halt> {
    let edits = |parent: &CandidateId| {
        let parent = *parent;
        (0..EDITS).map(move |index| RewriteTask::of(parent, index))
    };
    let tasks: Vec<RewriteTask> = beam.iter().flat_map(edits).collect();
    let edited = round.rewrites(&tasks, &round.batch).await?;

    // A text that came of several parents has its paraphrases once.
    let mut families: IndexMap<CandidateId, CandidateId> = IndexMap::new();
    for (task, child) in tasks.iter().zip(edited) {
        if let Some(child) = child.filter(|child| !beam.contains(child)) {
            families.entry(child).or_insert(task.parent);
        }
    }
    let paraphrases = |child: &CandidateId| {
        let child = *child;
        (0..PARAPHRASES).map(move |index| RewriteTask::edit(child, index, Edit::Paraphrase))
    };
    let tasks: Vec<RewriteTask> = families.keys().flat_map(paraphrases).collect();
    let reworded = round.rewrites(&tasks, &round.batch).await?;
    for (task, child) in tasks.iter().zip(reworded) {
        if let Some(child) = child.filter(|child| !beam.contains(child)) {
            let parent = families[&task.parent];
            families.entry(child).or_insert(parent);
        }
    }

    let mut drawn = Vec::new();
    for (place, parent) in (0..).zip(beam) {
        let family: Vec<CandidateId> = families
            .iter()
            .filter(|(_, of)| *of == parent)
            .map(|(child, _)| *child)
            .collect();
        let mut stream = round.stream("successors", place);
        let some = subset(family.len(), SUCCESSORS, &mut stream);
        drawn.extend(some.into_iter().map(|place| family[place]));
    }
    Ok(drawn)
}
