//! Settings and splits.

use std::collections::{BTreeMap, BTreeSet};

use capo_core::llm::Role;
use capo_core::workload::{Split, Workload};
use proptest::prelude::*;
use serde_json::json;

use super::agents::{calls, playing, says};
use super::{Desk, DeskSettings, UserKind, rollout, value};
use crate::desk::DeskError;

#[test]
fn splits_that_cannot_be_are_refused() {
    let with = |optimize, evaluate| {
        Desk::new(DeskSettings {
            optimize,
            evaluate,
            ..DeskSettings::default()
        })
        .err()
    };
    assert_eq!(with(0, 40), Some(DeskError::EmptySplit { split: "optimize" }));
    assert_eq!(with(74, 0), Some(DeskError::EmptySplit { split: "evaluate" }));
    let error = with(284_961, 40).unwrap();
    assert!(
        error.to_string().contains("need 285001 tasks") && error.to_string().contains("285000"),
        "{error}"
    );
    assert!(with(usize::MAX, usize::MAX).is_some());
    let error = with(284_000, 999).unwrap().to_string();
    assert!(
        error.contains("optimize = 284000") && error.contains("at most 20000"),
        "{error}"
    );
    for max_steps in [0, 201] {
        let error = Desk::new(DeskSettings {
            max_steps,
            ..DeskSettings::default()
        })
        .err();
        assert_eq!(error, Some(DeskError::Steps(max_steps)));
    }
}

#[test]
fn unknown_settings_are_refused_and_absent_ones_are_the_defaults() {
    let settings: DeskSettings = serde_json::from_str(r#"{"user": "llm"}"#).unwrap();
    assert_eq!(
        settings,
        DeskSettings {
            user: UserKind::Llm,
            ..DeskSettings::default()
        }
    );
    assert!(serde_json::from_str::<DeskSettings>(r#"{"optimise": 3}"#).is_err());
}

/// `excess_tools` is measured in the mean reference calls of the split.
#[test]
fn a_rollout_depends_on_the_split_that_its_calls_are_measured_by() {
    let content = |optimize, max_steps| {
        let settings = DeskSettings {
            optimize,
            max_steps,
            ..DeskSettings::default()
        };
        let desk = Desk::new(settings).unwrap();
        let contents = desk.contents(Split::Optimize).unwrap();
        assert_eq!(contents.len(), desk.examples(Split::Optimize).len());
        contents[0].clone()
    };
    assert_eq!(content(74, 30), content(74, 30));
    assert_ne!(content(74, 30), content(73, 30));
    assert_ne!(content(74, 30), content(74, 29));
}

#[test]
fn the_estimate_counts_the_customers_model() {
    let calls = |user| {
        Desk::new(DeskSettings {
            user,
            max_steps: 9,
            ..DeskSettings::default()
        })
        .unwrap()
        .max_calls()
    };
    assert_eq!(calls(UserKind::Scripted), [(Role::Agent, 9)]);
    assert_eq!(calls(UserKind::Llm), [(Role::Agent, 9), (Role::User, 10)]);
}

#[test]
fn the_fingerprint_is_a_hash_and_the_same_for_all_settings() {
    let a = Desk::new(DeskSettings::default()).unwrap().fingerprint();
    let b = Desk::new(DeskSettings {
        seed: 3,
        ..DeskSettings::default()
    })
    .unwrap()
    .fingerprint();
    assert_eq!(a, b);
    assert!(
        a.len() == 64
            && a.bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    );
}

fn mix(desk: &Desk, split: Split) -> BTreeMap<&str, usize> {
    let mut mix = BTreeMap::new();
    for id in desk.examples(split) {
        *mix.entry(desk.tasks()[id].scenario.as_str()).or_default() += 1;
    }
    mix
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn splits_are_disjoint_and_hold_the_same_mix(seed in any::<u64>(), optimize in 1_usize..100, evaluate in 1_usize..100) {
        prop_assume!(optimize + evaluate <= 114);
        let desk = Desk::new(DeskSettings { optimize, evaluate, seed, ..DeskSettings::default() }).unwrap();
        let (searched, held_out) = (desk.examples(Split::Optimize), desk.examples(Split::Evaluate));
        prop_assert_eq!((searched.len(), held_out.len()), (optimize, evaluate));
        let all: BTreeSet<_> = searched.iter().chain(held_out).collect();
        prop_assert_eq!(all.len(), optimize + evaluate);
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for task in desk.tasks().values() {
            *sizes.entry(task.scenario.as_str()).or_default() += 1;
        }
        for (split, size) in [(Split::Optimize, optimize), (Split::Evaluate, evaluate)] {
            let mix = mix(&desk, split);
            for (scenario, total) in &sizes {
                let share = size as f64 * *total as f64 / 114.0;
                let found = mix.get(scenario).copied().unwrap_or_default() as f64;
                prop_assert!((found - share).abs() <= 2.0, "{scenario}: {found} for {share}");
            }
        }
    }
}

#[test]
fn tasks_passed_over_are_in_no_split() {
    let of = |skip, evaluate| {
        let settings = DeskSettings {
            evaluate,
            skip,
            ..DeskSettings::default()
        };
        let desk = Desk::new(settings).unwrap();
        let examples = [Split::Optimize, Split::Evaluate].map(|split| desk.examples(split).to_vec());
        let numbers = examples
            .concat()
            .iter()
            .map(|id| id[5..].parse().unwrap())
            .collect::<BTreeSet<usize>>();
        (numbers.len(), *numbers.first().unwrap(), *numbers.last().unwrap())
    };
    assert_eq!(of(0, 40), (114, 1, 114));
    assert_eq!(of(114, 40), (114, 115, 228));
    assert_eq!(of(10, 40), (114, 11, 124));
    assert_eq!(of(200, 1000), (1074, 201, 1274));
    assert_eq!(of(284_886, 40), (114, 284_887, 285_000));
}

/// (Σ calls − Σ reference calls) ÷ Σ reference calls, as the paper's ToolEx.
#[test]
fn the_mean_of_excess_tools_over_a_split_is_the_pooled_ratio() {
    for (split, seed) in [(Split::Optimize, 0), (Split::Evaluate, 5)] {
        let settings = DeskSettings {
            seed,
            ..DeskSettings::default()
        };
        let desk = Desk::new(settings).unwrap();
        let examples = desk.examples(split);
        let (mut sum, mut all, mut reference) = (0.0, 0, 0);
        for (index, id) in (0_u32..).zip(examples) {
            let made = index % 7;
            let mut answers = vec![calls("search_products", json!({ "query": "helmet" })); made as usize];
            answers.push(says("Hello."));
            sum += value(
                &rollout(&desk, id, &playing(answers)).measurements,
                "excess_tools",
            );
            all += made;
            reference += desk.tasks()[id].reference.len() as u32;
        }
        let pooled = (f64::from(all) - f64::from(reference)) / f64::from(reference);
        let mean = sum / examples.len() as f64;
        assert!((mean - pooled).abs() < 1e-9, "{mean} for {pooled}");
    }
}

#[test]
fn another_seed_draws_other_splits() {
    let drawn = |seed| {
        Desk::new(DeskSettings {
            seed,
            ..DeskSettings::default()
        })
        .unwrap()
        .examples(Split::Evaluate)
        .to_vec()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}
