//! `capo evaluate` and `capo compare`: what a search says about its result can be measured again.

use std::fs;

use capo_tests::program::{Running, command, run, wait_until};
use capo_tests::stub::Question;
use capo_tests::study::{KEY, Study};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

#[test]
fn a_result_evaluated_again_measures_what_the_search_measured() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let result = run(&mut study.optimize()).expect_code(0).json();
    let prompt = study.file("best.md");
    fs::write(&prompt, result["best"]["prompt"].as_str().unwrap()).unwrap();
    let evaluate = |split: &str| {
        let before = stub.requests();
        let mut evaluate = command(["evaluate", "--json", "--split", split, "--prompt"]);
        let ended = run(evaluate
            .arg(&prompt)
            .arg(study.path())
            .current_dir(study.folder())
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
fn an_interrupted_evaluation_pays_for_nothing_twice() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let prompt = study.file("best.md");
    fs::write(&prompt, "Work step by step.").unwrap();
    let evaluate = || {
        let mut evaluate = command(["evaluate", "--json", "--split", "optimize", "--prompt", "best.md"]);
        evaluate
            .arg(study.path())
            .current_dir(study.folder())
            .env(KEY, "key-of-this-test");
        evaluate
    };
    stub.let_through(5);
    let mut stopped = Running::start_piped(&mut evaluate());
    wait_until("answers, and questions that wait", || {
        stub.request_log().answered(Question::is_rollout) == 5 && stub.requests() > 5
    });
    stopped.signal(Signal::SIGINT);
    stopped.expect_words("interrupted");
    stub.let_all_through();
    let ended = stopped.finish().expect_code(3);
    assert!(ended.stderr.contains("run: capo evaluate"), "{}", ended.stderr);
    assert!(stub.requests() < 12, "nothing new is begun");
    let scored = run(&mut evaluate()).json();
    assert_eq!(stub.requests(), 12, "each example is asked once");
    assert_eq!(scored["usage"]["rollouts"], 12);
}

#[test]
fn an_infeasible_prompt_is_exit_code_2() {
    let (study, _stub) = Study::new("http://unused").on_stub();
    let prompt = study.file("long.md");
    fs::write(&prompt, "Work step by step.").unwrap();
    let mut evaluate = command(["evaluate", "--json", "--prompt"]);
    let ended = run(evaluate
        .arg(&prompt)
        .arg(study.path())
        .current_dir(study.folder())
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
    let (study, stub) = Study::new("http://unused").on_stub();
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
    let run_itself = study.journal();
    let itself: Vec<&Value> = differences
        .iter()
        .filter(|difference| difference["minus"] == run_itself.to_str().unwrap())
        .collect();
    let [same, differing] = itself[..] else {
        panic!("the copy and the other run minus the first one: {compared}");
    };
    for metric in ["correct", "too_long"] {
        let nothing = json!({ "mean": 0.0, "low": 0.0, "high": 0.0, "n": 6, "chance": 1.0 });
        assert_eq!(same["metrics"][metric], nothing, "{metric}");
    }
    assert_ne!(
        same["metrics"], differing["metrics"],
        "another seed finds another prompt, or nothing is compared here"
    );
    let table = run(command(["compare"]).arg(study.journal()).arg(&other)).expect_code(0);
    assert!(table.stdout.contains("too_long"), "{}", table.stdout);
}

#[test]
fn repeats_say_how_often_all_of_them_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let study =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/help-desk.toml")).unwrap();
    let study = study.replace("seed = 0 ", "repeats = 3\nseed = 0 ");
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("prompt.md"), "Help the customer.").unwrap();
    let evaluate = |more: &[&str]| {
        let mut evaluate = command(["evaluate", "study.toml", "--prompt", "prompt.md"]);
        run(evaluate.args(more).current_dir(folder.path()))
    };
    let scored = evaluate(&["--json"]).json();
    let pass: Vec<f64> = serde_json::from_value(scored["pass"].clone()).unwrap();
    assert_eq!(pass.len(), 3);
    assert!((pass[0] - scored["objective"].as_f64().unwrap()).abs() < 1e-12);
    assert!(pass.is_sorted_by(|one, next| one >= next), "{pass:?}");
    let printed = evaluate(&[]).stdout;
    assert!(
        printed.contains("pass^k, k repeats of an example all with success 1:"),
        "{printed}"
    );
}
