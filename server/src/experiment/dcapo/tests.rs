//! A policy that learns in minutes, and what the report says of it.

use std::path::Path;
use std::sync::Mutex;

use capo_core::templates::{ObjectiveFacts, RewriteFacts, WeightedConstraint};

use super::evaluation::{Answers, with_other_multipliers};
use super::grpo::train_with_grpo;
use super::record::{EvaluatedPolicy, PolicyRecord};
use super::sft::{SftStats, fine_tune};
use super::world::Measured;
use super::*;
use crate::experiment::{Cell, Outcome, Table};

fn help_desk() -> StudyFile {
    StudyFile::parse(STUDY.text, Path::new(STUDY.file)).unwrap()
}

fn answers(gains: &[f64], children: f64) -> Answers {
    Answers {
        gains: gains.to_vec(),
        children,
        distinct: 0.5,
        examples: vec!["Be kind.".into(); 5],
    }
}

/// A record of a seed, made up: each rewriter's second search meets every threshold on even seeds only, on fresh tasks
/// on none, and GRPO gains 0.3 and the seed's tenth.
fn record(seed: u64, plan: &Plan) -> SeedRecord {
    let outcome = |objective: f64, all_sat: bool| Outcome {
        objective,
        costs: [
            ("human_requests", 0.3),
            ("excess_tools", 1.2),
            ("policy_violations", 0.4),
        ]
        .map(|(metric, cost)| (metric.to_owned(), cost))
        .into(),
        all_sat,
        standard_errors: indexmap::IndexMap::new(),
    };
    let measured = |objective: f64, all_sat: bool, fresh: bool| Measured {
        optimize: Some(outcome(objective, true)),
        held_out: outcome(objective, all_sat),
        fresh: outcome(objective, fresh),
    };
    let start = Measured {
        optimize: None,
        ..measured(0.4, false, false)
    };
    SeedRecord {
        seed,
        sft: SftStats {
            searches: 4,
            rewrites: 90,
            pairs: 40,
            too_long: 1,
            parameters: 1000,
            first_loss: 6.0,
            held_out_loss: Some(2.0),
        },
        seconds: 60.0,
        seed_prompt: vec![start; 2],
        policies: plan
            .policies
            .iter()
            .map(|kind| PolicyRecord {
                key: kind.key.into(),
                seconds: 20.0,
                gains: if kind.rewriter.learns() {
                    vec![Some(0.1), None, Some(0.3)]
                } else {
                    Vec::new()
                },
                searches: vec![
                    measured(0.5, true, kind.rewriter.learns()),
                    measured(0.6, seed.is_multiple_of(2), false),
                ],
                evaluation: (kind.rewriter != Rewriter::Teacher).then(|| EvaluatedPolicy {
                    before: answers(&[0.0, 0.1, 0.2], 0.75),
                    after: answers(&[0.4 + seed as f64 / 10.0; 3], 1.0),
                    other_multipliers: answers(&[0.1; 3], 1.0),
                    other_feedback: (kind.asking.form != FeedbackForm::None).then(|| answers(&[0.4; 3], 1.0)),
                }),
            })
            .collect(),
    }
}

/// The cells of the row that begins with these words.
fn row<'a>(table: &'a Table, words: &[&str]) -> &'a [Cell] {
    let begins = |row: &&Vec<Cell>| {
        words
            .iter()
            .zip(*row)
            .all(|(word, cell)| *cell == Cell::text(*word))
    };
    &table.rows.iter().find(begins).unwrap()[words.len()..]
}

