//! A budget is kept to the last unit, at the server.

use capo_tests::journal::{events, of_kind};
use capo_tests::program::{command, run};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;

/// Held-out problems of [`Study::new`].
const HELD_OUT: u64 = 6;

#[test]
fn rollouts_are_made_to_the_last_one_and_not_one_more() {
    for limit in [1, 7, 60, 301] {
        let (study, stub) = Study::new("http://unused")
            .with("rounds = 4", "rounds = \"until-budget\"")
            .with_budget(&format!("rollouts = {limit}"))
            .on_stub();
        // A search until the budget is spent comes to its end with it, unless it was too small for one.
        let (code, status) = if limit < 60 {
            (3, "budget")
        } else {
            (0, "feasible")
        };
        let result = run(&mut study.optimize()).expect_code(code).json();
        assert_eq!(result["status"], status, "{limit}");
        assert_eq!(stub.request_log().asked(Question::is_rollout), limit);
        assert_eq!(result["usage"]["rollouts"], limit);
        assert_eq!(of_kind(&events(&study.journal()), "rollout").len() as u64, limit);
        run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
    }
}

#[test]
fn a_search_of_so_many_rounds_leaves_over_at_most_what_it_kept_for_the_evaluation() {
    for limit in [1_u64, 7, 28, 60] {
        let (study, stub) = Study::new("http://unused")
            .with_budget(&format!("rollouts = {limit}"))
            .on_stub();
        let result = run(&mut study.optimize()).expect_code(3).json();
        let made = stub.request_log().asked(Question::is_rollout);
        assert_eq!(result["usage"]["rollouts"], made);
        // Room is kept for the seed and another prompt; the seed may turn out to be the best.
        assert!(
            (limit.saturating_sub(HELD_OUT)..=limit).contains(&made),
            "{made} of {limit}"
        );
    }
}

#[test]
fn failures_of_the_provider_do_not_use_up_rollouts() {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().faulty_script());
    let study = study
        .with("http://unused", &stub.base_url)
        .with("rounds = 4", "rounds = \"until-budget\"")
        .with_budget("rollouts = 50");
    run(&mut study.optimize()).expect_code(0);
    assert!(
        stub.request_log().asked(Question::is_rollout) > 50,
        "some were tried again"
    );
    assert_eq!(of_kind(&events(&study.journal()), "rollout").len(), 50);
}

#[test]
fn calls_stop_at_their_limit_and_not_before_what_was_kept_for_the_evaluation() {
    for limit in [1_u64, 20, 90] {
        let (study, stub) = Study::new("http://unused")
            .with("rounds = 4", "rounds = \"until-budget\"")
            .with_budget(&format!("calls = {limit}"))
            .on_stub();
        let (code, status) = if limit < 90 {
            (3, "budget")
        } else {
            (0, "feasible")
        };
        let result = run(&mut study.optimize()).expect_code(code).json();
        assert_eq!(result["status"], status);
        assert_eq!(result["usage"]["calls"], stub.requests());
        // What two prompts need there is kept, and a quarter more, for the returned one may be a dear one.
        let kept = HELD_OUT + 2 * HELD_OUT / 4;
        assert!(
            (limit.saturating_sub(kept).max(1)..=limit).contains(&stub.requests()),
            "{} calls of {limit}",
            stub.requests()
        );
    }
}

#[test]
fn no_call_starts_once_the_tokens_are_spent() {
    let (study, _stub) = Study::new("http://unused").with_budget("tokens = 1000").on_stub();
    let result = run(&mut study.optimize()).expect_code(3).json();
    let spent = ["input_tokens", "output_tokens"].map(|field| result["usage"][field].as_u64().unwrap());
    let spent: u64 = spent.iter().sum();
    // A rollout of the stub costs at most 20 tokens read and 60 written; four are under way.
    assert!((500..1000 + 4 * 80).contains(&spent), "{spent} tokens of 1000");
}

#[test]
fn a_dollar_budget_needs_a_price_and_keeps_to_it() {
    let (study, stub) = Study::new("http://unused").with_budget("usd = 0.01").on_stub();
    run(&mut study.optimize()).expect_code(3).expect_error(&["price"]);
    assert!(
        stub.requests() <= 4,
        "{} calls at an unknown price, which is not 0",
        stub.requests()
    );

    let study = study.with_agent("price = { input = 10.0, output = 10.0 }");
    let result = run(&mut study.optimize_to(&study.file("priced.jsonl")))
        .expect_code(3)
        .json();
    let usd = result["usage"]["usd"].as_f64().unwrap();
    let tokens = ["input_tokens", "output_tokens"].map(|field| result["usage"][field].as_f64().unwrap());
    assert!(
        (usd - tokens.iter().sum::<f64>() * 1e-5).abs() < 1e-9,
        "{usd} for {tokens:?}"
    );
    assert!((0.005..0.0132).contains(&usd), "{usd} of 0.01");
}

#[test]
fn a_raised_budget_goes_on_where_the_run_stopped() {
    let study = Study::new("http://unused");
    let (reference, stub) = (
        Stub::start(study.models().script()),
        Stub::start(study.models().script()),
    );
    let study = study.with("http://unused", &reference.base_url);
    let whole = run(&mut study.optimize_to(&study.file("whole.jsonl")))
        .expect_code(0)
        .json();

    let mut study = study
        .with(&reference.base_url, &stub.base_url)
        .with_budget("rollouts = 40");
    run(&mut study.optimize()).expect_code(3);
    study.replace("rollouts = 40", "rollouts = 4000");
    let raised = run(&mut study.optimize()).expect_code(0).json();
    for field in ["status", "best", "multipliers", "rounds", "evaluation", "usage"] {
        // The stub's own seconds differ from run to run.
        let without_seconds = |result: &serde_json::Value| {
            let mut value = result[field].clone();
            if let Some(roles) = value
                .pointer_mut("/by_role")
                .and_then(|roles| roles.as_object_mut())
            {
                for role in roles.values_mut().filter_map(|role| role.as_object_mut()) {
                    role.remove("seconds");
                }
            }
            value
        };
        assert_eq!(without_seconds(&raised), without_seconds(&whole), "{field}");
    }
    assert_eq!(stub.requests(), reference.requests());
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);
}
