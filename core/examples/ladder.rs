//! The rule ladder: a microbenchmark of the search's own cost.
//!
//! Twenty training and twenty held-out items; item i asks for rule R{i}, and the agent applies it
//! exactly if the system prompt holds `[R{i}]`. Agent and rewriter answer at once, so that what is
//! timed is the search, the journal and the fold. The search goes on until the budget of rollouts
//! is spent. Every rewrite adds the rule that its parent lacks, so that how far a method climbs is known, too.
//!
//! ```text
//! cargo run --release -p capo-core --example ladder -- --rollouts 10000 --journal ladder.jsonl --json
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{FileJournal, Fsync, Journal, MemoryJournal};
use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, Llm, LlmError, Message, Role,
};
use capo_core::metric::{MetricSpec, PROMPT_LENGTH, prompt_length};
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use capo_core::{Outcome, optimize};
use clap::Parser;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

const ITEMS: usize = 20;
const SEED_PROMPT: &str = "You are a helpful assistant.";

/// Climbs the rule ladder until the budget is spent.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Rollouts to make in all, exactly.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rollouts: u64,
    /// How it searches.
    #[arg(long, default_value = "capo")]
    pub(crate) method: String,
    /// Journal to write, or to resume when it exists; in memory when left out.
    #[arg(long)]
    pub(crate) journal: Option<PathBuf>,
    /// Seed of the search.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Constrains the prompt to at most so many characters, such as 88.
    #[arg(long)]
    pub(crate) characters: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Climbs.
pub(crate) fn climb(arguments: &Arguments) -> Result<Outcome, Box<dyn std::error::Error>> {
    let study = Study::parse(&study_file(arguments), Format::Toml)?;
    let problem = Problem::new(study, vec![Rc::new(Ladder::new())])?;
    let journal = match &arguments.journal {
        Some(path) => FileJournal::open(path, Fsync::Rounds)?,
        None => Journal::create(Box::new(MemoryJournal::new())),
    };
    let running = optimize(problem, journal, Rc::new(InstantModels), RunOptions::default());
    Ok(futures::executor::block_on(running)?)
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let outcome = climb(arguments)?;
    let (finished, state) = (&outcome.finished, outcome.journal.state());
    let best = finished.best.and_then(|best| finished.final_scores.get(&best));
    let result = serde_json::json!({
        "rollouts": state.rollouts().count(),
        "candidates": state.candidates().len(),
        "best_objective": best.map(|score| score.objective),
        "seconds": started.elapsed().as_secs_f64(),
        "rounds": state.rounds().len(),
        "status": finished.status,
    });
    if arguments.json {
        return Ok(result.to_string());
    }
    let objective = best.map_or("unknown".into(), |score| format!("{:.3}", score.objective));
    Ok(format!(
        "{} rollouts, {} candidates, {} rounds, best objective {objective}, {:.3} s",
        result["rollouts"],
        result["candidates"],
        result["rounds"],
        started.elapsed().as_secs_f64(),
    ))
}

fn study_file(arguments: &Arguments) -> String {
    let constraint = arguments.characters.map_or(String::new(), |characters| {
        format!(
            "[[constraint]]\nmetric = \"{PROMPT_LENGTH}\"\nthreshold = {}\n",
            f64::from(characters) / 1000.0
        )
    });
    format!(
        "[study]\nname = \"rule ladder\"\nmethod = \"{}\"\nseed = {}\nrounds = \"until-budget\"\n\
         [workload]\nkind = \"ladder\"\n[prompt]\ntext = \"{SEED_PROMPT}\"\n\
         [objective]\nmetric = \"success\"\n{constraint}[models.agent]\nprovider = \"instant\"\n\
         [feedback]\nform = \"trajectory\"\n[budget]\nrollouts = {}\n",
        arguments.method, arguments.seed, arguments.rollouts
    )
}

struct Ladder {
    metrics: [MetricSpec; 2],
    optimize: Vec<String>,
    evaluate: Vec<String>,
}

