//! Plots of the returned prompts, variant by variant.

use capo_core::estimate::Estimate;

use super::labelled;
use crate::cli::layout::counted;
use crate::experiment::figure::{Axis, Figure, Panel, Point, Series, Threshold};
use crate::experiment::record::{Outcome, RunRecord, Runs};

/// Objective, costs and feasibility of the returned prompts, variant by variant.
pub(in crate::experiment) fn outcomes(runs: &Runs, axis: &str) -> Figure {
    let names: Vec<String> = runs
        .variants
        .iter()
        .map(|variant| variant.label.clone())
        .collect();
    let x = || Axis::Categories {
        label: axis.to_owned(),
        names: names.clone(),
    };
    let mut objective = Panel::new(
        format!("Objective: {}", runs.base.objective.metric),
        x(),
        labelled("mean", runs.unit(&runs.base.objective.metric)),
    );
    objective.series = both_splits(runs, |outcome| Some(outcome.objective));
    let mut panels = vec![objective];
    for metric in runs.constraints() {
        let mut panel = Panel::new(
            format!("Cost: {metric}"),
            x(),
            labelled("mean", runs.unit(metric)),
        );
        panel.series = both_splits(runs, |outcome| outcome.cost(metric));
        panel.thresholds = thresholds_by_variant(runs, metric);
        panels.push(panel);
    }
    let mut feasible = Panel::new("Every threshold met", x(), "share of seeds");
    feasible.y_range = Some((0.0, 1.0));
    feasible.series = SPLITS
        .iter()
        .map(|split| Series {
            points: runs
                .variants
                .iter()
                .enumerate()
                .filter_map(|(at, variant)| {
                    let share = runs.all_sat(variant, split.outcome);
                    Some(Point {
                        x: at as f64 + split.offset,
                        y: share.fraction()?,
                        interval: share.wilson()?,
                    })
                })
                .collect(),
            ..split.series()
        })
        .collect();
    panels.push(feasible);
    Figure {
        name: "outcomes".into(),
        title: format!("{}: returned prompts by {axis}", runs.base.study.name),
        caption: format!(
            "Mean over {}; bars are one standard error over seeds, not over examples; for shares Wilson's 95 % \
             interval.",
            counted(runs.seeds() as u64, "seed")
        ),
        panels,
    }
}

/// A split's place in the plots of outcomes.
struct SplitMark {
    label: &'static str,
    style: usize,
    /// Moves its points aside, so that bars of the two splits do not cover each other.
    offset: f64,
    outcome: fn(&RunRecord) -> Option<&Outcome>,
}

impl SplitMark {
    fn series(&self) -> Series {
        Series {
            label: self.label.to_owned(),
            style: self.style,
            joined: false,
            points: Vec::new(),
        }
    }
}

const SPLITS: [SplitMark; 2] = [
    SplitMark {
        label: "optimisation split",
        style: 0,
        offset: -0.08,
        outcome: |record| record.optimize.as_ref(),
    },
    SplitMark {
        label: "held out",
        style: 1,
        offset: 0.08,
        outcome: |record| record.evaluate.as_ref(),
    },
];

fn both_splits(runs: &Runs, value: impl Fn(&Outcome) -> Option<f64>) -> Vec<Series> {
    SPLITS
        .iter()
        .map(|split| Series {
            points: runs
                .variants
                .iter()
                .enumerate()
                .filter_map(|(at, variant)| {
                    let values: Vec<f64> = runs
                        .of(variant)
                        .filter_map(split.outcome)
                        .filter_map(&value)
                        .collect();
                    Some(Point::estimate(at as f64 + split.offset, Estimate::of(&values)?))
                })
                .collect(),
            ..split.series()
        })
        .collect()
}

/// One dashed line, or one for each variant where the variants differ in their threshold.
fn thresholds_by_variant(runs: &Runs, metric: &str) -> Vec<Threshold> {
    if let Some(value) = Runs::common_threshold(metric, runs.records) {
        return vec![Threshold::common(value)];
    }
    runs.variants
        .iter()
        .enumerate()
        .filter_map(|(at, variant)| {
            let value = Runs::common_threshold(metric, runs.of(variant))?;
            Some(Threshold {
                value,
                span: Some((at as f64 - 0.4, at as f64 + 0.4)),
                style: None,
            })
        })
        .collect()
}
