//! A certificate: what a test on examples that nothing else touched says of a prompt's constraints.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::StudyError;
use crate::random::{Streams, without_replacement};
use crate::study::ids::CandidateId;
use crate::study::score::LARGEST_THRESHOLD;

/// The most examples of a test.
pub const MOST_EXAMPLES: usize = 10_000;

/// Examples kept for the end, on which the prompts that a search found are tested (`[confirm]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// How many of each workload's held-out examples are kept for the test alone, drawn once and for all: neither the
    /// search nor the held-out evaluation sees them, and nothing that an earlier run measured stands in for them.
    #[schemars(range(min = 1, max = 10_000))]
    pub examples: usize,
    /// The probability, between 0.5 and 1, with which a prompt that violates a constraint is not certified.
    #[serde(default = "usual_confidence")]
    #[schemars(range(min = 0.5, max = 0.999))]
    pub confidence: f64,
    /// How many prompts are tested at most, one after the other, the safest first.
    #[serde(default = "usual_finalists")]
    #[schemars(range(min = 1, max = 20))]
    pub finalists: usize,
    /// The largest values that constrained metrics can have, by metric, in their units, where the metric itself has no
    /// largest value. Without one such a metric cannot be certified.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub bounds: IndexMap<String, f64>,
}

fn usual_confidence() -> f64 {
    0.95
}

fn usual_finalists() -> usize {
    3
}

impl Confirm {
    /// So many examples at a confidence of 95 %.
    pub fn of(examples: usize) -> Self {
        Self {
            examples,
            confidence: usual_confidence(),
            finalists: usual_finalists(),
            bounds: IndexMap::new(),
        }
    }

    /// The positions of the reserve among so many held-out examples of a workload, in the order in which they are
    /// measured. A larger reserve begins with the smaller one; the study's seed does not matter, so that runs of several
    /// seeds keep the same examples.
    pub fn reserve(&self, workload: u16, held_out: usize) -> Vec<usize> {
        let mut stream = Streams::new(0).stream("confirm", u64::from(workload), 0);
        without_replacement(&vec![0.0; held_out], 1.0, self.examples, &mut stream)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The key that is out of range, and its range.
    pub(crate) fn check(&self) -> Result<(), StudyError> {
        let outside = |key: &str, range: &str| Err(StudyError::invalid(key, format!("must be {range}")));
        if !(1..=MOST_EXAMPLES).contains(&self.examples) {
            let range = format!("between 1 and {MOST_EXAMPLES}; leave [confirm] out to test nothing");
            return outside("confirm.examples", &range);
        }
        if !(0.5..=0.999).contains(&self.confidence) {
            return outside("confirm.confidence", "between 0.5 and 0.999");
        }
        if !(1..=20).contains(&self.finalists) {
            return outside("confirm.finalists", "between 1 and 20");
        }
        for (metric, bound) in &self.bounds {
            if !(0.0..=LARGEST_THRESHOLD).contains(bound) {
                let key = format!("confirm.bounds.{metric}");
                return outside(&key, &format!("between 0 and {LARGEST_THRESHOLD:e}"));
            }
        }
        Ok(())
    }
}

/// What a test says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The true mean is at most the threshold, at the confidence asked for.
    Certified,
    /// The true mean exceeds the threshold, at the confidence asked for.
    Refuted,
    /// The examples cannot tell.
    Undecided,
}

/// How a constraint is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Nothing is: the cost is a property of the prompt.
    Known,
    /// The exact binomial test, of costs that are one of two values.
    Binomial,
    /// A betting test martingale, of costs between two bounds.
    Betting,
    /// It cannot be tested.
    None,
}

