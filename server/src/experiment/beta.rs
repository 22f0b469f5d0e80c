//! Ablation of the dual rate β, by which multipliers move.

use capo_core::study::Study;
use serde_json::json;

use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Variant};

/// The dual rate β.
pub(super) const BETA: Experiment = Experiment {
    name: "beta",
    title: "Dual rate β",
    explanation: "β scales each dual step: a small rate answers a violation late, a large one overshoots under noise. \
                  The paper tries 0.5, 2, 4 and 8 and finds 4 the only rate that is feasible in both domains it \
                  reports.",
    study: HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report: |runs| sweep::report(runs, SWEEP),
};

const SWEEP: Sweep = Sweep {
    axis: "dual rate β",
    reference: "4",
    paper: Some("tab:lambda_lr_sweep"),
};

fn vary(base: &Study) -> Vec<Variant> {
    let variant = |beta: f64| {
        Variant::of(base, beta.to_string(), format!("β = {beta}"), |study| {
            study.method.insert("beta".into(), json!(beta));
        })
    };
    [0.5, 2.0, 4.0, 8.0].map(variant).into()
}
