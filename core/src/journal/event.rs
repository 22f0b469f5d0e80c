//! The lines of a journal (schema 1).
//!
//! A field that may be null must be there all the same (`deserialize_with` takes serde's leniency
//! away); only what is left out when there is nothing to say has a default.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::llm::{ChatResponse, FailureKind, Role};
use crate::study::budget::Budget;
use crate::study::certificate::Certificate;
use crate::study::estimate::Estimate;
use crate::study::ids::{CandidateId, Round};
use crate::study::metric::{Measurements, MetricSpec};
use crate::study::numbers;
use crate::study::score::{Multipliers, Score};
use crate::study::usage::Usage;
use crate::study::workload::{Split, Trace};
use crate::study::{Failures, LARGEST_THRESHOLD, Study, StudyError, nearest};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First line: the study.
    Study(Box<StudyEvent>),
    /// A prompt enters the run.
    Candidate(CandidateEvent),
    /// A prompt was run on an example, or counts as if it had been.
    Rollout(RolloutEvent),
    /// A prompt cannot be run and leaves the search.
    Discard(DiscardEvent),
    /// An example cannot be run and is left out for every prompt.
    LeaveOut(LeaveOutEvent),
    /// A prompt was criticised.
    Critique(CritiqueEvent),
    /// A prompt was rewritten, or the attempt gave no child.
    Rewrite(RewriteEvent),
    /// An effect failed. Never an answer.
    Failure(FailureEvent),
    /// A provider took a batch of calls, and is paid for it whoever waits.
    Batch(BatchEvent),
    /// A round is complete.
    Round(RoundEvent),
    /// The rewriter learned from a round.
    Learned(LearnedEvent),
    /// What a person changed while it ran.
    Steer(SteerEvent),
    /// The run ended.
    Finished(Box<FinishedEvent>),
}

/// The study of a run and what its workloads hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyEvent {
    /// [`super::SCHEMA`] of the build that wrote it.
    pub schema: u32,
    /// [`Study::id`].
    pub id: String,
    /// The whole study with defaults and frozen thresholds.
    pub study: Study,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Workloads by name.
    pub workloads: IndexMap<String, WorkloadRecord>,
    /// Version of Capo that started the run.
    #[serde(default)]
    pub version: String,
}

/// What a journal must know of a workload to be read without it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// [`crate::study::workload::Workload::fingerprint`].
    pub fingerprint: String,
    /// The metrics of each rollout.
    pub metrics: Vec<MetricSpec>,
    /// Ids of the examples the search uses.
    pub optimize: Vec<String>,
    /// Ids of the held-out examples.
    pub evaluate: Vec<String>,
    /// Ids of those of them that are kept for the test of the prompts that were found, in the order in which they are
    /// measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserve: Vec<String>,
    /// Of each example of `optimize`, then of `evaluate`: 16 hex digits for all that a rollout on it depends on beside
    /// prompt and repeat. Empty where the workload cannot say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

impl WorkloadRecord {
    /// The ids of one split.
    pub fn split(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }

    /// All ids with what their rollouts depend on, where it is noted.
    pub fn inputs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.optimize.iter().chain(&self.evaluate).zip(&self.inputs)
    }
}

/// Where a candidate came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The study's own prompt.
    Seed,
    /// A rewriter's answer.
    Rewrite,
    /// Several parents combined.
    Crossover,
    /// The same content in other words.
    Paraphrase,
    /// The thresholds written into the seed prompt.
    Injected,
    /// A person's own text, measured on request.
    Given,
    /// A prompt of an earlier run, from which the search starts too.
    From,
}

/// A prompt enters the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateEvent {
    /// Hash of the prompt.
    pub id: CandidateId,
    /// The round it was made in; 0 for the seed.
    pub round: Round,
    /// How it was made.
    pub origin: Origin,
    /// What it was made from.
    pub parents: Vec<CandidateId>,
    /// Id of the study of the earlier run that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The text.
    pub prompt: String,
}

