//! Noise in the costs that gate feasibility and drive the multipliers.

use capo_core::study::Study;
use serde_json::json;

use super::figure::{Axis, Figure, Panel, Point, Series};
use super::record::{RunRecord, Runs};
use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Report, Variant};

/// Gaussian noise on the costs of the dual step.
pub(super) const NOISE: Experiment = Experiment {
    name: "noise",
    title: "Noisy dual feedback",
    explanation: "N(0, σ²) is added to the costs used for the feasibility gate and the dual step; ranking and the \
                  final evaluation stay clean. In the paper Retail stays feasible under mild noise, Airline and \
                  Telecom do not.",
    study: HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report,
};

const SWEEP: Sweep = Sweep {
    axis: "noise σ",
    reference: "0",
    paper: Some("tab:noise_robustness"),
};

fn vary(base: &Study) -> Vec<Variant> {
    let variant = |sigma: f64| {
        Variant::of(base, sigma.to_string(), format!("σ = {sigma}"), |study| {
            study.method.insert("noise".into(), json!(sigma));
        })
    };
    [0.0, 0.5, 2.0].map(variant).into()
}

fn report(runs: &Runs) -> Report {
    let mut report = sweep::report(runs, SWEEP);
    report.figures.insert(0, trade_off(runs));
    report
}

/// Objective against the worst normalised residual, run by run: left of zero is feasible.
fn trade_off(runs: &Runs) -> Figure {
    let x = Axis::Values {
        label: "worst (cost − threshold) ÷ threshold, held out".into(),
    };
    let y = sweep::labelled(&runs.base.objective.metric, "held-out mean");
    let mut panel = Panel::new("Objective against the worst violation", x, y);
    panel.series = runs
        .variants
        .iter()
        .enumerate()
        .map(|(style, variant)| Series {
            label: variant.label.clone(),
            style,
            joined: false,
            points: runs
                .of(variant)
                .filter_map(|record| {
                    let objective = record.evaluate.as_ref()?.objective;
                    Some(Point::exact(worst_residual(record)?, objective))
                })
                .collect(),
        })
        .collect();
    panel.marks = vec![(0.0, "infeasible →".into())];
    Figure {
        name: "trade-off".into(),
        title: format!(
            "{}: returned prompts under noisy dual feedback",
            runs.base.study.name
        ),
        caption: "One mark per seed; left of the dotted line and on it every threshold above zero is met."
            .into(),
        panels: vec![panel],
    }
}

/// The largest (cost − threshold) / threshold over the constraints with a threshold above zero.
fn worst_residual(record: &RunRecord) -> Option<f64> {
    let outcome = record.evaluate.as_ref()?;
    outcome
        .costs
        .iter()
        .filter_map(|(metric, cost)| {
            let threshold = *record.thresholds.get(metric)?;
            (threshold > 0.0).then(|| cost / threshold - 1.0)
        })
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixture;

    #[test]
    fn the_worst_residual_is_relative_to_its_threshold() {
        let mut record = fixture::record("0", 0, 0.5);
        record.thresholds = [("a".to_owned(), 2.0), ("b".to_owned(), 0.1)].into();
        record.evaluate.as_mut().unwrap().costs = [("a".to_owned(), 2.5), ("b".to_owned(), 0.09)].into();
        assert!((worst_residual(&record).unwrap() - 0.25).abs() < 1e-12);
    }
}
