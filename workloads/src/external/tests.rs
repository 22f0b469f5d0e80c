//! External agents over real processes and real HTTP on loopback.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, LlmError, Role};
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Split, Workload};
use futures::future::{LocalBoxFuture, join_all};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::files::{FileError, MemoryFiles};
use crate::shared;

/// A variable that every test run has, in the part of a secret.
const SECRET: &str = "CARGO_MANIFEST_DIR";

struct Nobody;

impl Caller for Nobody {
    fn call(&self, role: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        panic!("an external agent asked the {role}");
    }
}

/// The folder of the documented examples.
struct Examples(PathBuf);

impl Examples {
    fn new() -> Self {
        Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples"))
    }
}

impl Files for Examples {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        std::fs::read(self.0.join(path)).map_err(|_| FileError::NotFound(path.to_owned()))
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.0)
    }
}

fn metrics() -> Value {
    json!([
        {"name": "correct", "direction": "objective"},
        {"name": "words", "direction": "cost", "unit": "words", "max": 1000},
    ])
}

fn build_with(changes: Value, files: &dyn Files) -> Result<Rc<dyn Workload>, String> {
    let mut settings = json!({"kind": "external", "data": "data.jsonl", "evaluate": 1, "shuffle": false, "metric": metrics()});
    let (Value::Object(map), Value::Object(changes)) = (&mut settings, changes) else {
        panic!("objects")
    };
    map.extend(changes);
    crate::build(map, files, 0)
        .map(|mut workloads| workloads.remove(0))
        .map_err(|error| error.to_string())
}

fn build(changes: Value) -> Result<Rc<dyn Workload>, String> {
    let lines: Vec<String> = (0..8)
        .map(|n| json!({"question": format!("q{n}"), "total": n}).to_string())
        .collect();
    build_with(changes, &MemoryFiles::new().with("data.jsonl", lines.join("\n")))
}

/// A workload whose agent is a Python one-liner.
fn python(code: &str, changes: Value) -> Rc<dyn Workload> {
    let mut settings = json!({"command": ["python3", "-c", code]});
    let (Value::Object(map), Value::Object(changes)) = (&mut settings, changes) else {
        panic!("objects")
    };
    map.extend(changes);
    build(settings).unwrap()
}

async fn roll(workload: &dyn Workload, example: &str, prompt: &str) -> Result<Rollout, RolloutError> {
    workload
        .rollout(RolloutContext {
            prompt,
            example,
            repeat: 2,
            seed: u64::MAX,
            caller: &Nobody,
        })
        .await
}

/// Kind, whether it may be tried again, and message of a failing rollout.
async fn failure(workload: &dyn Workload) -> (FailureKind, bool, String) {
    match roll(workload, "1", "p").await {
        Err(RolloutError::Failed {
            kind,
            message,
            retryable,
        }) => (kind, retryable, message),
        other => panic!("no failure of the agent's: {other:?}"),
    }
}

const GOOD: &str = r#"{"protocol": 1, "measurements": {"correct": 1, "words": 3, "more": 5}}"#;

#[tokio::test(flavor = "current_thread")]
async fn the_documented_command_agent_works() {
    let settings = json!({"command": ["python3", "agent_command.py"], "data": "bills.jsonl", "id": "id", "evaluate": 10});
    let workload = build_with(settings, &Examples::new()).unwrap();
    assert_eq!(
        (
            workload.examples(Split::Optimize).len(),
            workload.examples(Split::Evaluate).len()
        ),
        (20, 10)
    );
    let ids: Vec<String> = workload.examples(Split::Optimize)[..6].to_vec();
    let rollouts = join_all(
        ids.iter()
            .map(|id| roll(&*workload, id, "Check the sum and be brief.")),
    )
    .await;
    for rollout in rollouts {
        let rollout = rollout.unwrap();
        assert_eq!(rollout.measurements["words"], 1.0);
        assert_eq!(rollout.measurements["prompt_length"], 0.027);
        assert_eq!(rollout.trace.messages.len(), 2);
        assert!(rollout.trace.outcome.is_empty() || rollout.measurements["correct"] == 0.0);
        let usage = rollout.external_usage.role(Role::Agent);
        assert_eq!((usage.calls, usage.usd), (0, Some(0.0)));
        assert!(usage.seconds > 0.0);
    }
}