/// A prompt was run on an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolloutEvent {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// Which part of the examples.
    pub split: Split,
    /// Name of the workload.
    pub workload: String,
    /// Id of the example.
    pub example: String,
    /// 0 for the first rollout of this prompt on this example.
    pub repeat: u32,
    /// Values by metric, before averaging.
    pub measurements: Measurements,
    /// What happened.
    pub trace: Trace,
    /// Whether that was left out since: a critic that reads it would be misled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_trace: bool,
    /// What it consumed.
    pub usage: Usage,
    /// Why it could not be made, where it counts as the worst value all the same: the study's `failures`
    /// say so. What its tries consumed stands in their `failure` lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Where it comes from, if an earlier run made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<Box<ReusedFrom>>,
}

/// A prompt cannot be run and leaves the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiscardEvent {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// The round under way; left out after the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
    /// How many examples it failed on.
    pub examples: usize,
    /// What failed, on one of them.
    pub reason: String,
}

/// An example cannot be run and is left out for every prompt, from here on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaveOutEvent {
    /// The round under way; left out after the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
    /// Which part of the examples.
    pub split: Split,
    /// Name of the workload.
    pub workload: String,
    /// Id of the example.
    pub example: String,
    /// Which prompt failed on it.
    pub candidate: CandidateId,
    /// What failed.
    pub reason: String,
}

/// A prompt was criticised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CritiqueEvent {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// The round, from 0: that of the seed prompt.
    pub round: Round,
    /// The feedback ξ.
    pub feedback: String,
    /// What it consumed.
    pub usage: Usage,
    /// Hash of the critic and the whole request, where a later run may take the answer over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Where it comes from, if an earlier run asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<Box<ReusedFrom>>,
}

/// A prompt was rewritten, or the attempt gave no child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewriteEvent {
    /// The round, from 0: that of the seed prompt.
    pub round: Round,
    /// Id of the prompt, the SHA-256 of its text.
    pub parent: CandidateId,
    /// Which of the parent's children, from 0.
    pub index: u32,
    /// What was asked for: a better prompt, unless stated.
    #[serde(default = "rewrite", skip_serializing_if = "is_rewrite")]
    pub origin: Origin,
    /// What was combined with the parent, in the order told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<CandidateId>,
    /// The earlier rewrite that this one was to improve on, and that the feedback was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<CandidateId>,
    /// The child, or null.
    #[serde(deserialize_with = "Option::deserialize")]
    pub child: Option<CandidateId>,
    /// Why there is no child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it consumed, an unusable first answer not included (that is a `failure` line).
    pub usage: Usage,
    /// Hash of the rewriter and the whole first request, where a later run may take the outcome over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Where it comes from, if an earlier run asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<Box<ReusedFrom>>,
}

fn rewrite() -> Origin {
    Origin::Rewrite
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_rewrite(origin: &Origin) -> bool {
    *origin == Origin::Rewrite
}

/// The run that an effect was taken over from. Nothing of it was paid for here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReusedFrom {
    /// Id of the study of the run that paid for it.
    pub run: String,
    /// What it had consumed there.
    pub usage: Usage,
    /// Hash of what was taken over.
    pub digest: String,
}

impl RolloutEvent {
    /// The effect that it is the outcome of.
    pub fn effect(&self) -> EffectName {
        EffectName::Rollout {
            candidate: self.candidate,
            split: self.split,
            workload: self.workload.clone(),
            example: self.example.clone(),
            repeat: self.repeat,
        }
    }
}

/// Names an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum EffectName {
    /// A rollout.
    Rollout {
        /// Id of the prompt, the SHA-256 of its text.
        candidate: CandidateId,
        /// Which part of the examples.
        split: Split,
        /// Name of the workload.
        workload: String,
        /// Id of the example.
        example: String,
        /// Number of the rollout of this prompt on this example, from 0.
        repeat: u32,
    },
    /// A critique.
    Critique {
        /// Id of the prompt, the SHA-256 of its text.
        candidate: CandidateId,
        /// The round, from 0: that of the seed prompt.
        round: Round,
    },
    /// A rewrite.
    Rewrite {
        /// The round, from 0: that of the seed prompt.
        round: Round,
        /// Id of the prompt, the SHA-256 of its text.
        parent: CandidateId,
        /// Number of the child among those of its parent, from 0.
        index: u32,
    },
}

