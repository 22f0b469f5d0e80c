//! `docs/journal.md` lists every field of every event, and its examples are lines of a real run.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use capo_core::arena::{Family, LearnError, Learner, Models, RunOptions};
use capo_core::batches::Batches;
use capo_core::ids::Round;
use capo_core::journal::{Event, Journal, MemoryJournal};
use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Message, Role};
use capo_core::metric::MetricSpec;
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Workload};
use capo_core::{optimize, verify};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, ready};
use indexmap::IndexMap;
use serde_json::Value;

use crate::{blocks, names, page, root, rows, section, tiny};

/// The tiny world, one of whose models fails at its first call.
struct OnceFailing {
    role: Role,
    failure: LlmError,
    failed: Rc<Cell<bool>>,
}

impl OnceFailing {
    fn new(role: Role, kind: FailureKind, message: &str) -> Self {
        Self {
            role,
            failure: LlmError::failed(kind, true, message),
            failed: Rc::default(),
        }
    }
}

impl Models for OnceFailing {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        if role == self.role && !self.failed.replace(true) {
            Rc::new(Failing(self.failure.clone()))
        } else {
            tiny::Tiny.model(role)
        }
    }
}

struct Failing(LlmError);

impl Llm for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn chat(&self, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        ready(Err(self.0.clone())).boxed_local()
    }
}

/// The run of the page: stopped by a budget of five rollouts, then resumed with forty.
fn lines() -> Vec<String> {
    let store = MemoryJournal::new();
    let busy = OnceFailing::new(
        Role::Agent,
        FailureKind::RateLimit,
        "tiny: 429, too many requests",
    );
    let busy: Rc<dyn Models> = Rc::new(busy);
    for budget in [5, 40] {
        let study = format!("{}\n[budget]\nrollouts = {budget}\n", tiny::STUDY);
        let known = store.lines().to_vec();
        let known = (0..).zip(known).map(Ok);
        let journal = Journal::open(Box::new(store.clone()), known).unwrap();
        let options = RunOptions {
            concurrency: 1,
            started_at: "2026-03-02T09:30:00Z".into(),
            ..RunOptions::default()
        };
        let problem = tiny::problem(&study).unwrap();
        block_on(optimize(problem, journal, busy.clone(), options)).unwrap();
    }
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let lines = store.lines();
    lines
        .iter()
        .map(|line| line.replace(&version, "\"version\":\"0.1.0\""))
        .collect()
}

/// The tiny world, whose agent says of each call that it is in a batch.
struct InBatches(Batches);

impl Models for InBatches {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        if role == Role::Agent {
            let request = "9f86d081884c7d659a2feaa0c55ad015-5eed".to_owned();
            self.0.note("batch_68f1c2", vec![request]);
        }
        tiny::Tiny.model(role)
    }

    fn batches(&self) -> Option<Batches> {
        Some(self.0.clone())
    }
}

/// A run whose agent's calls are handed in together.
fn in_batches() -> Vec<String> {
    let store = MemoryJournal::new();
    let journal = Journal::create(Box::new(store.clone()));
    let problem = tiny::problem(tiny::STUDY).unwrap();
    let models = Rc::new(InBatches(Batches::default()));
    block_on(optimize(problem, journal, models, RunOptions::default())).unwrap();
    store.lines().to_vec()
}

/// The tiny world, whose rewriter says what it was told.
struct Attentive;

impl Models for Attentive {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        tiny::Tiny.model(role)
    }

    fn learner(&self) -> Option<Rc<dyn Learner>> {
        Some(Rc::new(Self))
    }
}

impl Learner for Attentive {
    fn learn<'a>(
        &'a self,
        _: Round,
        families: &'a [Family],
    ) -> LocalBoxFuture<'a, Result<IndexMap<String, f64>, LearnError>> {
        let rewards: Vec<f64> = families
            .iter()
            .flat_map(|family| &family.attempts)
            .filter_map(|attempt| Some(attempt.child?.1))
            .collect();
        let reward = rewards.iter().sum::<f64>() / rewards.len() as f64;
        ready(Ok([("reward".to_owned(), reward)].into())).boxed_local()
    }
}

