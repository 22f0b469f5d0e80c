//! External agents over real processes and real HTTP on loopback.

mod command;
mod documentation;
mod http;
mod retries;
mod settings;

use std::path::{Path, PathBuf};

use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, LlmError, Role};
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Workload};
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::*;
use crate::files::{FileError, MemoryFiles};

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
        Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/own-agent"))
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

/// A response that holds what [`metrics`] declares.
const GOOD: &str = r#"{"protocol": 1, "measurements": {"correct": 1, "words": 3, "more": 5}}"#;

fn metrics() -> Value {
    json!([
        {"name": "correct", "direction": "objective"},
        {"name": "words", "direction": "cost", "unit": "words", "max": 1000},
    ])
}

fn build_with(changes: Value, files: &dyn Files) -> Result<Rc<dyn Workload>, String> {
    let mut settings = json!({
        "kind": "external", "data": "data.jsonl", "evaluate": 1, "shuffle": false, "metric": metrics(), "retries": 0,
    });
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

async fn roll(workload: &dyn Workload, example: &str, prompt: &str) -> Result<Rollout, RolloutError> {
    roll_for(&Nobody, workload, example, prompt).await
}

async fn roll_for(
    caller: &dyn Caller,
    workload: &dyn Workload,
    example: &str,
    prompt: &str,
) -> Result<Rollout, RolloutError> {
    workload
        .rollout(RolloutContext {
            prompt,
            example,
            repeat: 2,
            seed: u64::MAX,
            caller,
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
            ..
        }) => (kind, retryable, message),
        other => panic!("no failure of the agent's: {other:?}"),
    }
}
