//! What must be true of the simulated world for it to be worth anything, over twenty seeds.
//!
//! Everything is measured on the shipped `studies/help-desk.toml` through the doors a real model
//! goes through. `docs/simulated-world.md` names these truths; speed is a benchmark
//! (`cargo xtask bench rollout`), not a test.

use std::path::Path;
use std::rc::Rc;

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{Journal, MemoryJournal, Status};
use capo_core::llm::{ChatRequest, ChatResponse, LlmError, Role};
use capo_core::random::Streams;
use capo_core::study::{Format, Study, Table};
use capo_core::workload::{Caller, RolloutContext, Split};
use capo_core::{Outcome, optimize};
use capo_server::session::StudyFile;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;

const SEEDS: u64 = 20;

fn shipped() -> StudyFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/help-desk.toml");
    StudyFile::read(&path).expect("the shipped study is read")
}

/// The shipped study under another seed, with changes written over it.
fn study(seed: u64, change: impl Fn(&mut Study)) -> StudyFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/help-desk.toml");
    let text = std::fs::read_to_string(&path).expect("the shipped study is read");
    let mut study = Study::parse(&text, Format::Toml).expect("the shipped study parses");
    study.study.seed = seed;
    change(&mut study);
    let text = study.to_toml().expect("a study is TOML");
    StudyFile::parse(&text, &path).expect("the changed study parses")
}

fn models(file: &StudyFile) -> Rc<dyn Models> {
    let tables = &file.study.models;
    let keys = std::collections::BTreeMap::<String, String>::new();
    Rc::new(capo_models::build(tables, &keys, file.study.study.seed).expect("simulated models need no key"))
}

fn run(file: &StudyFile) -> Outcome {
    let problem = file.problem().expect("the study fits the help desk");
    let journal = Journal::create(Box::new(MemoryJournal::new()));
    block_on(optimize(problem, journal, models(file), RunOptions::default())).expect("the run ends")
}

/// Mean of every metric of a prompt on the examples the search uses.
fn measure(file: &StudyFile, prompt: &str) -> IndexMap<String, f64> {
    struct Direct(Rc<dyn Models>);
    impl Caller for Direct {
        fn call(
            &self,
            role: Role,
            request: ChatRequest,
        ) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
            let model = self.0.model(role);
            Box::pin(async move { model.chat(request).await })
        }
    }
    let problem = file.problem().expect("the study fits the help desk");
    let workload = problem.workloads()[0].clone();
    let caller = Direct(models(file));
    let streams = Streams::new(file.study.study.seed);
    let examples = workload.examples(Split::Optimize);
    let mut sums: IndexMap<String, f64> = IndexMap::new();
    for example in examples {
        let seed = streams.number(&format!("rollout/{}/{example}", workload.name()), 0, 0);
        let context = RolloutContext {
            prompt,
            example,
            repeat: 0,
            seed,
            caller: &caller,
        };
        let rollout = block_on(workload.rollout(context)).expect("simulated models answer");
        for (metric, value) in rollout.measurements {
            *sums.entry(metric).or_default() += value;
        }
    }
    sums.values_mut().for_each(|sum| *sum /= examples.len() as f64);
    sums
}

/// (metric, threshold) of the shipped constraints.
fn thresholds() -> Vec<(String, f64)> {
    let constraints = shipped().study.constraints;
    constraints
        .into_iter()
        .map(|c| {
            (
                c.metric,
                c.threshold.expect("the shipped thresholds are absolute"),
            )
        })
        .collect()
}

fn feasible(costs: &IndexMap<String, f64>) -> bool {
    thresholds()
        .iter()
        .all(|(metric, threshold)| costs[metric] <= *threshold)
}

/// One plain sentence for each policy the world reads, none of them the rewriter's own wording.
const SENTENCES: [&str; 12] = [
    "Verify who the customer is before you do anything else.",
    "Look things up with your tools before you ask the customer.",
    "Use what you already know and never repeat a call.",
    "Make as few tool calls as possible and combine them where you can.",
    "Always ask for confirmation before you change anything.",
    "Check that the rules allow an action before you take it.",
    "Try every option you have before you transfer to a human.",
    "Transfer to a human only when the policy requires it.",
    "Think step by step and plan before you act.",
    "Keep your answers brief.",
    "Never guess or make up missing information.",
    "At the end, summarise what was done.",
];

fn seed_prompt() -> String {
    shipped()
        .study
        .prompt
        .text
        .expect("the shipped prompt stands in the study")
}

#[test]
fn the_seed_prompt_is_infeasible_and_no_single_policy_mends_it() {
    let seed_prompt = seed_prompt();
    let prompts = std::iter::once(seed_prompt.clone())
        .chain(SENTENCES.map(|sentence| format!("{seed_prompt} {sentence}")));
    for prompt in prompts {
        let costs: Vec<IndexMap<String, f64>> = (0..SEEDS)
            .map(|seed| measure(&study(seed, |_| {}), &prompt))
            .collect();
        // Some constraint is violated beyond what chance explains: mean − 1.96 SE above its threshold.
        let violated = thresholds().iter().any(|(metric, threshold)| {
            let values: Vec<f64> = costs.iter().map(|costs| costs[metric]).collect();
            let estimate = capo_core::estimate::Estimate::of(&values).expect("twenty values");
            estimate.mean - 1.96 * estimate.standard_error > *threshold
        });
        assert!(violated, "feasible on average: {prompt}");
    }
}

