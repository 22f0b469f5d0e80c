//! The simulated models give the same run in this process and over HTTP: tools, seeds and
//! conversations cross the wire unchanged.

use std::fs;

use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Server, command, run};
use serde_json::Value;

/// A small study of the help desk, its two models as written.
fn study(agent: &str, rewriter: &str) -> String {
    format!(
        r#"[study]
name = "help desk"
seed = 3
rounds = 2

[workload]
kind = "desk"
optimize = 10
evaluate = 5

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "human_requests"
threshold = 0.3

[models.agent]
{agent}

[models.rewriter]
{rewriter}
"#
    )
}

/// What a run computed, without what depends on how its models were reached: waiting times and
/// prices.
fn computed(events: &[Value]) -> Vec<Value> {
    let mut outcome = outcome(events);
    for event in &mut outcome {
        for field in ["evaluation", "seed_evaluation"] {
            if let Some(estimates) = event[field].as_object_mut() {
                estimates.remove("latency");
            }
        }
    }
    outcome
}

#[test]
fn a_run_over_http_is_the_run_in_process() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = Server::simulate(&["--seed", "3"]);
    let over_http = |model: &str| {
        let base_url = &simulated.base_url;
        format!("provider = \"openai-compatible\"\nbase_url = \"{base_url}\"\nmodel = \"{model}\"")
    };
    let in_process = |model: &str| format!("provider = \"simulated\"\nmodel = \"{model}\"");
    let texts = [
        ("http", study(&over_http("sim-medium"), &over_http("sim-large"))),
        (
            "process",
            study(&in_process("sim-medium"), &in_process("sim-large")),
        ),
    ];
    let runs = texts.map(|(name, text)| {
        let file = folder.path().join(format!("{name}.toml"));
        let journal = folder.path().join(format!("{name}.jsonl"));
        fs::write(&file, text).unwrap();
        let ended = run(command(["optimize", "--json", "--journal"])
            .arg(&journal)
            .arg(&file));
        assert!(matches!(ended.code, Some(0 | 2)), "{ended:?}");
        events(&journal)
    });
    let [http, process] = &runs;
    for kind in ["candidate", "rewrite", "rollout"] {
        assert_eq!(of_kind(http, kind).len(), of_kind(process, kind).len(), "{kind}");
    }
    assert!(
        of_kind(process, "rollout").iter().any(|rollout| {
            let messages = rollout["trace"]["messages"].as_array();
            messages.is_some_and(|messages| messages.iter().any(|message| message["role"] == "tool"))
        }),
        "tools were called"
    );
    assert_eq!(computed(http), computed(process));
}
