//! One example done by an agent of somebody's own, before a run depends on it.

use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, LlmError, Role};
use capo_core::study::Table;
use capo_core::workload::{Caller, RolloutContext, Split};
use futures::future::LocalBoxFuture;
use web_time::Instant;

use super::protocol::{DataFiles, ProbeFailure, memory};

/// Does the first example the search sees under `prompt`, and says how many seconds it took.
///
/// # Errors
/// What is wrong with the settings, the data, the way to the agent or its answer.
pub(super) async fn try_agent(
    workload: &Table,
    files: &DataFiles,
    prompt: &str,
    seed: u64,
) -> Result<f64, ProbeFailure> {
    let told = |message: String| ProbeFailure {
        message,
        unreachable: false,
    };
    // A person waits for it.
    let mut once = workload.clone();
    if capo_workloads::of(workload).is_some_and(|kind| kind.has("retries")) {
        once.insert("retries".to_owned(), 0.into());
    }
    let workloads = capo_workloads::build(&once, &memory(files), seed);
    let workloads = workloads.map_err(|error| told(error.to_string()))?;
    let first = workloads.iter().find_map(|workload| {
        let example = workload.examples(Split::Optimize).first()?;
        Some((workload, example))
    });
    let (workload, example) =
        first.ok_or_else(|| told("There is no example to do: all are held out.".into()))?;
    let began = Instant::now();
    let done = workload.rollout(RolloutContext {
        prompt,
        example,
        repeat: 0,
        seed,
        caller: &Nobody,
    });
    match done.await {
        Ok(_) => Ok(began.elapsed().as_secs_f64()),
        Err(error) => Err(ProbeFailure {
            unreachable: capo_workloads::external::is_unreached(&error),
            message: error.to_string(),
        }),
    }
}

/// Agents of one's own ask their models themselves.
struct Nobody;

impl Caller for Nobody {
    fn call(&self, _: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let refused = LlmError::failed(FailureKind::Provider, false, "a test asks no models");
        Box::pin(async { Err(refused) })
    }
}
