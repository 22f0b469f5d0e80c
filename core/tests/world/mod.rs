//! A small world for tests: prompts are made of the words `care`, `haste` and `filler`.
//!
//! `care` raises success and cost, `haste` lowers both, so that a threshold on the cost makes a real
//! trade-off; everything is drawn from the rollout's seed, shared by all candidates.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{Event, Journal, JournalStore, MemoryJournal};
use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError, Message, Role,
};
use capo_core::metric::{MetricSpec, prompt_length};
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::usage::{RoleUsage, Usage};
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use capo_core::{Outcome, RunError, optimize};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;

/// What the tests look at and turn.
#[derive(Default)]
pub struct Probe {
    /// Rollouts served, by (prompt, example, repeat).
    pub served: RefCell<HashMap<(String, String, u32), u32>>,
    /// Model calls served.
    pub calls: Cell<u32>,
    /// Answers arrive in an order that depends on this number.
    pub disorder: Cell<u64>,
    /// The n-th rollout from now fails so often: (in how many rollouts, times, retryable).
    pub fail: Cell<Option<(u32, u32, bool)>>,
    /// So many rollouts fail after their answers, which hold, and after vectors, which are asked for again.
    pub unscored: Cell<u32>,
    /// Measure NaN on this example.
    pub nan_on: RefCell<Option<String>>,
    /// Which rollouts never succeed, by prompt and example; the failure may be tried again or not.
    pub refuse: RefCell<Option<Refusal>>,
    /// What a rollout measures as its effort, where it is stated.
    pub effort: RefCell<Option<Effort>>,
    /// Called after so many model calls, once.
    pub after_calls: RefCell<Option<(u32, Once)>>,
    /// Measure this under a name that is no metric.
    pub beside: Cell<Option<f64>>,
    /// The model call of this number, from 1, fails at a price nobody knows.
    pub failing_call: Cell<u32>,
    /// The rewriter answers without the block so often.
    pub bad_rewrites: Cell<u32>,
    /// The rewriter answers with the block so often only, when stated.
    pub good_rewrites: Cell<Option<u32>>,
    /// Answers cost nothing.
    pub free: Cell<bool>,
    /// Whether a model's price is unknown before it is asked.
    pub unpriced: Cell<bool>,
    /// How many examples are searched on; 24 unless it is stated.
    pub searched: Cell<Option<usize>>,
    /// How many examples are held out, 10 at least.
    pub held_out: Cell<usize>,
    /// Whether a measurement is said to be of dollars.
    pub dollars: Cell<bool>,
    /// Whether rollouts are said to ask for vectors.
    pub vectors: Cell<bool>,
}

/// The effort measured on an example.
pub type Effort = fn(&str) -> f64;

/// What is called once.
pub type Once = Box<dyn FnOnce()>;

/// Says of a prompt and an example whether, and how, its rollout fails.
pub type Refusal = Rc<dyn Fn(&str, &str) -> Option<(FailureKind, bool)>>;

impl Probe {
    pub fn rollouts(&self) -> u32 {
        self.served.borrow().values().sum()
    }
}

pub struct World {
    probe: Rc<Probe>,
    pub metrics: [MetricSpec; 3],
    optimize: Vec<String>,
    pub evaluate: Vec<String>,
}

impl World {
    pub fn new(probe: &Rc<Probe>) -> Self {
        Self {
            probe: probe.clone(),
            metrics: [
                MetricSpec::objective("success", "Whether it worked."),
                MetricSpec::cost("effort", "steps", "Steps taken."),
                MetricSpec::prompt_length(),
            ],
            optimize: (0..probe.searched.get().unwrap_or(24))
                .map(|index| format!("o{index}"))
                .collect(),
            evaluate: (0..probe.held_out.get().max(10))
                .map(|index| format!("e{index}"))
                .collect(),
        }
    }
}

/// (probability of success, mean effort) of a prompt.
pub fn traits(prompt: &str) -> (f64, f64) {
    let count = |word: &str| prompt.split_whitespace().filter(|found| *found == word).count() as f64;
    let (care, haste) = (count("care"), count("haste"));
    let success = 0.3 + 0.6 * (1.0 - (-0.5 * care).exp()) - 0.05 * haste;
    (
        success.clamp(0.02, 0.98),
        (1.0 + 0.5 * care - 0.3 * haste).max(0.2),
    )
}