/// An effect failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureEvent {
    /// The effect that failed, by what it was for.
    pub of: EffectName,
    /// What kind of failure.
    pub kind: FailureKind,
    /// What went wrong; redacted.
    pub message: String,
    /// Tries of this effect so far, this one included.
    pub attempt: u32,
    /// How many tries of an external agent the line sums up, 1 or more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tries: u32,
    /// What the try consumed all the same.
    #[serde(default)]
    pub usage: Usage,
    /// Of a rewrite: the text that came and could not be used. The second request quotes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Of a rollout that ended in the middle: what models had answered, in order, answers kept from
    /// earlier tries included. The next try asks only for what follows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<PaidAnswer>,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_one(tries: &u32) -> bool {
    *tries == 1
}

/// An answer of a model to a rollout that was not completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaidAnswer {
    /// Who answered.
    pub role: Role,
    /// Hash of what tells the request from the others of its rollout.
    pub request: String,
    /// The answer; what it consumed counts with the failed try.
    pub response: ChatResponse,
}

/// A provider took a batch of calls, or was about to be given it. A resumed run waits for it in place of asking again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchEvent {
    /// The provider's name for it, or what finds that in the provider's list.
    pub id: String,
    /// What tells its calls from all others, in order.
    pub requests: Vec<String>,
}

/// A round is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundEvent {
    /// The round, from 0: that of the seed prompt.
    pub round: Round,
    /// λ_t of the constraints in force.
    #[serde(deserialize_with = "numbers")]
    pub multipliers: Multipliers,
    /// Scores of the expanded pool under λ_t.
    pub scores: IndexMap<CandidateId, Score>,
    /// Who was rewritten.
    pub parents: Vec<CandidateId>,
    /// P_best, whose costs moved the multipliers.
    pub best: Vec<CandidateId>,
    /// λ_{t+1}.
    #[serde(deserialize_with = "numbers")]
    pub next_multipliers: Multipliers,
    /// P_{t+1}, best first.
    pub retained: Vec<CandidateId>,
    /// Examples measured in this round by workload, when not the whole split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<IndexMap<String, Vec<String>>>,
}

/// The rewriter learned from a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedEvent {
    /// The round, which is complete.
    pub round: Round,
    /// Figures of the update by name, such as `loss`, `reward` or `gradient_norm`.
    pub figures: IndexMap<String, f64>,
}

/// What a person changed at a round boundary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SteerEvent {
    /// The round before which it takes effect.
    pub round: Round,
    /// New thresholds by metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<IndexMap<String, f64>>,
    /// New multipliers by metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipliers: Option<Multipliers>,
    /// New budget, in force until the run is opened with another one in its study: a caller that
    /// steers the budget writes it back into the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What becomes of failed rollouts from here on, where the run is opened with another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// End the search here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    /// Wait here until told to go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pause: bool,
    /// Everything above this line comes from another run and was paid there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
}

impl SteerEvent {
    /// Whether nothing is changed, at whatever round.
    pub fn is_empty(&self) -> bool {
        let nothing = Self {
            round: self.round,
            ..Self::default()
        };
        *self == nothing
    }

    /// Takes out the thresholds and multipliers of the metrics that `changes` names.
    pub fn withdraw(&mut self, changes: &Self) {
        let without = |waiting: &mut Option<IndexMap<String, f64>>, named: &Option<IndexMap<String, f64>>| {
            if let (Some(values), Some(named)) = (waiting.as_mut(), named) {
                values.retain(|metric, _| !named.contains_key(metric));
                if values.is_empty() {
                    *waiting = None;
                }
            }
        };
        without(&mut self.thresholds, &changes.thresholds);
        without(&mut self.multipliers, &changes.multipliers);
    }