impl Ladder {
    fn new() -> Self {
        let inputs = |split: &str| {
            (0..ITEMS)
                .map(|item| format!("{split} item {item}: apply rule R{item:02}"))
                .collect()
        };
        Self {
            metrics: [
                MetricSpec::objective("success", "The right rule was applied."),
                MetricSpec::prompt_length(),
            ],
            optimize: inputs("train"),
            evaluate: inputs("held-out"),
        }
    }
}

impl Workload for Ladder {
    fn name(&self) -> &'static str {
        "ladder"
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
        String::new()
    }

    fn description(&self) -> String {
        "An assistant that applies numbered rules.".into()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![(Role::Agent, 1)]
    }

    /// The example's id is its input.
    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            let messages = vec![Message::system(context.prompt), Message::user(context.example)];
            let response = context.chat(Role::Agent, ChatRequest::new(messages)).await?;
            let gold = rule(context.example).map(|rule| format!("OK-{rule}"));
            let success = gold.as_deref() == Some(response.message.text());
            let outcome = if success {
                String::new()
            } else {
                format!("expected {}", gold.unwrap_or_default())
            };
            Ok(Rollout {
                measurements: [
                    ("success".to_owned(), f64::from(u8::from(success))),
                    (PROMPT_LENGTH.to_owned(), prompt_length(context.prompt)),
                ]
                .into(),
                trace: Trace {
                    messages: vec![
                        Message::user(context.example),
                        Message::Assistant(response.message),
                    ],
                    outcome,
                    details: serde_json::Value::Null,
                },
                external_usage: capo_core::usage::Usage::default(),
            })
        }
        .boxed_local()
    }
}

/// The two digits of the first `R..` in a text.
fn rule(text: &str) -> Option<&str> {
    text.match_indices('R')
        .filter_map(|(at, _)| text.get(at + 1..at + 3))
        .find(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The agent and the rewriter, both answering at once.
struct InstantModels;

impl Models for InstantModels {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        match role {
            Role::Rewriter => Rc::new(Rewriter),
            _ => Rc::new(Agent),
        }
    }
}

struct Agent;

impl Llm for Agent {
    fn name(&self) -> &'static str {
        "instant/agent"
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let text = |wanted: fn(&Message) -> Option<&String>| {
            request.messages.iter().find_map(wanted).map_or("", |text| text)
        };
        let system = text(|message| {
            if let Message::System { content } = message {
                Some(content)
            } else {
                None
            }
        });
        let user = text(|message| {
            if let Message::User { content } = message {
                Some(content)
            } else {
                None
            }
        });
        let answer = match rule(user) {
            Some(rule) if system.contains(&format!("[R{rule}]")) => format!("OK-{rule}"),
            _ => "NO".to_owned(),
        };
        answered(answer)
    }
}

/// Adds the first failed rule of the feedback that the prompt does not hold yet.
struct Rewriter;

impl Llm for Rewriter {
    fn name(&self) -> &'static str {
        "instant/rewriter"
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let Some(Message::User { content }) = request.messages.first() else {
            return answered(String::new());
        };
        let parent = content
            .split_once("<prompt>")
            .and_then(|(_, rest)| rest.split_once("</prompt>"))
            .map_or("", |(parent, _)| parent.trim());
        let feedback = content
            .split_once("## Feedback")
            .map_or("", |(_, feedback)| feedback);
        let missing = feedback
            .match_indices("apply rule R")
            .filter_map(|(at, found)| rule(&feedback[at + found.len() - 1..]))
            .find(|rule| !parent.contains(&format!("[R{rule}]")));
        answered(match missing {
            Some(rule) => format!("<prompt>{parent} [R{rule}]</prompt>"),
            None => format!("<prompt>{parent}</prompt>"),
        })
    }
}

fn answered(content: String) -> LocalBoxFuture<'static, Result<ChatResponse, LlmError>> {
    ready(Ok(ChatResponse {
        message: AssistantMessage {
            content: Some(content),
            tool_calls: Vec::new(),
        },
        finish: Finish::Stop,
        usage: CallUsage {
            usd: Some(0.0),
            ..CallUsage::default()
        },
        failed_tries: None,
    }))
    .boxed_local()
}
