//! Providers that refuse, break down or are not there.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use capo_tests::journal::{events, of_kind};
use capo_tests::program::run;
use capo_tests::stub::{Answer, Stub};
use capo_tests::study::{KEY, Study};

/// A study on a stub that answers everything alike.
fn against(answer: Answer) -> (Study, Stub) {
    let stub = Stub::start(move |_, _| answer.clone());
    (Study::new(&stub.base_url), stub)
}

#[test]
fn a_wrong_key_names_the_variable_and_never_the_key() {
    let stub = Stub::start_with(Duration::ZERO, Some("key-that-is-right"), |_, _| {
        Answer::Text("#### 1".into())
    });
    let study = Study::new(&stub.base_url);
    let ended = run(study.optimize().env(KEY, "sk-the-wrong-one")).expect_code(1);
    let ended = ended.expect_error(&[KEY, "401"]);
    assert!(
        !format!("{ended:?}").contains("sk-the-wrong-one"),
        "the key leaked: {ended:?}"
    );
    assert!(stub.requests() <= 4, "a wrong key is not tried again");
    let journal = std::fs::read_to_string(study.journal()).unwrap_or_default();
    assert!(
        !journal.contains("sk-the-wrong-one"),
        "the key leaked into the journal"
    );
}

#[test]
fn a_missing_key_is_told_before_anything_is_asked() {
    let (study, stub) = against(Answer::Text("#### 1".into()));
    let ended = run(study.optimize().env_remove(KEY));
    assert!(matches!(ended.code, Some(1 | 64)), "{ended:?}");
    ended.expect_error(&[KEY]);
    assert_eq!(stub.requests(), 0);
    assert!(!study.journal().exists(), "nothing to keep");
}

#[test]
fn the_key_is_sent_as_a_bearer_token() {
    let (study, stub) = against(Answer::Text("#### 1".into()));
    run(study
        .optimize()
        .env(KEY, "sk-of-this-test")
        .arg("--seed")
        .arg("1"));
    let authorizations = stub.request_log().authorizations;
    assert!(!authorizations.is_empty());
    assert!(
        authorizations
            .iter()
            .all(|header| header.as_deref() == Some("Bearer sk-of-this-test"))
    );
}

#[test]
fn an_unreachable_provider_is_named_with_its_address() {
    // A port that was free a moment ago, and that nobody listens on.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let study = Study::new(&format!("http://{address}/v1")).with_agent("retries = 1");
    run(&mut study.optimize())
        .expect_code(1)
        .expect_error(&[&address.to_string()]);
    assert!(of_kind(&events(&study.journal()), "rollout").is_empty());
}

#[test]
fn failures_are_journaled_as_failures_and_never_as_scores() {
    for answer in [Answer::Error(500, None), Answer::Malformed, Answer::Empty] {
        let (study, _stub) = against(answer.clone());
        let study = study.with_agent("retries = 0");
        run(&mut study.optimize()).expect_code(1).expect_error(&["stub"]);
        let events = events(&study.journal());
        assert!(of_kind(&events, "rollout").is_empty(), "{answer:?}");
        assert!(of_kind(&events, "round").is_empty(), "{answer:?}");
        assert!(!of_kind(&events, "failure").is_empty(), "{answer:?}");
    }
}

#[test]
fn no_retries_means_one_try_of_each_call() {
    let (study, stub) = against(Answer::Error(503, None));
    let study = study.with_agent("retries = 0").with_agent("abort_after = 3");
    run(&mut study.optimize()).expect_code(1);
    assert!(stub.requests() <= 3 + 4, "{} requests", stub.requests());
}

#[test]
fn a_provider_that_only_fails_is_given_up() {
    let (study, stub) = against(Answer::Error(500, None));
    let study = study
        .with_agent("retries = 1000000")
        .with_agent("abort_after = 5");
    run(&mut study.optimize()).expect_code(1).expect_error(&["stub"]);
    assert!(stub.requests() < 20, "{} requests", stub.requests());
}

#[test]
fn retry_after_is_honoured() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start(move |question, before| match before {
        0 if question.user.contains("3 boxes") && question.is_rollout() => Answer::Error(429, Some(2)),
        _ => models.answer(question),
    });
    let study = study
        .with("http://unused", &stub.base_url)
        .with("rounds = 4", "rounds = 1");
    let started = Instant::now();
    run(&mut study.optimize()).expect_code(0);
    assert!(
        started.elapsed() >= Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn silence_is_a_timeout_that_is_tried_again() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start(move |question, before| match before {
        0 if question.user.contains("3 boxes") && question.is_rollout() => Answer::Silence,
        _ => models.answer(question),
    });
    let study = study
        .with("http://unused", &stub.base_url)
        .with_agent("timeout_seconds = 0.3");
    run(&mut study.optimize()).expect_code(0);
    let mut silent = 0;
    for (question, count) in stub.request_log().counts {
        if question.user.contains("3 boxes") && question.is_rollout() {
            silent += 1;
            assert_eq!((count.asked, count.answered), (2, 1), "{question:?}");
        }
    }
    assert!(silent > 0, "nobody was met with silence");
}

#[test]
fn a_prompt_over_the_models_context_is_told_apart_and_not_tried_again() {
    let (study, stub) = against(Answer::ContextLength);
    run(&mut study.optimize())
        .expect_code(1)
        .expect_error(&["context"]);
    assert!(stub.requests() <= 8, "{} requests", stub.requests());
    let events = events(&study.journal());
    assert_eq!(of_kind(&events, "failure")[0]["kind"], "context_length");
}

#[test]
fn a_rewriter_without_a_prompt_block_gives_no_child_and_the_search_goes_on() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start(move |question, _| {
        if question.is_rewrite() {
            Answer::Text("I would rather not.".into())
        } else {
            models.answer(question)
        }
    });
    let study = study.with("http://unused", &stub.base_url);
    let ended = run(&mut study.optimize());
    assert!(matches!(ended.code, Some(0 | 2)), "{ended:?}");
    let events = events(&study.journal());
    let rewrites = of_kind(&events, "rewrite");
    assert!(!rewrites.is_empty());
    for rewrite in rewrites {
        assert!(
            rewrite["child"].is_null() && rewrite["reason"].is_string(),
            "{rewrite}"
        );
    }
    assert_eq!(of_kind(&events, "candidate").len(), 1);
}
