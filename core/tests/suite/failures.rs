//! What cannot be measured bricks no run: it is discarded, counts as the worst value or is left out, and
//! is told.

use std::rc::Rc;

use crate::world::{EFFORT, Probe, events, resume, run, study};
use capo_core::arena::RunOptions;
use capo_core::journal::{Event, Status, SteerEvent, branch};
use capo_core::llm::FailureKind;
use capo_core::study::Study;
use capo_core::{Outcome, verify};
use futures::executor::block_on;

/// Runs a study over given lines, again while a failure ends it: what a model refuses once it may answer
/// later, so a session that sees nothing else decides nothing.
fn persist(study: &Study, probe: &Rc<Probe>, mut lines: Vec<String>) -> (Outcome, Vec<String>) {
    for _ in 0..12 {
        let (outcome, after) = resume(study.clone(), probe, lines, RunOptions::default());
        if let Err(difference) = block_on(verify(&after)) {
            panic!("{difference}");
        }
        if outcome.finished.status != Status::Failed {
            return (outcome, after);
        }
        lines = after;
    }
    panic!("every session failed: {:?}", lines.last());
}

fn refusing(refuse: impl Fn(&str, &str) -> Option<(FailureKind, bool)> + 'static) -> Rc<Probe> {
    let probe = Probe::default();
    *probe.refuse.borrow_mut() = Some(Rc::new(refuse));
    Rc::new(probe)
}

/// Refuses these examples, whatever the prompt.
fn on(examples: &'static [&'static str]) -> Rc<Probe> {
    refusing(move |_, example| {
        examples
            .contains(&example)
            .then_some((FailureKind::Provider, false))
    })
}

#[test]
fn an_example_that_never_succeeds_counts_as_the_worst_value_and_is_told() {
    let probe = on(&["o7"]);
    let (outcome, lines) = run(study(3, "capo", EFFORT, ""), &probe);
    assert!(matches!(
        outcome.finished.status,
        Status::Feasible | Status::Infeasible
    ));
    let state = outcome.journal.state();
    let failed = state.failed_rollouts();
    assert!(
        !failed.is_empty()
            && failed
                .iter()
                .all(|one| one.example == "o7" && one.reason == "refused")
    );
    let mut worst = 0.0_f64;
    for event in events(&lines) {
        let Event::Rollout(rollout) = event else { continue };
        if rollout.failed.is_some() {
            assert_eq!(rollout.measurements["success"], 0.0);
            assert!(rollout.measurements["effort"] >= worst, "the worst so far");
            assert!(rollout.usage.is_empty());
        } else {
            worst = worst.max(rollout.measurements["effort"]);
        }
    }
    // They were no rollouts, so the budget did not pay for them.
    assert_eq!(state.ledger().rollouts(), u64::from(probe.rollouts()));
    block_on(verify(&lines)).unwrap();

    // Resumed from anywhere it comes to the same.
    for cut in (2..lines.len()).step_by(53) {
        let probe = on(&["o7"]);
        let kept = lines[..cut].to_vec();
        let (again, _) = persist(&study(3, "capo", EFFORT, ""), &probe, kept);
        assert_eq!(
            again.finished.final_scores, outcome.finished.final_scores,
            "cut at {cut}"
        );
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
    }

    // A line that makes the failure look better than the worst is found.
    let place = lines
        .iter()
        .position(|line| line.contains("\"failed\":\"refused\""))
        .unwrap();
    let mut better = lines.clone();
    better[place] = better[place].replace("\"success\":0.0", "\"success\":1.0");
    assert!(
        block_on(verify(&better))
            .unwrap_err()
            .to_string()
            .contains("worst")
    );
}

#[test]
fn a_failure_that_was_told_in_a_sentence_reads_on() {
    let probe = Rc::new(Probe::default());
    probe.fail.set(Some((0, 1_000, true)));
    let (outcome, _) = run(study(3, "capo", EFFORT, ""), &probe);
    assert_eq!(outcome.finished.status, Status::Failed);
    let reason = outcome.finished.reason.clone().unwrap();
    assert!(reason.contains("the tool broke; "), "{reason}");
}