/// A server process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_documented_http_agent_works_and_wants_its_token() {
    use std::io::{BufRead, BufReader};
    let token = std::env::var(SECRET).unwrap();
    let child = Command::new("python3")
        .args(["agent_http.py", "0"])
        .current_dir(Examples::new().0)
        .env("AGENT_TOKEN", &token)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();

    let settings = |changes: Value| {
        let mut settings = json!({"endpoint": address.trim(), "data": "bills.jsonl", "evaluate": 0});
        settings
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        build_with(settings, &Examples::new()).unwrap()
    };
    let rollout = roll(&*settings(json!({"bearer_env": SECRET})), "1", "Check.")
        .await
        .unwrap();
    assert!(rollout.measurements["words"] > 1.0);
    let (kind, retryable, message) = failure(&*settings(json!({}))).await;
    assert_eq!((kind, retryable), (FailureKind::Authentication, false));
    assert!(
        message.contains("HTTP 401")
            && message.contains("wrong or missing token")
            && message.contains("bearer_env"),
        "{message}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn the_request_says_everything_of_the_protocol() {
    let code = "import json, sys; r = json.load(sys.stdin); \
                print(json.dumps({'protocol': 1, 'measurements': {'correct': True, 'words': 0}, 'details': r}))";
    let rollout = roll(&*python(code, json!({})), "3", "prömpt").await.unwrap();
    assert_eq!(
        rollout.trace.details,
        json!({
            "protocol": 1, "prompt": "prömpt", "example_id": "3", "example": {"question": "q2", "total": 2},
            "split": "optimize", "repeat": 2, "seed": (1_u64 << 53) - 1,
        })
    );
    assert_eq!(rollout.measurements["correct"], 1.0);
    assert!(rollout.external_usage.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn answers_that_cannot_be_used_are_named() {
    for (answer, problem) in [
        ("hello", "not a response of protocol 1: expected value"),
        ("", "EOF while parsing"),
        (
            r#"{"protocol": 2, "measurements": {}}"#,
            "it speaks protocol 2, Capo speaks 1",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1}}"#,
            "no measurement `words`; it has: correct",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": NaN, "words": 1}}"#,
            "`correct` is not a number (NaN",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1, "words": -Infinity}}"#,
            "`words` is not a number (NaN",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": "1", "words": 1}}"#,
            "`correct` is not a number but \"1\"",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 72, "words": 1}}"#,
            "`correct` is 72, outside its range 0 to 1",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1, "words": 1}, "usage": {"calls": 1, "usd": -1}}"#,
            "usage.usd is -1",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1, "words": 1}} extra"#,
            "trailing characters",
        ),
    ] {
        let code = format!("import sys; sys.stdin.read(); sys.stdout.write({answer:?})");
        let (kind, _, message) = failure(&*python(&code, json!({}))).await;
        assert_eq!(kind, FailureKind::Malformed, "{message}");
        assert!(
            message.starts_with("external agent python3: ") && message.contains(problem),
            "{answer}: {message}"
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_failing_command_shows_the_end_of_its_complaints_without_secrets() {
    let code = format!("import os, sys; sys.exit('cannot log in with ' + os.environ['{SECRET}'])");
    let (kind, retryable, message) = failure(&*python(&code, json!({"env": [SECRET]}))).await;
    assert_eq!((kind, retryable), (FailureKind::Tool, true));
    assert!(!message.contains(&std::env::var(SECRET).unwrap()));
    assert!(
        message.contains("exit status: 1") && message.ends_with("cannot log in with [redacted]"),
        "{message}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn an_answer_that_cannot_be_used_is_shown_without_secrets() {
    for answer in [
        "secret",
        "{'protocol': 1, 'measurements': {'correct': secret, 'words': 1}}",
    ] {
        let code = format!("import os, json; secret = os.environ['{SECRET}']; print(json.dumps({answer}))");
        let (kind, _, message) = failure(&*python(&code, json!({"env": [SECRET]}))).await;
        assert_eq!(kind, FailureKind::Malformed);
        assert!(
            message.contains("[redacted]") && !message.contains(&std::env::var(SECRET).unwrap()),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_gets_only_the_variables_that_are_named() {
    let code = format!(
        "import os, json; print(json.dumps({{'protocol': 1, 'measurements': \
         {{'correct': '{SECRET}' in os.environ, 'words': 'PATH' in os.environ}}}}))"
    );
    for (env, given) in [(json!([]), 0.0), (json!([SECRET]), 1.0)] {
        let rollout = roll(&*python(&code, json!({"env": env})), "1", "p")
            .await
            .unwrap();
        assert_eq!(
            (rollout.measurements["correct"], rollout.measurements["words"]),
            (given, 1.0)
        );
    }
    let (kind, retryable, message) =
        failure(&*python(&code, json!({"env": ["CAPO_NO_SUCH_VARIABLE"]}))).await;
    assert_eq!((kind, retryable), (FailureKind::Authentication, false));
    assert!(
        message
            .contains("workload.env names the environment variable CAPO_NO_SUCH_VARIABLE, but it is not set")
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_that_does_not_start_or_does_not_read_is_told_apart() {
    let (kind, retryable, message) =
        failure(&*build(json!({"command": ["capo-no-such-program"]})).unwrap()).await;
    assert_eq!((kind, retryable), (FailureKind::Tool, false));
    assert!(
        message.contains("capo-no-such-program: it cannot be started"),
        "{message}"
    );

    // More than a pipe holds, to a command that closes its input unread.
    let code = format!("import sys; sys.stdin.close(); print({GOOD:?})");
    let prompt = "x".repeat(1 << 20);
    assert_eq!(
        roll(&*python(&code, json!({})), "1", &prompt)
            .await
            .unwrap()
            .measurements["words"],
        3.0
    );
}

#[tokio::test(flavor = "current_thread")]
async fn output_larger_than_a_pipe_does_not_block() {
    let code = "import sys, json; sys.stderr.write('x' * 300000); \
                print(json.dumps({'protocol': 1, 'measurements': {'correct': 0, 'words': 0}, 'outcome': 'y' * 300000}))";
    assert_eq!(
        roll(&*python(code, json!({})), "1", "p")
            .await
            .unwrap()
            .trace
            .outcome
            .len(),
        300_000
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "current_thread")]
async fn a_timeout_ends_the_command_and_what_it_started() {
    let folder = std::env::temp_dir().join(format!("capo-external-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pid");
    let code = format!(
        "import subprocess, time; p = subprocess.Popen(['sleep', '60']); open({:?}, 'w').write(str(p.pid)); time.sleep(60)",
        file.display().to_string()
    );
    let start = Instant::now();
    let (kind, retryable, message) = failure(&*python(&code, json!({"timeout": 4}))).await;
    assert_eq!((kind, retryable), (FailureKind::Timeout, true));
    assert!(
        message.contains("no answer within 4 s; raise workload.timeout"),
        "{message}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    let grandchild = std::fs::read_to_string(&file).unwrap();
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        // The state follows the name in brackets; a zombie is dead and waits for its parent.
        state
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    while alive() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the grandchild lives on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Serves connections on loopback with `respond`, which gets the request's text.
async fn serve<R, F>(respond: R) -> String
where
    R: Fn(String) -> F + 'static,
    F: Future<Output = String> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/agent?key=hidden", listener.local_addr().unwrap());
    let respond = Rc::new(respond);
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = Rc::clone(&respond);
            tokio::task::spawn_local(async move { converse(stream, &*respond).await });
        }
    });
    address
}

async fn converse<R, F>(mut stream: TcpStream, respond: &R)
where
    R: Fn(String) -> F,
    F: Future<Output = String>,
{
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let complete = |request: &[u8]| {
        let text = String::from_utf8_lossy(request);
        text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            });
            length.is_some_and(|length| body.len() >= length.trim().parse().unwrap())
        })
    };
    while !complete(&request) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    let response = respond(String::from_utf8(request).unwrap()).await;
    let _ = stream.write_all(response.as_bytes()).await;
}

fn http(status: &str, head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{head}\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "current_thread")]
async fn http_failures_are_told_apart_without_secrets() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let secret = std::env::var(SECRET).unwrap();
            for (status, head, expected_kind, expected_retry, says) in [
                (
                    "401 Unauthorized",
                    "",
                    FailureKind::Authentication,
                    false,
                    "check the environment variable CARGO_MANIFEST_DIR",
                ),
                (
                    "429 Too Many Requests",
                    "retry-after: 7\r\n",
                    FailureKind::RateLimit,
                    true,
                    "it asks to wait 7; lower workload.concurrency",
                ),
                (
                    "500 Internal Server Error",
                    "",
                    FailureKind::Tool,
                    true,
                    "HTTP 500",
                ),
                ("404 Not Found", "", FailureKind::Tool, false, "HTTP 404"),
                (
                    "302 Found",
                    "location: http://127.0.0.1:9/\r\n",
                    FailureKind::Tool,
                    false,
                    "redirects are not followed",
                ),
            ] {
                let body = format!("bad key {secret}");
                let endpoint = serve(move |request| {
                    let seen = request.to_lowercase().contains("x-key: ");
                    let response = http(status, head, &body);
                    async move {
                        if seen {
                            response
                        } else {
                            http("200 OK", "", "no key")
                        }
                    }
                })
                .await;
                let workload =
                    build(json!({"endpoint": endpoint, "headers_env": {"X-Key": SECRET}})).unwrap();
                let (kind, retryable, message) = failure(&*workload).await;
                assert_eq!((kind, retryable), (expected_kind, expected_retry), "{message}");
                assert!(message.contains(says), "{message}");
                assert!(
                    !message.contains(&secret) && !message.contains("hidden"),
                    "{message}"
                );
            }
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_endpoint_that_is_not_there_or_too_slow_is_named() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let gone = TcpListener::bind("127.0.0.1:0")
                .await
                .unwrap()
                .local_addr()
                .unwrap();
            let (kind, retryable, message) =
                failure(&*build(json!({"endpoint": format!("http://{gone}/")})).unwrap()).await;
            assert_eq!((kind, retryable), (FailureKind::Tool, true));
            assert!(
                message.contains(&gone.to_string()) && message.contains("is it running and reachable?"),
                "{message}"
            );

            let slow = serve(|_| async {
                tokio::time::sleep(Duration::from_secs(30)).await;
                http("200 OK", "", GOOD)
            })
            .await;
            let (kind, _, message) =
                failure(&*build(json!({"endpoint": slow, "timeout": 0.2})).unwrap()).await;
            assert_eq!(kind, FailureKind::Timeout, "{message}");
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn no_more_rollouts_run_at_a_time_than_allowed() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let (running, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let seen = Rc::clone(&most);
            let endpoint = serve(move |_| {
                let (running, most) = (Rc::clone(&running), Rc::clone(&most));
                async move {
                    running.set(running.get() + 1);
                    most.set(most.get().max(running.get()));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    running.set(running.get() - 1);
                    http("200 OK", "", GOOD)
                }
            })
            .await;
            let workload = build(json!({"endpoint": endpoint, "concurrency": 2, "timeout": 0.4})).unwrap();
            let examples = ["1", "2", "3", "4", "5", "6", "7", "8"].repeat(2);
            // Waiting for a turn does not count against the timeout: 16 rollouts of 50 ms take 0.4 s.
            let rollouts = join_all(examples.iter().map(|example| roll(&*workload, example, "p"))).await;
            assert!(rollouts.iter().all(Result::is_ok), "{rollouts:?}");
            assert_eq!(seen.get(), 2);
        })
        .await;
}

