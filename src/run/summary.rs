//! The result of a run as scripts read it: the object that `capo optimize --json` prints.

use std::rc::Rc;

use capo_core::estimate::Estimate;
use capo_core::journal::{FinishedEvent, Status};
use capo_core::run_state::RunState;
use capo_core::score::Multipliers;
use capo_core::usage::Usage;
use indexmap::IndexMap;
use serde::Serialize;

use super::in_force;

/// The result of a run. Rates are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How the run ended.
    pub status: Status,
    /// The returned prompt; null when not even the seed prompt was measured.
    pub best: Option<Best>,
    /// λ after the last round, by metric.
    pub multipliers: Multipliers,
    /// Complete rounds.
    pub rounds: usize,
    /// What the whole run consumed.
    pub usage: Spend,
    /// The returned prompt on held-out examples; null when it was not measured on them.
    pub evaluation: Option<HeldOut>,
    /// Name of the journal's file.
    pub journal: String,
}

/// The returned prompt on the examples the search used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its text.
    pub prompt: Rc<str>,
    /// Whether it satisfies every constraint.
    pub feasible: bool,
    /// R.
    pub objective: f64,
    /// C by metric.
    pub costs: IndexMap<String, f64>,
    /// J under the last multipliers.
    pub lagrangian: f64,
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

/// Held-out estimates of a prompt.
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

impl Summary {
    /// The result of a run that has ended; `None` while it goes on. `journal` is the name its
    /// journal is downloaded under.
    pub fn new(state: &RunState, journal: &str) -> Option<Self> {
        let finished = state.finished()?;
        let thresholds = in_force::thresholds(state, None);
        let usage = state.ledger().usage();
        let total = usage.total();
        let evaluation = HeldOut::new(&finished.evaluation, &thresholds).map(|held_out| HeldOut {
            seed: HeldOut::new(&finished.seed_evaluation, &thresholds).map(Box::new),
            ..held_out
        });
        Some(Self {
            status: finished.status,
            best: best(state, finished),
            multipliers: finished.multipliers.clone(),
            rounds: state.rounds().len(),
            usage: Spend {
                rollouts: state.ledger().rollouts(),
                calls: total.calls,
                input_tokens: total.input_tokens,
                output_tokens: total.output_tokens,
                usd: total.usd,
                by_role: usage,
            },
            evaluation,
            journal: journal.to_owned(),
        })
    }

    /// The object, indented.
    ///
    /// # Errors
    /// When a number in it is not finite, which JSON cannot write.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
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
    })
}

impl HeldOut {
    fn new(estimates: &IndexMap<String, Estimate>, thresholds: &IndexMap<String, f64>) -> Option<Self> {
        (!estimates.is_empty()).then(|| Self {
            metrics: estimates.clone(),
            all_sat: all_sat(thresholds, estimates),
            seed: None,
        })
    }
}

/// Whether these means meet every threshold; `None` when none of those that were measured misses its
/// own, but one was not measured. Without constraints there is nothing to fail.
pub fn all_sat(thresholds: &IndexMap<String, f64>, estimates: &IndexMap<String, Estimate>) -> Option<bool> {
    let met: Vec<Option<bool>> = thresholds
        .iter()
        .map(|(metric, threshold)| Some(estimates.get(metric)?.mean <= *threshold))
        .collect();
    if met.contains(&Some(false)) {
        return Some(false);
    }
    (!met.contains(&None)).then_some(true)
}
