//! `capo simulate`, and `capo optimize` on GSM8K's problems against it.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use capo_tests::program::{Server, command, run, wait_until};
use capo_tests::shared::shared;
use capo_tests::study::{KEY, Study};
use serde_json::Value;

fn requests(log: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_search_on_gsm8k_against_failing_simulated_models_ends_with_a_result() {
    let Some(problems) = shared("data/gsm8k/train.jsonl") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("served.jsonl");
    let simulated = Server::simulate(&[
        "--fault",
        "429=0.05,500=0.02,timeout=0.02,malformed=0.02,empty=0.02",
        "--fault-seed",
        "1",
        "--retry-after",
        "0.01",
        "--log",
        log.to_str().unwrap(),
    ]);
    let study = Study::new(&simulated.base_url)
        .with("data = \"problems.jsonl\"", &format!("data = {problems:?}"))
        .with("optimize = 12", "optimize = 40")
        .with("evaluate = 6", "evaluate = 30")
        .with("model = \"stub\"", "model = \"sim-medium\"")
        .with("concurrency = 4", "concurrency = 8\ntimeout_seconds = 1.0");
    // The problems lie beside the repository.
    let ended = run(study.optimize().arg("--allow-outside"));
    let result = ended.json();
    let expected = if result["best"]["feasible"] == true { 0 } else { 2 };
    ended.expect_code(expected);
    assert_eq!(result["rounds"], 4);
    assert!(result["best"]["prompt"].is_string());
    assert!(result["evaluation"]["correct"]["mean"].is_number(), "{result}");
    run(command(["journal", "verify"]).arg(study.journal())).expect_code(0);

    simulated.stop();
    let served = requests(&log);
    let with = |outcome: &str| served.iter().filter(|line| line["outcome"] == outcome).count();
    for fault in ["429", "500", "timeout", "malformed", "empty"] {
        assert!(with(fault) > 0, "no {fault} among {} requests", served.len());
    }
    assert!(with("ok") as u64 >= result["usage"]["rollouts"].as_u64().unwrap());
    assert_eq!(
        with("refused"),
        0,
        "capo asks nothing that its own endpoint refuses"
    );
}

#[test]
fn two_runs_against_one_seed_are_the_same_run() {
    let results: Vec<Value> = (0..2)
        .map(|_| {
            let simulated = Server::simulate(&["--seed", "5"]);
            let study = Study::new(&simulated.base_url).with("model = \"stub\"", "model = \"sim-large\"");
            run(&mut study.optimize()).json()
        })
        .collect();
    for field in ["status", "best", "multipliers", "rounds", "evaluation"] {
        assert_eq!(results[0][field], results[1][field], "{field}");
    }
}

#[test]
fn a_client_that_stalls_keeps_no_endpoint_from_ending() {
    let simulated = Server::simulate(&[]);
    let address = simulated.base_url["http://".len()..].split('/').next().unwrap();
    let mut stalled = TcpStream::connect(address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 100\r\nexpect: 100-continue\r\n\r\n";
    stalled.write_all(head.as_bytes()).unwrap();
    // The server asks for the body, which never comes.
    stalled.read_exact(&mut [0; 25]).unwrap();
    simulated.stop();
}

#[test]
fn a_second_interrupt_ends_the_endpoint_at_once() {
    let simulated = Server::simulate(&[]);
    let address = simulated.base_url["http://".len()..].split('/').next().unwrap();
    let mut stalled = TcpStream::connect(address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    stalled.write_all(head.as_bytes()).unwrap();
    stalled.read_exact(&mut [0; 25]).unwrap();
    let started = Instant::now();
    simulated.interrupt();
    // Two signals at the same moment are one: the first has been heard once the port is closed.
    wait_until("the port to close", || TcpStream::connect(address).is_err());
    simulated.interrupt();
    simulated.expect_end(Duration::from_mins(1));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "the grace was waited for"
    );
}

#[test]
fn the_endpoint_demands_its_key_where_told() {
    let ended = run(command(["simulate", "--port", "0", "--require-key", KEY]).env_remove(KEY));
    assert!(matches!(ended.code, Some(1 | 64)), "{ended:?}");
    ended.expect_error(&[KEY]);
}

#[test]
fn a_taken_port_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    run(&mut command(["simulate", "--port", &port]))
        .expect_code(1)
        .expect_error(&[&port, "--port"]);
}

#[test]
fn an_unknown_model_is_told() {
    let ended = run(&mut command(["simulate", "--port", "0", "--model", "sim-huge"]));
    assert!(matches!(ended.code, Some(1 | 64)), "{ended:?}");
    ended.expect_error(&["sim-huge", "sim-small"]);
}
