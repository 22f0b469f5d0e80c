//! `capo optimize` from start to result.

use capo_tests::journal::{events, of_kind};
use capo_tests::program::{command, run};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;
use serde_json::Value;

#[test]
fn a_search_ends_with_a_feasible_prompt_and_a_journal_that_verifies() {
    let (study, _stub) = Study::new("http://unused").on_stub();
    let result = run(&mut study.optimize()).expect_code(0).json();

    assert_eq!(result["status"], "feasible");
    assert_eq!(result["best"]["feasible"], true);
    assert!(result["best"]["costs"]["too_long"].as_f64().unwrap() <= 0.2);
    let events = events(&study.journal());
    let seed = of_kind(&events, "round")[0]["scores"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .clone();
    assert!(
        result["best"]["objective"].as_f64() > seed["objective"].as_f64(),
        "the search found nothing better than its seed: {result}"
    );
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
}

#[test]
fn the_json_result_has_what_scripts_rely_on() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let ended = run(&mut study.optimize()).expect_code(0);
    assert_eq!(
        ended.stdout.trim_end().lines().count(),
        1,
        "one object on one line: {}",
        ended.stdout
    );
    let result = ended.json();
    for (pointer, is) in [
        ("/status", Value::is_string as fn(&Value) -> bool),
        ("/best/prompt", Value::is_string),
        ("/best/feasible", Value::is_boolean),
        ("/best/objective", Value::is_f64),
        ("/best/costs/too_long", Value::is_f64),
        ("/best/lagrangian", Value::is_f64),
        ("/multipliers/too_long", Value::is_f64),
        ("/usage/usd", Value::is_null),
        ("/usage/by_role/agent/calls", Value::is_u64),
        ("/usage/by_role/critic/calls", Value::is_u64),
        ("/usage/by_role/rewriter/calls", Value::is_u64),
        ("/evaluation/correct/mean", Value::is_f64),
        ("/evaluation/correct/standard_error", Value::is_f64),
        ("/evaluation/too_long/mean", Value::is_f64),
        ("/evaluation/all_sat", Value::is_boolean),
    ] {
        let value = result.pointer(pointer);
        assert!(value.is_some_and(is), "{pointer} is {value:?} in {result}");
    }
    assert_eq!(result["rounds"], 4);
    assert_eq!(result["journal"], study.journal().to_str().unwrap());

    let request_log = stub.request_log();
    let usage = &result["usage"];
    assert_eq!(
        usage["calls"], request_log.requests,
        "what it says it spent is what was asked"
    );
    assert_eq!(usage["rollouts"], request_log.asked(Question::is_rollout));
    let calls = |role: &str| usage["by_role"][role]["calls"].as_u64().unwrap();
    assert_eq!(calls("agent"), request_log.asked(Question::is_rollout));
    assert_eq!(calls("critic"), request_log.asked(Question::is_critique));
    assert_eq!(calls("rewriter"), request_log.asked(Question::is_rewrite));
    let tokens = |field: &str| usage[field].as_u64().unwrap();
    assert_eq!(
        tokens("input_tokens") % 10,
        0,
        "the stub reads 10 tokens a message"
    );
    assert!(tokens("output_tokens") > 0);
}

#[test]
fn a_finished_run_costs_nothing_to_run_again() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let first = run(&mut study.optimize()).expect_code(0).json();
    let (requests, lines) = (stub.requests(), events(&study.journal()).len());
    let second = run(&mut study.optimize()).expect_code(0).json();
    assert_eq!(first, second);
    assert_eq!(stub.requests(), requests);
    assert_eq!(events(&study.journal()).len(), lines);
}

#[test]
fn no_feasible_prompt_is_exit_code_2() {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let impossible = "metric = \"prompt_length\"\nthreshold = 0.001\n";
    let study = study
        .with("http://unused", &stub.base_url)
        .with("metric = \"too_long\"\nthreshold = 0.2\n", impossible);
    let result = run(&mut study.optimize()).expect_code(2).json();
    assert_eq!(result["status"], "infeasible");
    assert_eq!(result["best"]["feasible"], false);
    assert_eq!(
        result["multipliers"]["prompt_length"]
            .as_f64()
            .map(|lambda| lambda > 1.0),
        Some(true)
    );
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
}

#[test]
fn a_search_through_failures_ends_as_one_without() {
    let study = Study::new("http://unused");
    let (calm, rough) = (
        Stub::start(study.models().script()),
        Stub::start(study.models().faulty_script()),
    );
    let study = study.with("http://unused", &calm.base_url);
    let expected = run(&mut study.optimize()).expect_code(0).json();
    let study = study.with(&calm.base_url, &rough.base_url);
    let through = run(&mut study.optimize_to(&study.file("rough.jsonl")))
        .expect_code(0)
        .json();

    assert!(
        rough.requests() > calm.requests(),
        "the failures were tried again"
    );
    for field in ["status", "best", "multipliers", "rounds", "evaluation"] {
        assert_eq!(through[field], expected[field], "{field}");
    }
    run(command(["journal", "verify"]).arg(study.file("rough.jsonl"))).expect_code(0);
}

#[test]
fn never_more_calls_at_once_than_allowed() {
    let study = Study::new("http://unused");
    let latency = std::time::Duration::from_millis(5);
    let stub = Stub::start_with(latency, None, study.models().script());
    let study = study
        .with("http://unused", &stub.base_url)
        .with("rounds = 4", "rounds = 1");
    run(&mut study.optimize()).expect_code(0);
    assert_eq!(stub.request_log().most_open, 4, "as many as allowed, and no more");
}

#[test]
fn a_dry_run_asks_nobody_and_says_what_it_would_cost() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let ended = run(study.optimize().arg("--dry-run")).expect_code(0);
    assert_eq!(stub.requests(), 0);
    assert!(!study.journal().exists());
    let most = ended.json();
    // On twelve problems: the seed, its two children in the first round, and two children of two
    // parents in each of the three others; on the six held out: the seed and the result.
    assert_eq!(most["rollouts"], (1 + 2 + 3 * 2 * 2) * 12 + 2 * 6, "{most}");
}
