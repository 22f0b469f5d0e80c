//! What must be true of the simulated world for it to be worth anything, over twenty seeds; what takes long of it
//! is run by `cargo xtask test --all`.
//!
//! Everything is measured on `studies/help-desk.toml`, searched as the paper does, through the doors a real model
//! goes through. `docs/simulated-world.md` names these truths; speed is a benchmark
//! (`cargo xtask bench rollout`), not a test.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use capo_core::arena::{Models, RunOptions};
use capo_core::estimate::Estimate;
use capo_core::ids::CandidateId;
use capo_core::journal::{Event, Journal, MemoryJournal, Status};
use capo_core::llm::{ChatRequest, ChatResponse, LlmError, Message, Role};
use capo_core::problem::Problem;
use capo_core::random::Streams;
use capo_core::starts::{Start, Starts};
use capo_core::study::{Constraint, Rounds, Study};
use capo_core::workload::{Caller, Rollout, RolloutContext, Split};
use capo_core::{Outcome, optimize};
use capo_server::experiment::{self, RunRecord, fresh};
use capo_server::session::StudyFile;
use capo_world::desk::{Desk, DeskSettings};
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use sentences::{HABIT, SENTENCES};

#[path = "../benches/world/sentences.rs"]
mod sentences;

const SEEDS: u64 = 20;

/// 97.5 % of a normal distribution lie below mean + 1.96 standard deviations.
const Z: f64 = 1.96;

/// The shipped thresholds' two contested metrics.
const CONTESTED: [&str; 2] = ["human_requests", "excess_tools"];

fn as_it_stands() -> StudyFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/help-desk.toml");
    StudyFile::read(&path).expect("the shipped study is read")
}

/// By the paper's rule.
fn shipped() -> StudyFile {
    let mut file = as_it_stands();
    file.study.use_paper_preset();
    file
}

/// The shipped study under another seed, with changes written over it.
fn study(seed: u64, change: impl Fn(&mut Study)) -> StudyFile {
    changed(shipped(), seed, change)
}

fn changed(mut file: StudyFile, seed: u64, change: impl Fn(&mut Study)) -> StudyFile {
    file.study.study.seed = seed;
    change(&mut file.study);
    let text = file.study.to_toml().expect("a study is TOML");
    StudyFile::parse(&text, Path::new(&file.name)).expect("the changed study parses")
}

fn models(file: &StudyFile) -> Rc<dyn Models> {
    let tables = &file.study.models;
    let keys = std::collections::BTreeMap::<String, String>::new();
    Rc::new(capo_models::build(tables, &keys, file.study.study.seed).expect("simulated models need no key"))
}

fn problem(file: &StudyFile) -> Problem {
    file.setup().expect("the study fits the help desk").problem
}

fn run(file: &StudyFile) -> Outcome {
    let journal = Journal::create(Box::new(MemoryJournal::new()));
    let options = RunOptions::default();
    block_on(optimize(problem(file), journal, models(file), options)).expect("the run ends")
}

/// A prompt on the examples the search uses, by example.
fn play(file: &StudyFile, prompt: &str) -> IndexMap<String, Rollout> {
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
    let workload = problem(file).workloads()[0].clone();
    let caller = Direct(models(file));
    let streams = Streams::new(file.study.study.seed);
    let rollout = |example: &String| {
        let seed = streams.number(&format!("rollout/{}/{example}", workload.name()), 0, 0);
        let context = RolloutContext {
            prompt,
            example,
            repeat: 0,
            seed,
            caller: &caller,
        };
        block_on(workload.rollout(context)).expect("simulated models answer")
    };
    let examples = workload.examples(Split::Optimize);
    examples
        .iter()
        .map(|example| (example.clone(), rollout(example)))
        .collect()
}

/// Mean of every metric of a prompt on the examples the search uses.
fn measure(file: &StudyFile, prompt: &str) -> IndexMap<String, f64> {
    let rollouts = play(file, prompt);
    let mut means: IndexMap<String, f64> = IndexMap::new();
    for rollout in rollouts.values() {
        for (metric, value) in &rollout.measurements {
            *means.entry(metric.clone()).or_default() += value / rollouts.len() as f64;
        }
    }
    means
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
        .chain(SENTENCES.map(|(_, sentence)| format!("{seed_prompt} {sentence}")));
    for prompt in prompts {
        let costs: Vec<IndexMap<String, f64>> = (0..SEEDS)
            .map(|seed| measure(&study(seed, |_| {}), &prompt))
            .collect();
        // Some constraint is violated beyond what chance explains.
        let violated = thresholds().iter().any(|(metric, threshold)| {
            let values: Vec<f64> = costs.iter().map(|costs| costs[metric]).collect();
            let cost = estimate(&values);
            cost.mean - Z * cost.standard_error > *threshold
        });
        assert!(violated, "feasible on average: {prompt}");
    }
}

