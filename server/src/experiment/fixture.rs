//! A study and finished runs made up for tests; smooth formulas, no randomness.

use capo_core::journal::Status;
use capo_core::metric::MetricSpec;
use capo_core::study::Study;
use indexmap::IndexMap;

use super::record::{Outcome, RoundRecord, RunRecord, Searched, Visited};
use super::{Experiment, Report, Runs, Variant};

pub(super) fn study() -> Study {
    toml::from_str(
        r#"
        [study]
        name = "fixture"
        rounds = 6

        [workload]
        kind = "desk"

        [prompt]
        text = "You are a customer service agent."

        [objective]
        metric = "success"

        [[constraint]]
        metric = "human_requests"
        threshold = 0.35

        [[constraint]]
        metric = "excess_tools"
        threshold = 1.05

        [[constraint]]
        metric = "prompt_length"
        threshold = 5.0

        [models.agent]
        provider = "simulated"
        "#,
    )
    .unwrap()
}

pub(super) fn metrics() -> Vec<MetricSpec> {
    vec![
        MetricSpec::objective("success", "The task's end state is right."),
        MetricSpec::cost(
            "human_requests",
            "transfers per dialogue",
            "Transfers to a person.",
        ),
        MetricSpec::cost(
            "excess_tools",
            "calls ÷ reference − 1",
            "Tool calls beyond the reference.",
        ),
        MetricSpec::prompt_length(),
    ]
}

/// A run whose costs fall and whose multipliers rise then fall; `shift` moves everything a little.
pub(super) fn record(variant: &str, seed: u64, shift: f64) -> RunRecord {
    let luck = (seed as f64 - 1.0) * 0.02;
    let thresholds: IndexMap<String, f64> = study()
        .constraints
        .iter()
        .map(|constraint| (constraint.metric.clone(), constraint.threshold.unwrap()))
        .collect();
    let costs = |progress: f64| -> IndexMap<String, f64> {
        [
            ("human_requests".to_owned(), 0.55 - 0.25 * progress + luck),
            (
                "excess_tools".to_owned(),
                1.6 - 0.6 * progress + luck + 0.1 * shift,
            ),
            ("prompt_length".to_owned(), 0.3 + 2.5 * progress),
        ]
        .into()
    };
    let multipliers = |progress: f64| -> IndexMap<String, f64> {
        [
            (
                "human_requests".to_owned(),
                1.0 + 1.5 * progress * (1.0 - progress),
            ),
            ("excess_tools".to_owned(), 1.0 + (2.0 + shift) * progress),
            ("prompt_length".to_owned(), (1.0 - progress).max(0.0)),
        ]
        .into()
    };
    let outcome = |progress: f64, standard_error: f64| {
        let costs = costs(progress);
        Outcome {
            objective: 0.4 + 0.2 * progress + luck - 0.03 * shift,
            all_sat: costs.iter().all(|(metric, cost)| *cost <= thresholds[metric]),
            standard_errors: costs
                .keys()
                .map(|metric| (metric.clone(), standard_error))
                .collect(),
            costs,
        }
    };
    // On eight examples, half of them a little above the mean and half below.
    let visited = [0.0, 0.6, 0.9, 1.0].map(|progress| {
        let found = outcome(progress, 0.0);
        let spread = |mean: f64, by: f64| -> Vec<f64> {
            (0..8)
                .map(|example| if example % 4 < 2 { mean - by } else { mean + by })
                .collect()
        };
        let costs = found.costs.iter().map(|(metric, mean)| {
            let by = if metric == "prompt_length" { 0.0 } else { 0.1 };
            (metric.clone(), spread(*mean, by))
        });
        let objective = ("success".to_owned(), spread(found.objective, 0.2));
        Visited {
            prompt: format!("a prompt of {progress}"),
            values: costs.chain([objective]).collect(),
            repeated: None,
            fresh: Some(outcome(progress - 0.03, 0.0)),
        }
    });
    let rounds = (0..6).map(|round| {
        let progress = f64::from(round) / 6.0;
        RoundRecord {
            round,
            multipliers: multipliers(progress),
            objective: 0.4 + 0.2 * progress + luck,
            costs: costs(progress),
            lagrangian: 0.1 + 0.3 * progress,
        }
    });
    RunRecord {
        variant: variant.to_owned(),
        seed,
        status: Status::Feasible,
        certified: None,
        complete: true,
        reason: None,
        failures: Vec::new(),
        optimize: Some(outcome(1.0, 0.0)),
        evaluate: Some(outcome(0.95, 0.05)),
        seed_prompt: Some(outcome(0.0, 0.05)),
        prompts: None,
        fresh: None,
        seed_prompt_fresh: None,
        searched: Searched {
            visited: visited.into(),
            held_out: 40,
        },
        thresholds: thresholds.clone(),
        rounds: rounds.collect(),
        multipliers: multipliers(1.0),
        candidates: 40,
        rollouts: 4000 + seed,
        calls: 20_000,
        usd: Some(0.0),
    }
}

/// Shows an experiment's made-up runs of three seeds to `look`.
pub(super) fn with_runs<T>(experiment: &Experiment, look: impl FnOnce(&Runs) -> T) -> T {
    let base = study();
    let variants = experiment.variants(&base).unwrap();
    let records = records(&variants);
    look(&Runs {
        base: &base,
        variants: &variants,
        metrics: &metrics(),
        records: &records,
    })
}

/// The report of an experiment on its made-up runs.
pub(super) fn report(experiment: &Experiment) -> Report {
    with_runs(experiment, experiment.report)
}

fn records(variants: &[Variant]) -> Vec<RunRecord> {
    variants
        .iter()
        .enumerate()
        .flat_map(|(at, variant)| {
            (0..3).map(move |seed| {
                let mut record = record(&variant.key, seed, at as f64 - 1.0);
                for constraint in &variant.study.constraints {
                    record
                        .thresholds
                        .insert(constraint.metric.clone(), constraint.threshold.unwrap());
                }
                record
            })
        })
        .collect()
}