#[test]
fn feasible_prompts_are_rare_among_random_edits() {
    // Random edits of the seed prompt: one to three policies in any order.
    let (mut rare, mut drawn) = (0, 0);
    let seed_prompt = seed_prompt();
    for seed in 0..SEEDS {
        let file = study(seed, |_| {});
        for index in 0..15 {
            let mut stream = Streams::new(seed).stream("random edits", 0, index);
            let count = 1 + (Streams::new(seed).number("size of edit", 0, index) % 3) as usize;
            let chosen =
                capo_core::sampling::without_replacement(&[0.0; SENTENCES.len()], 1.0, count, &mut stream);
            let prompt = chosen
                .iter()
                .fold(seed_prompt.clone(), |prompt, &at| prompt + " " + SENTENCES[at]);
            let means = measure(&file, &prompt);
            drawn += 1;
            if feasible(&means) {
                rare += 1;
            }
        }
    }
    println!("feasible among random edits: {rare} of {drawn}");
    assert!(
        f64::from(rare) < 0.05 * f64::from(drawn),
        "{rare} of {drawn} random edits are feasible"
    );
}

/// Runs that end feasible under the given method settings and scales of the two rates.
fn successes(settings: &str, scales: Option<(f64, f64)>) -> u64 {
    let table: Table = serde_json::from_str(settings).expect("settings are JSON");
    let feasible = (0..SEEDS).filter(|&seed| {
        let file = study(seed, |study| {
            for (key, value) in &table {
                study.method.insert(key.clone(), value.clone());
            }
            if let Some((human, tools)) = scales {
                for constraint in &mut study.constraints {
                    match constraint.metric.as_str() {
                        "human_requests" => constraint.scale = Some(human),
                        "excess_tools" => constraint.scale = Some(tools),
                        _ => {}
                    }
                }
            }
        });
        run(&file).finished.status == Status::Feasible
    });
    feasible.count() as u64
}

/// Whether the largest multiplier belongs to different constraints along a run.
fn binding_constraint_changes(outcome: &Outcome) -> bool {
    let rounds = outcome.journal.state().rounds().iter().skip(1);
    let mut largest: Vec<&String> = rounds
        .filter_map(|round| round.multipliers.iter().max_by(|a, b| a.1.total_cmp(b.1)))
        .map(|(metric, _)| metric)
        .collect();
    largest.dedup();
    largest.len() > 1
}

#[test]
fn adaptive_multipliers_reach_feasibility_clearly_more_often_than_ones_fixed_at_one() {
    let (mut adaptive, mut changes) = (0, 0);
    let (mut best_feasible, mut best_of_all) = (0.0_f64, 0.0_f64);
    let (mut seed_gap, mut returned_gap) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let outcome = run(&study(seed, |_| {}));
        let finished = &outcome.finished;
        adaptive += u64::from(finished.status == Status::Feasible);
        changes += u64::from(binding_constraint_changes(&outcome));
        for score in finished.final_scores.values() {
            best_of_all = best_of_all.max(score.objective);
            best_feasible = best_feasible.max(if score.feasible { score.objective } else { 0.0 });
        }
        let first = &outcome.journal.state().rounds()[0];
        seed_gap += first.scores[&first.parents[0]].objective - finished.seed_evaluation["success"].mean;
        let best = finished.best.expect("a result");
        returned_gap += finished.final_scores[&best].objective - finished.evaluation["success"].mean;
    }
    (seed_gap, returned_gap) = (seed_gap / SEEDS as f64, returned_gap / SEEDS as f64);
    println!("the largest multiplier changes hands in {changes} of {SEEDS} runs");
    assert!(
        changes * 2 > SEEDS,
        "the binding constraint changes in {changes} of {SEEDS} runs only"
    );
    println!("objective: best of all {best_of_all:.3}, best feasible {best_feasible:.3}");
    assert!(best_feasible < best_of_all, "the constraints cost nothing");
    // 74 and 40 examples of a rate: the difference of one prompt has a standard error near
    // √(p(1−p)/74 + p(1−p)/40) ≤ 0.1, and the split, the same under every seed, does not average out.
    println!(
        "success, search minus held-out: seed prompt {seed_gap:+.3}, returned prompt {returned_gap:+.3}"
    );
    assert!(
        seed_gap.abs() < 0.2 && returned_gap.abs() < 0.2,
        "search and held-out results disagree"
    );

    let fixed = successes(r#"{"dual_step": "fixed", "lambda_init": 1.0}"#, None);
    println!("feasible: adaptive {adaptive}, fixed at 1 {fixed} of {SEEDS}");
    assert!(
        adaptive >= 18,
        "adaptive multipliers reach feasibility on {adaptive} of {SEEDS} seeds"
    );
    assert!(
        fixed + 5 <= adaptive,
        "fixed weights of 1 do on {fixed}, adaptive ones on {adaptive}"
    );
    // The world is not rigged: the right fixed weights (found by a grid over both rates) reach it
    // too. A scale of 1/w is a weight of w.
    let right = successes(r#"{"dual_step": "fixed"}"#, Some((1.0 / 2.0, 1.0 / 0.25)));
    println!("fixed at 2 for human_requests and 0.25 for excess_tools: {right} of {SEEDS}");
    assert!(
        right > fixed && right >= 14,
        "the right fixed weights reach feasibility on {right} only"
    );
}

#[test]
fn an_unattainable_threshold_drives_its_multiplier_to_the_cap_and_the_result_says_infeasible() {
    for seed in 0..5 {
        let outcome = run(&study(seed, |study| {
            for constraint in study
                .constraints
                .iter_mut()
                .filter(|c| c.metric == "excess_tools")
            {
                constraint.threshold = Some(-0.95);
            }
        }));
        assert_eq!(outcome.finished.status, Status::Infeasible, "seed {seed}");
        assert_eq!(outcome.finished.multipliers["excess_tools"], 10.0, "seed {seed}");
    }
}