/// The upper end of Wilson's 95 % interval for a share of `hits` in `draws`.
fn at_most(hits: u32, draws: u32) -> f64 {
    let (n, share) = (f64::from(draws), f64::from(hits) / f64::from(draws));
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (share + Z * Z / (2.0 * n) + spread) / (1.0 + Z * Z / n)
}

/// A mean over seeds with its standard error.
fn estimate(values: &[f64]) -> Estimate {
    Estimate::of(values).expect("a value for every seed")
}

#[test]
fn which_constraint_binds_changes_with_the_model() {
    let limits: IndexMap<String, f64> = thresholds().into_iter().collect();
    let prompt = format!(
        "{} Transfer to a human only when the policy requires it.",
        seed_prompt()
    );
    // By how much more the prompt exceeds the limit on people than the limit on calls.
    let lead = |model: &str| {
        let leads: Vec<f64> = (0..SEEDS)
            .map(|seed| {
                let file = study(seed, |study| study.models[&Role::Agent]["model"] = model.into());
                let costs = measure(&file, &prompt);
                let [human, tools] = CONTESTED.map(|metric| costs[metric] - limits[metric]);
                human - tools
            })
            .collect();
        estimate(&leads)
    };
    let (small, large) = (lead("sim-small"), lead("sim-large"));
    println!("human requests lead excess tools: sim-small {small:?}, sim-large {large:?}");
    assert!(
        small.mean - Z * small.standard_error > 0.0,
        "sim-small is held by calls: {small:?}"
    );
    assert!(
        large.mean + Z * large.standard_error < 0.0,
        "sim-large is held by people: {large:?}"
    );
}

/// A thousand tasks of the help desk.
fn thousand() -> StudyFile {
    study(0, |study| {
        study.workload.insert("optimize".to_owned(), 1000.into());
        study.workload.insert("skip".to_owned(), 114_000.into());
    })
}

#[test]
fn customers_who_are_asked_who_they_are_too_often_leave() {
    let file = thousand();
    let leave = |prompt: &str| {
        let rollouts = play(&file, prompt);
        let left = |rollout: &&Rollout| {
            let last = rollout.trace.messages.last();
            matches!(last, Some(Message::User { content }) if content.starts_with("You have asked me that often"))
        };
        rollouts.values().filter(left).count()
    };
    let softly = leave("Where possible, verify the customer's identity first.");
    let firmly = leave("In every case: verify the customer's identity before anything else.");
    println!("customers who leave, of 1000: {softly} asked softly, {firmly} asked firmly");
    assert!(softly < 5 && firmly > 15);
}

#[test]
fn the_habit_of_the_seed_prompt_is_worth_unlearning() {
    let file = changed(thousand(), 0, |study| {
        study.workload.insert("optimize".to_owned(), 3000.into());
    });
    let (seed_prompt, success) = (seed_prompt(), |rollout: &Rollout| rollout.measurements["success"]);
    let [with, without] = [&seed_prompt, &seed_prompt.replace(HABIT, "")].map(|prompt| play(&file, prompt));
    let gains = with.values().zip(without.values());
    let gain = estimate(
        &gains
            .map(|(with, without)| success(without) - success(with))
            .collect::<Vec<_>>(),
    );
    println!("success gained by unlearning the habit: {gain:?}");
    assert!(gain.mean - Z * gain.standard_error > 0.0);
}

#[test]
fn tasks_of_two_kinds_want_opposite_things() {
    const CHECK: &str = "In every case: check that the rules allow an action before you take it.";
    let file = thousand();
    let desk = Desk::new(DeskSettings {
        optimize: 1000,
        skip: 114_000,
        ..DeskSettings::default()
    })
    .expect("the desk makes so many tasks");
    let (alone, checking) = (play(&file, ""), play(&file, CHECK));
    let gain = |impossible: bool| {
        let gains: Vec<f64> = desk
            .tasks()
            .values()
            .filter(|task| task.difficulty().impossible == impossible)
            .filter_map(|task| {
                let success = |rollouts: &IndexMap<String, Rollout>| {
                    rollouts
                        .get(&task.id)
                        .map(|rollout| rollout.measurements["success"])
                };
                Some(success(&checking)? - success(&alone)?)
            })
            .collect();
        estimate(&gains)
    };
    let (possible, impossible) = (gain(false), gain(true));
    println!(
        "success gained by checking rules: {possible:?} where the request is allowed, {impossible:?} where it is not"
    );
    assert!(possible.mean < -Z * possible.standard_error && impossible.mean > Z * impossible.standard_error);
}

