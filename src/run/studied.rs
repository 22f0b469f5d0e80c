//! The metrics of a study, with how they are shown and where they are measured.

use capo_core::metric::{MetricSpec, PROMPT_LENGTH};
use capo_core::run_state::RunState;
use capo_core::study::Constraint;

use super::rounds::{ScreenRound, on_screen};
use crate::format::{self, Quantity};

/// A metric that a run's workloads measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Studied {
    /// The metric.
    pub spec: MetricSpec,
    /// How its values are written.
    pub quantity: Quantity,
    /// What it has to do with the study.
    pub part: Part,
    /// Position of the workload that measures it.
    pub(super) workload: u16,
    /// Position among that workload's metrics.
    pub(super) position: usize,
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
        /// The first round on screen in which it counts; 0 from the seed on.
        enters: ScreenRound,
    },
    /// It is only measured.
    Measured,
}

impl Studied {
    /// Its name in study files and journals.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its name as a title: "Human requests".
    pub fn label(&self) -> String {
        format::label(&self.spec.name)
    }

    /// Its name within a sentence: "human requests".
    pub fn phrase(&self) -> String {
        format::phrase(&self.spec.name)
    }

    /// The title of its axis with its unit: "% of examples".
    pub fn axis(&self) -> String {
        match self.quantity {
            Quantity::Rate => "% of examples".into(),
            Quantity::Thousands if self.name() == PROMPT_LENGTH => "thousand characters".into(),
            quantity => quantity.unit(&self.spec),
        }
    }

    /// Whether it is kept at or below a threshold.
    pub fn is_constraint(&self) -> bool {
        matches!(self.part, Part::Constraint { .. })
    }
}

/// What the run maximises; `None` for an empty journal.
pub fn objective(state: &RunState) -> Option<Studied> {
    find(state, &state.study()?.study.objective.metric, Part::Objective)
}

/// What the run keeps at or below thresholds, in the study's order.
pub fn constraints(state: &RunState) -> Vec<Studied> {
    let written = state.study().map(|event| event.study.constraints.as_slice());
    let constraints = written.unwrap_or_default().iter();
    constraints
        .filter_map(|constraint| find(state, &constraint.metric, part(state, constraint)))
        .collect()
}

/// What a run maximises and what it keeps at or below thresholds, found once for many prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct Aims {
    /// What it maximises.
    pub objective: Studied,
    /// What it keeps at or below thresholds, in the study's order.
    pub constraints: Vec<Studied>,
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
    pub fn iter(&self) -> impl Iterator<Item = &Studied> {
        std::iter::once(&self.objective).chain(&self.constraints)
    }
}

/// The objective, then the constraints.
pub fn metrics(state: &RunState) -> Vec<Studied> {
    objective(state).into_iter().chain(constraints(state)).collect()
}

/// The objective, then the constraints, then everything else that is measured.
pub fn all(state: &RunState) -> Vec<Studied> {
    let mut all = metrics(state);
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
pub fn named(state: &RunState, name: &str) -> Option<Studied> {
    all(state).into_iter().find(|metric| metric.name() == name)
}

fn part(state: &RunState, constraint: &Constraint) -> Part {
    let default = || find(state, &constraint.metric, Part::Measured).map(|found| found.spec.default_scale);
    Part::Constraint {
        scale: constraint.scale.or_else(default).unwrap_or(1.0),
        enters: match constraint.from_round {
            0 => 0,
            round => on_screen(round),
        },
    }
}

/// The first workload that measures a metric is the one that counts.
fn find(state: &RunState, metric: &str, part: Part) -> Option<Studied> {
    let workloads = &state.study()?.workloads;
    (0..).zip(workloads.values()).find_map(|(workload, record)| {
        let position = record.metrics.iter().position(|spec| spec.name == metric)?;
        let spec = record.metrics[position].clone();
        Some(Studied {
            quantity: Quantity::of(&spec),
            spec,
            part,
            workload,
            position,
        })
    })
}
