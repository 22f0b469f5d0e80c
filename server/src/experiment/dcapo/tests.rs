//! A policy that learns in minutes, and what the report says of it.

use std::path::Path;
use std::sync::Mutex;

use super::evaluation::Answers;
use super::grpo::train_with_grpo;
use super::record::{EvaluatedPolicy, HeldOut, PolicyRecord};
use super::sft::{SftStats, fine_tune};
use super::*;

fn help_desk() -> StudyFile {
    StudyFile::parse(STUDY.1, Path::new(STUDY.0)).unwrap()
}

fn answers(gains: &[f64]) -> Answers {
    Answers {
        gains: gains.to_vec(),
        children: 0.75,
        better: 0.5,
    }
}

/// A record of a seed, made up: the policies' searches are held out well on even seeds.
fn record(seed: u64, plan: &Plan) -> SeedRecord {
    let held = |objective: f64, all_sat: bool| HeldOut {
        objective,
        costs: vec![0.3, 1.2, 0.4],
        all_sat,
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
        seed_prompt: vec![held(0.4, false); 2],
        policies: plan
            .policies
            .iter()
            .map(|kind| PolicyRecord {
                key: kind.key.into(),
                seconds: 20.0,
                gains: if kind.learns {
                    vec![Some(0.1), None, Some(0.3)]
                } else {
                    Vec::new()
                },
                searches: vec![held(0.5, true), held(0.6, seed.is_multiple_of(2))],
                evaluation: kind.learns.then(|| EvaluatedPolicy {
                    before: answers(&[0.0, 0.1, 0.2, 0.0, 0.1, 0.2]),
                    after: answers(&[0.3, 0.4, 0.5, 0.3, 0.4, 0.5]),
                }),
            })
            .collect(),
    }
}

#[test]
fn a_report_compares_the_policies_over_seeds() {
    let (base, plan) = (help_desk(), Plan::default());
    let records = [record(0, &plan), record(1, &plan)];
    let report = report(&base, &plan, &records);
    let [searches, gains, training] = &report.tables[..] else {
        panic!("three tables");
    };
    let page = searches.markdown();
    assert_eq!(searches.rows.len(), 1 + plan.policies.len());
    assert!(page.contains("human_requests ≤ 0.35"), "{page}");
    assert!(page.contains("0/4") && page.contains("3/4"), "{page}");
    // Two seeds and all of them together, for each policy that learns.
    assert_eq!(
        gains.rows.len(),
        3 * plan.policies.iter().filter(|kind| kind.learns).count()
    );
    let csv = gains.csv();
    assert!(csv.contains("\"GRPO, D = 1\",all,12,0.1"), "{csv}");
    assert_eq!(training.rows.len(), 2);
    let series = &report.figures[0].panels[0].series;
    assert_eq!(series.len(), plan.policies.len() - 1);
    let rounds: Vec<f64> = series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(rounds, [0.0, 2.0], "a round without children has no ΔJ");
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

#[test]
fn grpo_raises_the_reward() {
    let (base, plan) = (help_desk(), little());
    let (world, seed) = (World::new(&base), 1);
    let folder = tempfile::tempdir().unwrap();
    let fine_tuned = fine_tune(&world, &plan, seed, folder.path()).unwrap();
    let asking = plan.policies[1].asking;
    let trained = train_with_grpo(&world, &fine_tuned, asking, &plan, seed, folder.path(), &|_| ()).unwrap();
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
    let risen = f64::midpoint(before_last, last) - f64::midpoint(first, second);
    assert!(risen > 0.1, "{rewards:?}");
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
        policies: &POLICIES[..2],
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
    assert_eq!(together[0].policies.len(), 2);
    assert!(together[0].policies[1].evaluation.is_some());
    assert_eq!(together, [records("4,", 1), records("3,", 1)].concat());
}