/// The search with multipliers that never move.
fn fixed_at(study: &mut Study, weight: f64) {
    study.method.insert("dual_step".to_owned(), "fixed".into());
    study.method.insert("lambda_init".to_owned(), weight.into());
}

/// The shipped study with fixed weights: a scale of 1/w is a weight of w.
fn weighted(seed: u64, weights: [f64; 2]) -> StudyFile {
    study(seed, |study| {
        fixed_at(study, 1.0);
        for constraint in &mut study.constraints {
            if let Some(at) = CONTESTED.iter().position(|metric| *metric == constraint.metric) {
                constraint.scale = Some(1.0 / weights[at]);
            }
        }
    })
}

fn is_feasible(outcome: &Outcome) -> bool {
    outcome.finished.status == Status::Feasible
}

/// Whether different constraints have the largest multiplier along a run. A round in which all are
/// satisfied and no multiplier stands out says nothing.
fn binding_constraint_changes(outcome: &Outcome) -> bool {
    let mut binding: Vec<&String> = Vec::new();
    for round in outcome.journal.state().rounds().iter().skip(1) {
        let mut multipliers: Vec<(&String, f64)> = round
            .multipliers
            .iter()
            .map(|(metric, at)| (metric, *at))
            .collect();
        multipliers.sort_by(|a, b| b.1.total_cmp(&a.1));
        if multipliers[0].1 > multipliers[1].1 {
            binding.push(multipliers[0].0);
        }
    }
    binding.dedup();
    binding.len() > 1
}

/// The shipped study with a limit on calls that no prompt keeps.
fn unattainable(seed: u64) -> StudyFile {
    study(seed, |study| {
        let mut constraints = study.constraints.iter_mut();
        for constraint in constraints.by_ref().filter(|c| c.metric == "excess_tools") {
            constraint.threshold = Some(-0.95);
        }
    })
}

fn assert_saturated(outcome: &Outcome, seed: u64) {
    assert_eq!(outcome.finished.status, Status::Infeasible, "seed {seed}");
    assert_eq!(outcome.finished.multipliers["excess_tools"], 10.0, "seed {seed}");
}

/// What the gate has time for of what [`over_many_seeds`] shows.
#[test]
fn a_few_seeds_show_what_many_must() {
    let feasible = (0..5)
        .filter(|&seed| is_feasible(&run(&study(seed, |_| {}))))
        .count();
    assert!(feasible >= 4, "{feasible} of 5 searches end feasible");
    assert_saturated(&run(&unattainable(0)), 0);
}

/// Rollouts until the end of the first round with a prompt that holds on all tasks of the search.
fn until_one_holds(file: &StudyFile, starts: Vec<Start>) -> u64 {
    let spent = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&spent);
    let mut journal = Journal::create(Box::new(MemoryJournal::new()));
    journal.observe(Box::new(move |event, state| {
        if matches!(event, Event::Round(_)) {
            noted.borrow_mut().push(state.ledger().rollouts());
        }
    }));
    let options = RunOptions {
        starts,
        ..RunOptions::default()
    };
    let outcome = block_on(optimize(problem(file), journal, models(file), options)).expect("the run ends");
    let state = outcome.journal.state();
    let holds = |id: &CandidateId| {
        let candidate = state.candidate(id).expect("what is scored is known");
        let means = measure(file, &candidate.prompt);
        let keeps = |one: &Constraint| one.threshold.is_some_and(|most| means[&one.metric] <= most);
        file.study.constraints.iter().all(keeps)
    };
    let mut rounds = state.rounds().iter().zip(spent.take());
    let first = rounds.find(|(round, _)| round.scores.keys().any(holds));
    first.expect("a prompt holds").1
}

