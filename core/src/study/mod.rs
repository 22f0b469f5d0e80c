//! The study: one problem with its settings, as written in a study file.
//!
//! The types here are the schema of the file. What belongs to a workload, a model or a method is
//! kept as an opaque table and parsed by the crate or file that knows it.

pub mod budget;
pub mod certificate;
mod error;
pub mod estimate;
mod identity;
pub mod ids;
pub mod metric;
mod numbers;
mod parse;
pub mod score;
mod setting;
mod suggest;
mod text_checks;
pub mod usage;
mod wording;
pub mod workload;

use budget::Budget;
use certificate::Confirm;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::llm::Role;

pub use error::StudyError;
pub use identity::differences;
pub(crate) use identity::{canonical_hash, hash};
pub(crate) use numbers::numbers;
pub use parse::Format;
pub use parse::{LARGEST_BATCH_GROWTH, LARGEST_CAUTION, LARGEST_CHOICE_PROBABILITY};
pub(crate) use score::LARGEST_THRESHOLD;
pub use setting::Setting;
pub use suggest::nearest;
pub use wording::{at_fault, read_table, read_toml, suggest, told_of_toml};

/// A table whose keys belong to the named kind.
pub type Table = Map<String, Value>;

/// One problem with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name, method, seed and rounds.
    pub study: Search,
    /// What a prompt is measured on: `kind` and the keys of that kind.
    pub workload: Table,
    /// The prompt the search starts from.
    pub prompt: Prompt,
    /// What to maximise.
    pub objective: Objective,
    /// What to keep below thresholds.
    #[serde(default, rename = "constraint", skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Which model serves each role: `provider`, `model` and the keys of that provider. Roles not
    /// named fall back: critic → rewriter → agent; user, judge → agent; embeddings to nobody.
    pub models: IndexMap<Role, Value>,
    /// The chosen method's hyperparameters; the paper's where left out.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub method: Table,
    /// What the rewriter is told about a parent.
    #[serde(default)]
    pub feedback: Feedback,
    /// What is kept aside to test the prompts that the search found; nothing where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// What becomes of rollouts that cannot be made. Not part of the study's identity: what was decided
    /// stands in the journal.
    #[serde(default, skip_serializing_if = "Failures::is_default")]
    pub failures: Failures,
    /// What the run may spend. Not part of the study's identity: raise it and resume.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Where an editor finds the schema of the file. Nobody else reads it, and it is no part of the study.
    #[serde(default, rename = "$schema", skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub schema: IgnoredAny,
}

/// Name, method, seed and length of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// For people.
    pub name: String,
    /// A name in `core/src/search/methods`.
    #[serde(default = "default_method")]
    pub method: String,
    /// Every random choice of the search follows from it.
    #[serde(default)]
    pub seed: u64,
    /// Number of rounds T, or `"until-budget"`. A search until the budget is spent also ends after 20
    /// rounds in a row that spent nothing the budget bounds.
    #[serde(default)]
    pub rounds: Rounds,
    /// Rollouts of each prompt on each example; more of them tame a noisy agent.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
    /// Examples of each workload drawn for a round; all of them when left out. All candidates of
    /// a round share the batch; the final choice is made on the whole split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// f ≥ 1: batches are the beginnings of one order of the examples, drawn once. The next one is f times as large when
    /// the best prompt of a round is feasible on its batch, or stays the best in the next two rounds. Left out, every round
    /// draws a batch of its own, of one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub batch_growth: Option<f64>,
    /// κ ≥ 0: costs are taken for so many standard errors larger than they were measured, wherever candidates are
    /// compared, multipliers moved and rewriters told; 0 is the paper's rule.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub caution: f64,
    /// p in [0, 1): the prompt returned is the one of the highest objective among the feasible ones whose mean cost, for
    /// each constraint alone, stays within the threshold on as many new examples as are held out with this predictive
    /// probability, or else the likeliest to; 0 takes the measured means as they are.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 0.999))]
    pub choice_probability: f64,
    /// `"paper"` for the paper's search, whatever else the study states: no `batch`, `batch_growth`, `caution` and
    /// `choice_probability`, six rounds in place of a search until the budget is spent, and no other `pool` under `[method]`.
    #[serde(default, skip_serializing)]
    pub preset: Option<Preset>,
}

/// Settings that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper's.
    Paper,
}

fn default_method() -> String {
    "capo".into()
}

fn one() -> u32 {
    1
}

/// How long a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a whole number of rounds, or \"until-budget\"")]
pub enum Rounds {
    /// So many rounds.
    Count(u32),
    /// Until the budget is spent; where a round brings no new candidate, the pool is measured once
    /// more instead.
    Open(UntilBudget),
}

impl Default for Rounds {
    /// The paper's six rounds.
    fn default() -> Self {
        Self::Count(6)
    }
}

/// The word `"until-budget"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UntilBudget {
    /// `"until-budget"`.
    #[serde(rename = "until-budget")]
    UntilBudget,
}

/// The prompt the search starts from: exactly one of `text` and `file`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The prompt itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A file that holds it (UTF-8), relative to the study file; replaced by its text on loading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What to maximise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// A metric of the workload where higher is better.
    pub metric: String,
}