/// A constraint in a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// How it was tested.
    pub test: Test,
    /// What the test says.
    pub verdict: Verdict,
    /// The threshold that was tested, in the metric's unit.
    pub threshold: f64,
    /// The largest value that a cost can have, the metric's own or a stated one; left out where none was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Mean cost over the examples measured; null where there are none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub mean: Option<f64>,
    /// Examples measured.
    pub examples: usize,
    /// p-value of "the true mean exceeds the threshold", valid whenever measuring stopped.
    pub p: f64,
    /// Upper confidence bound of the true mean at the certificate's confidence, for this constraint by itself; null where
    /// none holds.
    #[serde(deserialize_with = "Option::deserialize")]
    pub upper: Option<f64>,
    /// The same with all constraints' bounds holding at once (Bonferroni's correction).
    #[serde(deserialize_with = "Option::deserialize")]
    pub simultaneous: Option<f64>,
    /// Where the test ended undecided: how many more examples than those measured would be needed at this cost; left out
    /// where no number would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// Why it cannot be tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why so many examples kept for a test certify no further prompt, and what to do.
pub fn spent(reserve: usize) -> String {
    format!(
        "the {reserve} examples kept for the test certify nothing more, since a prompt tested on them before was not \
         certified, was tested under other thresholds, or belongs to the run that this one branched off; keep examples for \
         the test that no test has touched, in a new study"
    )
}

/// A prompt tested on the reserve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Id of the prompt, the SHA-256 of its text.
    pub candidate: CandidateId,
    /// Whether every constraint is certified; refuted as soon as one is.
    pub verdict: Verdict,
    /// The confidence of the verdict: of prompts that violate a constraint, at most 1 − confidence are certified.
    pub confidence: f64,
    /// Examples kept for the test, of each workload.
    pub reserve: usize,
    /// Those measured before it was decided, of each workload.
    pub examples: usize,
    /// Whether the test came to its end; else something stopped it.
    pub ended: bool,
    /// Whether nothing was tested, because the tests before on the same reserve leave it none: a prompt was not certified,
    /// they were about other thresholds, or were made in a run that this one branched off.
    #[serde(default, alias = "again", skip_serializing_if = "std::ops::Not::not")]
    pub untested: bool,
    /// Every constraint, by metric.
    pub constraints: IndexMap<String, Finding>,
}

impl Certificate {
    /// How many examples beyond the reserve would be needed at these costs; `None` unless it is undecided, and where no
    /// number would do.
    pub fn more(&self) -> Option<usize> {
        let undecided = self.constraints.values().filter(|finding| {
            // One whose test was open still, when that of another could decide no more, asks for nothing.
            let is_open = finding.more.is_none()
                && finding.reason.is_none()
                && finding.mean.is_some_and(|mean| mean < finding.threshold);
            finding.verdict == Verdict::Undecided && !is_open
        });
        let needed: Option<Vec<usize>> = match self.verdict {
            Verdict::Undecided => undecided
                .map(|finding| Some(finding.examples + finding.more?))
                .collect(),
            _ => None,
        };
        let needed = needed?.into_iter().max()?;
        Some(needed.saturating_sub(self.reserve).max(1))
    }

    /// The verdict in a sentence.
    pub fn sentence(&self) -> String {
        let percent = format!("{:.4}", 100.0 * self.confidence);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let examples = self.examples;
        match self.verdict {
            Verdict::Certified => format!("certified at {percent} % on n = {examples}"),
            Verdict::Refuted => format!("refuted at {percent} % on n = {examples}"),
            Verdict::Undecided if self.untested => format!("not tested: {}", spent(self.reserve)),
            Verdict::Undecided => {
                let untestable = self.constraints.iter().find_map(|(metric, finding)| {
                    finding
                        .reason
                        .as_ref()
                        .map(|reason| format!("`{metric}` cannot be certified: {reason}"))
                });
                untestable.unwrap_or_else(|| match self.more() {
                    _ if !self.ended => {
                        format!("not decided: the test was stopped after {examples} of {} examples", self.reserve)
                    }
                    Some(more) => format!(
                        "not decided on n = {examples}: at this cost about {more} more examples would be needed than the {} \
                         kept, in a new test of {} that no test has touched",
                        self.reserve,
                        self.reserve + more
                    ),
                    None => format!("not decided on n = {examples}: at this cost no number of examples would certify it"),
                })
            }
        }
    }
}