#[test]
fn prompts_of_a_finished_run_are_a_head_start_under_another_threshold_and_for_another_agent() {
    type Change = fn(&mut Study);
    let strict: Change = |study| study.constraints[0].threshold = Some(0.30);
    let large: Change = |study| study.models[&Role::Agent]["model"] = "sim-large".into();
    let (mut alone, mut warm) = ([0, 0], [0, 0]);
    for seed in 0..3 {
        let finished = run(&changed(as_it_stands(), seed, |_| {}));
        for (place, change) in [strict, large].into_iter().enumerate() {
            let file = changed(as_it_stands(), seed, |study| {
                change(study);
                study.study.rounds = Rounds::Count(8);
            });
            let problem = problem(&file);
            let mut starts = Starts::of(&problem).expect("the method takes prompts");
            let taken = starts.take(finished.journal.state());
            taken.expect("it measured prompts on the same tasks");
            alone[place] += until_one_holds(&file, Vec::new());
            warm[place] += until_one_holds(&file, starts.best());
        }
    }
    println!("rollouts to a prompt that holds: {alone:?} without an earlier run, {warm:?} with");
    for (alone, warm) in alone.into_iter().zip(warm) {
        assert!(
            3 * warm < 2 * alone,
            "{warm} with an earlier run, {alone} without"
        );
    }
}

/// Of `cargo xtask test --all`.
mod over_many_seeds {
    use super::*;

    #[test]
    fn feasible_prompts_are_rare_among_random_edits() {
        // One to four changes; each may ask for a policy, ask for it softly, or say something idle.
        const IDLE: &str = "Our shop was founded by two sisters who love maps and tea.";
        let seed_prompt = seed_prompt();
        let (mut hits, mut draws) = (0, 0);
        for seed in 0..SEEDS {
            let file = study(seed, |_| {});
            for index in 0..40 {
                let mut stream = Streams::new(seed).stream("random edits", 0, index);
                let number = |name, below| Streams::new(seed).number(name, 0, index) % below;
                let count = 1 + number("edits", 4) as usize;
                let places = 2 * SENTENCES.len() + 1;
                let chosen =
                    capo_core::random::without_replacement(&vec![0.0; places], 1.0, count, &mut stream);
                let prompt = chosen.iter().fold(seed_prompt.clone(), |prompt, &at| {
                    let (_, policy) = SENTENCES[at % SENTENCES.len()];
                    match at / SENTENCES.len() {
                        0 => format!("{prompt} {policy}"),
                        1 => format!(
                            "{prompt} Where possible, you may {}{}",
                            policy[..1].to_lowercase(),
                            &policy[1..]
                        ),
                        _ => format!("{prompt} {IDLE}"),
                    }
                });
                draws += 1;
                hits += u32::from(feasible(&measure(&file, &prompt)));
            }
        }
        let bound = at_most(hits, draws);
        println!(
            "feasible among random edits: {hits} of {draws}, at most {:.1} %",
            100.0 * bound
        );
        assert!(bound < 0.05, "{hits} of {draws} random edits are feasible");
    }

    #[test]
    fn what_sentences_do_alone_does_not_tell_what_they_do_together() {
        // How a sentence is put, with what it then counts for beside the plain one.
        const WORDINGS: [(&str, f64); 3] = [("", 1.0), ("Where possible, ", 0.5), ("In every case: ", 1.1)];
        const METRICS: [&str; 3] = ["success", CONTESTED[0], CONTESTED[1]];
        let file = study(0, |study| {
            study.workload.insert("optimize".to_owned(), 200.into());
            study.workload.insert("skip".to_owned(), 114_000.into());
        });
        let means = |prompt: &str| {
            let means = measure(&file, prompt);
            METRICS.map(|metric| means[metric])
        };
        let limits: IndexMap<String, f64> = thresholds().into_iter().collect();
        let worst_violation = |means: [f64; 3]| {
            let excess = |at: usize| means[at] / limits[METRICS[at]] - 1.0;
            excess(1).max(excess(2))
        };
        let seed_prompt = seed_prompt();
        let unlearned = seed_prompt.replace(HABIT, "");
        let seed = means(&seed_prompt);
        let effect = |prompt: &str| {
            let means = means(prompt);
            [0, 1, 2].map(|at| means[at] - seed[at])
        };
        let of_unlearning = effect(&unlearned);
        let of_sentences = SENTENCES.map(|(_, sentence)| effect(&format!("{seed_prompt} {sentence}")));

        let mut predicted: [Vec<f64>; 4] = Default::default();
        let mut measured: [Vec<f64>; 4] = Default::default();
        let streams = Streams::new(7);
        for index in 0..500 {
            let draw = |name: &str, below: u64| streams.number(name, 0, index) % below;
            let mut sum = seed;
            let mut add = |effect: [f64; 3], share: f64| (0..3).for_each(|at| sum[at] += share * effect[at]);
            let mut prompt = if draw("habit", 2) == 0 {
                add(of_unlearning, 1.0);
                unlearned.clone()
            } else {
                seed_prompt.clone()
            };
            for ((_, sentence), effect) in SENTENCES.iter().zip(of_sentences) {
                // Half of the sentences are left out.
                if let Some((opening, share)) = WORDINGS.get(draw(sentence, 6) as usize) {
                    prompt = format!(
                        "{prompt} {opening}{}{}",
                        sentence[..1].to_lowercase(),
                        &sentence[1..]
                    );
                    add(effect, *share);
                }
            }
            let truth = means(&prompt);
            for at in 0..3 {
                predicted[at].push(sum[at]);
                measured[at].push(truth[at]);
            }
            predicted[3].push(worst_violation(sum));
            measured[3].push(worst_violation(truth));
        }
        let met = |violations: &[f64]| violations.iter().filter(|worst| **worst <= 0.0).count();
        println!(
            "feasible: {} of 500 as predicted, {} as measured",
            met(&predicted[3]),
            met(&measured[3])
        );
        assert!(met(&predicted[3]) == 0 && met(&measured[3]) > 0);
        let correlations = [0, 1, 2, 3].map(|at| rank_correlation(&predicted[at], &measured[at]));
        println!("rank correlations of {METRICS:?} and the worst violation: {correlations:.2?}");
        let [success, human_requests, _, worst_violation] = correlations;
        for correlation in [success, human_requests, worst_violation] {
            assert!(correlation < 0.8, "{correlations:?}");
        }
    }

