//! The rounds of a training that stand between two kept checkpoints.

use std::path::{Path, PathBuf};

use capo_core::ids::Round;
use capo_core::templates::RewriteFacts;
use indexmap::IndexMap;
use serde_json::Value;

use super::AlignmentExample;
use crate::checkpoint::{self, Checkpoint, CheckpointError, Identity};
use crate::error::FileError;
use crate::folder::{CHECKPOINTS, GRPO, JOURNAL, PolicyFolder, TRAINING};
use crate::local::Drawing;
use crate::pairs::{Pair, PairsError, Tally, read_run};
use crate::template::{RewriteTemplate, TemplateError};

/// Why the alignment of a training cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum AlignmentError {
    /// A folder that is none of a training by the rounds of a search.
    #[error(
        "{folder} is no training of `capo train grpo`{found}: name the folder that it was given with --out",
        folder = .folder.display(), found = instead(.found.as_deref())
    )]
    NotGrpo {
        /// The folder.
        folder: PathBuf,
        /// What training it is of, as far as one can tell.
        found: Option<String>,
    },
    /// No two checkpoints stand before and after the same round.
    #[error(
        "{folder} has {kept}, and alignment takes two in a row: keep more with `last` under [checkpoints] of the training's settings, 2 or more, and let it run for as many rounds",
        folder = .folder.display(), kept = listed(.steps)
    )]
    NoConsecutive {
        /// The folder of the checkpoints.
        folder: PathBuf,
        /// The steps of those that are there.
        steps: Vec<u64>,
    },
    /// The training's journal is not there.
    #[error(
        "{} is not there, which holds the rewrites and their scores: put it back beside the checkpoints", .0.display()
    )]
    NoJournal(PathBuf),
    /// Two checkpoints, or journal and checkpoints, are of different trainings.
    #[error(
        "{one} and {other} are of different trainings: {}; put back what belongs together", .differences.join("; "),
        one = .one.display(), other = .other.display()
    )]
    OtherTraining {
        /// A checkpoint.
        one: PathBuf,
        /// Another one, or the journal.
        other: PathBuf,
        /// `field: one → other`, the first few.
        differences: Vec<String>,
    },
    /// The journal ends before the checkpoints do.
    #[error(
        "{journal} tells of {rounds} rounds, and {checkpoint} learned from {learned}: put back what belongs together",
        journal = .journal.display(), checkpoint = .checkpoint.display()
    )]
    Behind {
        /// The journal.
        journal: PathBuf,
        /// Rounds that it tells of.
        rounds: usize,
        /// The checkpoint.
        checkpoint: PathBuf,
        /// Rounds that it learned from.
        learned: u64,
    },
    /// The model beside an adapter is not the one that the training had.
    #[error(
        "{model} is not the model that the adapter in {checkpoint} was trained beside: {}; put that model back",
        .differences.join("; "), model = .model.display(), checkpoint = .checkpoint.display()
    )]
    OtherModel {
        /// The checkpoint.
        checkpoint: PathBuf,
        /// The model's folder.
        model: PathBuf,
        /// `field: then → now`.
        differences: Vec<String>,
    },
    /// The rounds between the checkpoints gave nothing to measure.
    #[error(
        "{journal}: none of the {rewrites} children between the kept checkpoints fits the model with its request",
        journal = .journal.display()
    )]
    NoPairs {
        /// The journal.
        journal: PathBuf,
        /// Children that the rounds gave.
        rewrites: usize,
    },
    /// The journal does not read.
    #[error(transparent)]
    Pairs(#[from] PairsError),
    /// A checkpoint does not read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A model's file does not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A pair cannot be written in tokens.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

fn instead(training: Option<&str>) -> String {
    training.map_or_else(String::new, |training| {
        format!(", but of `capo train {training}`")
    })
}

fn listed(steps: &[u64]) -> String {
    let names: Vec<_> = steps.iter().map(u64::to_string).collect();
    match names.len() {
        0 => "no checkpoint".into(),
        1 => format!("one checkpoint, of step {}", names[0]),
        _ => format!("checkpoints of the steps {}", names.join(", ")),
    }
}

/// A round with the policies before and after it.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedRound {
    /// t, from 0.
    pub round: Round,
    /// The checkpoint of step t: the policy that drew the round's rewrites.
    pub before: Checkpoint,
    /// The checkpoint of step t + 1.
    pub after: Checkpoint,
    /// How the round's rewrites were drawn.
    pub drawing: Drawing,
    /// The rewrites that gave a child, by parent, in the journal's order.
    pub families: Vec<Vec<Pair>>,
}

/// A round's pairs in tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoundExamples {
    /// Those that fit the model.
    pub examples: Vec<AlignmentExample>,
    /// How many of these have less feedback in one request than in the journal, as there is no room.
    pub feedback_cut: usize,
    /// Pairs left out because request or child do not fit at all.
    pub too_long: usize,
}