/// A mean cost to keep at or below a threshold: exactly one of `threshold` and
/// `relative_to_seed` is written; the other is filled in when the threshold is frozen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// A metric of the workload where lower is better.
    pub metric: String,
    /// The threshold τ, in the metric's unit, between -1e12 and 1e12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The threshold as a multiple of the seed prompt's mean cost on the optimisation split,
    /// measured and frozen before round 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to_seed: Option<f64>,
    /// Residual = (cost − threshold) / scale, which lies between 1e-9 and 1e9; the metric's own default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// The round at which this constraint enters, with multiplier 0 if later than 0 (progressive
    /// constraints).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub from_round: u32,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// What the rewriter is told about a parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Feedback {
    /// The form it takes.
    pub form: FeedbackForm,
    /// Failing rollouts shown for the objective and for each constraint.
    pub cases: usize,
    /// Characters of evidence shown in all; what is left out is counted in the text.
    pub max_characters: usize,
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            form: FeedbackForm::Summary,
            cases: 3,
            max_characters: 16_000,
        }
    }
}

/// The forms of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackForm {
    /// The critic's text.
    Summary,
    /// The failing rollouts themselves.
    Trajectory,
    /// Nothing (control).
    None,
}

/// What becomes of rollouts that cannot be made: an example that a content filter refuses, a prompt too
/// long for the agent's context. A refused key, a rate limit and a model that cannot be reached end the
/// run whatever is said here, and it can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Failures {
    /// How often a rollout is tried before it counts as failed; twice when left out, once where models
    /// are asked only once (`retries = 0`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub tries: Option<u32>,
    /// What a failed rollout counts as.
    pub example: FailedExample,
    /// The share of a split's examples, in [0, 1], on which a prompt may fail, one at least unless it is
    /// 0. A prompt that fails on more is discarded; the seed prompt, or one that is being evaluated, ends
    /// the run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            tries: None,
            example: FailedExample::Worst,
            share: 0.05,
        }
    }
}

impl Failures {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Of so many examples, how many a prompt may fail on.
    pub fn allowance(&self, examples: usize) -> usize {
        if self.share == 0.0 || self.example == FailedExample::Stop {
            return 0;
        }
        ((self.share * examples as f64) as usize).max(1)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The key that is out of range, and its range.
    pub fn check(&self) -> Result<(), StudyError> {
        check_repeats("failures.tries", self.tries.unwrap_or(1))?;
        if !(0.0..=1.0).contains(&self.share) {
            let problem = format!("must be a share between 0 and 1, not {}", self.share);
            return Err(StudyError::invalid("failures.share", problem));
        }
        Ok(())
    }
}

/// The largest `study.repeats` and `failures.tries`.
const MOST_REPEATS: u32 = 1_000;

/// Refuses a number of repeats or tries that is out of range.
fn check_repeats(key: &str, count: u32) -> Result<(), StudyError> {
    if (1..=MOST_REPEATS).contains(&count) {
        return Ok(());
    }
    let problem = format!("must be at least 1 and at most {MOST_REPEATS}, not {count}");
    Err(StudyError::invalid(key, problem))
}

/// What a failed rollout counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailedExample {
    /// The worst value of every metric: its bound, or else the worst one measured so far.
    #[default]
    Worst,
    /// The example is left out, from then on and for every prompt alike.
    LeaveOut,
    /// The run ends, and can be resumed.
    Stop,
}

impl Study {
    /// Leaves out what a study may state that is **ours**: caution, batches that grow, a pool of another size, a search until
    /// the budget is spent. In place of that, six rounds end what is left, the paper's search, and no number of rollouts.
    pub fn use_paper_preset(&mut self) {
        let search = &mut self.study;
        (search.caution, search.choice_probability) = (0.0, 0.0);
        (search.batch, search.batch_growth) = (None, None);
        if matches!(search.rounds, Rounds::Open(_)) {
            search.rounds = Rounds::default();
            self.budget.rollouts = None;
        }
        self.method.remove("pool");
    }

    /// Whether the seed prompt must be measured before all thresholds are known.
    pub fn thresholds_are_relative(&self) -> bool {
        let mut constraints = self.constraints.iter();
        constraints.any(|constraint| constraint.relative_to_seed.is_some())
    }

    /// The models that a run may ask.
    pub fn asked_models(&self) -> impl Iterator<Item = &Value> {
        let kept = self.keeps_vectors();
        let asked = self
            .models
            .iter()
            .filter(move |(role, _)| !kept || **role != Role::Embeddings);
        asked.map(|(_, table)| table)
    }

    /// The tables of the models that a run may ask.
    pub fn asked_tables(&self) -> IndexMap<Role, Value> {
        let mut tables = self.models.clone();
        if self.keeps_vectors() {
            tables.shift_remove(&Role::Embeddings);
        }
        tables
    }

    /// Whether a file of the workload keeps the vectors of [`Role::Embeddings`]: they were made before, and no run asks
    /// for any.
    pub fn keeps_vectors(&self) -> bool {
        self.workload.contains_key("embeddings")
    }

    /// The seed prompt's text.
    ///
    /// # Errors
    /// When the prompt is still a file name, both or neither are given, or the text is blank.
    pub fn seed_prompt(&self) -> Result<&str, StudyError> {
        match (&self.prompt.text, &self.prompt.file) {
            (Some(text), None) if text.trim().is_empty() => Err(StudyError::invalid(
                "prompt.text",
                "the seed prompt is empty; write at least one sentence",
            )),
            (Some(text), None) => Ok(text),
            (None, Some(file)) => Err(StudyError::invalid(
                "prompt.file",
                format!("`{file}` was not loaded; the caller must put its text in its place"),
            )),
            (Some(_), Some(_)) | (None, None) => Err(StudyError::invalid(
                "prompt",
                "give exactly one of `text` and `file`",
            )),
        }
    }
}
