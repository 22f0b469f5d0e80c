// A whole world on one page, for tests and (included) for examples in the documentation: customers
// ask about a parcel or a refund, and the agent hands over to a person whatever its prompt does not
// speak of. A prompt that names both topics answers everybody.

use std::rc::Rc;

use capo_core::arena::Models;
use capo_core::llm::{CallUsage, ChatRequest, ChatResponse, Finish, Llm, LlmError, Message, Role};
use capo_core::metric::{MetricSpec, prompt_length};
use capo_core::problem::Problem;
use capo_core::study::{Format, Study, StudyError};
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

pub const STUDY: &str = r#"
[study]
name = "two topics"
rounds = 2

[workload]
kind = "questions"

[prompt]
text = "You answer customers."

[objective]
metric = "success"

[[constraint]]
metric = "handovers"
relative_to_seed = 0.25

[models.agent]
provider = "tiny"

[method]
parents = 2
children = 1
"#;

pub fn problem(study: &str) -> Result<Problem, StudyError> {
    Problem::new(
        Study::parse(study, Format::Toml)?,
        vec![Rc::new(Questions::new())],
    )
}

pub struct Questions {
    metrics: [MetricSpec; 3],
    optimize: [String; 2],
    evaluate: [String; 2],
}

impl Questions {
    pub fn new() -> Self {
        Self {
            metrics: [
                MetricSpec::objective("success", "The agent answered."),
                MetricSpec::event("handovers", "rate", "The agent handed over to a person."),
                MetricSpec::prompt_length(),
            ],
            optimize: ["parcel 1", "refund 1"].map(Into::into),
            evaluate: ["parcel 2", "refund 2"].map(Into::into),
        }
    }
}

impl Workload for Questions {
    fn name(&self) -> &'static str {
        "questions"
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
        "An agent that answers customers of a shop.".into()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![(Role::Agent, 1)]
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            let question = Message::user(format!("I ask about {}.", context.example));
            let messages = vec![Message::system(context.prompt), question.clone()];
            let answer = context
                .chat(Role::Agent, ChatRequest::new(messages))
                .await?
                .message;
            let handed_over = f64::from(u8::from(answer.text().starts_with("Handing over")));
            Ok(Rollout {
                measurements: [
                    ("success".to_owned(), 1.0 - handed_over),
                    ("handovers".to_owned(), handed_over),
                    ("prompt_length".to_owned(), prompt_length(context.prompt)),
                ]
                .into(),
                trace: Trace {
                    messages: vec![question, Message::Assistant(answer)],
                    ..Trace::default()
                },
                external_usage: Usage::default(),
            })
        }
        .boxed_local()
    }
}

// One model for every role.
pub struct Tiny;

impl Models for Tiny {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        Rc::new(TinyModel(role))
    }
}

struct TinyModel(Role);

impl Llm for TinyModel {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let text: String = request.messages.iter().map(said).collect::<Vec<_>>().join("\n");
        let answer = match self.0 {
            Role::Critic => format!("It should look up every {}.", topic(&text, "## Evidence")),
            Role::Rewriter => {
                let parent = between(&text, "<prompt>", "</prompt>").unwrap_or_default().trim();
                let topic = topic(&text, "## Feedback");
                format!("<prompt>{parent} Look up every {topic}.</prompt>")
            }
            _ => match topic(&text, "I ask about ") {
                topic if text.matches(topic).count() > 1 => format!("Your {topic} is on its way."),
                _ => "Handing over to a person.".into(),
            },
        };
        let usage = CallUsage {
            input_tokens: text.split_whitespace().count() as u64,
            output_tokens: answer.split_whitespace().count() as u64,
            usd: Some(0.0),
            seconds: 0.5,
        };
        let Message::Assistant(message) = Message::assistant(answer) else {
            unreachable!("`assistant` makes an assistant's message")
        };
        let finish = Finish::Stop;
        ready(Ok(ChatResponse {
            message,
            finish,
            usage,
            failed_tries: None,
        }))
        .boxed_local()
    }
}

fn said(message: &Message) -> &str {
    match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => content,
        Message::Assistant(answer) => answer.text(),
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    Some(text.split_once(start)?.1.split_once(end)?.0)
}

// The topic that comes first after `heading`.
fn topic(text: &str, heading: &str) -> &'static str {
    let after = text.split_once(heading).map_or("", |(_, after)| after);
    let place = |topic| after.find(topic).unwrap_or(usize::MAX);
    if place("refund") < place("parcel") {
        "refund"
    } else {
        "parcel"
    }
}