/// What nobody knows the price of.
fn unpriced() -> Usage {
    let mut usage = Usage::default();
    usage.add(
        Role::Agent,
        RoleUsage {
            usd: None,
            ..RoleUsage::ZERO
        },
    );
    usage
}

fn unit(seed: u64, salt: u64) -> f64 {
    let mut x = seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Pending for a number of polls that depends on `disorder` and `seed`.
async fn dawdle(disorder: u64, seed: u64) {
    if disorder == 0 {
        return;
    }
    let mut left = (unit(seed, disorder) * 7.0) as u32;
    futures::future::poll_fn(move |context| {
        if left == 0 {
            return std::task::Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl Workload for World {
    fn name(&self) -> &'static str {
        "world"
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }

    fn fingerprint(&self) -> String {
        "world-1".into()
    }

    fn contents(&self, split: Split) -> Option<Vec<String>> {
        Some(self.examples(split).to_vec())
    }

    fn measures_dollars(&self) -> bool {
        self.probe.dollars.get()
    }

    fn description(&self) -> String {
        "Words.".into()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![
            (Role::Agent, 2),
            (Role::Embeddings, u64::from(self.probe.vectors.get())),
        ]
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            dawdle(self.probe.disorder.get(), context.seed).await;
            if let Some((wait, times, retryable)) = self.probe.fail.get() {
                if wait > 0 {
                    self.probe.fail.set(Some((wait - 1, times, retryable)));
                } else {
                    self.probe
                        .fail
                        .set((times > 1).then_some((0, times - 1, retryable)));
                    let error = RolloutError::failed(FailureKind::Tool, retryable, "the tool broke.");
                    return Err(error.after(unpriced()));
                }
            }
            let refusal = self.probe.refuse.borrow().clone();
            if let Some((kind, retryable)) =
                refusal.and_then(|refuse| refuse(context.prompt, context.example))
            {
                return Err(LlmError::failed(kind, retryable, "refused").into());
            }
            // Two calls a rollout, so that a budget of calls can end in the middle of one.
            for _ in 0..2 {
                let messages = vec![Message::system(context.prompt), Message::user(context.example)];
                context.chat(Role::Agent, ChatRequest::new(messages)).await?;
            }
            if self.probe.unscored.get() > 0 {
                self.probe.unscored.set(self.probe.unscored.get() - 1);
                let texts = ChatRequest::new(vec![Message::user("[]")]);
                context.chat(Role::Embeddings, texts).await?;
                let error = RolloutError::failed(FailureKind::Tool, true, "the scorer broke");
                return Err(error.keeping_answers());
            }
            let key = (
                context.prompt.to_owned(),
                context.example.to_owned(),
                context.repeat,
            );
            *self.probe.served.borrow_mut().entry(key).or_default() += 1;
            let (success, effort) = traits(context.prompt);
            let nan = self.probe.nan_on.borrow().as_deref() == Some(context.example);
            let stated = self.probe.effort.borrow().map(|effort| effort(context.example));
            let effort = stated.unwrap_or(effort * (0.6 + 0.8 * unit(context.seed, 2)));
            let mut rollout = Rollout {
                measurements: [
                    (
                        "success".to_owned(),
                        f64::from(u8::from(unit(context.seed, 1) < success)),
                    ),
                    ("effort".to_owned(), if nan { f64::NAN } else { effort }),
                    ("prompt_length".to_owned(), prompt_length(context.prompt)),
                ]
                .into(),
                trace: Trace {
                    messages: vec![Message::user(context.example)],
                    ..Trace::default()
                },
                external_usage: Usage::default(),
            };
            if nan {
                let outside = capo_core::usage::RoleUsage {
                    calls: 3,
                    ..capo_core::usage::RoleUsage::ZERO
                };
                rollout.external_usage.add(Role::Agent, outside);
            }
            if let Some(mood) = self.probe.beside.get() {
                rollout.measurements.insert("mood".into(), mood);
            }
            Ok(rollout)
        }
        .boxed_local()
    }
}

pub struct WorldModels(pub Rc<Probe>);

impl Models for WorldModels {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        Rc::new(WorldModel {
            probe: self.0.clone(),
            role,
        })
    }
}

struct WorldModel {
    probe: Rc<Probe>,
    role: Role,
}

impl Llm for WorldModel {
    fn name(&self) -> &'static str {
        "world"
    }

    fn is_priced(&self) -> bool {
        !self.probe.unpriced.get()
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        async move {
            let seed = request.seed.unwrap_or(0);
            dawdle(self.probe.disorder.get(), seed ^ 0x4D).await;
            self.probe.calls.set(self.probe.calls.get() + 1);
            let due = self
                .probe
                .after_calls
                .borrow_mut()
                .take_if(|(calls, _)| self.probe.calls.get() >= *calls);
            if let Some((_, call)) = due {
                call();
            }
            if self.probe.calls.get() == self.probe.failing_call.get() {
                return Err(LlmError::Failed {
                    kind: FailureKind::RateLimit,
                    message: "slow down".to_owned(),
                    retryable: true,
                    usage: CallUsage::default(),
                });
            }
            let content = match self.role {
                Role::Rewriter => {
                    let Some(Message::User { content }) = request.messages.first() else {
                        unreachable!()
                    };
                    let parent = content
                        .split("<prompt>")
                        .nth(1)
                        .unwrap()
                        .split("</prompt>")
                        .next()
                        .unwrap()
                        .trim();
                    if self.probe.bad_rewrites.get() > 0 {
                        self.probe.bad_rewrites.set(self.probe.bad_rewrites.get() - 1);
                        "I would rather not.".to_owned()
                    } else if self.probe.good_rewrites.get() == Some(0) {
                        "I have said all I know.".to_owned()
                    } else {
                        let left = self.probe.good_rewrites.get();
                        self.probe.good_rewrites.set(left.map(|left| left - 1));
                        let word = ["care", "haste", "care", "filler"][(unit(seed, 3) * 4.0) as usize];
                        format!("<prompt>{parent} {word}</prompt>")
                    }
                }
                _ => "It should take more care.".to_owned(),
            };
            let usage = CallUsage {
                input_tokens: 10,
                output_tokens: 5,
                usd: Some(if self.probe.free.get() { 0.0 } else { 0.001 }),
                seconds: 0.5,
            };
            Ok(ChatResponse {
                message: AssistantMessage {
                    content: Some(content),
                    tool_calls: Vec::new(),
                },
                finish: Finish::Stop,
                usage,
                failed_tries: None,
            })
        }
        .boxed_local()
    }
}

/// A study of the world; `extra` is appended to the file, `constraint` replaces the usual one.
pub fn study(seed: u64, method: &str, constraint: &str, extra: &str) -> Study {
    let text = format!(
        "[study]\nname = \"world\"\nmethod = \"{method}\"\nseed = {seed}\n\
         [workload]\nkind = \"world\"\n[prompt]\ntext = \"Act.\"\n[objective]\nmetric = \"success\"\n\
         {constraint}\n[models.agent]\nprovider = \"world\"\n{extra}\n"
    );
    Study::parse(&text, Format::Toml).unwrap()
}

pub const EFFORT: &str = "[[constraint]]\nmetric = \"effort\"\nthreshold = 1.6\n";

pub fn problem(study: Study, probe: &Rc<Probe>) -> Problem {
    Problem::new(study, vec![Rc::new(World::new(probe))]).unwrap()
}

/// Runs a study over a store whose lines so far are given.
pub fn run_over(
    study: Study,
    probe: &Rc<Probe>,
    store: Box<dyn JournalStore>,
    lines: Vec<String>,
    options: RunOptions,
) -> Result<Outcome, RunError> {
    let numbered = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| Ok((index as u64, line)));
    let journal = Journal::open(store, numbered)?;
    block_on(optimize(
        problem(study, probe),
        journal,
        Rc::new(WorldModels(probe.clone())),
        options,
    ))
}

/// Runs a study in memory from the start; gives the outcome and the journal's lines.
pub fn run(study: Study, probe: &Rc<Probe>) -> (Outcome, Vec<String>) {
    resume(study, probe, Vec::new(), RunOptions::default())
}

/// Runs a study over the given lines.
pub fn resume(
    study: Study,
    probe: &Rc<Probe>,
    lines: Vec<String>,
    options: RunOptions,
) -> (Outcome, Vec<String>) {
    let store = MemoryJournal::from_lines(lines.clone());
    let outcome = run_over(study, probe, Box::new(store.clone()), lines, options).unwrap();
    let lines = store.lines().to_vec();
    (outcome, lines)
}

pub fn events(lines: &[String]) -> Vec<Event> {
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
