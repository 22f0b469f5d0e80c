//! Checking what was decided on rollouts that could not be made: each must have failed, and one that
//! counts as the worst value must measure nothing better.

use std::collections::{HashMap, HashSet};

use crate::journal::{EffectName, Event, RolloutEvent, StudyEvent, not_finite};
use crate::study::ids::CandidateId;
use crate::study::metric::{Direction, LARGEST_MEASUREMENT, MetricSpec, PROMPT_LENGTH};
use crate::study::workload::Split;

/// What was measured and what failed so far.
#[derive(Default)]
pub(super) struct Worst {
    metrics: HashMap<String, Vec<MetricSpec>>,
    /// The worst value of each metric by split and workload.
    measured: HashMap<(Split, String, String), f64>,
    failed: HashSet<(CandidateId, Split, String, String)>,
    /// Whether anything was measured whose square leaves the range of numbers.
    has_huge: bool,
}

impl Worst {
    /// Takes a line in, or says what does not follow from the lines above it.
    pub(super) fn check(&mut self, event: &Event) -> Result<(), String> {
        if let Some(number) = not_finite(event).filter(|_| !self.has_huge) {
            return Err(format!("{number}, and nothing above explains that"));
        }
        match event {
            Event::Study(study) => self.metrics = metrics(study),
            // Nothing is decided for what says nothing of a prompt or an example.
            Event::Failure(failure) if failure.kind.is_of_everything() => {}
            Event::Failure(failure) => {
                if let EffectName::Rollout {
                    candidate,
                    split,
                    workload,
                    example,
                    ..
                } = &failure.of
                {
                    self.failed
                        .insert((*candidate, *split, workload.clone(), example.clone()));
                }
            }
            Event::Discard(discard) => {
                let has_failed = |(candidate, ..): &(CandidateId, _, _, _)| *candidate == discard.candidate;
                self.failed.iter().any(has_failed).then_some(()).ok_or_else(|| {
                    let candidate = discard.candidate.short();
                    format!("candidate {candidate} was discarded, but none of its rollouts failed")
                })?;
            }
            Event::LeaveOut(left) => {
                self.must_have_failed(left.candidate, left.split, &left.workload, &left.example)?;
            }
            Event::Rollout(rollout) => {
                if rollout.failed.is_some() {
                    self.must_have_failed(
                        rollout.candidate,
                        rollout.split,
                        &rollout.workload,
                        &rollout.example,
                    )?;
                    self.must_be_worst(rollout)?;
                }
                self.take(rollout);
            }
            _ => {}
        }
        Ok(())
    }

    fn must_have_failed(
        &self,
        candidate: CandidateId,
        split: Split,
        workload: &str,
        example: &str,
    ) -> Result<(), String> {
        let place = (candidate, split, workload.to_owned(), example.to_owned());
        if self.failed.contains(&place) {
            return Ok(());
        }
        Err(format!(
            "example `{example}` counts as failed for candidate {}, but no `failure` line says so",
            candidate.short()
        ))
    }

    fn must_be_worst(&self, rollout: &RolloutEvent) -> Result<(), String> {
        for spec in self.metrics.get(&rollout.workload).into_iter().flatten() {
            let bound = match spec.direction {
                Direction::Objective => spec.min,
                Direction::Cost => spec.max,
            };
            let place = (rollout.split, rollout.workload.clone(), spec.name.clone());
            let worst = bound.or_else(|| self.measured.get(&place).copied());
            let value = rollout.measurements.get(&spec.name).copied();
            if let Some((worst, value)) = worst.zip(value).filter(|_| spec.name != PROMPT_LENGTH)
                && worse(spec.direction, value, worst) != value
            {
                return Err(format!(
                    "example `{}` failed and counts as the worst value, but `{}` is {value}, the worst is {worst}",
                    rollout.example, spec.name
                ));
            }
        }
        Ok(())
    }

    fn take(&mut self, rollout: &RolloutEvent) {
        self.has_huge |= rollout
            .measurements
            .values()
            .any(|value| value.abs() > LARGEST_MEASUREMENT);
        for spec in self.metrics.get(&rollout.workload).into_iter().flatten() {
            if let Some(value) = rollout.measurements.get(&spec.name) {
                let place = (rollout.split, rollout.workload.clone(), spec.name.clone());
                let worst = self.measured.entry(place).or_insert(*value);
                *worst = worse(spec.direction, *worst, *value);
            }
        }
    }
}

fn metrics(study: &StudyEvent) -> HashMap<String, Vec<MetricSpec>> {
    let workloads = study.workloads.iter();
    workloads
        .map(|(name, record)| (name.clone(), record.metrics.clone()))
        .collect()
}

fn worse(direction: Direction, a: f64, b: f64) -> f64 {
    match direction {
        Direction::Objective => a.min(b),
        Direction::Cost => a.max(b),
    }
}
