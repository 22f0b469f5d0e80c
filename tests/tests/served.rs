//! `capo evaluate --serve`: a program of any kind has prompts measured, and pays for nothing twice.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use capo_tests::program::{Server, command, run, wait_until};
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::{KEY, Study};
use serde_json::{Value, json};
use ureq::Agent;

fn client() -> Agent {
    Agent::config_builder().http_status_as_error(false).build().into()
}

/// The status and the body, which must be JSON.
fn ask(server: &Server, body: &Value) -> (u16, Value) {
    let url = format!("{}/measure", server.base_url);
    let request = client().post(url).header("content-type", "application/json");
    let mut answer = request.send(body.to_string()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
}

#[track_caller]
fn measured(server: &Server, body: &Value) -> Value {
    let (status, answer) = ask(server, body);
    assert_eq!(status, 200, "{answer}");
    answer
}

fn described(server: &Server) -> Value {
    let answer = client().get(format!("{}/study", server.base_url)).call();
    let text = answer.unwrap().body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

fn serving(study: &Study) -> Command {
    let mut serve = command(["evaluate", "--serve", "--port", "0", "--journal", "served.jsonl"]);
    serve
        .arg(study.path())
        .current_dir(study.folder())
        .env(KEY, "key-of-this-test");
    serve
}

/// The study as edited, the models that it asks, and its server.
fn served(edit: impl FnOnce(Study) -> Study) -> (Study, Stub, Server) {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let study = edit(study.with("http://unused", &stub.base_url));
    let server = Server::start(&mut serving(&study));
    (study, stub, server)
}

#[test]
fn a_prompt_is_measured_as_asked_and_nothing_is_paid_twice() {
    let (study, stub, server) = served(|study| study);
    let about = described(&server);
    assert_eq!(about["objective"], "correct");
    assert_eq!(
        about["constraints"]["too_long"],
        json!({"threshold": 0.2, "scale": 1.0})
    );
    assert_eq!(
        about["prompt"],
        "Solve the problem. End with #### and the number."
    );
    let examples = about["examples"]["optimize"].as_array().unwrap();
    assert_eq!(
        (
            examples.len(),
            about["examples"]["evaluate"].as_array().unwrap().len()
        ),
        (12, 6)
    );

    let prompt = "Work step by step.";
    // Not in the order of the split.
    let three = measured(
        &server,
        &json!({"prompt": prompt, "examples": [examples[4], examples[0], examples[7]]}),
    );
    assert_eq!(stub.requests(), 3);
    let rollouts = three["rollouts"].as_array().unwrap();
    let named: Vec<&Value> = rollouts.iter().map(|rollout| &rollout["example"]).collect();
    assert_eq!(named, [&examples[0], &examples[4], &examples[7]]);
    for rollout in rollouts {
        assert_eq!(rollout["measurements"]["too_long"], 1.0);
        assert!(
            rollout["trace"].as_str().unwrap().contains("agent: "),
            "{rollout}"
        );
    }
    assert_eq!(three["feasible"], false);

    // Programs that ask for single examples at once get all of them, once.
    let other = "Work step by step. Keep the solution brief.";
    thread::scope(|scope| {
        for of_thread in examples.chunks(2).chain(examples.chunks(3)) {
            let server = &server;
            scope.spawn(move || {
                let answer = measured(server, &json!({"prompt": other, "examples": of_thread}));
                assert_eq!(answer["rollouts"].as_array().unwrap().len(), of_thread.len());
            });
        }
    });
    assert_eq!(stub.requests(), 15);
    assert!(
        stub.request_log().most_open <= 4,
        "{}",
        stub.request_log().most_open
    );

    let whole = measured(&server, &json!({"prompt": prompt, "trace_characters": 0}));
    assert_eq!(stub.requests(), 24);
    assert_eq!(whole["usage"]["rollouts"], 24);
    assert_eq!(whole["rollouts"].as_array().unwrap().len(), 12);
    assert!(whole["rollouts"][0].get("trace").is_none());
    let held_out = measured(&server, &json!({"prompt": prompt, "split": "evaluate"}));
    assert_eq!(held_out["rollouts"].as_array().unwrap().len(), 6);
    assert!(
        held_out["rollouts"][0].get("trace").is_none(),
        "nobody learns from held-out examples"
    );
    server.stop();

    // Kept as any other evaluation.
    run(command(["journal", "verify", "served.jsonl"]).current_dir(study.folder())).expect_code(0);
    fs::write(study.file("best.md"), prompt).unwrap();
    let mut evaluate = command(["evaluate", "--json", "--split", "optimize", "--prompt", "best.md"]);
    evaluate.arg(study.path()).args(["--journal", "served.jsonl"]);
    let again = run(evaluate.current_dir(study.folder()).env(KEY, "key-of-this-test"));
    let again = again.expect_code(2).json();
    assert_eq!(again["objective"], whole["means"]["correct"]);
    assert_eq!(stub.requests(), 30, "all of it was paid for");
}

#[test]
fn examples_of_several_workloads_are_named_with_their_workload() {
    let (_study, _stub, server) = served(|study| {
        study.with(
            "[prompt]",
            r#"[[workload.set]]
name = "few"
data = "problems.jsonl"
optimize = 12
evaluate = 6
user = "{{ question }}"

[[workload.set.metric]]
type = "length"
name = "wordy"
limit = 1

[prompt]"#,
        )
    });
    let about = described(&server);
    let examples = about["examples"]["optimize"].as_array().unwrap();
    assert_eq!(examples.len(), 24);
    let (first, last) = (&examples[0], &examples[23]);
    assert!(first.as_str().unwrap().starts_with("table/"), "{first}");
    assert!(last.as_str().unwrap().starts_with("few/"), "{last}");
    let answer = measured(&server, &json!({"prompt": "A", "examples": [last, first]}));
    assert_eq!(answer["rollouts"][0]["example"], *first);
    assert_eq!(answer["rollouts"][1]["example"], *last);
    assert_eq!(answer["means"]["wordy"], 1.0);
    server.stop();
}

#[test]
fn what_cannot_be_measured_is_told_and_the_next_request_is_served() {
    let (_study, stub, server) = served(|study| study.with("[budget]\n", "[budget]\nrollouts = 5\n"));
    let about = described(&server);
    let (one, held_out) = (
        &about["examples"]["optimize"][0],
        &about["examples"]["evaluate"][0],
    );
    for (body, words) in [
        (json!({"prompt": " "}), "prompt is empty"),
        (json!({"prompt": "A", "examples": []}), "no example"),
        (json!({"prompt": "A", "examples": ["x"]}), "GET /study lists them"),
        (
            json!({"prompt": "A", "examples": [held_out]}),
            r#"the split \"evaluate\""#,
        ),
        (
            json!({"prompt": "A", "exmples": [one]}),
            "unknown field `exmples`",
        ),
        (json!({"examples": [one]}), "missing field `prompt`"),
    ] {
        let (status, answer) = ask(&server, &body);
        assert!([400, 422].contains(&status), "{status} {body}");
        assert!(answer["error"]["message"].to_string().contains(words), "{answer}");
    }
    assert_eq!(stub.requests(), 0);

    let (status, answer) = ask(&server, &json!({"prompt": "A"}));
    assert_eq!(status, 402, "{answer}");
    assert!(
        answer["error"]["message"].to_string().contains("[budget]"),
        "{answer}"
    );
    assert_eq!(stub.requests(), 5);
    // What was answered by then costs nothing, beside what would.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(ask(&server, &json!({"prompt": "A"})).0, 402));
            scope.spawn(|| measured(&server, &json!({"prompt": "A", "examples": [one]})));
        }
    });
    measured(&server, &json!({"prompt": "A", "examples": [one]}));
    assert_eq!(stub.requests(), 5);
    server.stop();
}

