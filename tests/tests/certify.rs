//! `capo certify` and `[confirm]`: what is said of a prompt holds on examples that nothing else touched.

use std::fs;

use capo_tests::program::{Ended, command, run};
use tempfile::TempDir;

/// The shipped help desk with 60 held-out tasks and so many kept for the test.
fn study(scratch: &TempDir, confirm: &str) {
    let shipped = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/help-desk.toml"));
    let shipped = shipped.expect("the shipped study");
    let text = shipped.replace("evaluate = 40 ", "evaluate = 360 ");
    assert_ne!(text, shipped);
    fs::write(scratch.path().join("study.toml"), format!("{text}\n{confirm}")).expect("room for a study");
}

fn capo(scratch: &TempDir, arguments: &[&str]) -> Ended {
    run(command(arguments).current_dir(scratch.path()))
}

fn prompt(scratch: &TempDir, text: &str) -> String {
    fs::write(scratch.path().join("prompt.md"), text).expect("room for a prompt");
    "prompt.md".to_owned()
}

const CONFIRM: &str = "[confirm]\nexamples = 300\n[confirm.bounds]\nexcess_tools = 12.0\n";

#[test]
fn a_search_says_what_its_reserve_can_certify_and_then_what_it_did() {
    let scratch = tempfile::tempdir().unwrap();
    study(&scratch, CONFIRM);
    let asked = capo(&scratch, &["optimize", "study.toml", "--dry-run"]).expect_code(0);
    for sentence in [
        "Test: human_requests ≤ 0.37 is certified by at most 96 of 300 examples.",
        "Test: excess_tools ≤ 1.25 is certified by a mean of at most",
        "Test: prompt_length ≤ 5 is known of each prompt.",
    ] {
        assert!(asked.stdout.contains(sentence), "{}", asked.stdout);
    }
    let fewer = fs::read_to_string(scratch.path().join("study.toml")).unwrap();
    fs::write(
        scratch.path().join("study.toml"),
        fewer.replace("rollouts = 3000", "rollouts = 5000"),
    )
    .unwrap();
    let result = capo(
        &scratch,
        &["optimize", "study.toml", "--journal", "run.jsonl", "--json"],
    )
    .json();
    let certificates = result["certificates"].as_array().unwrap();
    assert!((1..=3).contains(&certificates.len()));
    let verdict = &result["feasibility"]["certified"];
    assert_eq!(
        &certificates.last().unwrap()["verdict"],
        verdict,
        "{certificates:?}"
    );
    assert_eq!(result["evaluation"]["success"]["n"], 60);
    capo(&scratch, &["journal", "verify", "run.jsonl"]).expect_code(0);
    let shown = capo(&scratch, &["journal", "show", "run.jsonl"]).expect_code(0);
    assert!(shown.stdout.contains("the best prompt "), "{}", shown.stdout);
    let compared = capo(&scratch, &["compare", "run.jsonl"]).expect_code(0);
    assert!(compared.stdout.contains("certified"), "{}", compared.stdout);
}

#[test]
fn the_exit_code_is_that_of_the_certificate() {
    let scratch = tempfile::tempdir().unwrap();
    study(&scratch, CONFIRM);
    let certify = |text: &str, more: &[&str]| {
        let prompt = prompt(&scratch, text);
        capo(
            &scratch,
            &[&["certify", "study.toml", "--prompt", &prompt], more].concat(),
        )
    };
    let text = fs::read_to_string(scratch.path().join("study.toml")).unwrap();
    let strict = text.replace("threshold = 0.37", "threshold = 0.1");
    fs::write(scratch.path().join("study.toml"), strict).unwrap();
    let refuted = certify("You are a customer service agent.", &["--json"]).expect_code(2);
    fs::write(scratch.path().join("study.toml"), text).unwrap();
    let refuted = refuted.json();
    assert_eq!(
        (
            &refuted["verdict"],
            &refuted["constraints"]["human_requests"]["test"]
        ),
        (&"refuted".into(), &"binomial".into())
    );
    assert!(
        refuted["examples"].as_u64().unwrap() < 300,
        "no more is bought than decides"
    );

    let text = "You are a customer service agent. Begin by confirming who the caller is. Help the customer with their \
                request. Where practical, answer in few words. Transfer only after all other options have failed. Ask \
                only for what you cannot find out with the tools. Reuse what you already know from earlier in the \
                conversation. In every case: plan the steps before the first action.";
    let certified = certify(text, &[]).expect_code(0);
    assert!(
        certified.stdout.contains("certified at 95 % on n = "),
        "{}",
        certified.stdout
    );
    let before = fs::read_dir(scratch.path().join("runs")).unwrap().count();
    let again = certify(text, &[]).expect_code(0);
    assert_eq!(again.stdout, certified.stdout, "what was measured is kept");
    assert_eq!(fs::read_dir(scratch.path().join("runs")).unwrap().count(), before);
    let strict = certify(text, &["--confidence", "0.99"]);
    assert!(
        strict.stdout.contains("certified at 99 % on n = "),
        "{}",
        strict.stdout
    );

    // All prompts of a study are tested in one journal.
    let failed = certify("You are a customer service agent.", &["--json"]).expect_code(2);
    let other = certify("Be kind.", &[]).expect_code(2);
    let words = "the 300 examples kept for the test certify nothing more";
    assert!(
        other.stdout.contains(&format!("not tested: {words}")),
        "{}",
        other.stdout
    );
    let journal = failed.json()["journal"].as_str().unwrap().to_owned();
    capo(&scratch, &["journal", "verify", &journal]).expect_code(0);
    let asked = ["optimize", "study.toml", "--dry-run", "--journal", &journal];
    let asked = capo(&scratch, &asked).expect_code(0);
    assert!(
        asked.stdout.contains(&format!("Test: {words}")),
        "{}",
        asked.stdout
    );
    assert!(!asked.stdout.contains("is certified by"), "{}", asked.stdout);
}

#[test]
fn what_cannot_be_certified_is_said_and_costs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    study(&scratch, "");
    let prompt = prompt(&scratch, "Be kind.");
    let certify = |more: &[&str]| {
        capo(
            &scratch,
            &[&["certify", "study.toml", "--prompt", &prompt], more].concat(),
        )
    };
    let unbounded = certify(&["--examples", "200"]).expect_code(2);
    let words = [
        "`excess_tools` cannot be certified",
        "[confirm.bounds]",
        "0 rollouts",
    ];
    assert!(
        words.iter().all(|part| unbounded.stdout.contains(part)),
        "{}",
        unbounded.stdout
    );

    certify(&[])
        .expect_code(64)
        .expect_error(&["--examples", "[confirm] examples"]);
    certify(&["--examples", "400"])
        .expect_code(64)
        .expect_error(&["confirm.examples", "400", "has 360"]);
    certify(&["--examples", "0"])
        .expect_code(64)
        .expect_error(&["confirm.examples", "between 1 and 10000"]);
    certify(&["--examples", "9", "--confidence", "1.5"])
        .expect_code(64)
        .expect_error(&["between 0.5 and 0.999"]);
    assert!(!scratch.path().join("runs/study-0.journal.jsonl").exists());
}
