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
use capo_tests::program::{Running, command, read, run, wait_until};
use capo_tests::shared::shared;
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

/// The moment of a kill, once the stub answers no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// At once: an answer may have been sent that is not in the journal yet.
    AtOnce,
    /// When every answer that was sent has been written down, and only questions are under way.
    Settled,
}

/// Kills a run so often, at moments spread over its course.
struct Kills {
    times: u64,
    moment: Moment,
}

impl Kills {
    /// Starts the run on the stub, kills it, and so on; then lets it end. Expects what the
    /// uninterrupted run says, which took so many requests, and nothing paid again but what was in
    /// flight at a kill.
    fn survive(&self, study: &Study, stub: &Stub, whole: &[Value], requests: u64) {
        let weights: Vec<f64> = (0..self.times).map(|kill| 0.2 + luck(&("kill", kill))).collect();
        let unit = 0.9 * requests as f64 / weights.iter().sum::<f64>();
        // Rollouts that were answered and are not in the journal: their answers were in flight.
        let mut lost = 0;
        for (kill, weight) in weights.into_iter().enumerate() {
            // What is answered from one kill to the next adds up to less than the run needs, so that
            // every kill finds it at work.
            stub.let_through((unit * weight) as u64);
            let before = stub.requests();
            let mut capo = Running::start(&mut study.optimize());
            wait_until("questions that wait", || {
                let request_log = stub.request_log();
                request_log.requests > before && request_log.open > 0 && stub.is_held()
            });
            let unwritten = || stub.request_log().answered(Question::is_rollout) - journaled(study) - lost;
            if self.moment == Moment::Settled {
                wait_until("the answers to be written down", || unwritten() == 0);
            }
            capo.signal(Signal::SIGKILL);
            let status = capo.wait(Duration::from_mins(1)).unwrap();
            assert_eq!(
                status.signal(),
                Some(9),
                "kill {kill} came after the end: {status}"
            );
            wait_until("the stub to notice", || stub.open() == 0);
            let in_flight = unwritten();
            assert!(in_flight <= CONCURRENCY, "kill {kill} lost {in_flight} rollouts");
            lost += in_flight;
        }
        stub.let_all_through();
        run(&mut study.optimize()).expect_code(0);

        let events = events(&study.journal());
        assert_eq!(
            outcome(&events),
            outcome(whole),
            "rounds and result of the uninterrupted run"
        );
        run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
        let served_again = stub.request_log().repeats(Question::is_rollout);
        assert_eq!(
            served_again, lost,
            "a rollout that was written down was paid again"
        );
        if self.moment == Moment::Settled {
            assert_eq!(served_again, 0, "not one rollout twice");
        }
        let others = |question: &Question| !question.is_rollout();
        assert!(
            stub.request_log().repeats(others) <= self.times * CONCURRENCY,
            "critiques and rewrites beyond those in flight were paid again"
        );
    }
}

/// The number of rollouts that stand in a study's journal.
fn journaled(study: &Study) -> u64 {
    if study.journal().exists() {
        of_kind(&events(&study.journal()), "rollout").len() as u64
    } else {
        0
    }
}

#[test]
fn ten_kills_change_nothing_and_cost_at_most_what_was_in_flight() {
    let (study, stub, whole, requests) = study_and_reference();
    Kills {
        times: 10,
        moment: Moment::AtOnce,
    }
    .survive(&study, &stub, &whole, requests);
}

#[test]
fn kills_spare_frozen_thresholds_minibatches_and_repeats() {
    let study = Study::new("http://unused")
        .with("threshold = 0.2", "relative_to_seed = 0.5")
        .with("text = \"Solve", "text = \"Work step by step. Solve")
        .with("rounds = 4", "rounds = 4\nbatch = 5\nrepeats = 2");
    let (study, stub, whole, requests) = with_reference(study);
    Kills {
        times: 5,
        moment: Moment::AtOnce,
    }
    .survive(&study, &stub, &whole, requests);
}

#[test]
fn ten_kills_of_a_search_on_gsm8k_against_a_failing_provider_serve_no_rollout_twice() {
    let Some(problems) = shared("data/gsm8k/train.jsonl") else {
        return;
    };
    let slice: Vec<String> = read(&problems)
        .lines()
        .take(60)
        .map(|line| format!("{line}\n"))
        .collect();
    let study = Study::new("http://unused")
        .with("optimize = 12", "optimize = 30")
        .with("evaluate = 6", "evaluate = 12");
    fs::write(study.file("problems.jsonl"), slice.concat()).unwrap();
    let reference = Stub::start(study.models().script());
    let failing = Stub::start(study.models().faulty_script());
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    let ended = run(&mut study.optimize_to(&whole));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let study = study.with(&reference.base_url, &failing.base_url);
    Kills {
        times: 10,
        moment: Moment::Settled,
    }
    .survive(&study, &failing, &events(&whole), reference.requests());
    let request_log = failing.request_log();
    assert!(
        request_log.requests > request_log.answered(|_| true) + 50,
        "the provider hardly failed: {} of {} answered",
        request_log.answered(|_| true),
        request_log.requests
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
    let stub = Stub::start(study.models().script());
    stub.let_through(0);
    let study = study.with("http://unused", &stub.base_url);
    let mut capo = Running::start_piped(&mut study.optimize());
    wait_until("calls under way", || stub.open() == CONCURRENCY as usize);
    capo.signal(Signal::SIGINT);
    capo.expect_words("interrupted");
    assert_eq!(capo.wait(Duration::from_millis(100)), None, "the first one waits");
    capo.signal(Signal::SIGINT);
    let ended = capo.finish().expect_code(3);
    assert!(
        ended.stderr.contains("capo optimize"),
        "how to resume: {}",
        ended.stderr
    );
    stub.let_all_through();
    run(&mut study.optimize()).expect_code(0);
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
    let stub = Stub::start(study.models().script());
    stub.let_through(0);
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
    for question in stub.request_log().counts.into_keys().filter(Question::is_rollout) {
        assert!(question.seed.is_some());
        let seed = *seeds.entry(question.user.clone()).or_insert(question.seed);
        assert_eq!(seed, question.seed, "common random numbers for {}", question.user);
    }
    assert_eq!(seeds.len(), 18);
}
