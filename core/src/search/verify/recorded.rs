//! A problem made of nothing but a journal's first line.

use std::rc::Rc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

use crate::journal::{StudyEvent, WorkloadRecord};
use crate::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Role};
use crate::search::arena::Models;
use crate::search::problem::Problem;
use crate::study::StudyError;
use crate::study::metric::MetricSpec;
use crate::study::workload::{Rollout, RolloutContext, RolloutError, Split, Workload};

/// The problem of a recorded study.
pub(super) fn problem(event: &StudyEvent) -> Result<Problem, StudyError> {
    let workloads = event.workloads.iter().map(|(name, record)| -> Rc<dyn Workload> {
        Rc::new(Recorded {
            name: name.clone(),
            record: record.clone(),
        })
    });
    Problem::new(event.study.clone(), workloads.collect())
}

struct Recorded {
    name: String,
    record: WorkloadRecord,
}

const SHUT: &str = "nothing is measured or asked while a journal is verified";

impl Workload for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.record.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        self.record.split(split)
    }

    fn fingerprint(&self) -> String {
        self.record.fingerprint.clone()
    }

    fn description(&self) -> String {
        String::new()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        Vec::new()
    }

    fn rollout<'a>(&'a self, _: RolloutContext<'a>) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        ready(Err(RolloutError::failed(FailureKind::Stopped, false, SHUT))).boxed_local()
    }
}

/// Serves every role with a refusal.
pub(super) struct Nobody;

impl Models for Nobody {
    fn model(&self, _: Role) -> Rc<dyn Llm> {
        Rc::new(Self)
    }
}

impl Llm for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn chat(&self, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        ready(Err(LlmError::failed(FailureKind::Stopped, false, SHUT))).boxed_local()
    }
}
