//! Calls that are handed in together: a process that ends while it waits for them has lost nothing.

use std::fs;
use std::process::Command;
use std::time::Duration;

use capo_tests::program::{Running, command, run, wait_until};
use capo_tests::stub::Stub;
use capo_tests::study::{KEY, Study};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A study on a stub whose agent's calls are handed in together.
fn study_and_stub() -> (Study, Stub) {
    Study::new("http://unused")
        .with("openai-compatible", "openai")
        .with("concurrency = 4\n", "batch = true\n")
        .with(
            "[method]\n",
            "[models.rewriter]\nprovider = \"simulated\"\n\n[method]\n",
        )
        .on_stub()
}

/// An evaluation of a prompt on the twelve problems that a study searches on.
fn evaluate(study: &Study) -> Command {
    fs::write(study.file("best.md"), "Work step by step.").expect("a file in its folder");
    let mut evaluate = command(["evaluate", "--json", "--split", "optimize", "--prompt", "best.md"]);
    evaluate
        .arg(study.path())
        .current_dir(study.folder())
        .env(KEY, "key-of-this-test");
    evaluate
}

/// An evaluation that gets a signal once the provider has its batch, and may not have said so.
fn signalled(study: &Study, stub: &Stub, signal: Signal) -> Running {
    let evaluation = Running::start_piped(&mut evaluate(study));
    wait_until("a batch", || !stub.request_log().batches.is_empty());
    evaluation.signal(signal);
    evaluation
}

/// Ends the evaluation that was left, as one ends whose calls are made singly.
fn expect_same_end(study: &Study, stub: &Stub) {
    let scored = run(&mut evaluate(study)).json();
    assert_eq!(stub.request_log().batches, [12], "handed in once");
    assert_eq!(scored["usage"]["rollouts"], 12);
    let single = run(&mut evaluate(&Study::new(&stub.base_url))).json();
    let told = |scored: &Value| [scored["objective"].clone(), scored["constraints"].clone()];
    assert_eq!(told(&scored), told(&single));
}

#[test]
fn the_batch_of_a_killed_process_is_waited_for_by_the_next_one() {
    let (study, stub) = study_and_stub();
    let mut killed = Running::start_piped(&mut evaluate(&study));
    killed.expect_words("is being worked on");
    killed.signal(Signal::SIGKILL);
    killed.wait(Duration::from_mins(1)).expect("it is killed");
    expect_same_end(&study, &stub);
}

#[test]
fn a_batch_is_found_that_was_taken_when_the_process_was_killed_before_it_heard_of_that() {
    let (study, stub) = study_and_stub();
    stub.take_batches_in(Duration::from_mins(2));
    let mut killed = signalled(&study, &stub, Signal::SIGKILL);
    killed.wait(Duration::from_mins(1)).expect("it is killed");
    expect_same_end(&study, &stub);
}

#[test]
fn an_interrupted_process_waits_until_it_is_told_that_its_batch_is_taken() {
    let (study, stub) = study_and_stub();
    // Longer than calls under way may take once an end is asked for.
    stub.take_batches_in(Duration::from_secs(3));
    let mut stopped = signalled(&study, &stub, Signal::SIGINT);
    stopped.expect_words("interrupted");
    stopped.finish().expect_code(3);
    expect_same_end(&study, &stub);
}
