//! Prompts measured as they are asked for, into one journal.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, WorldModels, events, problem, study};
use capo_core::arena::{Halt, RunOptions};
use capo_core::evaluate::{Evaluator, UnknownExample};
use capo_core::journal::{Event, Journal, MemoryJournal};
use capo_core::llm::FailureKind;
use capo_core::study::Study;
use capo_core::verify;
use capo_core::workload::Split;
use futures::executor::block_on;

fn open(study: Study, probe: &Rc<Probe>, lines: Vec<String>) -> (Evaluator, MemoryJournal) {
    let store = MemoryJournal::from_lines(lines.clone());
    let numbered = lines.into_iter().enumerate();
    let numbered = numbered.map(|(index, line)| Ok((index as u64, line)));
    let journal = Journal::open(Box::new(store.clone()), numbered).expect("lines of a run");
    let models = Rc::new(WorldModels(probe.clone()));
    let evaluator = Evaluator::open(problem(study, probe), journal, models, RunOptions::default());
    (evaluator.expect("a journal of its own"), store)
}

#[test]
fn any_examples_are_measured_and_none_is_paid_twice() {
    let probe = Rc::new(Probe::default());
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let (evaluator, store) = open(study(3, "capo", relative, ""), &probe, Vec::new());
    let limits = block_on(evaluator.limits()).unwrap();
    assert_eq!(probe.rollouts(), 24, "the seed prompt, for the threshold");

    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let some = evaluator
        .batch(Split::Optimize, Some(&names(&["o7", "o3", "o7"])))
        .unwrap();
    let measured = block_on(evaluator.measure("Act. care", &some)).unwrap();
    let examples: Vec<&str> = measured
        .rollouts
        .iter()
        .map(|rollout| &*rollout.example)
        .collect();
    assert_eq!(examples, ["o3", "o7"]);
    assert_eq!(measured.limits, limits);
    let mean = measured
        .rollouts
        .iter()
        .map(|rollout| rollout.measurements["effort"])
        .sum::<f64>()
        / 2.0;
    assert!((measured.estimates["effort"].mean - mean).abs() < 1e-12);
    assert_eq!(
        measured.is_feasible(),
        Some(limits["effort"].is_satisfied(measured.estimates["effort"].mean))
    );

    let mut both = evaluator
        .batch(Split::Optimize, Some(&names(&["o3", "o4"])))
        .unwrap();
    both.join(&some);
    let again = block_on(evaluator.measure("Act. care", &both)).unwrap();
    assert_eq!((again.rollouts.len(), probe.rollouts()), (3, 27));
    let held_out = evaluator.batch(Split::Evaluate, None).unwrap();
    let whole = block_on(evaluator.measure("Act. care", &held_out)).unwrap();
    assert_eq!(whole.estimates["success"].n, 10);
    assert_eq!(
        evaluator
            .batch(Split::Optimize, Some(&names(&["e1"])))
            .unwrap_err(),
        UnknownExample("e1".to_owned())
    );

    block_on(evaluator.close()).unwrap();
    let lines = store.lines().to_vec();
    block_on(verify(&lines)).unwrap();
    let (evaluator, _) = open(study(3, "capo", relative, ""), &probe, lines);
    assert_eq!(block_on(evaluator.limits()).unwrap(), limits);
    let known = block_on(evaluator.measure("Act. care", &both)).unwrap();
    assert_eq!(known.rollouts, again.rollouts);
    assert_eq!(probe.rollouts(), 37, "nothing was paid for again");
}

#[test]
fn what_stops_one_measurement_stops_no_other() {
    let probe = Rc::new(Probe::default());
    *probe.refuse.borrow_mut() = Some(Rc::new(|prompt, _| {
        (prompt == "Refused.").then_some((FailureKind::Provider, false))
    }));
    let (evaluator, store) = open(
        study(3, "capo", EFFORT, "[budget]\nrollouts = 30"),
        &probe,
        Vec::new(),
    );
    let whole = evaluator.batch(Split::Optimize, None).unwrap();
    let refused = block_on(evaluator.measure("Refused.", &whole));
    assert!(matches!(refused, Err(Halt::Failed { .. })), "{refused:?}");
    let measured = block_on(evaluator.measure("Act. care", &whole)).unwrap();
    assert_eq!(measured.rollouts.len(), 24);
    let spent = block_on(evaluator.measure("Act. haste", &whole));
    assert!(matches!(spent, Err(Halt::Budget(_))), "{spent:?}");
    assert_eq!(
        block_on(evaluator.measure("Act. care", &whole)).unwrap().rollouts,
        measured.rollouts
    );
    block_on(evaluator.close()).unwrap();
    let rollouts = events(&store.lines()).into_iter();
    let rollouts = rollouts
        .filter(|event| matches!(event, Event::Rollout(_)))
        .count();
    assert_eq!(rollouts, 30);
}
