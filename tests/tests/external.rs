//! Rollouts done by a program of the user's own.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use capo_tests::journal::{events, of_kind};
use capo_tests::program::{Ended, Running, command, run, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a small study whose agent is a shell script, which is asked once; its rewriter is simulated.
fn study_of(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let examples: Vec<String> = (1..=6)
        .map(|number| format!("{{\"id\": \"e{number}\", \"rooms\": {number}}}\n"))
        .collect();
    fs::write(file("examples.jsonl"), examples.concat()).unwrap();
    fs::write(file("agent.sh"), script).unwrap();
    let study = r#"[study]
name = "own agent"
rounds = 1

[workload]
kind = "external"
command = ["sh", "agent.sh"]
retries = 0
data = "examples.jsonl"
id = "id"
optimize = 4
evaluate = 2

[[workload.metric]]
name = "good"
direction = "objective"

[[workload.metric]]
name = "steps"
direction = "cost"

[prompt]
text = "Do it."

[objective]
metric = "good"

[[constraint]]
metric = "steps"
threshold = 2.0

[models.rewriter]
provider = "simulated"
"#;
    fs::write(file("study.toml"), study).unwrap();
    folder
}

/// Runs a small study whose agent is this shell script.
fn with_agent(script: &str) -> (Ended, Vec<Value>) {
    let folder = study_of(script);
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let mut optimize = command(["optimize", "--json", "--journal"]);
    let ended = run(optimize.arg(file("run.jsonl")).arg(file("study.toml")));
    assert!(
        file("run.jsonl").exists(),
        "the study itself is refused: {ended:?}"
    );
    let events = events(&file("run.jsonl"));
    (ended, events)
}

#[test]
fn a_script_can_be_the_agent() {
    let (ended, events) = with_agent(
        r#"read -r request; echo "working" >&2
echo '{"protocol": 1, "measurements": {"good": 0.5, "steps": 1.5}}'"#,
    );
    let result = ended.expect_code(0).json();
    assert_eq!(result["best"]["objective"], 0.5);
    assert_eq!(result["best"]["costs"]["steps"], 1.5);
    let broken = of_kind(&events, "failure")
        .into_iter()
        .filter(|failure| failure["of"]["effect"] == "rollout")
        .count();
    assert_eq!(
        broken, 0,
        "an unusable rewrite is the simulated rewriter's own failure"
    );
}

#[test]
fn measurements_that_are_no_numbers_are_named_and_never_scores() {
    for value in ["1e999", "NaN", "-Infinity", "\"many\"", "null", "-1"] {
        let (ended, events) = with_agent(&format!(
            r#"echo '{{"protocol": 1, "measurements": {{"good": 0.5, "steps": {value}}}}}'"#
        ));
        ended.expect_code(1).expect_error(&["steps"]);
        assert!(of_kind(&events, "rollout").is_empty(), "{value}");
        assert_eq!(of_kind(&events, "failure")[0]["kind"], "malformed", "{value}");
    }
}

#[test]
fn a_missing_measurement_is_named() {
    let (ended, _) = with_agent(r#"echo '{"protocol": 1, "measurements": {"good": 0.5}}'"#);
    ended.expect_code(1).expect_error(&["steps"]);
}

#[test]
fn an_agent_that_fails_is_heard() {
    let (ended, events) = with_agent("echo 'no such city' >&2; exit 7");
    ended.expect_code(1).expect_error(&["7", "no such city"]);
    assert_eq!(of_kind(&events, "failure")[0]["kind"], "tool");
}

#[test]
fn a_second_interrupt_takes_the_agents_along() {
    // Whoever holds the pipe open is alive; all that an agent starts holds it too.
    let folder = study_of("exec 3> alive; echo >> started; sleep 600 & wait");
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let made = Command::new("mkfifo").arg(file("alive")).status().unwrap();
    assert!(made.success());
    let pipe = file("alive");
    let gone = thread::spawn(move || fs::read(pipe).unwrap());
    let started = || fs::read(file("started")).unwrap_or_default().len();
    let mut optimize = command(["optimize", "--json", "--journal"]);
    optimize.arg(file("run.jsonl")).arg(file("study.toml"));
    let mut capo = Running::start_piped(&mut optimize);
    wait_until("agents at work", || started() == 4);
    assert!(!gone.is_finished());
    capo.signal(Signal::SIGINT);
    capo.expect_words("interrupted");
    capo.signal(Signal::SIGINT);
    let ended = capo.finish().expect_code(3);
    assert!(ended.stderr.contains("capo optimize"), "{}", ended.stderr);
    wait_until("the agents to be gone", || gone.is_finished());
    run(command(["journal", "show"]).arg(file("run.jsonl"))).expect_code(0);
}
