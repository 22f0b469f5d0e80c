//! `capo evaluate` and `capo compare`: what a search says about its result can be measured again.

use std::fs;

use capo_tests::program::{command, run};
use capo_tests::stub::Stub;
use capo_tests::study::{KEY, Study};
use serde_json::Value;

#[test]
fn a_result_evaluated_again_measures_what_the_search_measured() {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    let result = run(&mut study.optimize()).expect_code(0).json();
    let prompt = study.file("best.md");
    fs::write(&prompt, result["best"]["prompt"].as_str().unwrap()).unwrap();
    let evaluate = |split: &str| {
        let before = stub.requests();
        let mut evaluate = command(["evaluate", "--json", "--split", split, "--prompt"]);
        let ended = run(evaluate
            .arg(&prompt)
            .arg(study.path())
            .env(KEY, "key-of-this-test"));
        (ended, stub.requests() - before)
    };

    let (ended, asked) = evaluate("optimize");
    let again = ended.expect_code(0).json();
    assert_eq!(asked, 12);
    assert_eq!(again["objective"], result["best"]["objective"]);
    assert_eq!(
        again["constraints"]["too_long"]["cost"],
        result["best"]["costs"]["too_long"]
    );

    let (ended, asked) = evaluate("evaluate");
    let again = ended.json();
    assert_eq!(asked, 6);
    for metric in ["correct", "too_long"] {
        assert_eq!(
            again["estimates"][metric], result["evaluation"][metric],
            "{metric}"
        );
    }
}

#[test]
fn an_infeasible_prompt_is_exit_code_2() {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    let prompt = study.file("long.md");
    fs::write(&prompt, "Work step by step.").unwrap();
    let mut evaluate = command(["evaluate", "--json", "--prompt"]);
    let ended = run(evaluate
        .arg(&prompt)
        .arg(study.path())
        .env(KEY, "key-of-this-test"));
    let scored = ended.expect_code(2).json();
    assert_eq!(scored["feasible"], false);
    assert_eq!(scored["constraints"]["too_long"]["cost"], 1.0);
}

#[test]
fn a_prompt_file_that_is_none_is_told() {
    let study = Study::new("http://127.0.0.1:9");
    for (name, content) in [("empty.md", &b" \n"[..]), ("latin.md", b"caf\xe9")] {
        fs::write(study.file(name), content).unwrap();
        let mut evaluate = command(["evaluate", "--prompt"]);
        run(evaluate
            .arg(study.file(name))
            .arg(study.path())
            .env(KEY, "key-of-this-test"))
        .expect_code(64)
        .expect_error(&[name]);
    }
}

#[test]
fn a_run_compared_with_itself_differs_by_nothing() {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    run(&mut study.optimize()).expect_code(0);
    let other = study.file("other.jsonl");
    run(study.optimize_to(&other).args(["--seed", "8"])).expect_code(0);

    let requests = stub.requests();
    let mut compare = command(["compare", "--json"]);
    let compared = run(compare.arg(study.journal()).arg(study.journal()).arg(&other));
    let compared = compared.expect_code(0).json();
    assert_eq!(stub.requests(), requests);
    assert_eq!(compared["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(compared["runs"][2]["seed"], 8);
    let differences = compared["differences"].as_array().unwrap();
    let itself: Vec<&Value> = differences
        .iter()
        .filter(|difference| difference["journal"] == study.journal().to_str().unwrap())
        .collect();
    assert!(!itself.is_empty(), "{compared}");
    let table = run(command(["compare"]).arg(study.journal()).arg(&other)).expect_code(0);
    assert!(table.stdout.contains("too_long"), "{}", table.stdout);
}
