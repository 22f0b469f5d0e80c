//! A run may begin with a few rollouts by which to tell what it will take, and goes on as if it had not paused there.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, WorldModels, problem, resume, run, study};
use capo_core::arena::{Halt, RunOptions};
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::llm::FailureKind;
use capo_core::study::Study;
use capo_core::{Piloted, pilot, verify};
use futures::executor::block_on;

/// Makes the first rollouts of a run whose lines so far are given.
fn piloted(study: &Study, probe: &Rc<Probe>, lines: Vec<String>, rollouts: usize) -> (Piloted, Vec<String>) {
    let store = MemoryJournal::from_lines(lines.clone());
    let numbered = (0..).zip(lines).map(Ok);
    let journal = Journal::open(Box::new(store.clone()), numbered).expect("the lines are a journal");
    let piloted = pilot(
        problem(study.clone(), probe),
        journal,
        Rc::new(WorldModels(probe.clone())),
        RunOptions::default(),
        rollouts,
    );
    let piloted = block_on(piloted).expect("it begins");
    let lines = store.lines().to_vec();
    (piloted, lines)
}

#[test]
fn a_run_that_was_piloted_pays_for_nothing_twice_and_ends_as_it_would_have() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let mut in_batches = study(3, "capo", EFFORT, "");
    in_batches.study.batch = Some(12);
    for study in [
        study(3, "capo", EFFORT, ""),
        study(3, "injected", EFFORT, ""),
        study(3, "capo", relative, ""),
        in_batches,
    ] {
        let whole_probe = Rc::new(Probe::default());
        let (whole, _) = run(study.clone(), &whole_probe);
        let probe = Rc::new(Probe::default());
        probe.disorder.set(3);
        let (begun, lines) = piloted(&study, &probe, Vec::new(), 5);
        assert!(begun.halt.is_none());
        assert_eq!((begun.rollouts, begun.usage.calls, probe.rollouts()), (5, 10, 5));
        let state = begun.journal.state();
        assert!(state.finished().is_none() && state.rounds().is_empty());
        let each = state.per_rollout("world").unwrap();
        assert_eq!((each.rollouts, each.calls.mean()), (5, 2.0));
        assert!(!block_on(verify(&lines)).unwrap().finished);

        let (again, lines) = piloted(&study, &probe, lines, 5);
        assert_eq!((again.rollouts, again.usage.calls, probe.rollouts()), (0, 0, 5));

        let (resumed, lines) = resume(study, &probe, lines, RunOptions::default());
        assert!(block_on(verify(&lines)).unwrap().finished);
        assert_eq!(resumed.journal.state().rounds(), whole.journal.state().rounds());
        let mut finished = (*resumed.finished).clone();
        // Sums of dollars and seconds may differ in their last bits with the order of arrival.
        finished.usage.clone_from(&whole.finished.usage);
        assert_eq!(finished, *whole.finished);
        assert_eq!(probe.rollouts(), whole_probe.rollouts());
        assert!(probe.served.borrow().values().all(|times| *times == 1));
    }
}

#[test]
fn a_pilot_that_makes_nothing_has_failed_and_one_that_makes_some_says_what_it_lacks() {
    let study = study(3, "capo", EFFORT, "[failures]\ntries = 1\n");
    let of_example = |failing: &'static str| {
        let probe = Rc::new(Probe::default());
        let refuses = move |_: &str, example: &str| {
            let is_it = failing.is_empty() || example == failing;
            is_it.then_some((FailureKind::Provider, false))
        };
        probe.refuse.replace(Some(Rc::new(refuses)));
        probe
    };
    let (begun, _) = piloted(&study, &of_example(""), Vec::new(), 1);
    assert!(
        matches!(&begun.halt, Some(Halt::Failed { message, .. }) if message.contains("o0")),
        "{:?}",
        begun.halt
    );
    let (begun, _) = piloted(&study, &of_example("o0"), Vec::new(), 5);
    assert_eq!((begun.rollouts, begun.halt), (4, None));
    assert!(matches!(begun.failure, Some(Halt::Failed { .. })));
}

#[test]
fn a_pilot_is_of_what_the_search_begins_with_and_heeds_its_budget() {
    let mut twice = study(3, "capo", EFFORT, "");
    twice.study.repeats = 2;
    let probe = Rc::new(Probe::default());
    let (begun, lines) = piloted(&twice, &probe, Vec::new(), 24);
    assert_eq!((begun.first, begun.rollouts), (48, 24));
    let of_first_repeat = |(_, _, repeat): &(String, String, u32)| *repeat == 0;
    assert!(
        probe.served.borrow().keys().all(of_first_repeat),
        "one of each example"
    );
    let (rest, _) = piloted(&twice, &probe, lines, 1000);
    assert_eq!((rest.rollouts, probe.rollouts()), (24, 48));

    let bounded = study(3, "capo", EFFORT, "[budget]\nrollouts = 3\n");
    let probe = Rc::new(Probe::default());
    let (begun, _) = piloted(&bounded, &probe, Vec::new(), 5);
    assert_eq!((begun.rollouts, probe.rollouts()), (3, 3));
    assert!(matches!(begun.halt, Some(Halt::Budget(_))));
}
