//! What is kept of a seed, so that a finished one is not run again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evaluation::Answers;
use super::sft::SftStats;
use super::{DcapoError, Plan};
use crate::experiment::{Outcome, RunRecord};
use crate::session::StudyFile;

/// What one seed came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeedRecord {
    /// The seed.
    pub seed: u64,
    /// The fine-tuning.
    pub sft: SftStats,
    /// Wall time of all work on the seed in seconds, as if it had been done one after the other.
    pub seconds: f64,
    /// The seed prompt on held-out examples, once for each search.
    pub seed_prompt: Vec<HeldOut>,
    /// The policies, in the order of the plan.
    pub policies: Vec<PolicyRecord>,
}

/// What one policy came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// [`PolicyKind::key`](super::PolicyKind::key).
    pub key: String,
    /// Wall time of its GRPO in seconds.
    pub seconds: f64,
    /// Mean ΔJ of the children of each round of GRPO; a round without children has none.
    pub gains: Vec<Option<f64>>,
    /// Searches with the policy as it ended.
    pub searches: Vec<HeldOut>,
    /// Children before and after GRPO, of the same requests with the same seeds.
    pub evaluation: Option<EvaluatedPolicy>,
}

/// The same requests answered twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluatedPolicy {
    /// By the fine-tuned policy.
    pub before: Answers,
    /// By the policy after GRPO.
    pub after: Answers,
}

/// A prompt on held-out examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Mean objective.
    pub objective: f64,
    /// Mean costs in the order of the study's constraints.
    pub costs: Vec<f64>,
    /// Whether every threshold is met.
    pub all_sat: bool,
}

impl HeldOut {
    fn of(outcome: &Outcome) -> Self {
        Self {
            objective: outcome.objective,
            costs: outcome.costs.values().copied().collect(),
            all_sat: outcome.all_sat,
        }
    }

    /// What a search returned and what it started from.
    pub(super) fn of_run(run: &RunRecord) -> Option<(Self, Self)> {
        let held_out = run.evaluate.as_ref().zip(run.seed_prompt.as_ref());
        held_out.map(|(returned, start)| (Self::of(returned), Self::of(start)))
    }
}

/// A seed's record with what it is a record of.
#[derive(Serialize, Deserialize)]
struct Kept<R> {
    identity: Value,
    record: R,
}

/// The record of a seed that is finished: of this study and plan.
pub(super) fn read(path: &Path, identity: &Value) -> Result<Option<SeedRecord>, DcapoError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DcapoError::folder(path, source)),
    };
    let unreadable = |why: serde_json::Error| DcapoError::Record {
        path: path.to_owned(),
        reason: format!("it is no record of this program: {why}"),
    };
    // A record of other settings may have other fields.
    let kept: Kept<Value> = serde_json::from_str(&text).map_err(unreadable)?;
    if kept.identity != *identity {
        return Err(DcapoError::Record {
            path: path.to_owned(),
            reason: "it is of another study, of other settings or of another version".into(),
        });
    }
    serde_json::from_value(kept.record).map(Some).map_err(unreadable)
}

pub(super) fn write(path: &Path, identity: &Value, record: &SeedRecord) -> Result<(), DcapoError> {
    let kept = Kept {
        identity: identity.clone(),
        record,
    };
    let text = serde_json::to_string_pretty(&kept).expect("a record holds nothing JSON cannot write");
    let unfinished = path.with_extension("part");
    std::fs::write(&unfinished, text).map_err(|source| DcapoError::folder(&unfinished, source))?;
    std::fs::rename(&unfinished, path).map_err(|source| DcapoError::folder(path, source))
}

/// What makes two records the same experiment.
pub(super) fn identity(base: &StudyFile, plan: &Plan) -> Result<Value, DcapoError> {
    Ok(serde_json::json!({
        "study": base.setup()?.problem.id(),
        "plan": format!("{plan:?}"),
    }))
}