/// A run whose rewriter learns.
fn learning() -> Vec<String> {
    let store = MemoryJournal::new();
    let study = tiny::STUDY.replace("[study]", "[study]\nmethod = \"dcapo\"");
    let journal = Journal::create(Box::new(store.clone()));
    let problem = tiny::problem(&study).unwrap();
    block_on(optimize(
        problem,
        journal,
        Rc::new(Attentive),
        RunOptions::default(),
    ))
    .unwrap();
    store.lines().to_vec()
}

/// The questions of the tiny world, each answer graded, some of them refused.
struct Refusing {
    questions: tiny::Questions,
    refuses: fn(&RolloutContext<'_>) -> Option<LlmError>,
}

impl Workload for Refusing {
    fn name(&self) -> &'static str {
        "questions"
    }

    fn metrics(&self) -> &[MetricSpec] {
        self.questions.metrics()
    }

    fn examples(&self, split: Split) -> &[String] {
        self.questions.examples(split)
    }

    fn fingerprint(&self) -> String {
        self.questions.fingerprint()
    }

    fn description(&self) -> String {
        self.questions.description()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![(Role::Agent, 1), (Role::Judge, 1)]
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            if let Some(refusal) = (self.refuses)(&context) {
                return Err(refusal.into());
            }
            let rollout = self.questions.rollout(context).await?;
            let answer = Message::user(rollout.trace.answer());
            context.chat(Role::Judge, ChatRequest::new(vec![answer])).await?;
            Ok(rollout)
        }
        .boxed_local()
    }
}

/// A run over [`Refusing`] questions.
fn refused(
    settings: &str,
    models: Rc<dyn Models>,
    refuses: fn(&RolloutContext<'_>) -> Option<LlmError>,
) -> Vec<String> {
    let store = MemoryJournal::new();
    let study = Study::parse(&format!("{}{settings}", tiny::STUDY), Format::Toml).unwrap();
    let questions = tiny::Questions::new();
    let problem = Problem::new(study, vec![Rc::new(Refusing { questions, refuses })]).unwrap();
    let options = RunOptions {
        concurrency: 1,
        ..RunOptions::default()
    };
    let journal = Journal::create(Box::new(store.clone()));
    block_on(optimize(problem, journal, models, options)).unwrap();
    store.lines().to_vec()
}

/// A run in which a filter refuses an example, whatever the prompt, and a judge does not answer once.
pub(crate) fn filtered(policy: &str) -> Vec<String> {
    let late = OnceFailing::new(Role::Judge, FailureKind::Timeout, "tiny: no answer within 120 s");
    let settings = format!("[failures]\nexample = \"{policy}\"\n");
    refused(&settings, Rc::new(late), |context| {
        let message = "tiny: 400, the content filter refused the request";
        (context.example == "refund 1").then(|| LlmError::failed(FailureKind::Provider, false, message))
    })
}

/// A run whose rewriter comes to prompts that the agent has no room for.
fn too_long() -> Vec<String> {
    refused("", Rc::new(tiny::Tiny), |context| {
        let message = "tiny: 400, the request is longer than the model's context";
        (context.prompt.len() > 50).then(|| LlmError::failed(FailureKind::ContextLength, false, message))
    })
}

#[test]
fn the_examples_are_lines_of_a_run_that_verifies_one_for_every_event() {
    let (page, mut lines) = (page("journal"), lines());
    block_on(verify(&lines)).unwrap();
    for run in [
        learning(),
        filtered("worst"),
        filtered("leave-out"),
        too_long(),
        in_batches(),
    ] {
        block_on(verify(&run)).unwrap();
        lines.extend(run);
    }
    let examples: Vec<&str> = blocks(&page, "json").into_iter().flat_map(str::lines).collect();
    let mut shown = BTreeSet::new();
    for example in &examples {
        assert!(
            lines.iter().any(|line| line == example),
            "not a line of the page's runs:\n{example}\nIts lines are:\n{}",
            lines.join("\n")
        );
        let event: Event = serde_json::from_str(example).unwrap();
        let again: Value = serde_json::to_value(&event).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(example).unwrap());
        shown.insert(again["event"].as_str().unwrap().to_owned());
    }
    let kinds = names::parts(&root(), EVENTS, "Event");
    assert_eq!(shown, kinds.into_iter().map(|(kind, _)| snake(&kind)).collect());
}