#[test]
fn bad_settings_are_refused_by_key() {
    let metric = |metric: Value| json!({"endpoint": "http://x/", "metric": [metric]});
    for (changes, expected) in [
        (
            json!({}),
            "workload: give exactly one of `endpoint` and `command`",
        ),
        (
            json!({"endpoint": "http://x/", "command": ["x"]}),
            "workload: give exactly one",
        ),
        (json!({"endpoint": "x"}), "workload.endpoint: not a URL"),
        (
            json!({"endpoint": "ftp://x/"}),
            "workload.endpoint: must begin with http",
        ),
        (
            json!({"endpoint": "http://me:pw@x/"}),
            "workload.endpoint: must not hold a password",
        ),
        (
            json!({"endpoint": "http://x/", "env": ["A"]}),
            "workload.env: is for `command`",
        ),
        (
            json!({"command": ["x"], "headers": {"a": "b"}}),
            "workload.headers: headers are for `endpoint`",
        ),
        (json!({"command": []}), "workload.command: is empty"),
        (
            json!({"endpoint": "http://x/", "headers": {"a b": "c"}}),
            "workload.headers.a b: not a name",
        ),
        (
            json!({"endpoint": "http://x/", "timeout": 0}),
            "workload.timeout: must be above 0",
        ),
        (
            json!({"endpoint": "http://x/", "concurrency": 0}),
            "workload.concurrency: must be at least 1",
        ),
        (
            json!({"endpoint": "http://x/", "metric": []}),
            "workload.metric: declare at least one",
        ),
        (
            json!({"endpoint": "http://x/", "endpont": 1}),
            "workload.endpont: there is no such setting; did you mean `endpoint`?",
        ),
        (
            json!({"endpoint": "http://x/", "evaluate": 9}),
            "workload.evaluate: 9 examples are asked for, but data.jsonl leaves 8",
        ),
        (
            metric(json!({"name": "m"})),
            "workload.metric[0]: missing field `direction`",
        ),
        (
            metric(json!({"name": "prompt_length", "direction": "cost"})),
            "workload.metric[0].name: `prompt_length` is measured",
        ),
        (
            metric(json!({"name": "m", "direction": "objective", "max": 100})),
            "workload.metric[0]: an objective lies between 0 and 1",
        ),
        (
            metric(json!({"name": "m", "direction": "cost", "min": 1, "max": 1})),
            "workload.metric[0]: `min` must be below",
        ),
    ] {
        let error = build(changes.clone())
            .err()
            .unwrap_or_else(|| panic!("built in spite of {changes}"));
        assert!(error.starts_with(expected), "{changes}: {error}");
    }
}