/// The rounds of a training by `capo train grpo` for which the checkpoints before and after are kept, in order; not
/// empty. The training may be under way. The first round has no checkpoint before it.
///
/// # Errors
///
/// The folder is of no such training, has not two checkpoints in a row or no journal, or holds what does not belong
/// together.
pub fn read_rounds(training: &Path) -> Result<Vec<LearnedRound>, AlignmentError> {
    let folder = training.join(CHECKPOINTS);
    if !folder.is_dir() {
        return Err(AlignmentError::NotGrpo {
            folder: training.to_owned(),
            found: None,
        });
    }
    let checkpoints = checkpoint::list(&folder)?;
    for checkpoint in &checkpoints {
        check_training(training, checkpoint)?;
    }
    let consecutive: Vec<_> = checkpoints
        .windows(2)
        .filter(|two| two[0].step() + 1 == two[1].step())
        .collect();
    let (Some(first), Some(last)) = (checkpoints.first(), consecutive.last()) else {
        return Err(AlignmentError::NoConsecutive {
            folder,
            steps: checkpoints.iter().map(Checkpoint::step).collect(),
        });
    };
    for other in &checkpoints[1..] {
        check_same(
            first,
            other.folder(),
            &first.identity().differences(other.identity()),
        )?;
    }
    let journal = training.join(JOURNAL);
    if !journal.exists() {
        return Err(AlignmentError::NoJournal(journal));
    }
    let run = read_run(&journal, &mut Tally::default())?;
    let told = Identity {
        study: stated(&first.identity().study, &run.study.identity()),
        ..first.identity().clone()
    };
    check_same(first, &journal, &first.identity().differences(&told))?;
    if (run.rounds as u64) < last[1].step() {
        return Err(AlignmentError::Behind {
            journal,
            rounds: run.rounds,
            checkpoint: last[1].folder().to_owned(),
            learned: last[1].step(),
        });
    }
    let drawing = drawing(first)?;
    let mut families = by_parent(run.pairs);
    let mut rounds = Vec::new();
    for two in consecutive {
        // So many rounds were learned from before it, which count from 0.
        let round = two[0].step() as Round;
        rounds.push(LearnedRound {
            round,
            before: two[0].clone(),
            after: two[1].clone(),
            drawing,
            families: families.shift_remove(&round).unwrap_or_default(),
        });
    }
    Ok(rounds)
}

fn check_training(training: &Path, checkpoint: &Checkpoint) -> Result<(), AlignmentError> {
    let found = checkpoint
        .identity()
        .settings
        .get(TRAINING)
        .and_then(Value::as_str);
    if found == Some(GRPO) {
        return Ok(());
    }
    Err(AlignmentError::NotGrpo {
        folder: training.to_owned(),
        found: found.map(str::to_owned),
    })
}

fn check_same(one: &Checkpoint, other: &Path, differences: &[String]) -> Result<(), AlignmentError> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(AlignmentError::OtherTraining {
        one: one.folder().to_owned(),
        other: other.to_owned(),
        differences: differences.iter().take(NAMED).cloned().collect(),
    })
}

/// What a journal's study says of all that a training's states: a journal has the defaults too that a study file
/// leaves out.
fn stated(training: &Value, journal: &Value) -> Value {
    match (training, journal) {
        (Value::Null, _) => Value::Null,
        (Value::Object(training), Value::Object(journal)) => {
            let entry = |(key, value): (&String, &Value)| {
                let said = journal.get(key).map_or(Value::Null, |said| stated(value, said));
                (key.clone(), said)
            };
            Value::Object(training.iter().map(entry).collect())
        }
        (Value::Array(training), Value::Array(journal)) if training.len() == journal.len() => {
            let items = training.iter().zip(journal);
            Value::Array(items.map(|(value, said)| stated(value, said)).collect())
        }
        _ => journal.clone(),
    }
}

/// Differences that a message names.
const NAMED: usize = 3;

/// How a training drew its rewrites.
fn drawing(checkpoint: &Checkpoint) -> Result<Drawing, CheckpointError> {
    let written = checkpoint.identity().settings.get("drawing").cloned();
    serde_json::from_value(written.unwrap_or_default()).map_err(|why| CheckpointError::Damaged {
        folder: checkpoint.folder().to_owned(),
        reason: format!("it does not tell how rewrites were drawn: {why}"),
    })
}

/// The pairs of each parent, by round.
fn by_parent(pairs: Vec<Pair>) -> IndexMap<Round, Vec<Vec<Pair>>> {
    let mut families: IndexMap<(Round, String), Vec<Pair>> = IndexMap::new();
    for pair in pairs {
        let key = (pair.place.round, pair.request.prompt.clone());
        families.entry(key).or_default().push(pair);
    }
    let mut rounds: IndexMap<Round, Vec<Vec<Pair>>> = IndexMap::new();
    for ((round, _), family) in families {
        rounds.entry(round).or_default().push(family);
    }
    rounds
}