    /// Checks the changes against the study they are for: constraints in force from `round`,
    /// finite thresholds, multipliers in [0, λ_max], a budget that allows something.
    ///
    /// # Errors
    /// The first impossible change.
    pub fn check(&self, study: &Study) -> Result<(), StudyError> {
        let constraint = |key: &str, metric: &str| {
            let found = study.constraints.iter().find(|one| one.metric == metric);
            found.ok_or_else(|| {
                let names = study.constraints.iter().map(|one| one.metric.as_str());
                let hint = nearest(metric, names).map(|near| format!("; did you mean `{near}`?"));
                let problem = format!("the study has no such constraint{}", hint.unwrap_or_default());
                StudyError::invalid(format!("steer.{key}.{metric}"), problem)
            })
        };
        for (metric, threshold) in self.thresholds.iter().flatten() {
            constraint("thresholds", metric)?;
            if !(-LARGEST_THRESHOLD..=LARGEST_THRESHOLD).contains(threshold) {
                return Err(StudyError::invalid(
                    format!("steer.thresholds.{metric}"),
                    format!("must lie between -{LARGEST_THRESHOLD:e} and {LARGEST_THRESHOLD:e}"),
                ));
            }
        }
        let cap = study.method.get("lambda_max").and_then(serde_json::Value::as_f64);
        let cap = cap.unwrap_or(f64::MAX);
        for (metric, multiplier) in self.multipliers.iter().flatten() {
            let problem = match constraint("multipliers", metric)?.from_round {
                enters if enters > self.round => format!("this constraint enters at round {enters} only"),
                _ if !(0.0..=cap).contains(multiplier) => {
                    format!("{multiplier} is outside [0, λ_max = {cap}]")
                }
                _ => continue,
            };
            return Err(StudyError::invalid(
                format!("steer.multipliers.{metric}"),
                problem,
            ));
        }
        self.budget.map_or(Ok(()), |budget| budget.check())
    }
}

/// Where a branched run comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// Id of the study of the other run.
    pub from: String,
    /// The first round that is this run's own.
    pub round: Round,
    /// The tests that had begun there on the examples kept for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tests>,
}

/// Tests that have begun on the examples that a study keeps for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// The thresholds that they are about, by metric: those in force when the first began.
    pub thresholds: IndexMap<String, f64>,
    /// Their prompts, in the order in which they began.
    pub prompts: Vec<CandidateId>,
    /// Whether a prompt was tested after these that this run does not share, so that no other is certified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A feasible prompt was found.
    Feasible,
    /// The search went its whole way and found none.
    Infeasible,
    /// The budget stopped it.
    Budget,
    /// A person stopped it.
    Stopped,
    /// An effect failed for good.
    Failed,
}

/// The run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedEvent {
    /// How the run ended.
    pub status: Status,
    /// The returned prompt; null when not even the seed was measured.
    #[serde(deserialize_with = "Option::deserialize")]
    pub best: Option<CandidateId>,
    /// Scores on the whole optimisation split of every candidate measured on it, under λ_T. When a
    /// search with minibatches stopped before its last pool was measured on the whole split: scores
    /// on the last round's batch.
    pub final_scores: IndexMap<CandidateId, Score>,
    /// λ_T, by metric.
    #[serde(deserialize_with = "numbers")]
    pub multipliers: Multipliers,
    /// Held-out estimates of the returned prompt by metric; empty when the budget left no room.
    pub evaluation: IndexMap<String, Estimate>,
    /// Held-out estimates of the seed prompt by metric.
    #[serde(default)]
    pub seed_evaluation: IndexMap<String, Estimate>,
    /// What the whole run consumed.
    pub usage: Usage,
    /// Of the returned prompt: the least, over the constraints, of the predictive probabilities that its mean cost on as
    /// many further examples as are held out stays within the threshold. Where the study asks for a
    /// `choice_probability`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The prompts that were tested on the study's reserve, in order; the returned one is, of those certified, the one of
    /// the highest objective.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// What stopped it, in words, unless it went its whole way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
