//! Ablation of how tight one threshold is.

use capo_core::metric::PROMPT_LENGTH;
use capo_core::study::{Constraint, Study};

use super::figure::Figure;
use super::record::Runs;
use super::sweep::{self, Sweep};
use super::{Experiment, HELP_DESK, Report, Variant};

/// One threshold, loosened and tightened.
pub(super) const THRESHOLD: Experiment = Experiment {
    name: "threshold",
    title: "Tightness of one threshold",
    explanation: "One threshold (that of `excess_tools` where the study has it, else of the first constraint that \
                  is not the prompt's length) is multiplied by 2, 1 and 0.5. The paper does so for ToolEx on Airline: the tighter the threshold, \
                  the larger the final multiplier, until it sits at its cap and no prompt is feasible.",
    study: HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report,
};

const SWEEP: Sweep = Sweep {
    axis: "threshold (× the study's)",
    reference: "1",
    paper: Some("tab:tol_ablation"),
};

/// The metric the paper tightens.
const PREFERRED: &str = "excess_tools";

/// Position of the constraint that is varied.
fn varied(study: &Study) -> Option<usize> {
    let position = |wanted: &dyn Fn(&Constraint) -> bool| study.constraints.iter().position(wanted);
    position(&|constraint| constraint.metric == PREFERRED)
        .or_else(|| position(&|constraint| constraint.metric != PROMPT_LENGTH))
        .or_else(|| position(&|_| true))
}

fn vary(base: &Study) -> Vec<Variant> {
    let Some(at) = varied(base) else {
        return Vec::new();
    };
    let variant = |factor: f64| {
        Variant::of(base, factor.to_string(), format!("×{factor}"), |study| {
            let constraint = &mut study.constraints[at];
            match &mut constraint.relative_to_seed {
                // A frozen threshold follows from this one and is measured again.
                Some(relative) => {
                    *relative *= factor;
                    constraint.threshold = None;
                }
                None => {
                    constraint.threshold = constraint.threshold.map(|threshold| threshold * factor);
                }
            }
        })
    };
    [2.0, 1.0, 0.5].map(variant).into()
}

fn report(runs: &Runs) -> Report {
    let mut report = sweep::report(runs, SWEEP);
    if let Some(at) = varied(runs.base) {
        report
            .figures
            .insert(0, pressure(runs, &runs.base.constraints[at].metric));
    }
    report
}

/// Objective, the varied cost, the Lagrangian score and the varied multiplier by round.
fn pressure(runs: &Runs, metric: &str) -> Figure {
    let whole = sweep::trajectories(runs);
    let wanted = [
        format!("Objective: {}", runs.base.objective.metric),
        format!("Cost: {metric}"),
    ];
    let mut panels: Vec<_> = whole
        .panels
        .into_iter()
        .filter(|panel| wanted.contains(&panel.title))
        .collect();
    panels.push(sweep::lagrangian_panel(runs));
    panels.push(sweep::multiplier_panel(runs, metric));
    Figure {
        name: "pressure".into(),
        title: format!("{}: tightening {metric}", runs.base.study.name),
        caption: whole.caption,
        panels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixture;

    #[test]
    fn the_paper_s_metric_is_varied_where_it_is_constrained() {
        let study = fixture::study();
        let variants = THRESHOLD.variants(&study).unwrap();
        let thresholds: Vec<f64> = variants
            .iter()
            .map(|v| v.study.constraints[1].threshold.unwrap())
            .collect();
        assert_eq!(study.constraints[1].metric, PREFERRED);
        assert_eq!(thresholds, [2.1, 1.05, 0.525]);
        assert!(
            variants
                .iter()
                .all(|v| v.study.constraints[0] == study.constraints[0])
        );
    }

    #[test]
    fn a_relative_threshold_is_scaled_as_a_factor() {
        let mut study = fixture::study();
        study.constraints.truncate(1);
        study.constraints[0].relative_to_seed = Some(0.8);
        let variants = THRESHOLD.variants(&study).unwrap();
        assert_eq!(variants[2].study.constraints[0].relative_to_seed, Some(0.4));
        assert_eq!(variants[2].study.constraints[0].threshold, None);
    }
}
