//! The guide's study, messages and agents.

use std::process::{Child, Command, Stdio};

use capo_core::workload::Split;
use futures::future::join_all;

use super::*;
use crate::shared;

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
