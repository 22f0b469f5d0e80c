//! Documents about trainings of the learned rewriter, and how they are asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::client::requests;
use crate::paths::{of_project, part};
use crate::{Moment, Title};

/// What a rewriter learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TrainingKind {
    /// The rewrites of earlier runs that raised the Lagrangian score.
    Sft,
    /// The rewards of its own rewrites, while it searches.
    Grpo,
}

/// Where a training stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TrainingState {
    /// It waits for its turn.
    Queued,
    /// A process works on it.
    Running,
    /// Somebody, or its budget, stopped it.
    Stopped,
    /// It went its whole way.
    Done,
    /// It could not begin or go on; `error` says why.
    Failed,
}

/// The policy that a training starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "from", rename_all = "lowercase", deny_unknown_fields)]
pub enum TrainingStart {
    /// A model on the server's machine.
    Model {
        /// Its name among those that the list of trainings has.
        name: String,
    },
    /// What an earlier training of the project came to, as one whole model.
    Training {
        /// Id of that training.
        training: String,
        /// Step of the checkpoint; the one that counts unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// A small model with random weights, whose tokenizer is learned from the journals of `runs`. What is left out is as in
    /// `capo rewriter new`.
    Fresh {
        /// Tokens of the vocabulary at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 262, maximum = 65_536))]
        vocabulary: Option<u32>,
        /// Width of the residual stream.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4_096))]
        hidden: Option<u32>,
        /// Number of layers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 64))]
        layers: Option<u32>,
        /// Longest sequence in tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65_536))]
        context: Option<u32>,
    },
}

/// A training as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrainingShown {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Name of its project.
    pub project: String,
    /// Its name for people.
    pub name: String,
    /// What it learns from.
    pub kind: TrainingKind,
    /// Name of the member who started or last resumed it, and on whose account it asks models.
    pub started_by: String,
    /// Where it stands.
    pub state: TrainingState,
    /// Whether it was told to stop and has not yet.
    pub stopping: bool,
    /// Why it could not begin or go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it starts from.
    pub start: TrainingStart,
    /// Ids of the runs whose journals it learns from.
    pub runs: Vec<String>,
    /// Id of the run that is its search, where it learns from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// When it was added.
    pub created_at: Moment,
    /// When its log or its state last changed.
    pub touched_at: Moment,
    /// Lines of its log.
    pub lines: u64,
}

/// A training with what it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrainingDetail {
    /// The training.
    #[serde(flatten)]
    pub training: TrainingShown,
    /// Its study, as TOML.
    pub study: String,
    /// SHA-256 of the data files that its study names, by path.
    pub files: BTreeMap<String, String>,
    /// Its settings, as TOML.
    pub settings: String,
    /// Whether all weights learn, not an adapter.
    pub full: bool,
}

/// The trainings of a project, and what another one may start from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrainingList {
    /// Those that were added last first.
    pub trainings: Vec<TrainingShown>,
    /// Names of the models on the server's machine.
    pub models: Vec<String>,
}

/// A training that is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTraining {
    /// Its name for people.
    pub name: Title,
    /// What it learns from.
    pub kind: TrainingKind,
    /// What it starts from.
    pub start: TrainingStart,
    /// Ids of runs of the project: `sft` learns from their journals, and so does the tokenizer of a fresh model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// Its study, as TOML; that of the first of `runs` unless stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// SHA-256 of the data files that the study names, by path below its folder, which the project has already; those of the
    /// first of `runs` unless stated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Its settings, as the TOML of `capo train --settings`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Whether all weights learn, not an adapter.
    #[serde(default)]
    pub full: bool,
}

/// What a training is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
pub enum TrainingOrder {
    /// End as soon as what it learned is kept.
    Stop,
    /// Go on where the last checkpoint stands.
    Resume,
}

/// A checkpoint of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointShown {
    /// Steps made before it was written; of `grpo` rounds learned from.
    pub step: u64,
    /// Mean negative log-likelihood of the held-out rewrites, in nats a token, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Mean reward of the round's rewrites, of `grpo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Whether it is the one that counts: of `sft` the best, of `grpo` the last.
    pub counts: bool,
    /// Whether it is an adapter, not a whole model.
    pub is_adapter: bool,
    /// Bytes of its policy.
    pub bytes: u64,
}

/// The name of the event of a training's stream that has a [`TrainingShown`]: at first, and whenever something about it
/// changes. Lines of its log come as [`event::LINE`](crate::event::LINE).
pub const TRAINING_EVENT: &str = "training";

/// The path of a training's events from line `from` of its log on, as Server-Sent Events.
pub fn training_events_path(project: &str, training: &str, from: u64) -> String {
    of_training(project, training, &format!("/events?from={from}"))
}

/// The path of a checkpoint's policy, as a tar archive.
pub fn checkpoint_path(project: &str, training: &str, step: u64) -> String {
    of_training(project, training, &format!("/checkpoints/{step}"))
}

/// What a study writes as `model` of the provider `local` to have a training of the server rewrite its prompts.
pub fn rewriter_model(training: &str) -> String {
    format!("{REWRITER}{training}")
}

/// What [`rewriter_model`] begins with.
pub const REWRITER: &str = "training:";

requests! {
    /// The trainings of a project.
    trainings(project: &str): Get of_project(project, "/trainings") => TrainingList;
    /// Starts a training.
    add_training(project: &str, new: &NewTraining):
        Post of_project(project, "/trainings"), new => TrainingShown;
    /// A training with what it was told.
    training(project: &str, training: &str): Get of_training(project, training, "") => TrainingDetail;
    /// Tells a training to do something.
    order_training(project: &str, training: &str, order: TrainingOrder):
        Post of_training(project, training, "/orders"), &order => TrainingShown;
    /// Deletes a training that is not under way, with all its checkpoints.
    delete_training(project: &str, training: &str): Delete of_training(project, training, "") => ();
    /// The checkpoints of a training, by step.
    checkpoints(project: &str, training: &str):
        Get of_training(project, training, "/checkpoints") => Vec<CheckpointShown>;
}

fn of_training(project: &str, training: &str, rest: &str) -> String {
    of_project(project, &format!("/trainings/{}{rest}", part(training)))
}
