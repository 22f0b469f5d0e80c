//! What earlier runs paid for is taken over, and changes no run that takes it over.

use std::collections::HashSet;
use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, problem, resume, run, study};
use capo_core::arena::RunOptions;
use capo_core::ids::CandidateId;
use capo_core::journal::{EarlierRuns, Event, FinishedEvent, Status, StudyEvent};
use capo_core::study::{Rounds, Study, UntilBudget};
use capo_core::usage::Usage;
use capo_core::workload::Split;
use capo_core::{Outcome, verify};
use futures::executor::block_on;
use proptest::prelude::*;

const CONFIRM: &str = "[confirm]\nexamples = 60\n[confirm.bounds]\neffort = 6.0\n";
const RELATIVE: &str = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";

fn probe() -> Rc<Probe> {
    Rc::new(Probe::default())
}

/// What an earlier run's lines offer to a run of a study, and whether it may want any rollout of them.
fn offered(study: &Study, probe: &Rc<Probe>, journal: &[String]) -> (EarlierRuns, bool) {
    let mut earlier = EarlierRuns::for_use_on(&problem(study.clone(), probe).records());
    let mut fits = false;
    for event in events(journal) {
        fits |= earlier.take(event);
    }
    (earlier, fits)
}

/// Runs a study over lines, taking over what it can of an earlier run, and verifies what comes of it.
fn reusing(
    study: Study,
    probe: &Rc<Probe>,
    lines: Vec<String>,
    journal: &[String],
) -> (Outcome, Vec<String>) {
    let options = RunOptions {
        earlier: offered(&study, probe, journal).0,
        ..RunOptions::default()
    };
    let (outcome, lines) = resume(study, probe, lines, options);
    block_on(verify(&lines)).unwrap_or_else(|difference| panic!("{difference}"));
    (outcome, lines)
}

/// How a run ended, whatever it paid.
fn end(outcome: &Outcome) -> FinishedEvent {
    FinishedEvent {
        usage: Usage::default(),
        ..(*outcome.finished).clone()
    }
}

#[test]
fn a_run_over_its_own_finished_journal_pays_for_nothing_and_ends_the_same() {
    for (method, constraint, repeats, batch) in [
        ("capo", EFFORT, 1, None),
        ("dcapo", RELATIVE, 2, None),
        ("capo-ea", RELATIVE, 1, Some(9)),
    ] {
        let mut study = study(3, method, constraint, "");
        (study.study.repeats, study.study.batch) = (repeats, batch);
        let paying = probe();
        let (whole, lines) = run(study.clone(), &paying);
        let free = probe();
        let (again, taken) = reusing(study.clone(), &free, Vec::new(), &lines);
        assert_eq!((free.rollouts(), free.calls.get()), (0, 0), "{method}");
        assert_eq!(again.journal.state().rounds(), whole.journal.state().rounds());
        assert_eq!(end(&again), end(&whole), "{method}");
        assert!(again.finished.usage.is_empty());
        let reused = again.journal.state().ledger().reused();
        assert_eq!(reused.rollouts, u64::from(paying.rollouts()), "{method}");
        assert_eq!(reused.usage.total().calls, u64::from(paying.calls.get()));
        // Taken over once more, it says still who had paid for it.
        assert_eq!(reusing(study, &free, Vec::new(), &taken).1, taken, "{method}");
    }
}

