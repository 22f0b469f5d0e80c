//! Claims of the page on its scenes, tested on the searches it runs.

use capo_core::dual::DualStepName;

use super::behaviour::{costs, feasible, overshoot, reading, release, remark, up_to};
use super::behaviour::{highest, lowest, multipliers};
use super::setting::{REQUESTS, ROUNDS, SCENES, Setting, TOOLS};
use crate::charts::series::RoundValue;
use crate::run::fixture;
use crate::run::series::Series;

fn searched(setting: &Setting) -> Series {
    let state = fixture::fold(&fixture::events_of(setting.study().unwrap(), None));
    Series::new(&state).unwrap()
}

fn side(scene: &str, side: usize) -> (Setting, Series) {
    let scene = SCENES.iter().find(|other| other.name == scene).unwrap();
    let setting = scene.settings[side];
    (setting, searched(&setting))
}

fn values(values: &[f64]) -> Vec<RoundValue> {
    (0..)
        .zip(values)
        .map(|(round, value)| RoundValue { round, value: *value })
        .collect()
}

#[test]
fn a_threshold_out_of_reach_saturates_at_the_cap() {
    let (setting, series) = side("Out of reach", 1);
    let of = series.constraint(REQUESTS).unwrap();
    let since = of.at_cap_since().unwrap();
    assert_eq!(of.multipliers[since as usize], Some(setting.lambda_max));
    assert_eq!(feasible(&series).first, None);
    assert_eq!(feasible(&series).words(), format!("in all {} rounds", ROUNDS + 1));
    let words = reading(&series, &setting);
    assert!(words.contains("out of reach of this rewriter"), "{words}");
    let (_, is_above, words) = remark(&series, of).unwrap();
    assert!(is_above && words.contains("still"), "{words}");
    // Before that round nothing is saturated.
    let early = up_to(&series, since - 1);
    assert_eq!(early.constraint(REQUESTS).unwrap().at_cap_since(), None);
    assert_eq!(early.rounds.len(), since as usize);
}

#[test]
fn an_attainable_threshold_is_kept_and_its_multiplier_let_go() {
    let (setting, series) = side("Out of reach", 0);
    assert!(feasible(&series).first.is_some_and(|first| first > 0));
    let of = series.constraint(TOOLS).unwrap();
    assert!(overshoot(&costs(&series, of), setting.tools).is_some());
    assert!(release(&multipliers(of)).is_some());
    let words = reading(&series, &setting);
    assert!(words.contains("overshoots to"), "{words}");
    assert!(words.contains("slack lets the multiplier down"), "{words}");
}

#[test]
fn a_large_step_swings_higher_than_a_small_one() {
    let peak = |which| {
        let (_, series) = side("Overshoot and slack release", which);
        highest(&multipliers(series.constraint(TOOLS).unwrap()))
            .unwrap()
            .value
    };
    assert!(peak(1) > 2.0 * peak(0));
}

#[test]
fn fixed_weights_find_less() {
    let (setting, fixed) = side("Fixed weights fail", 1);
    assert_eq!(setting.step, DualStepName::Fixed);
    for of in &fixed.constraints {
        assert!(
            of.multipliers
                .iter()
                .flatten()
                .all(|multiplier| *multiplier == 1.0)
        );
    }
    let (_, answering) = side("Fixed weights fail", 0);
    assert!(feasible(&answering).rounds > feasible(&fixed).rounds);
    let words = reading(&fixed, &setting);
    assert!(words.starts_with("The multipliers stay at 1.00"), "{words}");
}

#[test]
fn overshoot_counts_only_after_a_round_over() {
    let costs = values(&[0.2, 0.9, 0.5, 0.3, 0.6]);
    assert_eq!(overshoot(&costs, 0.55).unwrap().round, 3);
    assert_eq!(overshoot(&values(&[0.9, 0.5, 0.3]), 0.55), None);
    assert_eq!(lowest(&costs).unwrap().round, 0);
}

#[test]
fn release_is_a_fall_to_half_the_peak() {
    assert_eq!(release(&values(&[1.0, 4.0, 3.0, 1.5, 2.0])).unwrap().round, 3);
    assert_eq!(release(&values(&[1.0, 4.0, 3.0])), None);
    assert_eq!(release(&[]), None);
}
