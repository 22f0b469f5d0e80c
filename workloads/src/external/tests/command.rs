//! Agents that are commands.

use std::time::{Duration, Instant};

use super::*;

/// A workload whose agent is a Python one-liner.
fn python(code: &str, changes: Value) -> Rc<dyn Workload> {
    let mut settings = json!({"command": ["python3", "-c", code]});
    let (Value::Object(map), Value::Object(changes)) = (&mut settings, changes) else {
        panic!("objects")
    };
    map.extend(changes);
    build(settings).unwrap()
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
    let usage = rollout.external_usage.role(Role::Agent);
    assert_eq!(
        (usage.calls, usage.usd),
        (0, None),
        "nothing reported is unknown, not 0"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn answers_that_cannot_be_used_are_named() {
    for (answer, problem) in [
        ("hello", "not a response of protocol 1: expected a value"),
        ("", "the text ends in the middle of a value"),
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
            r#"{"protocol": 1, "measurements": {"correct": 1e308, "words": 1}}"#,
            "`correct` is 1e308, outside its range 0 to 1",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1, "words": 1}, "usage": {"calls": 1, "usd": -1}}"#,
            "usage.usd is -1",
        ),
        (
            r#"{"protocol": 1, "measurements": {"correct": 1, "words": 1}, "usage": {"calls": 1, "output_tokens": 18446744073709551615}}"#,
            "usage.output_tokens is 18446744073709551615",
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
async fn a_trace_holds_no_secret() {
    let code = format!(
        "import os, json; s = os.environ['{SECRET}']; print(json.dumps({{'protocol': 1, \
         'measurements': {{'correct': 1, 'words': 3}}, 'outcome': 'used ' + s, 'details': {{s: [s]}}, \
         'messages': [{{'role': 'tool', 'call_id': s, 'content': s}}, {{'role': 'assistant', \
         'tool_calls': [{{'id': 'c', 'name': 'log_in', 'arguments': {{'key': s}}}}]}}]}}))"
    );
    let rollout = roll(&*python(&code, json!({"env": [SECRET]})), "1", "p")
        .await
        .unwrap();
    let kept = serde_json::to_string(&rollout.trace).unwrap();
    assert!(!kept.contains(&std::env::var(SECRET).unwrap()), "{kept}");
    assert_eq!(kept.matches("[redacted]").count(), 6, "{kept}");
    assert_eq!(rollout.trace.outcome, "used [redacted]");
}

#[cfg(unix)]
#[tokio::test(flavor = "current_thread")]
async fn what_a_command_leaves_running_does_not_hold_its_answer() {
    // The sleeper inherits the standard output, so the pipe stays open when the command ends.
    let code = format!("import subprocess; subprocess.Popen(['sleep', '60']); print({GOOD:?})");
    let start = Instant::now();
    let rollout = roll(&*python(&code, json!({"timeout": 20})), "1", "p").await;
    assert_eq!(rollout.unwrap().measurements["words"], 3.0);
    assert!(start.elapsed() < Duration::from_secs(20));
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

#[tokio::test(flavor = "current_thread")]
async fn output_without_end_is_too_large_and_waited_for_no_longer() {
    let code = "import sys\nwhile True:\n    try:\n        sys.stdout.write('y' * 65536)\n    except OSError:\n        pass";
    let (kind, retryable, message) = failure(&*python(code, json!({"timeout": 60}))).await;
    assert_eq!((kind, retryable), (FailureKind::Malformed, false), "{message}");
    assert!(message.contains("larger than 16 MiB"), "{message}");
}

/// Whether a process runs, by its id.
#[cfg(target_os = "linux")]
fn alive(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The state follows the name in brackets; a zombie is dead and waits for its parent.
    state
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "current_thread")]
async fn what_left_the_commands_group_ends_with_it() {
    // A session of its own, with and without the standard output.
    for silent in ["True", "False"] {
        let code = format!(
            "import json, subprocess; r = json.loads({GOOD:?}); \
             p = subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=-3 if {silent} else None); \
             r['details'] = p.pid; print(json.dumps(r))"
        );
        let start = Instant::now();
        let rollout = roll(&*python(&code, json!({"timeout": 20})), "1", "p")
            .await
            .unwrap();
        let sleeper = rollout.trace.details.to_string();
        while alive(&sleeper) {
            assert!(start.elapsed() < Duration::from_secs(20), "the sleeper lives on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "current_thread")]
async fn an_answer_counts_though_somebody_unknown_holds_its_stream() {
    // Without its environment it is not found.
    let code = format!(
        "import subprocess; subprocess.Popen(['sleep', '15'], start_new_session=True, env={{}}); print({GOOD:?})"
    );
    let start = Instant::now();
    let rollout = roll(&*python(&code, json!({"timeout": 60})), "1", "p").await;
    assert_eq!(rollout.unwrap().measurements["words"], 3.0);
    assert!(start.elapsed() < Duration::from_secs(14));
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
    while alive(&grandchild) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the grandchild lives on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
