//! Ablation of feedback, which tells the rewriter about a parent.

use capo_core::study::{FeedbackForm, Study};

use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Variant};

/// The form of feedback.
pub(super) const FEEDBACK: Experiment = Experiment {
    name: "feedback",
    title: "Form of feedback",
    explanation: "The rewriter sees a critic's summary of failures and violations, the failing rollouts themselves, \
                  or nothing. The paper compares summary and trajectory for the learned rewriter (DCAPO) on Airline; \
                  nothing is our control.",
    study: HELP_DESK,
    least_constraints: 0,
    truth_of: None,
    vary,
    report: |runs| sweep::report(runs, SWEEP),
};

const SWEEP: Sweep = Sweep {
    axis: "feedback",
    reference: "summary",
    paper: Some("tab:trainable_rewriter_main"),
};

fn vary(base: &Study) -> Vec<Variant> {
    let forms = [
        ("summary", FeedbackForm::Summary),
        ("trajectory", FeedbackForm::Trajectory),
        ("none", FeedbackForm::None),
    ];
    forms
        .map(|(key, form)| Variant::of(base, key, key, |study| study.feedback.form = form))
        .into()
}
