//! Measures one answer under one definition, for the tests of the metric files.

use capo_core::llm::{CallUsage, ChatRequest, ChatResponse, Finish, LlmError, Role};
use capo_core::workload::{Caller, RolloutContext};
use futures::future::LocalBoxFuture;

use super::{DefinitionError, Finding, Metric, MetricDefinition, Sample, Scoring};
use crate::files::{Files, MemoryFiles, Sources};

pub(super) const USAGE: CallUsage = CallUsage {
    input_tokens: 5,
    output_tokens: 7,
    usd: Some(0.25),
    seconds: 1.5,
};

/// A caller that must not be called.
struct Nobody;

impl Caller for Nobody {
    fn call(&self, role: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        panic!("a rule asked the {role}");
    }
}

pub(super) fn compile(definition: &str) -> Result<Metric, DefinitionError> {
    compile_with(definition, &MemoryFiles::new())
}

pub(super) fn compile_with(definition: &str, files: &dyn Files) -> Result<Metric, DefinitionError> {
    let definition: MetricDefinition = serde_json::from_str(definition).unwrap();
    definition.compile(&mut Sources::new(files))
}

pub(super) fn refused_reference(definition: &str, reference: &str) -> Option<String> {
    compile(definition).unwrap().check_reference(reference).err()
}

pub(super) fn measure(definition: &str, answer: &str, reference: &str) -> Finding {
    measure_with(definition, answer, reference, &MemoryFiles::new())
}

pub(super) fn measure_with(definition: &str, answer: &str, reference: &str, files: &dyn Files) -> Finding {
    measure_finished(definition, answer, reference, files, Finish::Stop)
}

pub(super) fn measure_finished(
    definition: &str,
    answer: &str,
    reference: &str,
    files: &dyn Files,
    finish: Finish,
) -> Finding {
    let metric = compile_with(definition, files).unwrap_or_else(|error| panic!("{error:?}"));
    let sample = Sample {
        user: "",
        answer,
        reference: Some(reference),
        finish,
        usage: USAGE,
        scoring: &Scoring::default(),
    };
    let context = RolloutContext {
        prompt: "",
        example: "",
        repeat: 0,
        seed: 0,
        caller: &Nobody,
    };
    futures::executor::block_on(metric.measure(&sample, &context)).unwrap()
}