/// The policies before and after each round.
///
/// # Errors
///
/// They do not read, or the model beside an adapter is not the one that the training had, for which all its weights
/// are read, once.
pub fn policies(rounds: &[LearnedRound]) -> Result<Vec<[PolicyFolder; 2]>, AlignmentError> {
    let mut checked: Vec<PathBuf> = Vec::new();
    let mut policies = Vec::new();
    for round in rounds {
        let both = [&round.before, &round.after].map(|checkpoint| {
            let policy = PolicyFolder::in_checkpoint(checkpoint)?;
            if policy.adapter.is_some() && !checked.contains(&policy.model) {
                check_model(checkpoint, &policy.model)?;
                checked.push(policy.model.clone());
            }
            Ok::<_, AlignmentError>(policy)
        });
        let [before, after] = both;
        policies.push([before?, after?]);
    }
    Ok(policies)
}

/// Refuses a model that is not the one beside which the adapter of a checkpoint was trained.
fn check_model(checkpoint: &Checkpoint, model: &Path) -> Result<(), AlignmentError> {
    let then = checkpoint.identity();
    let Identity { study, settings, .. } = then.clone();
    let mut now = Identity::of_model(model, study, settings)?;
    // A training that began with an adapter names it behind its model.
    if let Some((_, adapter)) = then.weights.split_once(' ') {
        now.weights = format!("{} {adapter}", now.weights);
    }
    let differences = then.differences(&now);
    if differences.is_empty() {
        return Ok(());
    }
    Err(AlignmentError::OtherModel {
        checkpoint: checkpoint.folder().to_owned(),
        model: model.to_owned(),
        differences,
    })
}

impl LearnedRound {
    /// The temperature of log π: that of drawing, 1 when the likeliest token was taken.
    pub fn temperature(&self) -> f64 {
        f64::from(self.drawing.sampling.logprob_temperature())
    }

    /// Children of the round.
    pub fn children(&self) -> usize {
        self.families.iter().map(Vec::len).sum()
    }

    /// The pairs in tokens, requests cut as in the search.
    ///
    /// # Errors
    ///
    /// A text does not encode, or the chat template does not write it as an answer.
    pub fn examples(&self, template: &RewriteTemplate) -> Result<RoundExamples, TemplateError> {
        let mut found = RoundExamples::default();
        for (parent, family) in self.families.iter().enumerate() {
            let baseline = family.iter().map(|pair| pair.child_lagrangian).sum::<f64>() / family.len() as f64;
            for pair in family {
                match self.example(template, parent, pair, baseline) {
                    Ok((example, is_cut)) => {
                        found.examples.push(example);
                        found.feedback_cut += usize::from(is_cut);
                    }
                    Err(TemplateError::Overflow { .. } | TemplateError::Child { .. }) => found.too_long += 1,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    /// A pair in tokens, and whether feedback had to be cut.
    fn example(
        &self,
        template: &RewriteTemplate,
        parent: usize,
        pair: &Pair,
        baseline: f64,
    ) -> Result<(AlignmentExample, bool), TemplateError> {
        let room = self.drawing.max_new_tokens;
        let asked = template.prompt(&pair.request, room)?;
        let child = template.completion(&pair.request, &pair.child)?;
        // What was drawn within the limit may have more tokens when its text is encoded again.
        let left = template.context().saturating_sub(asked.tokens.len());
        if child.len() > left {
            return Err(TemplateError::Child {
                tokens: child.len(),
                room: left,
            });
        }
        let rewritten = RewriteFacts {
            prompt: pair.child.clone(),
            ..pair.request.clone()
        };
        let rewritten = template.prompt(&rewritten, room)?;
        let is_cut = !(asked.left_out.is_nothing() && rewritten.left_out.is_nothing());
        let example = AlignmentExample {
            parent,
            line: pair.place.line,
            request: asked.tokens,
            rewritten: rewritten.tokens,
            child,
            advantage: pair.child_lagrangian - baseline,
            gain: pair.gain(),
        };
        Ok((example, is_cut))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_training_does_not_state_is_no_difference() {
        let training = json!({ "seed": 1, "batch": null, "constraint": [{ "metric": "a" }], "method": {} });
        let same = json!({
            "seed": 1, "batch": 4, "constraint": [{ "metric": "a", "scale": 1.0 }], "method": { "gamma": 1.0 },
        });
        assert_eq!(stated(&training, &same), training);
        for other in [
            json!({ "seed": 2, "constraint": [{ "metric": "a" }], "method": {} }),
            json!({ "seed": 1, "constraint": [{ "metric": "b" }], "method": {} }),
            json!({ "seed": 1, "constraint": [{ "metric": "a" }, { "metric": "b" }], "method": {} }),
            json!({ "seed": 1, "constraint": [{ "metric": "a" }] }),
        ] {
            assert_ne!(stated(&training, &other), training, "{other}");
        }
    }

    #[test]
    fn checkpoints_are_listed_by_number() {
        assert_eq!(listed(&[]), "no checkpoint");
        assert_eq!(listed(&[3]), "one checkpoint, of step 3");
        assert_eq!(listed(&[1, 3]), "checkpoints of the steps 1, 3");
    }
}