#[test]
fn a_report_compares_the_policies_over_seeds() {
    let (base, plan) = (help_desk(), Plan::default());
    let records = [record(0, &plan), record(1, &plan)];
    let report = report(&base, &plan, &records);
    let [searches, differences, gains, reading, rewrites, training] = &report.tables[..] else {
        panic!("six tables");
    };
    assert_eq!(searches.rows.len(), 1 + plan.policies.len());
    let page = searches.markdown();
    for part in [
        "human_requests (≤ 0.35)",
        "scale = \"batch\", normalisation = \"token_mean\"",
        "scale = \"group\", normalisation = \"sequence_mean\", epochs = 1",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    // On held-out tasks 2 of 2 searches and 1 of 2: the seeds are what is averaged, not their searches.
    let trained = row(searches, &["GRPO"]);
    assert_eq!(
        trained[5..7],
        [Cell::mean(&[1.0, 0.5]), Cell::mean(&[0.5, 0.5])],
        "held out and fresh"
    );
    let start = row(searches, &["none: the seed prompt"]);
    assert_eq!(start[4], Cell::Empty, "nothing was searched for");
    let trained = row(differences, &["GRPO", "SFT"]);
    assert_eq!(
        (&trained[0], &trained[3]),
        (&Cell::number(0.5), &Cell::text("2, 0 of 2"))
    );
    let learning = plan.policies.iter().filter(|kind| kind.rewriter.learns());
    assert_eq!(gains.rows.len(), learning.count());
    // Differences of 0.3 and 0.4, one for each seed: Student's interval at one degree of freedom is 12.7 · 0.05 wide.
    let trained = row(gains, &["GRPO"]);
    let Cell::Number { value: low } = trained[3] else {
        panic!("{trained:?}");
    };
    assert!((low - (0.35 - 12.7062 * 0.05)).abs() < 1e-4, "{low}");
    assert_eq!(trained[5], Cell::text("2, 0 of 2"));
    assert_eq!(trained[6..8], [Cell::mean(&[0.25; 2]), Cell::mean(&[0.0; 2])]);
    let permuted = row(reading, &["GRPO", "λ permuted among constraints"]);
    assert_eq!(permuted[4], Cell::text("0, 2 of 2"));
    let blind = ["GRPO, no feedback", "feedback of another request"].map(Cell::text);
    assert!(!reading.rows.iter().any(|row| row[..2] == blind));
    assert_eq!(rewrites.rows.len(), 5 * (plan.policies.len() - 1));
    assert_eq!(training.rows.len(), 2);
    let series = &report.figures[0].panels[0].series;
    assert_eq!(series.len(), plan.policies.len() - 2);
    let rounds: Vec<f64> = series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(rounds, [0.0, 2.0], "a round without children has no ΔJ");
}

#[test]
fn permuted_multipliers_leave_costs_and_thresholds_where_they_were() {
    let constraint = |metric: &str, cost: f64, multiplier: f64| WeightedConstraint {
        metric: metric.to_owned(),
        cost,
        threshold: 2.0 * cost,
        multiplier,
    };
    let asked = |multipliers: [f64; 3]| RewriteFacts {
        objective: ObjectiveFacts {
            metric: "success".into(),
            value: 0.5,
        },
        constraints: vec![
            constraint("a", 0.1, multipliers[0]),
            constraint("b", 0.2, multipliers[1]),
            constraint("c", 0.3, multipliers[2]),
        ],
        prompt: "Be kind.".into(),
        draft: None,
        feedback: "They were not.".into(),
    };
    assert_eq!(
        with_other_multipliers(&asked([1.0, 2.0, 3.0])).text(),
        asked([3.0, 1.0, 2.0]).text()
    );
}

#[test]
fn a_finished_seed_is_not_run_again_and_another_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (base, plan) = (help_desk(), Plan::default());
    let identity = record::identity(&base, &plan).unwrap();
    let known = record(7, &plan);
    record::write(&folder.path().join("seed-7.json"), &identity, &known).unwrap();
    let said = Mutex::new(Vec::new());
    let say = |seed: u64, text: &str| said.lock().unwrap().push(format!("{seed} {text}"));
    let seeds = "7,".parse().unwrap();
    let records = run(&base, &plan, &seeds, NonZeroUsize::MIN, folder.path(), &say).unwrap();
    assert_eq!(records, [known]);
    assert_eq!(*said.lock().unwrap(), ["7 known"]);
    let page = write(folder.path(), &base, &plan, &records).unwrap();
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("Study “help desk, learned rewriter”, 1 seeds.")
    );

    let other = Plan {
        requests: plan.requests + 1,
        ..plan
    };
    let error = run(&base, &other, &seeds, NonZeroUsize::MIN, folder.path(), &say).unwrap_err();
    assert!(
        error.to_string().contains("other settings") && error.to_string().contains("--out"),
        "{error}"
    );
}