#[test]
fn an_example_can_be_left_out_for_every_prompt_alike() {
    let settings = "[failures]\nexample = \"leave-out\"\nshare = 0.1\n";
    for relative in [false, true] {
        let constraint = if relative {
            "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n"
        } else {
            EFFORT
        };
        let make = || on(&["o7", "e3"]);
        let (outcome, lines) = run(study(3, "capo", constraint, settings), &make());
        let left_out: Vec<&str> = outcome
            .journal
            .state()
            .left_out()
            .iter()
            .map(|one| one.example.as_str())
            .collect();
        assert_eq!(left_out, ["o7", "e3"]);
        assert!(outcome.journal.state().failed_rollouts().is_empty());
        for round in outcome.journal.state().rounds() {
            let batch = round.batch.as_ref().unwrap();
            assert!(batch["world"].len() == 23 && !batch["world"].contains(&"o7".to_owned()));
        }
        assert_eq!(outcome.finished.evaluation["success"].n, 9);
        assert_eq!(outcome.finished.seed_evaluation["success"].n, 9);
        block_on(verify(&lines)).unwrap();
        for cut in (30..lines.len()).step_by(67) {
            let kept = lines[..cut].to_vec();
            let (again, lines) = resume(
                study(3, "capo", constraint, settings),
                &make(),
                kept,
                RunOptions::default(),
            );
            assert_eq!(again.finished, outcome.finished, "cut at {cut}");
            block_on(verify(&lines)).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        }
    }
}

#[test]
fn an_example_that_fails_late_is_left_out_of_what_was_measured_before_it() {
    // Only prompts that were rewritten fail on it.
    let make = || {
        refusing(|prompt, example| {
            (example == "o5" && prompt.contains("care")).then_some((FailureKind::Provider, false))
        })
    };
    let settings = "[failures]\nexample = \"leave-out\"\n";
    for method in ["capo", "capo-ea", "dcapo", "sampling"] {
        let (outcome, lines) = run(study(3, method, EFFORT, settings), &make());
        assert_eq!(outcome.journal.state().left_out().len(), 1, "{method}");
        let last = outcome.journal.state().rounds().last().unwrap();
        assert_eq!(last.batch.as_ref().unwrap()["world"].len(), 23);
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("{method}: {error}"));
    }
}

#[test]
fn a_prompt_that_cannot_be_run_is_discarded_and_its_family_told() {
    let too_long = |prompt: &str| prompt.split_whitespace().filter(|word| *word == "care").count() > 1;
    let make = || refusing(move |prompt, _| too_long(prompt).then_some((FailureKind::ContextLength, false)));
    for method in ["capo", "capo-ea", "dcapo", "count"] {
        for batch in [None, Some(9)] {
            let mut limited = study(3, method, EFFORT, "");
            limited.study.batch = batch;
            let probe = make();
            let (outcome, lines) = run(limited.clone(), &probe);
            let place = format!("{method} {batch:?}");
            assert!(
                matches!(outcome.finished.status, Status::Feasible | Status::Infeasible),
                "{place}"
            );
            let state = outcome.journal.state();
            assert!(!state.discarded().is_empty(), "{place}");
            for (id, event) in state.discarded() {
                assert!(too_long(&state.candidate(id).unwrap().prompt), "{place}");
                assert!(event.reason.contains("refused"), "{place}");
                assert!(!outcome.finished.final_scores.contains_key(id), "{place}");
                assert!(
                    state.rounds().iter().all(|round| !round.scores.contains_key(id)),
                    "{place}"
                );
            }
            block_on(verify(&lines)).unwrap_or_else(|error| panic!("{place}: {error}"));
            for cut in (2..lines.len()).step_by(71) {
                let kept = lines[..cut].to_vec();
                let (again, lines) = resume(limited.clone(), &make(), kept, RunOptions::default());
                assert_eq!(
                    again.finished.final_scores, outcome.finished.final_scores,
                    "{place} cut at {cut}"
                );
                block_on(verify(&lines)).unwrap_or_else(|error| panic!("{place} cut at {cut}: {error}"));
            }
        }
    }
}

