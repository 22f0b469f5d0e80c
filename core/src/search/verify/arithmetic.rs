//! Recomputing frozen thresholds and `round` lines from `rollout` lines with nothing but sums.
//!
//! Deliberately apart from the arena: it shares no code with what it checks.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::close::close;
use super::dual::Dual;
use crate::journal::{Event, Origin, RolloutEvent, RoundEvent, StudyEvent};
use crate::study::ids::CandidateId;
use crate::study::score::Score;
use crate::study::workload::Split;

/// One metric's values by example, each with its repeat.
type PerExample = HashMap<String, Vec<(u32, f64)>>;

/// Measurements on the optimisation split so far, and the thresholds in force.
#[derive(Default)]
pub(super) struct Arithmetic {
    study: Option<StudyEvent>,
    thresholds: IndexMap<String, f64>,
    measured: HashMap<(CandidateId, String), PerExample>,
    /// Examples of the optimisation split that count for nobody any more.
    left_out: HashSet<(String, String)>,
    seed: Option<CandidateId>,
    dual: Dual,
    thresholds_are_checked: bool,
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
            Event::Candidate(candidate) if candidate.origin == Origin::Seed => {
                self.seed.get_or_insert(candidate.id);
                Ok(())
            }
            Event::Rollout(rollout) if rollout.split == Split::Optimize => {
                self.take(rollout);
                Ok(())
            }
            Event::LeaveOut(left) if left.split == Split::Optimize => {
                // Thresholds that were frozen before are the seed's means with it.
                if self.seed_is_measured() {
                    self.end()?;
                }
                self.left_out
                    .insert((left.workload.clone(), left.example.clone()));
                Ok(())
            }
            Event::Steer(steer) => {
                for (metric, threshold) in steer.thresholds.iter().flatten() {
                    self.thresholds.insert(metric.clone(), *threshold);
                }
                if let Some(multipliers) = &steer.multipliers {
                    self.dual.steer(steer.round, multipliers);
                }
                Ok(())
            }
            Event::Round(round) => {
                self.end()?;
                self.check_round(round)?;
                let study = self.study.as_ref().ok_or("a round before the study")?;
                self.dual.check(study, &self.thresholds, round)
            }
            // A session that ended while it measured the seed froze nothing; a later one did.
            Event::Finished(_) if self.seed_is_measured() => self.end(),
            _ => Ok(()),
        }
    }

    /// Checks what must hold before the first round, or where the journal ends without one.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.thresholds_are_checked, true) {
            return Ok(());
        }
        self.check_frozen_thresholds()
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

    /// Thresholds relative to the seed are its mean costs on the whole split before round 0, times
    /// their factors: later repeats of the seed do not count.
    fn check_frozen_thresholds(&self) -> Result<(), String> {
        for (metric, factor, threshold) in self.frozen() {
            let mean = self.seed_mean(metric).ok_or_else(|| {
                format!("the threshold of `{metric}` is frozen, but the seed was not measured above")
            })?;
            if !close(factor * mean, threshold) {
                return Err(format!(
                    "the threshold of `{metric}` is {threshold}, {factor} times the seed's mean is {}",
                    factor * mean
                ));
            }
        }
        Ok(())
    }

    /// Frozen thresholds: metric, factor, threshold.
    fn frozen(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let constraints = self.study.iter().flat_map(|study| &study.study.constraints);
        constraints.filter_map(|constraint| {
            Some((
                constraint.metric.as_str(),
                constraint.relative_to_seed?,
                constraint.threshold?,
            ))
        })
    }

    fn seed_mean(&self, metric: &str) -> Option<f64> {
        let repeats = self.study.as_ref()?.study.study.repeats;
        self.mean(self.seed?, metric, None, Some(repeats))
    }

    fn seed_is_measured(&self) -> bool {
        self.frozen().all(|(metric, ..)| self.seed_mean(metric).is_some())
    }

    fn check_round(&self, round: &RoundEvent) -> Result<(), String> {
        for (id, score) in &round.scores {
            let of = |what: &str| format!("round {}: {what} of candidate {}", round.round, id.short());
            let study = self.study.as_ref().ok_or("a round before the study")?;
            let objective = self
                .mean(*id, &study.study.objective.metric, round.batch.as_ref(), None)
                .ok_or_else(|| of("no rollout"))?;
            if !close(objective, score.objective) {
                return Err(format!(
                    "{} is {}, its rollouts give {objective}",
                    of("the objective"),
                    score.objective
                ));
            }
            for (metric, cost) in &score.costs {
                let mean = self
                    .mean(*id, metric, round.batch.as_ref(), None)
                    .ok_or_else(|| of("no rollout"))?;
                if !close(mean, *cost) {
                    return Err(format!(
                        "{} is {cost}, its rollouts give {mean}",
                        of(&format!("the cost `{metric}`"))
                    ));
                }
                let margin = self
                    .margin(*id, metric, round.batch.as_ref())
                    .ok_or_else(|| of("no rollout"))?;
                let written = score.margins.get(metric).copied().unwrap_or(0.0);
                if !close(margin, written) {
                    return Err(format!(
                        "{} is {written}, its rollouts and the study's `caution` give {margin}",
                        of(&format!("the margin of `{metric}`"))
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
            let margin = score.margins.get(metric).copied().unwrap_or(0.0);
            let weighted = multiplier * (cost + margin - threshold) / scale.unwrap_or(1.0);
            lagrangian = (lagrangian - weighted.clamp(-f64::MAX, f64::MAX)).clamp(-f64::MAX, f64::MAX);
        }
        Ok(lagrangian)
    }

    /// The study's `caution` times the standard error of a mean.
    fn margin(
        &self,
        candidate: CandidateId,
        metric: &str,
        batch: Option<&IndexMap<String, Vec<String>>>,
    ) -> Option<f64> {
        let caution = self.study.as_ref()?.study.study.caution;
        let values = self.values(candidate, metric, batch, None)?;
        if caution == 0.0 || values.iter().all(|value| *value == values[0]) {
            return Some(0.0);
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = if n > 1.0 {
            (squares / (n - 1.0) / n).sqrt()
        } else {
            0.0
        };
        Some(caution * spread)
    }

    /// Mean of [`Arithmetic::values`].
    fn mean(
        &self,
        candidate: CandidateId,
        metric: &str,
        batch: Option<&IndexMap<String, Vec<String>>>,
        repeats: Option<u32>,
    ) -> Option<f64> {
        let values = self.values(candidate, metric, batch, repeats)?;
        let n = values.len() as f64;
        Some(values.iter().map(|value| value / n).sum())
    }

    /// On each example of a batch, or of the whole split, the mean over all repeats, or over the first `repeats`, which
    /// must be there then; `None` without examples.
    fn values(
        &self,
        candidate: CandidateId,
        metric: &str,
        batch: Option<&IndexMap<String, Vec<String>>>,
        repeats: Option<u32>,
    ) -> Option<Vec<f64>> {
        let study = self.study.as_ref()?;
        let measured = self.measured.get(&(candidate, metric.to_owned()))?;
        let (name, record) = study
            .workloads
            .iter()
            .find(|(_, record)| record.metrics.iter().any(|m| m.name == metric))?;
        let whole = || {
            let counts = |example: &&String| !self.left_out.contains(&(name.clone(), (*example).clone()));
            record.optimize.iter().filter(counts).collect()
        };
        let examples: Vec<&String> = match batch.and_then(|batch| batch.get(name)) {
            Some(batch) => batch.iter().collect(),
            None => whole(),
        };
        let mut means = Vec::with_capacity(examples.len());
        for example in &examples {
            let values = measured.get(*example)?.iter();
            let values: Vec<f64> = values
                .filter(|(repeat, _)| repeats.is_none_or(|repeats| *repeat < repeats))
                .map(|(_, value)| *value)
                .collect();
            if values.len() < repeats.unwrap_or(1) as usize {
                return None;
            }
            let repeats = values.len() as f64;
            means.push(values.iter().map(|value| value / repeats).sum());
        }
        (!means.is_empty()).then_some(means)
    }
}
