//! Ablation of the dual step, by which a measured violation moves its multiplier.

use capo_core::dual::DualStepName;
use capo_core::study::Study;
use serde_json::json;

use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Variant};

/// The dual step.
pub(super) const DUAL_STEP: Experiment = Experiment {
    name: "dual-step",
    title: "Dual step",
    explanation: "`subgradient` moves a multiplier by the size of its residual (the paper's rule), `count` by its sign \
                  alone, `pid` adds the residual's sum and growth, `augmented` also adds a quadratic term to the \
                  ranking, `fixed` leaves every multiplier at its start. The paper compares size and sign on Telecom \
                  and Retail.",
    study: HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report: |runs| sweep::report(runs, SWEEP),
};

const SWEEP: Sweep = Sweep {
    axis: "dual step",
    reference: "subgradient",
    paper: Some("tab:ablations_alt_retail_telecom"),
};

fn vary(base: &Study) -> Vec<Variant> {
    let variant = |step: &DualStepName| {
        let step = step.to_string();
        Variant::of(base, &step, &step, |study| {
            study.method.insert("dual_step".into(), json!(step));
        })
    };
    DualStepName::ALL.iter().map(variant).collect()
}
