//! Bad luck and bad input where batches grow until the budget is spent.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::world::{Effort, Probe, events, problem, resume, run, study};
use capo_core::arena::{Clock, RunOptions};
use capo_core::journal::{Event, Status};
use capo_core::study::{Rounds, Study, UntilBudget};
use capo_core::{Outcome, methods, verify};
use futures::executor::block_on;

fn growing(threshold: f64, budget: &str) -> Study {
    let constraint = format!("[[constraint]]\nmetric = \"effort\"\nthreshold = {threshold:?}\n");
    let settings = format!("[method]\npool = 3\n[budget]\n{budget}\n");
    let mut study = study(1, "capo", &constraint, &settings);
    study.study.rounds = Rounds::Open(UntilBudget::UntilBudget);
    (study.study.batch, study.study.batch_growth) = (Some(8), Some(1.5));
    (study.study.caution, study.study.choice_probability) = (1.64, 0.8);
    study
}

/// A run whose journal verifies.
fn verified(study: Study, probe: &Rc<Probe>) -> (Outcome, Vec<Event>) {
    let (outcome, lines) = run(study, probe);
    block_on(verify(&lines)).unwrap_or_else(|difference| panic!("{difference}"));
    (outcome, events(&lines))
}

#[test]
fn one_example_is_searched_on_and_the_rest_is_the_held_out_evaluation() {
    let probe = Rc::new(Probe::default());
    probe.searched.set(Some(1));
    let (outcome, _) = verified(growing(1.6, "rollouts = 60"), &probe);
    let rounds = outcome.journal.state().rounds();
    assert!(!rounds.is_empty() && rounds.iter().all(|round| round.batch.is_none()));
    assert_eq!(outcome.finished.evaluation["success"].n, 10);
    assert!(probe.rollouts() <= 60, "{}", probe.rollouts());
}

#[test]
fn examples_that_cost_the_same_decide_on_the_first_batch() {
    for (threshold, status, probability) in [(1.6, Status::Feasible, 1.0), (0.9, Status::Infeasible, 0.0)] {
        let probe = Rc::new(Probe::default());
        let alike: Effort = |_| 1.0;
        *probe.effort.borrow_mut() = Some(alike);
        let (outcome, _) = verified(growing(threshold, "rollouts = 800"), &probe);
        assert_eq!(outcome.finished.status, status);
        assert_eq!(outcome.finished.probability, Some(probability));
        if status == Status::Feasible {
            let rounds = outcome.journal.state().rounds().iter();
            let batches = rounds.map(|round| Some(round.batch.as_ref()?["world"].len()));
            let first: Vec<Option<usize>> = batches.take(4).collect();
            assert_eq!(first, [Some(8), Some(12), Some(18), None]);
        }
    }
}

#[test]
fn a_cost_that_is_its_threshold_is_left_to_chance_and_told_so() {
    let probe = Rc::new(Probe::default());
    let by_parity: Effort = |example| f64::from(1 + u8::from(example.ends_with(['1', '3', '5', '7', '9'])));
    *probe.effort.borrow_mut() = Some(by_parity);
    let (outcome, _) = verified(growing(1.5, "rollouts = 800"), &probe);
    let finished = &outcome.finished;
    let best = &finished.final_scores[&finished.best.unwrap()];
    assert_eq!(
        (best.costs["effort"], finished.probability, finished.status),
        (1.5, Some(0.5), Status::Feasible)
    );
}

#[test]
fn a_child_that_is_known_is_not_measured_twice() {
    let probe = Rc::new(Probe::default());
    let (_, events) = verified(growing(1.6, "rollouts = 800"), &probe);
    let children = events.iter().filter_map(|event| match event {
        Event::Rewrite(rewrite) => rewrite.child,
        _ => None,
    });
    let children: Vec<_> = children.collect();
    let distinct: HashSet<_> = children.iter().collect();
    assert!(distinct.len() < children.len(), "{} children", children.len());
    assert!(probe.served.borrow().values().all(|times| *times == 1));
}

/// A second goes by whenever somebody looks.
struct Hurried(Cell<f64>);

impl Clock for Hurried {
    fn seconds(&self) -> f64 {
        self.0.replace(self.0.get() + 1.0)
    }
}

#[test]
fn models_too_slow_for_a_first_batch_leave_a_run_without_scores_that_goes_on() {
    let probe = Rc::new(Probe::default());
    let options = RunOptions {
        clock: Rc::new(Hurried(Cell::new(0.0))),
        ..RunOptions::default()
    };
    let (outcome, lines) = resume(growing(1.6, "seconds = 5.0"), &probe, Vec::new(), options);
    assert_eq!(outcome.finished.status, Status::Budget);
    assert!(outcome.finished.best.is_none() && outcome.journal.state().rounds().is_empty());
    block_on(verify(&lines)).unwrap();
    let more = growing(1.6, "rollouts = 200");
    let (outcome, lines) = resume(more, &probe, lines, RunOptions::default());
    assert!(outcome.finished.best.is_some() && !outcome.journal.state().rounds().is_empty());
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_budget_below_the_first_batch_is_told_before_and_spent_on_the_seed_prompt() {
    let with = |budget: u64, starts: usize, held_out: usize| {
        let study = growing(1.6, &format!("rollouts = {budget}"));
        let probe = Rc::new(Probe::default());
        probe.held_out.set(held_out);
        methods::too_small(&problem(study, &probe), starts)
    };
    let told = |budget| with(budget, 0, 10);
    // The seed and two children on 8 examples, two prompts on the 10 held-out ones.
    let enough = 3 * 8 + 2 * 10;
    assert_eq!(told(enough), None);
    let words = told(enough - 1).unwrap();
    assert!(
        words.contains("43 rollouts is too small") && words.contains("up to 24,"),
        "{words}"
    );
    assert!(with(enough, 1, 10).is_some_and(|words| words.contains("up to 32,")));
    // Thresholds relative to the seed want it measured on all 24 examples.
    let relative = |budget: u64| {
        let mut study = growing(1.6, &format!("rollouts = {budget}"));
        (
            study.constraints[0].threshold,
            study.constraints[0].relative_to_seed,
        ) = (None, Some(0.9));
        methods::too_small(&problem(study, &Rc::new(Probe::default())), 0)
    };
    assert_eq!(relative(enough + 16), None);
    assert!(relative(enough + 15).is_some_and(|words| words.contains("up to 40,")));
    // No search holds more than half of a budget back.
    assert_eq!(with(4 * 40, 0, 40), None);
    let words = with(4 * 40 - 1, 0, 40).unwrap();
    assert!(words.contains("up to 80, more than the half"), "{words}");
    for budget in [1, 7] {
        let probe = Rc::new(Probe::default());
        let (outcome, _) = verified(growing(1.6, &format!("rollouts = {budget}")), &probe);
        assert_eq!(outcome.finished.status, Status::Budget);
        assert_eq!((probe.rollouts(), outcome.finished.best), (budget, None));
    }
}
