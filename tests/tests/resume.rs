//! Runs that are killed or interrupted, and go on.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use capo_tests::arithmetic::luck;
use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Running, command, run, wait_until};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;
use nix::sys::signal::Signal;
use serde_json::Value;

/// Slow enough that a run takes a second, so that it can be killed in its midst.
const LATENCY: Duration = Duration::from_millis(15);
/// Calls at once, as [`Study::new`] has it.
const CONCURRENCY: u64 = 4;

/// A study on a stub, the journal of an uninterrupted run of it on another, and the requests that
/// took.
fn study_and_reference() -> (Study, Stub, Vec<Value>, u64) {
    with_reference(Study::new("http://unused"))
}

/// [`study_and_reference`] of this study, whose models are nowhere yet.
fn with_reference(study: Study) -> (Study, Stub, Vec<Value>, u64) {
    let reference = Stub::start_with(LATENCY, None, study.models().script());
    let stub = Stub::start_with(LATENCY, None, study.models().script());
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);
    let study = study.with(&reference.base_url, &stub.base_url);
    (study, stub, events(&whole), reference.requests())
}

/// The rollouts that stand in a journal, by prompt and user message, and how many of each.
fn journaled(events: &[Value]) -> HashMap<(String, String), u64> {
    let prompts: HashMap<&str, &str> = of_kind(events, "candidate")
        .into_iter()
        .map(|event| (event["id"].as_str().unwrap(), event["prompt"].as_str().unwrap()))
        .collect();
    let mut journaled = HashMap::new();
    for event in of_kind(events, "rollout") {
        let prompt = prompts[event["candidate"].as_str().unwrap()];
        let user = event["trace"]["messages"][0]["content"].as_str().unwrap();
        *journaled.entry((prompt.to_owned(), user.to_owned())).or_default() += 1;
    }
    journaled
}

fn times_asked(stub: &Stub) -> HashMap<(String, String), u64> {
    let mut asked = HashMap::new();
    for (question, count) in stub.books().counts {
        *asked.entry((question.system, question.user)).or_default() += count.asked;
    }
    asked
}

#[test]
fn ten_kills_change_nothing_and_cost_at_most_what_was_in_flight() {
    survives_kills(Study::new("http://unused"), 10, 1);
}

#[test]
fn kills_spare_frozen_thresholds_minibatches_and_repeats() {
    let study = Study::new("http://unused")
        .with("threshold = 0.2", "relative_to_seed = 0.5")
        .with("text = \"Solve", "text = \"Work step by step. Solve")
        .with("rounds = 4", "rounds = 4\nbatch = 5\nrepeats = 2");
    survives_kills(study, 5, 2);
}

/// Kills a run so often, at moments spread over its course, and expects what the uninterrupted run
/// says, and no example paid again once all its repeats are in the journal.
fn survives_kills(study: Study, kills: u64, repeats: u64) {
    let (study, stub, whole, requests) = with_reference(study);
    let mut cuts: Vec<u64> = (0..kills)
        .map(|kill| (luck(&("kill", kill)) * 0.9 * requests as f64) as u64)
        .collect();
    cuts.sort_unstable();
    // Asked so often when its answer was first seen in the journal: from then on, never again.
    let mut settled: HashMap<(String, String), u64> = HashMap::new();
    for (kill, cut) in cuts.into_iter().enumerate() {
        let mut capo = Running::start(&mut study.optimize());
        wait_until("the moment of the kill", || stub.requests() >= cut);
        std::thread::sleep(LATENCY.mul_f64(luck(&("moment", kill))));
        capo.signal(Signal::SIGKILL);
        let status = capo.wait(Duration::from_secs(10)).unwrap();
        assert_eq!(
            status.signal(),
            Some(9),
            "kill {kill} came after the end: {status}"
        );
        wait_until("the stub to notice", || stub.open() == 0);
        let asked = times_asked(&stub);
        if study.journal().exists() {
            let all_repeats = journaled(&events(&study.journal()))
                .into_iter()
                .filter(|&(_, times)| times == repeats);
            for (question, _) in all_repeats {
                let times = asked[&question];
                assert_eq!(
                    *settled.entry(question).or_insert(times),
                    times,
                    "paid twice before kill {kill}"
                );
            }
        }
    }
    assert!(!settled.is_empty());
    run(&mut study.optimize()).expect_code(0);

    let events = events(&study.journal());
    assert_eq!(
        outcome(&events),
        outcome(&whole),
        "rounds and result of the uninterrupted run"
    );
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
    let asked = times_asked(&stub);
    for (question, times) in settled {
        assert_eq!(
            asked[&question], times,
            "a journaled rollout was paid again: {question:?}"
        );
    }
    let extra = stub.requests() - requests;
    assert!(
        extra <= kills * CONCURRENCY,
        "{extra} requests more than the uninterrupted run's {requests}"
    );
}

