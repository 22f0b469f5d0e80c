//! Ablation of caution κ, and of how sure the final choice is.

use capo_core::study::Study;

use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Variant};

/// Caution κ and the probability p of the final choice.
pub(super) const CAUTION: Experiment = Experiment {
    name: "caution",
    title: "Caution",
    explanation: "κ standard errors are added to every measured cost while the search compares prompts, moves \
                  multipliers and asks for rewrites; p is the predictive probability of holding that the final choice \
                  asks of a prompt. Zero and zero are the paper's rule, which hands over prompts at the edge of what \
                  was measured.",
    study: HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report: |runs| sweep::report(runs, SWEEP),
};

pub(super) const PAPER: (f64, f64) = (0.0, 0.0);

/// Those that the shipped studies state, chosen on seeds 500 to 539 of the five studies of `cargo xtask bench feasible`.
pub(super) const CAUTIOUS: (f64, f64) = (1.64, 0.8);

/// κ and p by variant.
const SETTINGS: [(f64, f64); 7] = [
    PAPER,
    (0.0, 0.8),
    (0.5, 0.8),
    (1.0, 0.8),
    (1.0, 0.9),
    CAUTIOUS,
    (1.64, 0.9),
];

const SWEEP: Sweep = Sweep {
    axis: "caution κ, probability p",
    reference: "0-0",
    paper: None,
};

/// Sets κ and p.
pub(super) fn set(study: &mut Study, (caution, probability): (f64, f64)) {
    (study.study.caution, study.study.choice_probability) = (caution, probability);
}

fn vary(base: &Study) -> Vec<Variant> {
    let variant = |(caution, probability): (f64, f64)| {
        let label = format!("κ = {caution}, p = {probability}");
        Variant::of(base, format!("{caution}-{probability}"), label, |study| {
            set(study, (caution, probability));
        })
    };
    SETTINGS.map(variant).into()
}
