//! Records of seeds, so that a finished one is not run again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evaluation::Answers;
use super::sft::SftStats;
use super::world::Measured;
use super::{DcapoError, Plan};
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
    /// The seed prompt, once for each search.
    pub seed_prompt: Vec<Measured>,
    /// The rewriters, in the order of the plan.
    pub policies: Vec<PolicyRecord>,
}

/// What one policy came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// [`PolicyKind::key`](super::PolicyKind::key).
    pub key: String,
    /// Wall time of its GRPO in seconds; 0 of one that does not learn by it.
    pub seconds: f64,
    /// Mean ΔJ of the children of each round of GRPO; a round without children has none.
    pub gains: Vec<Option<f64>>,
    /// What searches with it as it ended return.
    pub searches: Vec<Measured>,
    /// Answers to the same requests; none of the teacher.
    pub evaluation: Option<EvaluatedPolicy>,
}

/// The same requests answered several times with the same sampling seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluatedPolicy {
    /// By the fine-tuned policy.
    pub before: Answers,
    /// By the policy as it ended.
    pub after: Answers,
    /// By the same, each request with its multipliers moved on by one constraint.
    pub other_multipliers: Answers,
    /// By the same, each request with the feedback of another one; none where there is no feedback.
    pub other_feedback: Option<Answers>,
}

/// A seed's record with what it is a record of.
#[derive(Serialize, Deserialize)]
struct Stored<R> {
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
    let kept: Stored<Value> = serde_json::from_str(&text).map_err(unreadable)?;
    if kept.identity != *identity {
        return Err(DcapoError::Record {
            path: path.to_owned(),
            reason: "it is of another study, of other settings or of another version".into(),
        });
    }
    serde_json::from_value(kept.record).map(Some).map_err(unreadable)
}

pub(super) fn write(path: &Path, identity: &Value, record: &SeedRecord) -> Result<(), DcapoError> {
    let kept = Stored {
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