#[test]
fn an_interrupt_ends_with_code_3_and_can_be_resumed_without_paying_twice() {
    let (study, stub, whole, requests) = study_and_reference();
    let capo = Running::start_piped(&mut study.optimize());
    wait_until("the middle of the run", || stub.requests() >= requests / 2);
    capo.signal(Signal::SIGINT);
    let ended = capo.finish().expect_code(3);
    let result = ended.json();
    assert_eq!(result["status"], "stopped");
    assert!(result["best"]["prompt"].is_string(), "the best so far: {result}");
    assert!(
        ended.stderr.contains("capo optimize"),
        "how to resume: {}",
        ended.stderr
    );
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);

    run(&mut study.optimize()).expect_code(0);
    assert_eq!(
        rounds_and_last(&events(&study.journal())),
        rounds_and_last(&whole)
    );
    assert_eq!(
        stub.requests(),
        requests,
        "what was under way was waited for, and nothing asked again"
    );
}

#[test]
fn a_service_manager_ends_a_run_as_ctrl_c_does() {
    let (study, stub, _, requests) = study_and_reference();
    let capo = Running::start_piped(&mut study.optimize());
    wait_until("the middle of the run", || stub.requests() >= requests / 2);
    capo.signal(Signal::SIGTERM);
    assert_eq!(capo.finish().expect_code(3).json()["status"], "stopped");
}

#[test]
fn a_second_interrupt_does_not_wait_for_what_is_under_way() {
    let study = Study::new("http://unused");
    let stub = Stub::start_with(Duration::from_mins(1), None, study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    let mut capo = Running::start(&mut study.optimize());
    wait_until("calls under way", || stub.open() == CONCURRENCY as usize);
    capo.signal(Signal::SIGINT);
    assert_eq!(capo.wait(Duration::from_millis(300)), None, "the first one waits");
    capo.signal(Signal::SIGINT);
    let status = capo.wait(Duration::from_secs(10)).unwrap();
    assert_eq!(status.code(), Some(3));
}

/// Every round, and the last word: an interrupted run has said something before.
fn rounds_and_last(events: &[Value]) -> Vec<Value> {
    let mut outcome = outcome(events);
    let last = outcome.pop();
    outcome.retain(|event| event["event"] == "round");
    outcome.extend(last);
    outcome
}

#[test]
fn a_line_torn_by_a_power_cut_is_dropped_and_paid_again_alone() {
    let (study, stub, whole, requests) = study_and_reference();
    run(&mut study.optimize()).expect_code(0);
    let text = fs::read_to_string(study.journal()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last_rollout = lines
        .iter()
        .rposition(|line| line.contains(r#""event":"rollout""#))
        .unwrap();
    let mut torn = lines[..last_rollout].join("\n");
    torn.push('\n');
    torn.push_str(&lines[last_rollout][..lines[last_rollout].len() / 2]);
    fs::write(study.journal(), torn).unwrap();

    let lost = lines[last_rollout..]
        .iter()
        .filter(|line| line.contains(r#""event":"rollout""#))
        .count();
    run(&mut study.optimize()).expect_code(0);
    assert_eq!(stub.requests(), requests + lost as u64);
    assert_eq!(outcome(&events(&study.journal())), outcome(&whole));
}

#[test]
fn two_runs_do_not_write_one_journal() {
    let study = Study::new("http://unused");
    let stub = Stub::start_with(Duration::from_secs(5), None, study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    let _first = Running::start(&mut study.optimize());
    wait_until("the first run", || stub.requests() > 0);
    run(&mut study.optimize())
        .expect_code(1)
        .expect_error(&["run.jsonl", "another process"]);
}

#[test]
fn questions_carry_seeds_shared_by_all_candidates() {
    let (study, stub, ..) = study_and_reference();
    run(&mut study.optimize()).expect_code(0);
    let mut seeds: HashMap<String, Option<u64>> = HashMap::new();
    for question in stub.books().counts.into_keys().filter(Question::is_rollout) {
        assert!(question.seed.is_some());
        let seed = *seeds.entry(question.user.clone()).or_insert(question.seed);
        assert_eq!(seed, question.seed, "common random numbers for {}", question.user);
    }
    assert_eq!(seeds.len(), 18);
}