#[test]
fn the_same_row_in_both_splits_is_refused() {
    let files = MemoryFiles::new().with("data.jsonl", "{\"id\": 1, \"q\": 2}\n{\"q\": 2, \"id\": 2}");
    let changes = json!({"endpoint": "http://x/", "id": "id"});
    let error = build_with(changes, &files).err().unwrap();
    assert!(
        error.starts_with("data.jsonl line 2: this held-out example is the same as data.jsonl line 1"),
        "{error}"
    );
}

#[test]
fn the_schemas_in_the_documentation_are_those_of_the_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/external-protocol.json");
    let fresh = format!("{:#}\n", serde_json::to_value(protocol::schemas()).unwrap());
    if std::env::var_os("CAPO_UPDATE").is_some() {
        std::fs::write(&page, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        kept == fresh,
        "docs/external-protocol.json is out of date: run this test with CAPO_UPDATE=1 and commit it"
    );
}

#[test]
fn the_documented_study_builds() {
    let study: Value =
        toml::from_str(&shared::guide_blocks("external-agents.md", "toml").join("\n")).unwrap();
    let Value::Object(workload) = &study["workload"] else {
        panic!("a [workload] table")
    };
    let workload = crate::build(workload, &Examples::new(), 0).unwrap().remove(0);
    assert_eq!(
        (
            workload.examples(Split::Optimize).len(),
            workload.examples(Split::Evaluate).len()
        ),
        (20, 10)
    );
}

#[test]
fn the_documented_messages_fit_the_schemas() {
    let schemas = serde_json::to_value(protocol::schemas()).unwrap();
    let blocks: Vec<Value> = shared::guide_blocks("external-agents.md", "json")
        .iter()
        .map(|block| serde_json::from_str(block).unwrap())
        .collect();
    assert_eq!(blocks.len(), 2, "one request and one response");
    for (name, block) in ["request", "response"].into_iter().zip(&blocks) {
        let validator = jsonschema::validator_for(&schemas[name]).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(block)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        assert!(!validator.is_valid(&json!({"protocol": 1})));
    }
}
