//! Recomputing `round` lines from `rollout` lines with nothing but sums.
//!
//! Deliberately apart from the arena: it shares no code with what it checks.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::ids::CandidateId;
use crate::journal::{Event, RolloutEvent, RoundEvent, StudyEvent};
use crate::score::Score;
use crate::workload::Split;

/// One metric's values by example, each with its repeat.
type PerExample = HashMap<String, Vec<(u32, f64)>>;

/// Measurements on the optimisation split so far, and the thresholds in force.
#[derive(Default)]
pub(super) struct Arithmetic {
    study: Option<StudyEvent>,
    thresholds: IndexMap<String, f64>,
    measured: HashMap<(CandidateId, String), PerExample>,
}

impl Arithmetic {
    /// Takes a line in, or says what does not follow from the lines above it.
    pub(super) fn check(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Study(study) => {
                self.thresholds = study
                    .study
                    .constraints
                    .iter()
                    .filter_map(|constraint| Some((constraint.metric.clone(), constraint.threshold?)))
                    .collect();
                self.study = Some((**study).clone());
                Ok(())
            }
            Event::Rollout(rollout) if rollout.split == Split::Optimize => {
                self.take(rollout);
                Ok(())
            }
            Event::Steer(steer) => {
                for (metric, threshold) in steer.thresholds.iter().flatten() {
                    self.thresholds.insert(metric.clone(), *threshold);
                }
                Ok(())
            }
            Event::Round(round) => self.check_round(round),
            _ => Ok(()),
        }
    }

    fn take(&mut self, rollout: &RolloutEvent) {
        for (metric, value) in &rollout.measurements {
            self.measured
                .entry((rollout.candidate, metric.clone()))
                .or_default()
                .entry(rollout.example.clone())
                .or_default()
                .push((rollout.repeat, *value));
        }
    }

    fn check_round(&self, round: &RoundEvent) -> Result<(), String> {
        for (id, score) in &round.scores {
            let of = |what: &str| format!("round {}: {what} of candidate {}", round.round, id.short());
            let study = self.study.as_ref().ok_or("a round before the study")?;
            let objective = self
                .mean(*id, &study.study.objective.metric, round)
                .ok_or_else(|| of("no rollout"))?;
            if !close(objective, score.objective) {
                return Err(format!(
                    "{} is {}, its rollouts give {objective}",
                    of("the objective"),
                    score.objective
                ));
            }
            for (metric, cost) in &score.costs {
                let mean = self.mean(*id, metric, round).ok_or_else(|| of("no rollout"))?;
                if !close(mean, *cost) {
                    return Err(format!(
                        "{} is {cost}, its rollouts give {mean}",
                        of(&format!("the cost `{metric}`"))
                    ));
                }
            }
            let lagrangian = self.lagrangian(score, round)?;
            if !close(lagrangian, score.lagrangian) {
                return Err(format!(
                    "{} is {}, it should be {lagrangian}",
                    of("J"),
                    score.lagrangian
                ));
            }
        }
        Ok(())
    }

    fn lagrangian(&self, score: &Score, round: &RoundEvent) -> Result<f64, String> {
        let study = self.study.as_ref().ok_or("a round before the study")?;
        let mut lagrangian = score.objective;
        for (metric, multiplier) in &round.multipliers {
            let scale = study
                .study
                .constraints
                .iter()
                .find(|c| c.metric == *metric)
                .and_then(|c| c.scale);
            let threshold = self
                .thresholds
                .get(metric)
                .ok_or_else(|| format!("`{metric}` has no threshold"))?;
            let cost = score
                .costs
                .get(metric)
                .ok_or_else(|| format!("`{metric}` has no cost"))?;
            lagrangian -= multiplier * (cost - threshold) / scale.unwrap_or(1.0);
        }
        Ok(lagrangian)
    }

    /// Σ / n over the examples of the round, in the order of the study, repeats in their order.
    fn mean(&self, candidate: CandidateId, metric: &str, round: &RoundEvent) -> Option<f64> {
        let study = self.study.as_ref()?;
        let measured = self.measured.get(&(candidate, metric.to_owned()))?;
        let (name, record) = study
            .workloads
            .iter()
            .find(|(_, record)| record.metrics.iter().any(|m| m.name == metric))?;
        let examples = round
            .batch
            .as_ref()
            .and_then(|batch| batch.get(name))
            .unwrap_or(&record.optimize);
        let (mut total, mut count) = (0.0, 0_usize);
        for example in examples {
            let mut values = measured.get(example)?.clone();
            values.sort_by_key(|(repeat, _)| *repeat);
            total += values.iter().map(|(_, value)| value).sum::<f64>();
            count += values.len();
        }
        (count > 0).then(|| total / count as f64)
    }
}

/// Equal but for the last bits: a sum in another association may differ there.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}