#[test]
fn more_examples_cost_what_is_new() {
    let (whole, lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let more = probe();
    more.held_out.set(14);
    let (outcome, _) = reusing(study(3, "capo", EFFORT, ""), &more, Vec::new(), &lines);
    assert_eq!(outcome.finished.best, whole.finished.best);
    assert_eq!(outcome.finished.evaluation["success"].n, 14);
    // Of the seed and of the prompt returned.
    assert_eq!(more.rollouts(), 2 * 4);
}

#[test]
fn what_is_taken_over_is_no_part_of_a_budget() {
    let limited = |rollouts: u32| study(4, "capo", EFFORT, &format!("[budget]\nrollouts = {rollouts}\n"));
    let mut short = study(4, "capo", EFFORT, "");
    short.study.rounds = Rounds::Count(3);
    let (_, lines) = run(short, &probe());
    let (unlimited, _) = run(study(4, "capo", EFFORT, ""), &probe());

    let paying = probe();
    let (outcome, stopped) = reusing(limited(60), &paying, Vec::new(), &lines);
    assert_eq!(outcome.finished.status, Status::Budget);
    assert!(paying.rollouts() <= 60, "{}", paying.rollouts());
    let state = outcome.journal.state();
    assert_eq!(state.ledger().rollouts(), u64::from(paying.rollouts()));
    assert!(state.rounds().len() >= 3);
    // The seed was measured on the held-out examples before: nothing is held back for it.
    let reason = outcome.finished.reason.clone().unwrap();
    assert!(
        reason.contains("of 60 rollouts (10 held back for the final evaluation)"),
        "{reason}"
    );
    assert_eq!(outcome.finished.seed_evaluation["success"].n, 10);

    // The journal stands alone, and goes on without the other one.
    let (resumed, lines) = resume(
        study(4, "capo", EFFORT, ""),
        &paying,
        stopped,
        RunOptions::default(),
    );
    assert_eq!(
        resumed.journal.state().rounds(),
        unlimited.journal.state().rounds()
    );
    block_on(verify(&lines)).unwrap();
    // What it made itself is there for the next one.
    let free = probe();
    let (again, _) = reusing(limited(1), &free, Vec::new(), &lines);
    assert_eq!(free.calls.get(), 0);
    assert_eq!(end(&again), end(&unlimited));
}

#[test]
fn rounds_that_earlier_runs_paid_for_are_no_idle_ones() {
    let mut open = study(4, "capo", EFFORT, "[budget]\nrollouts = 1500\n");
    (open.study.rounds, open.study.batch) = (Rounds::Open(UntilBudget::UntilBudget), Some(2));
    let (whole, lines) = run(open.clone(), &probe());
    let rounds = whole.journal.state().rounds();
    assert!(rounds.len() > 21, "{} rounds", rounds.len());
    let (further, _) = reusing(open, &probe(), Vec::new(), &lines);
    let all = further.journal.state().rounds().len();
    assert!(all > rounds.len(), "{all} rounds after {}", rounds.len());
    assert_eq!(&further.journal.state().rounds()[..rounds.len()], rounds);
}

#[test]
fn an_interrupted_run_takes_nothing_over_and_goes_on_later() {
    let (whole, lines) = run(study(3, "capo", EFFORT, ""), &probe());
    let interrupted = RunOptions {
        earlier: offered(&study(3, "capo", EFFORT, ""), &probe(), &lines).0,
        ..RunOptions::default()
    };
    interrupted.control.interrupt();
    let (stopped, begun) = resume(study(3, "capo", EFFORT, ""), &probe(), Vec::new(), interrupted);
    assert_eq!(stopped.finished.status, Status::Stopped);
    assert_eq!(stopped.journal.state().ledger().reused().effects(), 0);
    let free = probe();
    let (resumed, _) = reusing(study(3, "capo", EFFORT, ""), &free, begun, &lines);
    assert_eq!(free.calls.get(), 0);
    assert_eq!(end(&resumed), end(&whole));
}

#[test]
fn another_seed_or_model_is_another_rollout_and_another_price_is_not() {
    let (_, lines) = run(study(3, "capo", EFFORT, "retries = 2\nprice = 1\n"), &probe());
    let Some(Event::Study(begun)) = events(&lines).into_iter().next() else {
        panic!("a journal begins with its study")
    };
    let free = probe();
    reusing(study(3, "capo", EFFORT, "price = 2\n"), &free, Vec::new(), &lines);
    assert_eq!(free.calls.get(), 0);
    for (seed, extra, told) in [
        (4, "", "seed: 3 → 4"),
        (
            3,
            "temperature = 0.5\n",
            "models.agent.temperature: (absent) → 0.5",
        ),
    ] {
        let other = study(seed, "capo", EFFORT, extra);
        assert!(!offered(&other, &probe(), &lines).1, "{told}");
        let differences = problem(other.clone(), &probe()).differences_of_rollouts(&begun);
        assert_eq!(differences, [told]);
        let (alone, with) = (probe(), probe());
        let expected = run(other.clone(), &alone).0;
        let (outcome, _) = reusing(other, &with, Vec::new(), &lines);
        assert_eq!(outcome.finished, expected.finished);
        assert_eq!(with.calls.get(), alone.calls.get());
    }
}

#[test]
fn another_model_of_vectors_is_named_where_rollouts_ask_it() {
    let of = |model: &str| {
        let table = format!("[models.embeddings]\nprovider = \"world\"\nmodel = \"{model}\"\n");
        study(3, "capo", EFFORT, &table)
    };
    for asked in [true, false] {
        let probe = probe();
        probe.vectors.set(asked);
        let (_, lines) = run(of("small"), &probe);
        let Some(Event::Study(begun)) = events(&lines).into_iter().next() else {
            panic!("a journal begins with its study")
        };
        let told = problem(of("large"), &probe).differences_of_rollouts(&begun);
        let is_named = told.iter().any(|line| line.contains("models.embeddings.model"));
        assert_eq!(
            (is_named, offered(&of("large"), &probe, &lines).1),
            (asked, !asked)
        );
    }
}

#[test]
fn what_was_taken_over_and_changed_is_told() {
    let study = study(3, "capo", EFFORT, "");
    let (_, lines) = run(study.clone(), &probe());
    let (_, taken) = reusing(study.clone(), &probe(), Vec::new(), &lines);
    // A measurement that no score rests on.
    let changed = |change: fn(&mut Event)| {
        let mut changed = taken.clone();
        let is_wanted = |line: &&mut String| line.contains("\"rollout\"") && line.contains("\"optimize\"");
        let line = changed.iter_mut().skip(1).find(is_wanted).unwrap();
        let mut event: Event = serde_json::from_str(line).unwrap();
        change(&mut event);
        *line = serde_json::to_string(&event).unwrap();
        changed
    };
    let measured = changed(|event| {
        let Event::Rollout(rollout) = event else { return };
        rollout.measurements.insert("prompt_length".to_owned(), 3.0);
    });
    let difference = block_on(verify(&measured)).unwrap_err().to_string();
    assert!(
        difference.contains("it is not what was taken over from run"),
        "{difference}"
    );
    let paid = changed(|event| {
        let Event::Rollout(rollout) = event else { return };
        rollout.usage = rollout
            .reused_from
            .as_ref()
            .map_or_else(Usage::default, |from| from.usage.clone());
    });
    let difference = block_on(verify(&paid)).unwrap_err().to_string();
    assert!(difference.contains("consumed something"), "{difference}");
    // No other run takes it over either.
    let paying = probe();
    reusing(study, &paying, Vec::new(), &measured);
    assert_eq!(paying.rollouts(), 1);
}

/// A journal whose header is changed.
fn with_header(lines: &[String], change: impl FnOnce(&mut StudyEvent)) -> Vec<String> {
    let mut lines = lines.to_vec();
    let mut header: Event = serde_json::from_str(&lines[0]).expect("a first line");
    if let Event::Study(begun) = &mut header {
        change(begun);
    }
    lines[0] = serde_json::to_string(&header).expect("a line");
    lines
}

#[test]
fn what_was_taken_over_is_of_the_rollout_that_the_header_names() {
    let study = study(3, "capo", EFFORT, "");
    let (_, lines) = run(study.clone(), &probe());
    let (_, taken) = reusing(study, &probe(), Vec::new(), &lines);
    let told = |change: fn(&mut Vec<String>)| {
        let changed = with_header(&taken, |begun| change(&mut begun.workloads["world"].inputs));
        block_on(verify(&changed)).unwrap_err().to_string()
    };
    let difference = told(|inputs| inputs.rotate_left(1));
    assert!(
        difference.contains("it is not what was taken over"),
        "{difference}"
    );
    let difference = told(Vec::clear);
    assert!(
        difference.contains("nothing says what it depends on"),
        "{difference}"
    );
}

#[test]
fn a_journal_that_does_not_say_what_its_rollouts_depend_on_takes_nothing_over() {
    let study = study(3, "capo", EFFORT, "");
    let (whole, lines) = run(study.clone(), &probe());
    let older = with_header(&lines[..1], |begun| begun.workloads["world"].inputs.clear());
    let paying = probe();
    let (resumed, _) = reusing(study, &paying, older, &lines);
    assert_eq!(resumed.journal.state().ledger().reused().effects(), 0);
    assert_eq!(end(&resumed), end(&whole));
}

#[test]
fn nothing_is_taken_over_for_examples_that_are_kept_for_the_test() {
    let study = study(2, "capo", EFFORT, CONFIRM);
    let large = || {
        let probe = probe();
        probe.held_out.set(100);
        probe
    };
    let (whole, lines) = run(study.clone(), &large());
    let Some(Event::Study(begun)) = events(&lines).into_iter().next() else {
        panic!("a journal begins with its study")
    };
    let kept: HashSet<&String> = begun.workloads["world"].reserve.iter().collect();
    assert_eq!(kept.len(), 60);
    let is_of_the_test =
        |event: &Event| matches!(event, Event::Rollout(made) if kept.contains(&made.example));
    let tested = events(&lines)
        .iter()
        .filter(|event| is_of_the_test(event))
        .count();
    assert!(tested > 0);
    let paying = large();
    let (again, mut taken) = reusing(study, &paying, Vec::new(), &lines);
    assert_eq!(end(&again), end(&whole));
    assert_eq!(paying.rollouts() as usize, tested);
    assert!(
        paying
            .served
            .borrow()
            .keys()
            .all(|(_, example, _)| kept.contains(example))
    );

    // As if it had been taken over all the same.
    let from = events(&taken).into_iter().find_map(|event| match event {
        Event::Rollout(made) => made.reused_from,
        _ => None,
    });
    let place = events(&taken).iter().position(is_of_the_test);
    let line = &mut taken[place.unwrap()];
    let mut event: Event = serde_json::from_str(line).unwrap();
    if let Event::Rollout(made) = &mut event {
        (made.reused_from, made.usage) = (from, Usage::default());
    }
    *line = serde_json::to_string(&event).unwrap();
    let difference = block_on(verify(&taken)).unwrap_err().to_string();
    assert!(
        difference.contains("its example is kept for the test"),
        "{difference}"
    );
}

#[test]
fn critics_and_rewriters_are_told_apart_by_the_table_that_serves_them() {
    let of = |agent: f64, rewriter: f64| {
        let extra = format!(
            "temperature = {agent}\n[models.rewriter]\nprovider = \"world\"\ntemperature = {rewriter}\n"
        );
        study(3, "capo", EFFORT, &extra)
    };
    let (_, lines) = run(of(0.5, 0.5), &probe());
    let reused = |study: Study| {
        let (outcome, _) = reusing(study, &probe(), Vec::new(), &lines);
        let reused = outcome.journal.state().ledger().reused().clone();
        (reused.rollouts > 0, reused.critiques > 0, reused.rewrites > 0)
    };
    assert_eq!(reused(of(0.25, 0.5)), (false, true, true));
    assert_eq!(reused(of(0.5, 0.25)), (true, false, false));
}

#[test]
fn rollouts_that_measure_dollars_are_not_named() {
    let probe = probe();
    let named = || {
        let records = problem(study(3, "capo", EFFORT, ""), &probe).records();
        records["world"].inputs.len()
    };
    assert_eq!(named(), 24 + 10);
    probe.dollars.set(true);
    assert_eq!(named(), 0);
}

/// A study that two runs have in common but for what is said here.
fn variant(seed: u64, threshold: f64, repeats: u32, rounds: u32) -> Study {
    let constraint = format!("[[constraint]]\nmetric = \"effort\"\nthreshold = {threshold:.2}\n");
    let mut study = study(seed, "capo", &constraint, "");
    (study.study.repeats, study.study.rounds) = (repeats, Rounds::Count(rounds));
    study
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_run_ends_the_same_whatever_was_made_before_and_pays_for_nothing_twice(
        seed in 0_u64..50,
        thresholds in (1.2..2.0_f64, prop_oneof![Just(None), (1.2..2.0_f64).prop_map(Some)]),
        repeats in (1_u32..3, 1_u32..3),
        rounds in (1_u32..4, 1_u32..4),
        (kept, cut) in (0.0..1.0_f64, 0.0..1.0_f64),
        disorder in 0_u64..4,
    ) {
        let (_, before) = run(variant(seed, thresholds.0, repeats.0, rounds.0), &probe());
        let part = |lines: &[String], share: f64| lines[..=(share * (lines.len() - 1) as f64) as usize].to_vec();
        let before = part(&before, kept);
        let study = variant(seed, thresholds.1.unwrap_or(thresholds.0), repeats.1, rounds.1);
        let (alone, _) = run(study.clone(), &probe());

        let paying = probe();
        paying.disorder.set(disorder);
        let (outcome, lines) = reusing(study.clone(), &paying, Vec::new(), &before);
        prop_assert_eq!(outcome.journal.state().rounds(), alone.journal.state().rounds());
        prop_assert_eq!(end(&outcome), end(&alone));
        let made: HashSet<(CandidateId, String, u32)> = events(&before)
            .into_iter()
            .filter_map(|event| match event {
                Event::Rollout(made) => Some((made.candidate, made.example, made.repeat)),
                _ => None,
            })
            .collect();
        for ((prompt, example, repeat), times) in paying.served.borrow().iter() {
            let again = (CandidateId::of(prompt), example.clone(), *repeat);
            prop_assert!(*times == 1 && !made.contains(&again), "{again:?}");
        }

        // Cut anywhere, it goes on with the earlier journal or without.
        let cut = part(&lines, cut);
        let (resumed, _) = reusing(study.clone(), &probe(), cut.clone(), &before);
        prop_assert_eq!(end(&resumed), end(&alone));
        let (resumed, _) = resume(study, &probe(), cut, RunOptions::default());
        prop_assert_eq!(end(&resumed), end(&alone));
    }
}

#[test]
fn a_held_out_rollout_serves_a_search_on_its_example_and_none_that_was_searched_on_a_held_out_one() {
    let study = study(3, "capo", EFFORT, "");
    let (_, lines) = run(study.clone(), &probe());
    // As if the earlier run had held out what this one searches on.
    let moved: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let mut event: Event = serde_json::from_str(line).unwrap();
            match &mut event {
                Event::Study(begun) if index == 0 => {
                    let record = &mut begun.workloads["world"];
                    record.inputs.rotate_left(record.optimize.len());
                    std::mem::swap(&mut record.optimize, &mut record.evaluate);
                }
                Event::Rollout(rollout) => {
                    rollout.split = match rollout.split {
                        Split::Optimize => Split::Evaluate,
                        Split::Evaluate => Split::Optimize,
                    };
                }
                _ => {}
            }
            serde_json::to_string(&event).unwrap()
        })
        .collect();
    let free = probe();
    reusing(study, &free, Vec::new(), &moved);
    let is_held_out = |event: &Event| matches!(event, Event::Rollout(made) if made.split == Split::Evaluate);
    let held_out = events(&lines).iter().filter(|event| is_held_out(event)).count();
    assert!(held_out > 0);
    assert_eq!(free.rollouts() as usize, held_out);
    assert!(
        free.served
            .borrow()
            .keys()
            .all(|(_, example, _)| example.starts_with('e'))
    );
}