/// The experiment in little, which a test has the time for.
fn little() -> Plan {
    let plan = Plan::default();
    Plan {
        sft_searches: 25,
        model: TinyQwen3Config {
            hidden: 64,
            heads: 2,
            kv_heads: 1,
            head_dim: 32,
            intermediate: 192,
            ..plan.model
        },
        sft: SftSettings {
            epochs: 5,
            learning_rate: 6e-3,
            ..plan.sft
        },
        grpo_searches: 6,
        grpo: GrpoSettings {
            learning_rate: 5e-4,
            ..plan.grpo
        },
        ..plan
    }
}

/// By how much the reward of a search's first round rises while the policy learns, on tasks that the seed draws.
fn risen(seed: u64) -> f64 {
    let (mut base, plan) = (help_desk(), little());
    base.study = drawn(&base.study, seed);
    let world = World::new(&base);
    let folder = tempfile::tempdir().expect("a folder");
    let fine_tuned = fine_tune(&world, &plan, seed, folder.path()).expect("the policy is fine-tuned");
    let settings = GrpoSettings { seed, ..plan.grpo };
    let asking = POLICIES[2].asking;
    let trained = train_with_grpo(
        &world,
        &fine_tuned,
        asking,
        settings,
        &plan,
        folder.path(),
        &|_| (),
    )
    .expect("the policy learns");
    let rounds = plan.grpo_searches * u64::from(plan.grpo_extent.rounds);
    assert_eq!(
        trained.rounds.len() as u64,
        rounds,
        "every round was learned from"
    );
    // Every search starts with the seed prompt and the same multipliers, so that its first rounds compare.
    let first_rounds = trained.rounds.iter().step_by(plan.grpo_extent.rounds as usize);
    let rewards: Vec<f64> = first_rounds.map(|figures| figures["reward"]).collect();
    let [first, second, .., before_last, last] = rewards[..] else {
        panic!("{rewards:?}");
    };
    f64::midpoint(before_last, last) - f64::midpoint(first, second)
}

#[test]
fn grpo_raises_the_reward() {
    let risen: Vec<f64> = (1..=5).map(risen).collect();
    assert!(risen.iter().sum::<f64>() / 5.0 > 0.1, "{risen:?}");
}

#[test]
fn seeds_run_side_by_side_come_to_what_each_comes_to_alone() {
    const FEW: Extent = Extent {
        rounds: 1,
        parents: 1,
        children: 3,
    };
    let base = help_desk();
    let plan = Plan {
        policies: &POLICIES[..3],
        sft_searches: 4,
        sft_extent: FEW,
        grpo_searches: 1,
        grpo_extent: FEW,
        evaluation_searches: 1,
        requests: 2,
        answers: 1,
        repeats: 1,
        final_searches: 1,
        final_extent: FEW,
        ..little()
    };
    let records = |seeds: &str, jobs: usize| {
        let folder = tempfile::tempdir().unwrap();
        let (seeds, jobs) = (seeds.parse().unwrap(), NonZeroUsize::new(jobs).unwrap());
        let mut records = run(&base, &plan, &seeds, jobs, folder.path(), &|_, _| ()).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, records.len(), "a record for each seed, and nothing else");
        for record in &mut records {
            record.seconds = 0.0;
            record.policies.iter_mut().for_each(|policy| policy.seconds = 0.0);
        }
        records
    };
    let together = records("4,3", 3);
    assert_eq!(
        together.iter().map(|record| record.seed).collect::<Vec<_>>(),
        [4, 3]
    );
    assert_eq!(together[0].policies.len(), 3);
    assert!(together[0].policies[2].evaluation.is_some());
    let [one, other] = [0, 1].map(|seed: usize| &together[seed].seed_prompt[0].held_out);
    assert_ne!(one, other, "each seed draws tasks of its own");
    assert_eq!(together, [records("4,", 1), records("3,", 1)].concat());
}
