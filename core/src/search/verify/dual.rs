//! Recomputing the multipliers of `round` lines from their scores.
//!
//! Like the means beside it, this shares no code with the dual steps it checks.

use indexmap::IndexMap;
use serde_json::Value;

use super::close::close;
use crate::journal::{RoundEvent, StudyEvent};
use crate::study::Constraint;
use crate::study::ids::Round;
use crate::study::score::Multipliers;

/// The course of the multipliers so far, and what a person changed of them.
#[derive(Default)]
pub(super) struct Dual {
    next: Option<Multipliers>,
    steered: Vec<(Round, Multipliers)>,
    integral: IndexMap<String, f64>,
    residual: IndexMap<String, f64>,
}

impl Dual {
    pub(super) fn steer(&mut self, round: Round, multipliers: &Multipliers) {
        self.steered.push((round, multipliers.clone()));
    }

    /// Checks λ_t and λ_{t+1} of a round whose scores are right. `thresholds` are those in force.
    /// Of methods that have no dual step there is nothing to check here; of a noisy one λ_{t+1}
    /// follows only from the replay.
    pub(super) fn check(
        &mut self,
        study: &StudyEvent,
        thresholds: &IndexMap<String, f64>,
        round: &RoundEvent,
    ) -> Result<(), String> {
        let settings = Settings(study);
        let Some(start) = settings.number("lambda_init") else {
            return Ok(());
        };
        let current = self.current(study, start, round.round);
        same(
            &format!("round {}: the multiplier", round.round),
            &round.multipliers,
            &current,
        )?;

        if settings.number("noise").unwrap_or(0.0) == 0.0 {
            let next = current
                .iter()
                .map(|(metric, weight)| {
                    let residual = mean_residual(study, thresholds, round, metric)?;
                    Ok((metric.clone(), self.step(&settings, metric, *weight, residual)?))
                })
                .collect::<Result<Multipliers, String>>()?;
            let what = format!("round {}: the next multiplier", round.round);
            same(&what, &round.next_multipliers, &next)?;
        }
        self.next = Some(round.next_multipliers.clone());
        Ok(())
    }

    /// λ_t: what the round before left, or λ_0; 0 for a constraint that enters; then what a person set.
    fn current(&self, study: &StudyEvent, start: f64, round: Round) -> Multipliers {
        let entering = |constraint: &&Constraint| constraint.from_round == round;
        let mut current = self.next.clone().unwrap_or_default();
        for constraint in study.study.constraints.iter().filter(entering) {
            let weight = if round == 0 { start } else { 0.0 };
            current.entry(constraint.metric.clone()).or_insert(weight);
        }
        for (_, set) in self.steered.iter().filter(|(of, _)| *of == round) {
            for (metric, weight) in set {
                if let Some(current) = current.get_mut(metric) {
                    *current = *weight;
                }
            }
        }
        current
    }

    fn step(
        &mut self,
        settings: &Settings<'_>,
        metric: &str,
        weight: f64,
        residual: f64,
    ) -> Result<f64, String> {
        let get = |key: &str| {
            let number = settings.number(key);
            number.ok_or_else(|| format!("the study's method has no `{key}`"))
        };
        let moved = match settings.dual_step() {
            "subgradient" => weight + get("beta")? * residual,
            "count" if residual > 0.0 => weight + get("beta")?,
            "count" => weight + get("beta")? * get("count_satisfied")?,
            "augmented" => weight + get("rho")? * residual,
            "fixed" => return Ok(weight),
            "pid" => {
                let sum = self.integral.entry(metric.to_owned()).or_insert(0.0);
                *sum = (*sum + residual).max(0.0);
                let before = self.residual.insert(metric.to_owned(), residual);
                let growth = before.map_or(0.0, |before| (residual - before).max(0.0));
                get("kp")? * residual + get("ki")? * *sum + get("kd")? * growth
            }
            other => return Err(format!("there is no dual step `{other}`")),
        };
        Ok(moved.clamp(0.0, get("lambda_max")?))
    }
}

/// The `[method]` table of a study.
struct Settings<'a>(&'a StudyEvent);

impl Settings<'_> {
    fn number(&self, key: &str) -> Option<f64> {
        self.0.study.method.get(key).and_then(Value::as_f64)
    }

    fn dual_step(&self) -> &str {
        let named = self.0.study.method.get("dual_step").and_then(Value::as_str);
        // The method `count` is named after its step.
        named.unwrap_or(&self.0.study.study.method)
    }
}

/// Mean over the round's best of (cost + margin − threshold)/scale.
fn mean_residual(
    study: &StudyEvent,
    thresholds: &IndexMap<String, f64>,
    round: &RoundEvent,
    metric: &str,
) -> Result<f64, String> {
    let nothing = || {
        format!(
            "round {}: nothing moves the multiplier of `{metric}`",
            round.round
        )
    };
    let threshold = thresholds.get(metric).ok_or_else(nothing)?;
    let constraint = study.study.constraints.iter().find(|one| one.metric == metric);
    let scale = constraint.and_then(|one| one.scale).unwrap_or(1.0);
    let costs = round.best.iter().map(|id| {
        let score = round.scores.get(id)?;
        let margin = score.margins.get(metric).copied().unwrap_or(0.0);
        Some(score.costs.get(metric)? + margin - threshold)
    });
    let sum = costs
        .sum::<Option<f64>>()
        .filter(|_| !round.best.is_empty())
        .ok_or_else(nothing)?;
    Ok(sum / round.best.len() as f64 / scale)
}

/// Whether two sets of multipliers agree; the first that does not, in words.
fn same(what: &str, written: &Multipliers, computed: &Multipliers) -> Result<(), String> {
    for metric in computed.keys().chain(written.keys()) {
        match (written.get(metric), computed.get(metric)) {
            (Some(written), Some(computed)) if close(*computed, *written) => {}
            (written, computed) => {
                let shown = |weight: Option<&f64>| weight.map_or("absent".to_owned(), f64::to_string);
                let (written, computed) = (shown(written), shown(computed));
                return Err(format!(
                    "{what} of `{metric}` is {written}, it should be {computed}"
                ));
            }
        }
    }
    Ok(())
}