#[test]
fn a_failing_model_is_told_however_often_it_is_asked_and_ends_nothing() {
    let study = Study::new("http://unused");
    let works = study.models().script();
    let stub = Stub::start(move |question, asked| match question {
        failing if failing.system.contains("Fail.") => Answer::Error(500, None),
        question => works(question, asked),
    });
    let study = study
        .with("http://unused", &stub.base_url)
        .with("concurrency = 4", "concurrency = 4\nretries = 0");
    let server = Server::start(&mut serving(&study));
    let three = described(&server)["examples"]["optimize"].as_array().unwrap()[..3].to_vec();
    measured(&server, &json!({"prompt": "Works.", "examples": three}));
    for _ in 0..3 {
        // A program that tries again makes no score of it.
        let (status, answer) = ask(&server, &json!({"prompt": "Fail.", "examples": three}));
        assert_eq!(status, 502, "{answer}");
        assert!(!answer.to_string().contains("key-of-this-test"), "{answer}");
    }
    measured(&server, &json!({"prompt": "Works.", "examples": three}));
    server.stop();
}

#[test]
fn nobody_pays_for_a_client_that_has_gone_away() {
    let (_study, stub, server) = served(|study| study);
    let three = described(&server)["examples"]["optimize"].as_array().unwrap()[..3].to_vec();
    stub.let_through(0);
    thread::scope(|scope| {
        let slow = scope.spawn(|| measured(&server, &json!({"prompt": "A", "examples": three})));
        wait_until("the first prompt's questions", || stub.requests() == 3);
        let address = server.base_url.strip_prefix("http://").unwrap();
        let body = json!({"prompt": "B", "examples": three}).to_string();
        let heading = format!(
            "POST /measure HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut leaving = TcpStream::connect(address).unwrap();
        leaving.write_all((heading + &body).as_bytes()).unwrap();
        // It is heard by the time that a later one is answered.
        let health = || {
            client()
                .get(format!("{}/health", server.base_url))
                .call()
                .unwrap()
        };
        assert_eq!(health().status(), 200);
        leaving.shutdown(Shutdown::Both).unwrap();
        drop(leaving);
        assert_eq!(health().status(), 200);
        stub.let_all_through();
        slow.join().unwrap();
    });
    measured(&server, &json!({"prompt": "A", "examples": three}));
    assert_eq!(stub.requests(), 3);
    server.stop();
}

#[test]
fn an_interruption_is_told_to_who_waits_and_keeps_what_was_answered() {
    let (study, stub, server) = served(|study| study);
    stub.let_through(5);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&server, &json!({"prompt": "A"})));
        wait_until("answers, and questions that wait", || {
            stub.request_log().answered(Question::is_rollout) == 5 && stub.requests() > 5
        });
        server.interrupt();
        let (status, answer) = waiting.join().unwrap();
        assert_eq!(status, 503, "{answer}");
    });
    server.expect_end(Duration::from_secs(10));
    let journal = fs::read_to_string(study.file("served.jsonl")).unwrap();
    assert_eq!(journal.matches(r#"{"event":"rollout""#).count(), 5);
}

#[test]
fn only_who_may_ask_is_answered() {
    let study = Study::new("http://127.0.0.1:9");
    let server = Server::start(
        serving(&study)
            .args(["--require-key", "DOOR"])
            .env("DOOR", "key-of-the-door"),
    );
    let url = format!("{}/study", server.base_url);
    assert_eq!(client().get(&url).call().unwrap().status(), 401);
    let with = client()
        .get(&url)
        .header("authorization", "Bearer key-of-the-door")
        .call();
    assert_eq!(with.unwrap().status(), 200);
    let (status, answer) = ask(&server, &json!({"prompt": "A"}));
    assert_eq!(status, 401);
    assert!(!answer.to_string().contains("key-of-the-door"), "{answer}");

    // No page: neither of another origin, nor one whose name is made to lead here.
    for (name, value) in [
        ("origin", "http://elsewhere.example"),
        ("host", "elsewhere.example"),
    ] {
        let page = client()
            .get(&url)
            .header("authorization", "Bearer key-of-the-door");
        let answer = page.header(name, value).call().unwrap();
        assert_eq!(answer.status(), 403, "{name}");
        assert!(answer.headers().get("access-control-allow-origin").is_none());
    }
    let text = client().post(format!("{}/measure", server.base_url));
    let text = text
        .header("authorization", "Bearer key-of-the-door")
        .header("content-type", "text/plain");
    assert_eq!(text.send(r#"{"prompt": "A"}"#).unwrap().status(), 415);
    server.stop();
}

#[test]
fn a_wrong_command_line_is_told() {
    let study = Study::new("http://127.0.0.1:9");
    fs::write(study.file("best.md"), "Be brief.").unwrap();
    let with = |more: &[&str]| run(serving(&study).args(more));
    with(&["--prompt", "best.md"])
        .expect_code(64)
        .expect_error(&["--serve", "--prompt"]);
    with(&["--split", "optimize"])
        .expect_code(64)
        .expect_error(&["--serve", "--split"]);
    with(&["--host", "0.0.0.0"])
        .expect_code(64)
        .expect_error(&["0.0.0.0", "--require-key"]);
    with(&["--require-key", "NOBODY"])
        .expect_code(1)
        .expect_error(&["NOBODY is not set"]);
    let mut neither = command(["evaluate"]);
    run(neither.arg(study.path()))
        .expect_code(64)
        .expect_error(&["--prompt"]);
    let mut port_alone = command(["evaluate", "--prompt", "best.md", "--port", "1"]);
    run(port_alone.arg(study.path()).current_dir(study.folder()))
        .expect_code(64)
        .expect_error(&["--port", "--prompt"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut twice = command(["evaluate", "--serve", "--port", &port]);
    run(twice
        .arg(study.path())
        .current_dir(study.folder())
        .env(KEY, "key-of-this-test"))
    .expect_code(1)
    .expect_error(&["cannot listen on 127.0.0.1", "--port"]);
}