    /// Spearman's rank correlation: that of the ranks, equal values sharing the mean of theirs.
    fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
        let ranks = |values: &[f64]| -> Vec<f64> {
            let rank = |value: &f64| {
                let below = values.iter().filter(|other| *other < value).count();
                let equal = values.iter().filter(|other| *other == value).count();
                below as f64 + equal as f64 / 2.0
            };
            values.iter().map(rank).collect()
        };
        let (one, other) = (ranks(one), ranks(other));
        let middle = one.len() as f64 / 2.0;
        let moment =
            |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum() };
        moment(&one, &other) / (moment(&one, &one) * moment(&other, &other)).sqrt()
    }

    #[test]
    fn the_binding_constraint_changes_along_most_runs() {
        let changes = (0..SEEDS).filter(|&seed| binding_constraint_changes(&run(&study(seed, |_| {}))));
        let changes = changes.count() as u64;
        println!("the largest multiplier changes hands in {changes} of {SEEDS} runs");
        assert!(
            changes * 2 > SEEDS,
            "the binding constraint changes in {changes} of {SEEDS} runs only"
        );
    }

    #[test]
    fn adaptive_multipliers_reach_feasibility_clearly_more_often_than_ones_fixed_at_one() {
        let reached = |fixed: bool, seeds: std::ops::Range<u64>| {
            let runs = seeds.map(|seed| {
                run(&study(seed, |study| {
                    if fixed {
                        fixed_at(study, 1.0);
                    }
                }))
            });
            runs.filter(is_feasible).count() as u64
        };
        // Twice the seeds, for a difference that chance does not explain.
        let seeds = 2 * SEEDS;
        let (adaptive, fixed) = (reached(false, 0..seeds), reached(true, 0..seeds));
        println!("feasible: adaptive {adaptive} of {seeds}; fixed at 1 {fixed} of {seeds}");
        assert!(
            adaptive * 5 >= seeds * 4,
            "adaptive multipliers reach feasibility on {adaptive} of {seeds} seeds"
        );
        let share = |count: u64| count as f64 / seeds as f64;
        let pooled = share(adaptive + fixed) / 2.0;
        let standard_error = (pooled * (1.0 - pooled) * 2.0 / seeds as f64).sqrt();
        assert!(
            share(adaptive) - share(fixed) > Z * standard_error,
            "fixed weights of 1 do on {fixed}, adaptive ones on {adaptive} of {seeds}"
        );
    }

    #[test]
    fn the_right_fixed_weights_found_by_a_grid_reach_it_too() {
        let reached = |weights: [f64; 2], seeds: std::ops::Range<u64>| {
            seeds
                .filter(|&seed| is_feasible(&run(&weighted(seed, weights))))
                .count()
        };
        // The grid is searched on seeds of its own.
        let mut grid = Vec::new();
        for human in [0.5, 1.0, 2.0] {
            for tools in [0.125, 0.25, 0.5] {
                grid.push(([human, tools], reached([human, tools], 100..108)));
            }
        }
        let (weights, _) = grid
            .iter()
            .rev()
            .max_by_key(|(_, count)| *count)
            .expect("a grid of nine");
        let right = reached(*weights, 0..SEEDS);
        println!("fixed at {weights:?} for {CONTESTED:?}: {right} of {SEEDS}; grid over 8 seeds: {grid:?}");
        assert!(
            right >= 14,
            "weights {weights:?} reach feasibility on {right} only"
        );
    }

    #[test]
    fn the_constraints_cost_objective() {
        let best = |outcome: &Outcome, feasible_only: bool| {
            let scores = outcome.finished.final_scores.values();
            let allowed = scores.filter(|score| score.feasible || !feasible_only);
            allowed.map(|score| score.objective).reduce(f64::max)
        };
        let prices: Vec<f64> = (0..SEEDS)
            .filter_map(|seed| {
                let inside = best(&run(&study(seed, |_| {})), true)?;
                let unconstrained = run(&study(seed, |study| fixed_at(study, 0.0)));
                Some(best(&unconstrained, false)? - inside)
            })
            .collect();
        let price = estimate(&prices);
        println!("best unconstrained objective minus best feasible one: {price:?}");
        assert!(
            prices.len() >= 15,
            "{} seeds with a feasible prompt",
            prices.len()
        );
        assert!(
            price.mean - Z * price.standard_error > 0.0,
            "the constraints cost nothing: {price:?}"
        );
    }

    #[test]
    fn held_out_examples_tell_the_truth_and_the_search_flatters() {
        // Every run has tasks of its own and divides them otherwise, so that what they are like averages out.
        let metrics = ["success", CONTESTED[0], CONTESTED[1]];
        let mut gaps: IndexMap<(&str, &str), Vec<f64>> = IndexMap::new();
        let mut flattery = Vec::new();
        // Three times the seeds: a share of so many has an error of 0.05.
        for seed in 0..3 * SEEDS {
            let file = study(seed, |study| {
                study.workload.insert("seed".to_owned(), (1000 + seed).into());
                study
                    .workload
                    .insert("skip".to_owned(), (114 * (1 + seed)).into());
            });
            let outcome = run(&file);
            let state = outcome.journal.state();
            let mut record = RunRecord::of("", seed, state).expect("the run has ended");
            let truths = fresh::Truths::default();
            fresh::measure(&file, &mut record, fresh::ROLLOUTS, None, None, &truths, None)
                .expect("simulated models answer");
            let of = |outcome: &Option<experiment::Outcome>, metric: &str| {
                let outcome = outcome.as_ref().expect("it was measured");
                outcome.cost(metric).unwrap_or(outcome.objective)
            };
            let met = |outcome: &Option<experiment::Outcome>| {
                f64::from(u8::from(outcome.as_ref().is_some_and(|outcome| outcome.all_sat)))
            };
            flattery.push(met(&record.optimize) - met(&record.fresh));
            for metric in metrics {
                let truth = of(&record.fresh, metric);
                for (what, gap) in [
                    ("held out", of(&record.evaluate, metric) - truth),
                    (
                        "seed prompt held out",
                        of(&record.seed_prompt, metric) - of(&record.seed_prompt_fresh, metric),
                    ),
                ] {
                    gaps.entry((what, metric)).or_default().push(gap);
                }
            }
        }
        for ((what, metric), gaps) in &gaps {
            let gap = estimate(gaps);
            println!("{what} minus fresh, {metric}: {gap:?}");
            // Nobody chose a prompt for how it did on held-out examples: the gap is chance alone.
            assert!(
                gap.mean.abs() < 3.0 * gap.standard_error,
                "{what}, {metric}: {gap:?}"
            );
        }
        // Prompts are returned for meeting the thresholds in the search: fewer do than are called feasible (the
        // winner's curse).
        let flattery = estimate(&flattery);
        println!("share that meets every threshold, search minus fresh: {flattery:?}");
        assert!(flattery.mean > Z * flattery.standard_error, "{flattery:?}");
    }

    #[test]
    fn an_unattainable_threshold_drives_its_multiplier_to_the_cap_and_the_result_says_infeasible() {
        for seed in 0..SEEDS {
            assert_saturated(&run(&unattainable(seed)), seed);
        }
    }
}
