//! Constraints that enter later.

use capo_core::study::{Rounds, Study};

use super::record::Runs;
use super::sweep::{self, Sweep};
use super::{Experiment, Report, Shipped, Variant};

/// All constraints at once against one after the other.
pub(super) const PROGRESSIVE: Experiment = Experiment {
    name: "progressive",
    title: "Progressive constraints",
    explanation: "A constraint enters halfway with multiplier 0 while pool and other multipliers are kept, against all \
                  constraints from the first round, both with equally many rounds. The constraints that enter late \
                  are those with `from_round`, else the last one. The paper shows curves for the chatbot (12 rounds, \
                  length enters after the sixth) and prints no figures.",
    study: Shipped {
        file: "progressive.toml",
        text: include_str!("../../../studies/progressive.toml"),
        rounds: Some(12),
    },
    least_constraints: 2,
    truth_of: None,
    vary,
    report,
};

/// The round after which the paper lets its late constraint enter; used when the study's end is
/// open and there is no halfway.
const PAPER_HALFWAY: u32 = 6;

const SWEEP: Sweep = Sweep {
    axis: "schedule",
    reference: "simultaneous",
    paper: None,
};

fn vary(base: &Study) -> Vec<Variant> {
    let simultaneous = Variant::of(base, "simultaneous", "simultaneous", |study| {
        study
            .constraints
            .iter_mut()
            .for_each(|constraint| constraint.from_round = 0);
    });
    let mut progressive = Variant::of(base, "progressive", "progressive", |_| ());
    if base
        .constraints
        .iter()
        .all(|constraint| constraint.from_round == 0)
    {
        let halfway = match base.study.rounds {
            Rounds::Count(rounds) => rounds.div_ceil(2),
            Rounds::Open(_) => PAPER_HALFWAY,
        };
        if let Some(last) = progressive.study.constraints.last_mut() {
            last.from_round = halfway;
        }
    }
    vec![simultaneous, progressive]
}

fn report(runs: &Runs) -> Report {
    let mut report = sweep::report(runs, SWEEP);
    let late: Vec<(f64, String)> = runs
        .variants
        .iter()
        .flat_map(|variant| &variant.study.constraints)
        .filter(|constraint| constraint.from_round > 0)
        .map(|constraint| {
            (
                f64::from(constraint.from_round),
                format!("{} enters", constraint.metric),
            )
        })
        .collect();
    for panel in report
        .figures
        .iter_mut()
        .filter(|figure| figure.name != "outcomes")
        .flat_map(|f| &mut f.panels)
    {
        panel.marks.clone_from(&late);
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixture;

    #[test]
    fn the_last_constraint_enters_halfway_unless_the_study_says_otherwise() {
        let mut study = fixture::study();
        let last = study.constraints.len() - 1;
        let rounds = |study: &Study| -> Vec<u32> { study.constraints.iter().map(|c| c.from_round).collect() };
        let made = PROGRESSIVE.variants(&study).unwrap();
        assert_eq!(rounds(&made[0].study), vec![0; last + 1]);
        assert_eq!(made[1].study.constraints[last].from_round, 3);

        study.constraints[0].from_round = 2;
        let made = PROGRESSIVE.variants(&study).unwrap();
        assert_eq!(made[0].study.constraints[0].from_round, 0);
        assert_eq!(rounds(&made[1].study), rounds(&study));
    }
}
