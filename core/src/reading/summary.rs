//! The result of a run as scripts read it: the object that `capo optimize --json` prints.

use std::rc::Rc;

use indexmap::IndexMap;
use serde::Serialize;

use crate::journal::run_state::{FailedRollout, Reused, RunState};
use crate::journal::{DiscardEvent, FinishedEvent, LeaveOutEvent, Status};
use crate::reading::feasibility::{Feasibility, all_sat};
use crate::reading::in_force;
use crate::study;
use crate::study::certificate::Certificate;
use crate::study::estimate::Estimate;
use crate::study::score::Multipliers;
use crate::study::usage::Usage;

/// The result of a run. Rates are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How the run ended.
    pub status: Status,
    /// The returned prompt; null when not even the seed prompt was measured.
    pub best: Option<Best>,
    /// λ after the last round, by metric.
    pub multipliers: Multipliers,
    /// On what it is feasible.
    pub feasibility: Feasibility,
    /// The prompts that were tested on the examples kept for it, in order; left out where none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// Complete rounds.
    pub rounds: usize,
    /// What the whole run consumed, all sessions of it together.
    pub usage: Spend,
    /// What was taken over from earlier runs and is no part of `usage`; left out where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<Saved>,
    /// The returned prompt on held-out examples; null when there are none, or when the run ended
    /// before they were measured.
    pub evaluation: Option<HeldOut>,
    /// What could not be measured, and what became of it; left out where there is nothing of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// Name of the journal's file.
    pub journal: String,
}

/// What could not be measured, by what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failures {
    /// What the study says of them.
    pub policy: study::Failures,
    /// Prompts that left the search.
    pub discarded: Vec<DiscardEvent>,
    /// Rollouts that count as the worst value.
    pub worst: Vec<FailedRollout>,
    /// Examples that count for no prompt.
    pub left_out: Vec<LeaveOutEvent>,
}

impl Failures {
    /// What a run could not measure, if there is anything.
    pub fn of(state: &RunState) -> Option<Self> {
        let failures = Self {
            policy: state.failures_in_force(),
            discarded: state.discarded().values().cloned().collect(),
            worst: state.failed_rollouts().to_vec(),
            left_out: state.left_out().to_vec(),
        };
        let is_some =
            !failures.discarded.is_empty() || !failures.worst.is_empty() || !failures.left_out.is_empty();
        is_some.then_some(failures)
    }

    /// The same in sentences, one for each kind, each with the first reason.
    pub fn sentences(&self) -> Vec<String> {
        let plural = |count: usize, one: &str, more: &str| {
            if count == 1 {
                format!("1 {one}")
            } else {
                format!("{count} {more}")
            }
        };
        let mut sentences = Vec::new();
        if let Some(first) = self.discarded.first() {
            let prompts = plural(
                self.discarded.len(),
                "prompt that could not be run was",
                "prompts that could not be run were",
            );
            sentences.push(format!(
                "{prompts} discarded: {}: {}",
                first.candidate.short(),
                first.reason
            ));
        }
        if let Some(first) = self.worst.first() {
            let rollouts = plural(
                self.worst.len(),
                "rollout that failed counts",
                "rollouts that failed count",
            );
            sentences.push(format!(
                "{rollouts} as the worst value: example `{}`: {}",
                first.example, first.reason
            ));
        }
        if let Some(first) = self.left_out.first() {
            let examples = plural(
                self.left_out.len(),
                "example that failed is",
                "examples that failed are",
            );
            sentences.push(format!(
                "{examples} left out for every prompt: `{}`: {}",
                first.example, first.reason
            ));
        }
        sentences
    }
}

/// The returned prompt on the optimisation split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its text.
    pub prompt: Rc<str>,
    /// Whether it satisfies every constraint.
    pub feasible: bool,
    /// Mean objective R, in [0, 1].
    pub objective: f64,
    /// C by metric.
    pub costs: IndexMap<String, f64>,
    /// J under the last multipliers.
    pub lagrangian: f64,
    /// How probably its costs stay within the thresholds on further examples, see
    /// [`FinishedEvent::probability`]; left out where the study does not ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// What was consumed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spend {
    /// Rollouts, held-out ones included.
    pub rollouts: u64,
    /// Model calls, failed ones included.
    pub calls: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; null when a price is unknown.
    pub usd: Option<f64>,
    /// The same by role.
    pub by_role: Usage,
}

impl Spend {
    /// The sum over roles, beside the roles.
    pub fn new(rollouts: u64, usage: Usage) -> Self {
        let total = usage.total();
        Self {
            rollouts,
            calls: total.calls,
            input_tokens: total.input_tokens,
            output_tokens: total.output_tokens,
            usd: total.usd,
            by_role: usage,
        }
    }
}