const EVENTS: &str = "core/src/journal/event.rs";

/// Where the shapes that several events share are defined, and under which heading they stand.
const SHAPES: [(&str, &str, &str); 14] = [
    ("### Usage", "core/src/study/usage.rs", "RoleUsage"),
    ("### Reused effects", EVENTS, "ReusedFrom"),
    ("### Paid answers", EVENTS, "PaidAnswer"),
    ("### Responses", "core/src/llm.rs", "ChatResponse"),
    ("### Traces", "core/src/study/workload.rs", "Trace"),
    ("### Scores", "core/src/study/score.rs", "Score"),
    ("### Certificates", "core/src/study/certificate.rs", "Certificate"),
    ("### Findings", "core/src/study/certificate.rs", "Finding"),
    ("### Estimates", "core/src/study/estimate.rs", "Estimate"),
    ("### Workloads", EVENTS, "WorkloadRecord"),
    ("### Metrics", "core/src/study/metric.rs", "MetricSpec"),
    ("### Budgets", "core/src/study/budget.rs", "Budget"),
    ("### Branches", EVENTS, "Branch"),
    ("### Tests", EVENTS, "Tests"),
];

/// A table must name the fields of the type in its order, and say of each whether it may be absent.
fn compare(page: &str, heading: &str, path: &str, owner: &str) {
    let rows = rows(section(page, heading));
    let listed: Vec<&str> = rows.iter().map(|cells| cells[0].as_str()).collect();
    let parts = names::parts(&root(), path, owner);
    let fields: Vec<&str> = parts.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        listed, fields,
        "the table below `{heading}` and the fields of `{owner}`"
    );
    // A container's `default` lets every field be absent.
    let all_optional = owner == "Budget";
    for (cells, (field, attributes)) in rows.iter().zip(&parts) {
        let optional = all_optional || attributes.contains("default");
        assert_eq!(
            cells[1].contains("may be absent"),
            optional,
            "`{field}` of `{owner}` {}: {cells:?}",
            if optional {
                "may be absent"
            } else {
                "may not be absent"
            }
        );
    }
}

#[test]
fn the_tables_list_every_field() {
    let page = page("journal");
    for (variant, _) in names::parts(&root(), EVENTS, "Event") {
        compare(
            &page,
            &format!("### `{}`", snake(&variant)),
            EVENTS,
            &format!("{variant}Event"),
        );
    }
    for (heading, path, owner) in SHAPES {
        compare(&page, heading, path, owner);
    }
}

#[test]
fn every_word_a_field_can_hold_is_named() {
    let page = page("journal");
    for (heading, path, owner) in [
        ("### `candidate`", EVENTS, "Origin"),
        ("### `finished`", EVENTS, "Status"),
        ("### `failure`", EVENTS, "EffectName"),
        ("### `failure`", "core/src/llm.rs", "FailureKind"),
        ("### Usage", "core/src/llm.rs", "Role"),
        ("### Responses", "core/src/llm.rs", "Finish"),
        ("### `rollout`", "core/src/study/workload.rs", "Split"),
        ("### Metrics", "core/src/study/metric.rs", "Direction"),
    ] {
        let section = section(&page, heading);
        for (variant, _) in names::parts(&root(), path, owner) {
            let word = format!("`{}`", snake(&variant));
            assert!(
                section.contains(&word),
                "{word} of `{owner}` is missing below {heading}"
            );
        }
    }
}

/// What serde makes of a variant's name.
fn snake(variant: &str) -> String {
    let mut word = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(letter.to_lowercase());
    }
    word
}