#[test]
fn more_failures_than_may_be_end_the_run_which_goes_on_once_more_may() {
    let make = || on(&["o1", "o2", "o3"]);
    let probe = make();
    let (outcome, lines) = run(study(3, "capo", EFFORT, ""), &probe);
    assert_eq!(outcome.finished.status, Status::Failed);
    let reason = outcome.finished.reason.clone().unwrap();
    assert!(
        reason.contains("refused") && reason.contains("`share` under [failures]"),
        "{reason}"
    );
    assert!(
        outcome.journal.state().failed_rollouts().is_empty(),
        "nothing is decided by halves"
    );
    block_on(verify(&lines)).unwrap();

    let more = "[failures]\nshare = 0.2\n";
    let (resumed, lines) = resume(
        study(3, "capo", EFFORT, more),
        &make(),
        lines,
        RunOptions::default(),
    );
    assert!(matches!(
        resumed.finished.status,
        Status::Feasible | Status::Infeasible
    ));
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_provider_that_is_down_gives_nobody_a_score() {
    // Everything fails from the hundredth rollout on.
    let served = Rc::new(std::cell::Cell::new(0));
    let count = served.clone();
    let probe = refusing(move |_, _| {
        count.set(count.get() + 1);
        (count.get() > 100).then_some((FailureKind::Timeout, true))
    });
    let (outcome, lines) = run(study(3, "capo", EFFORT, "[failures]\nshare = 1.0\n"), &probe);
    assert_eq!(outcome.finished.status, Status::Failed);
    assert!(outcome.journal.state().failed_rollouts().is_empty());
    assert!(outcome.journal.state().discarded().is_empty());
    block_on(verify(&lines)).unwrap();
    let kind = |event: &Event| matches!(event, Event::Rollout(rollout) if rollout.failed.is_some());
    assert!(!events(&lines).iter().any(kind));
}

#[test]
fn an_example_that_fails_where_others_succeed_counts_though_it_might_pass_later() {
    for method in ["capo", "dcapo", "sampling"] {
        let probe = refusing(|_, example| (example == "o7").then_some((FailureKind::Tool, true)));
        let (outcome, lines) = run(study(3, method, EFFORT, ""), &probe);
        let status = outcome.finished.status;
        assert!(
            matches!(status, Status::Feasible | Status::Infeasible),
            "{method}: {:?}",
            outcome.finished.reason
        );
        let failed = outcome.journal.state().failed_rollouts();
        assert!(!failed.is_empty() && failed.iter().all(|one| one.example == "o7"));
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn an_outage_over_many_sessions_discards_nobody() {
    let is_down = |prompt: &str, _: &str| prompt.contains("care").then_some((FailureKind::Tool, true));
    let mut lines = Vec::new();
    for session in 0..4 {
        let (outcome, after) = resume(
            study(3, "capo", EFFORT, ""),
            &refusing(is_down),
            lines,
            RunOptions::default(),
        );
        assert_eq!(outcome.finished.status, Status::Failed, "session {session}");
        let state = outcome.journal.state();
        assert!(state.discarded().is_empty() && state.failed_rollouts().is_empty());
        block_on(verify(&after)).unwrap();
        lines = after;
    }
}

#[test]
fn a_prompt_that_would_have_too_many_left_out_is_discarded_in_their_place() {
    let make = || {
        refusing(|prompt, example| {
            let fails = example == "o7" || (example == "o5" && prompt.contains("care"));
            fails.then_some((FailureKind::Provider, false))
        })
    };
    let settings = "[failures]\nexample = \"leave-out\"\n";
    let (outcome, lines) = run(study(3, "capo", EFFORT, settings), &make());
    let state = outcome.journal.state();
    assert_eq!(state.left_out().len(), 1);
    assert!(!state.discarded().is_empty());
    assert!(outcome.finished.best.is_some(), "{:?}", outcome.finished.reason);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_result_of_minibatches_outlasts_an_example_that_is_left_out_later() {
    let settings = |budget: u32| {
        format!("[failures]\nexample = \"leave-out\"\nshare = 0.2\n[budget]\nrollouts = {budget}\n")
    };
    for budget in (60..200).step_by(20) {
        let mut limited = study(3, "capo", EFFORT, &settings(budget));
        limited.study.batch = Some(6);
        let probe = refusing(|prompt, example| {
            let fails = ["o3", "o5", "o7"].contains(&example) && prompt.contains("care");
            fails.then_some((FailureKind::Provider, false))
        });
        let (outcome, lines) = run(limited, &probe);
        let rounds = outcome.journal.state().rounds().len();
        assert!(
            rounds == 0 || !outcome.finished.final_scores.is_empty(),
            "{budget}: {rounds} rounds, {:?}",
            outcome.finished.reason
        );
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn a_huge_cost_is_refused_before_it_is_written() {
    for huge in [|_: &str| f64::MAX, |_: &str| 1e155, |_: &str| 1.1e15] {
        let probe = Rc::new(Probe::default());
        *probe.effort.borrow_mut() = Some(huge);
        let (outcome, lines) = run(study(3, "capo", EFFORT, ""), &probe);
        assert_eq!(outcome.finished.status, Status::Failed);
        let reason = outcome.finished.reason.clone().unwrap();
        assert!(reason.contains("`effort`") && reason.contains("1e15"), "{reason}");
        assert!(
            !lines[1..]
                .iter()
                .any(|line| line.contains(":null,\"") && !line.contains("\"best\":null"))
        );
        block_on(verify(&lines)).unwrap();
    }
}

#[test]
fn journals_whose_numbers_were_written_as_null_open_again() {
    let (whole, lines) = run(study(3, "capo", EFFORT, ""), &Rc::new(Probe::default()));
    let mut bricked = lines.clone();
    for line in &mut bricked {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str() {
            Some("round") => {
                for score in event["scores"].as_object_mut().unwrap().values_mut() {
                    score["lagrangian"] = serde_json::Value::Null;
                }
            }
            Some("finished") => event["evaluation"]["effort"]["standard_error"] = serde_json::Value::Null,
            _ => continue,
        }
        *line = event.to_string();
    }
    assert_ne!(bricked, lines);
    // Nothing that was measured explains it, so it is no honest journal; it opens and heals all the same.
    let difference = block_on(verify(&bricked)).unwrap_err().to_string();
    assert!(difference.contains("nothing above explains that"), "{difference}");
    let (resumed, _) = resume(
        study(3, "capo", EFFORT, ""),
        &Rc::new(Probe::default()),
        bricked,
        RunOptions::default(),
    );
    assert_eq!(resumed.finished, whole.finished);

    // Where a huge measurement explains it, the journal is honest.
    let mut honest = lines;
    let best = whole.finished.best.unwrap();
    for line in &mut honest {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        let is_held_out = event["split"] == "evaluate" && event["candidate"] == best.to_string();
        if is_held_out && event["example"] == "e0" {
            event["measurements"]["effort"] = 1e155.into();
        } else if event["event"] == "finished" {
            event["evaluation"]["effort"] =
                serde_json::json!({ "mean": null, "standard_error": null, "n": 10 });
        } else {
            continue;
        }
        *line = event.to_string();
    }
    block_on(verify(&honest)).unwrap();
}

#[test]
fn an_interruption_starts_no_further_call_and_what_was_paid_is_used_when_the_run_goes_on() {
    let (whole, whole_lines) = run(study(3, "capo", EFFORT, ""), &Rc::new(Probe::default()));
    let calls = |lines: &[String]| -> u64 {
        let usage = |event: Event| match event {
            Event::Rollout(rollout) => rollout.usage.total().calls,
            Event::Critique(critique) => critique.usage.total().calls,
            Event::Rewrite(rewrite) => rewrite.usage.total().calls,
            Event::Failure(failure) => failure.usage.total().calls,
            _ => 0,
        };
        events(lines).into_iter().map(usage).sum()
    };
    let all = calls(&whole_lines);
    for (after, abandons) in [(5, false), (60, true), (131, false), (200, true)] {
        let probe = Rc::new(Probe::default());
        probe.disorder.set(4);
        let options = RunOptions::default();
        let control = options.control.clone();
        let interrupt: Box<dyn FnOnce()> = Box::new(move || {
            if abandons {
                control.abandon();
            } else {
                control.interrupt();
            }
        });
        *probe.after_calls.borrow_mut() = Some((after, interrupt));
        let (stopped, lines) = resume(study(3, "capo", EFFORT, ""), &probe, Vec::new(), options);
        assert_eq!(stopped.finished.status, Status::Stopped);
        assert!(
            probe.calls.get() < after + 17,
            "{} calls, interrupted after {after}",
            probe.calls.get()
        );
        block_on(verify(&lines)).unwrap();
        let kept: usize = events(&lines)
            .iter()
            .map(|event| {
                if let Event::Failure(failure) = event {
                    failure.answers.len()
                } else {
                    0
                }
            })
            .sum();
        assert!(kept > 0, "dialogues were under way after {after} calls");

        let (resumed, lines) = resume(study(3, "capo", EFFORT, ""), &probe, lines, RunOptions::default());
        assert_eq!(resumed.finished.final_scores, whole.finished.final_scores);
        block_on(verify(&lines)).unwrap();
        if !abandons {
            assert_eq!(calls(&lines), all, "nothing is paid twice");
            assert_eq!(u64::from(probe.calls.get()), all);
        }
    }
}

#[test]
fn what_only_looks_at_answers_fails_and_none_is_asked_for_again() {
    let probe = Rc::new(Probe::default());
    let (whole, _) = run(study(3, "capo", EFFORT, ""), &probe);
    let failing = Rc::new(Probe::default());
    failing.unscored.set(5);
    let (outcome, lines) = run(study(3, "capo", EFFORT, ""), &failing);
    let kept: Vec<usize> = events(&lines)
        .into_iter()
        .filter_map(|event| match event {
            Event::Failure(failure) => Some(failure.answers.len()),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [2; 5]);
    assert_eq!(
        failing.calls.get(),
        probe.calls.get() + 5,
        "and five times for vectors"
    );
    assert_eq!(outcome.finished.final_scores, whole.finished.final_scores);
    block_on(verify(&lines)).unwrap();
}

#[test]
fn a_rate_limit_is_never_a_score() {
    for kind in [
        FailureKind::RateLimit,
        FailureKind::Unreachable,
        FailureKind::Authentication,
    ] {
        for retryable in [true, false] {
            let probe = refusing(move |_, example| (example == "o7").then_some((kind, retryable)));
            let (outcome, lines) = run(study(3, "capo", EFFORT, ""), &probe);
            assert_eq!(outcome.finished.status, Status::Failed, "{kind}");
            let state = outcome.journal.state();
            assert!(
                state.failed_rollouts().is_empty() && state.discarded().is_empty(),
                "{kind}"
            );
            block_on(verify(&lines)).unwrap();
        }
    }
}

#[test]
fn a_branch_takes_along_what_was_decided() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let long = |prompt: &str| prompt.split_whitespace().filter(|word| *word == "care").count() > 1;
    let leave_out = "[failures]\nexample = \"leave-out\"\n";
    for (settings, constraint) in [("", EFFORT), (leave_out, EFFORT), (leave_out, relative)] {
        let make = || {
            refusing(move |prompt, example| {
                let kind = if long(prompt) {
                    FailureKind::ContextLength
                } else {
                    FailureKind::Provider
                };
                (example == "o7" || long(prompt)).then_some((kind, false))
            })
        };
        let (outcome, lines) = run(study(3, "capo", constraint, settings), &make());
        let state = outcome.journal.state();
        assert!(!state.discarded().is_empty());
        assert!(!state.failed_rollouts().is_empty() || !state.left_out().is_empty());
        for round in 0..=state.rounds().len() as u32 {
            let branched = branch(&lines, round, SteerEvent::default()).unwrap();
            block_on(verify(&branched)).unwrap_or_else(|error| panic!("{settings} at {round}: {error}"));
            let (again, lines) = resume(
                study(3, "capo", constraint, settings),
                &make(),
                branched,
                RunOptions::default(),
            );
            block_on(verify(&lines)).unwrap_or_else(|error| panic!("{settings} from {round}: {error}"));
            assert_eq!(
                again.finished.best, outcome.finished.best,
                "{settings} from {round}"
            );
        }
    }
}

#[test]
fn an_open_search_ends_though_its_held_out_examples_cannot_be_run() {
    for settings in ["share = 1.0\n", "share = 1.0\nexample = \"leave-out\"\n"] {
        let probe = refusing(|_, example| {
            example
                .starts_with('e')
                .then_some((FailureKind::ContextLength, false))
        });
        let extra = format!("[failures]\n{settings}[budget]\nrollouts = 300\n");
        let mut open = study(3, "capo", EFFORT, &extra);
        open.study.rounds = serde_json::from_str("\"until-budget\"").unwrap();
        let (_, lines) = run(open, &probe);
        block_on(verify(&lines)).unwrap_or_else(|error| panic!("{settings}: {error}"));
    }
}

#[test]
fn minibatches_of_one_go_on_past_an_example_that_fails() {
    for settings in [
        "[failures]\nshare = 0.2\n",
        "[failures]\nshare = 0.2\nexample = \"leave-out\"\n",
    ] {
        let mut small = study(3, "capo", EFFORT, settings);
        small.study.batch = Some(1);
        let (outcome, lines) = persist(&small, &on(&["o3", "o7", "o11"]), Vec::new());
        assert!(outcome.finished.best.is_some(), "{settings}");
        block_on(verify(&lines)).unwrap();
    }
}