/// What was taken over from earlier runs, and what it had cost there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// Critiques.
    pub critiques: u64,
    /// Rewrites.
    pub rewrites: u64,
    /// Rollouts, and what all of it had consumed.
    #[serde(flatten)]
    pub cost: Spend,
}

impl Saved {
    /// What was taken over, if anything was.
    pub fn of(reused: &Reused) -> Option<Self> {
        (reused.effects() > 0).then(|| Self {
            critiques: reused.critiques,
            rewrites: reused.rewrites,
            cost: Spend::new(reused.rollouts, reused.usage.clone()),
        })
    }
}

/// Held-out estimates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldOut {
    /// Means with standard errors, by metric.
    #[serde(flatten)]
    pub metrics: IndexMap<String, Estimate>,
    /// Whether every constraint is satisfied on the mean; null when one was not measured.
    pub all_sat: Option<bool>,
    /// The same of the seed prompt, beside the returned prompt's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Box<HeldOut>>,
}

impl HeldOut {
    /// Estimates of a prompt, held against thresholds; `None` when it was not measured.
    pub fn new(estimates: &IndexMap<String, Estimate>, thresholds: &IndexMap<String, f64>) -> Option<Self> {
        let mean = |metric: &str| estimates.get(metric).map(|estimate| estimate.mean);
        (!estimates.is_empty()).then(|| Self {
            metrics: estimates.clone(),
            all_sat: all_sat(thresholds, mean),
            seed: None,
        })
    }
}

impl Summary {
    /// The result of a run that has ended, from the fold over its journal, whose file has this name.
    pub fn new(state: &RunState, finished: &FinishedEvent, journal: impl Into<String>) -> Self {
        let thresholds = in_force::thresholds(state, None);
        let held_out = HeldOut::new(&finished.evaluation, &thresholds);
        Self {
            status: finished.status,
            best: best(state, finished),
            multipliers: finished.multipliers.clone(),
            feasibility: Feasibility::of(state, finished),
            certificates: finished.certificates.clone(),
            rounds: state.rounds().len(),
            usage: Spend::new(state.ledger().rollouts(), state.ledger().usage()),
            reused: Saved::of(state.ledger().reused()),
            evaluation: held_out.map(|held_out| HeldOut {
                seed: HeldOut::new(&finished.seed_evaluation, &thresholds).map(Box::new),
                ..held_out
            }),
            failures: Failures::of(state),
            journal: journal.into(),
        }
    }
}

fn best(state: &RunState, finished: &FinishedEvent) -> Option<Best> {
    let id = finished.best?;
    let score = finished.final_scores.get(&id)?;
    Some(Best {
        prompt: Rc::clone(&state.candidate(&id)?.prompt),
        feasible: score.feasible,
        objective: score.objective,
        costs: score.costs.clone(),
        lagrangian: score.lagrangian,
        probability: finished.probability,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn estimates(cost: f64) -> IndexMap<String, Estimate> {
        let of = |mean| Estimate {
            mean,
            standard_error: 0.1,
            n: 4,
        };
        [("success".to_owned(), of(0.75)), ("turns".to_owned(), of(cost))].into()
    }

    #[test]
    fn held_out_estimates_stand_beside_the_verdict() {
        let thresholds = IndexMap::from([("turns".to_owned(), 5.0)]);
        let best = HeldOut::new(&estimates(5.0), &thresholds).unwrap();
        let seed = HeldOut::new(&estimates(5.1), &thresholds).unwrap();
        let written = serde_json::to_value(HeldOut {
            seed: Some(Box::new(seed)),
            ..best
        })
        .unwrap();
        let estimate = |mean| json!({ "mean": mean, "standard_error": 0.1, "n": 4 });
        assert_eq!(
            written,
            json!({
                "success": estimate(0.75), "turns": estimate(5.0), "all_sat": true,
                "seed": { "success": estimate(0.75), "turns": estimate(5.1), "all_sat": false },
            })
        );
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let thresholds = IndexMap::from([("cost".to_owned(), 1.0)]);
        assert_eq!(HeldOut::new(&IndexMap::new(), &thresholds), None);
        assert_eq!(HeldOut::new(&estimates(1.0), &thresholds).unwrap().all_sat, None);
    }

    #[test]
    fn an_unknown_price_is_null() {
        use crate::llm::{CallUsage, Role};
        let mut usage = Usage::default();
        usage.add(
            Role::Agent,
            CallUsage {
                input_tokens: 3,
                output_tokens: 2,
                usd: None,
                seconds: 1.0,
            },
        );
        let written = serde_json::to_value(Spend::new(7, usage)).unwrap();
        assert_eq!(
            written,
            json!({
                "rollouts": 7, "calls": 1, "input_tokens": 3, "output_tokens": 2, "usd": null,
                "by_role": { "agent": {
                    "calls": 1, "input_tokens": 3, "output_tokens": 2, "usd": null, "seconds": 1.0,
                } },
            })
        );
    }
}
