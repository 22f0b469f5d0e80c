//! The metrics of a study: what it maximises, what it keeps at or below thresholds, what else is measured.

use crate::journal::run_state::RunState;
use crate::study::Constraint;
use crate::study::ids::Round;
use crate::study::metric::MetricSpec;

/// A metric that a run's workloads measure.
#[derive(Debug, Clone, PartialEq)]
pub struct StudiedMetric {
    /// The metric.
    pub spec: MetricSpec,
    /// What it has to do with the study.
    pub part: Part,
    /// Position of the workload that measures it, from 0: the first one that does.
    pub workload: u16,
    /// Position among that workload's metrics, from 0.
    pub position: usize,
}

/// What a metric has to do with a study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// It is what to maximise.
    Objective,
    /// It is kept at or below a threshold.
    Constraint {
        /// s > 0: a residual is (cost − threshold) / scale.
        scale: f64,
        /// The first round of the journal in which it counts.
        from_round: Round,
    },
    /// It is only measured.
    Measured,
}

impl StudiedMetric {
    /// Its name in study files and journals.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether it is kept at or below a threshold.
    pub fn is_constraint(&self) -> bool {
        matches!(self.part, Part::Constraint { .. })
    }
}

/// What a run maximises and what it keeps at or below thresholds, found once for many prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct Aims {
    /// What it maximises.
    pub objective: StudiedMetric,
    /// What it keeps at or below thresholds, in the study's order.
    pub constraints: Vec<StudiedMetric>,
}

impl Aims {
    /// The aims of a run; `None` for an empty journal.
    pub fn of(state: &RunState) -> Option<Self> {
        Some(Self {
            objective: objective(state)?,
            constraints: constraints(state),
        })
    }

    /// The objective, then the constraints.
    pub fn iter(&self) -> impl Iterator<Item = &StudiedMetric> {
        std::iter::once(&self.objective).chain(&self.constraints)
    }
}

/// What the run maximises; `None` for an empty journal.
pub fn objective(state: &RunState) -> Option<StudiedMetric> {
    find(state, &state.study()?.study.objective.metric, Part::Objective)
}

/// What the run keeps at or below thresholds, in the study's order.
pub fn constraints(state: &RunState) -> Vec<StudiedMetric> {
    let written = state.study().map(|event| event.study.constraints.as_slice());
    let constraints = written.unwrap_or_default().iter();
    constraints
        .filter_map(|constraint| find(state, &constraint.metric, part(state, constraint)))
        .collect()
}

/// The objective, then the constraints.
pub fn of_study(state: &RunState) -> Vec<StudiedMetric> {
    objective(state).into_iter().chain(constraints(state)).collect()
}

/// The objective, then the constraints, then everything else that is measured.
pub fn all(state: &RunState) -> Vec<StudiedMetric> {
    let mut all = of_study(state);
    let records = state.study().map(|event| &event.workloads);
    for spec in records
        .into_iter()
        .flatten()
        .flat_map(|(_, record)| &record.metrics)
    {
        if all.iter().all(|known| known.spec.name != spec.name) {
            all.extend(find(state, &spec.name, Part::Measured));
        }
    }
    all
}

/// A metric by its name.
pub fn named(state: &RunState, name: &str) -> Option<StudiedMetric> {
    all(state).into_iter().find(|metric| metric.name() == name)
}

fn part(state: &RunState, constraint: &Constraint) -> Part {
    let default = || find(state, &constraint.metric, Part::Measured).map(|found| found.spec.default_scale);
    Part::Constraint {
        scale: constraint.scale.or_else(default).unwrap_or(1.0),
        from_round: constraint.from_round,
    }
}

fn find(state: &RunState, metric: &str, part: Part) -> Option<StudiedMetric> {
    let workloads = &state.study()?.workloads;
    (0..).zip(workloads.values()).find_map(|(workload, record)| {
        let position = record.metrics.iter().position(|spec| spec.name == metric)?;
        Some(StudiedMetric {
            spec: record.metrics[position].clone(),
            part,
            workload,
            position,
        })
    })
}
