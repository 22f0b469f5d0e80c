//! The model object.

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError, Message,
    ToolSpec,
};
use futures::future::{LocalBoxFuture, ready};

use super::agent::Instructed;
use super::luck::{Luck, hash_text};
use super::memory::Memory;
use super::parameters::{MODELS, Parameters};
use super::router::{self, Part};
use super::{critic, judge, review, rewriter, text, vary};

/// A simulated model.
///
/// ```
/// use capo_core::llm::{ChatRequest, Llm, Message};
/// use capo_models::simulated::Simulated;
///
/// let model = Simulated::new("sim-medium", 0)?;
/// let request = ChatRequest::new(vec![Message::user("Tom has 3 apples and buys 4 more. How many apples does he have?")]);
/// let answer = futures::executor::block_on(model.chat(request)).unwrap();
/// assert!(!answer.message.text().is_empty());
/// assert!(answer.usage.usd.is_some());
/// # Ok::<(), capo_models::simulated::UnknownModel>(())
/// ```
#[derive(Debug)]
pub struct Simulated {
    name: String,
    parameters: &'static Parameters,
    luck: Luck,
    memory: Memory,
}

/// There is no simulated model of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no simulated model `{name}`; there are {known}")]
pub struct UnknownModel {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub known: String,
}

impl Simulated {
    /// The model of that name (`sim-small`, `sim-medium`, `sim-large`), with its own luck for every
    /// seed.
    ///
    /// # Errors
    /// When there is no such model.
    pub fn new(name: &str, seed: u64) -> Result<Self, UnknownModel> {
        let Some(parameters) = Parameters::named(name) else {
            let known: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            return Err(UnknownModel {
                name: name.to_owned(),
                known: known.join(", "),
            });
        };
        Ok(Self {
            name: format!("simulated/{name}"),
            parameters,
            luck: Luck::new(seed),
            memory: Memory::default(),
        })
    }

    /// What the model is like.
    pub fn parameters(&self) -> &'static Parameters {
        self.parameters
    }

    /// Answers a request, at once and without waiting: [`Llm::chat`] without its future.
    ///
    /// # Errors
    /// When the request holds no message or does not fit the context window.
    pub fn answer(&self, request: &ChatRequest) -> Result<ChatResponse, LlmError> {
        if !request
            .messages
            .iter()
            .any(|message| !matches!(message, Message::System { .. }))
        {
            return Err(LlmError::failed(
                FailureKind::Malformed,
                false,
                format!("{}: the request holds no message to answer", self.name),
            ));
        }
        let input_tokens =
            message_tokens(&request.messages) + self.memory.tool_tokens(&request.tools, tool_tokens);
        if input_tokens > self.parameters.context_window {
            return Err(LlmError::failed(
                FailureKind::ContextLength,
                false,
                format!(
                    "{}: the request has about {input_tokens} tokens and the model reads {}; shorten the prompt or choose a larger model",
                    self.name, self.parameters.context_window
                ),
            ));
        }
        // Requests of one seed share their luck; without a seed, those that begin alike do.
        let seed = request
            .seed
            .unwrap_or_else(|| hash_text(router::first_user(request)));
        let luck = self.luck.keyed(seed);
        let message = self.message(request, luck);
        let finish = if message.tool_calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        };
        let usage = self.usage(input_tokens, &message, luck.at(request.messages.len()));
        Ok(ChatResponse {
            message,
            finish,
            usage,
        })
    }

    fn message(&self, request: &ChatRequest, luck: Luck) -> AssistantMessage {
        let said = |text: String| AssistantMessage {
            content: Some(text),
            tool_calls: Vec::new(),
        };
        let instruction = router::first_user(request);
        match router::part(request) {
            Part::Agent => {
                let instructed = self.instructed(router::system(request));
                self.memory.with_notes(&request.messages, |notes| {
                    instructed.act(notes, &request.tools, luck.named("agent"))
                })
            }
            Part::Answer => {
                let instructed = self.instructed(router::system(request));
                said(instructed.reply(router::last_user(request), luck.named("answer")))
            }
            Part::User => said(super::user::speak(router::system(request), &request.messages)),
            Part::Judge => said(judge::answer(
                &format!("{}\n{instruction}", router::system(request)),
                self.parameters,
                luck,
            )),
            Part::Critic => said(match review::read(instruction) {
                Some(review) => critic::answer(&review, self.parameters, luck),
                None => "I find no prompt to review between <prompt> and </prompt>.".to_owned(),
            }),
            Part::Rewriter => {
                // Asked once more after an unusable answer, the luck is another.
                let luck = luck.at(request.messages.len());
                said(match review::read(instruction) {
                    Some(review) => rewriter::answer(&review, self.parameters, luck),
                    None => "I find no prompt to rewrite between <prompt> and </prompt>.".to_owned(),
                })
            }
            Part::Crossover | Part::Paraphrase | Part::Mutation => {
                said(vary_prompt(router::part(request), instruction, luck))
            }
        }
    }

    fn instructed(&self, system: &str) -> std::rc::Rc<Instructed> {
        self.memory
            .instructed(system, || Instructed::read(system, self.parameters))
    }

    fn usage(&self, input_tokens: u64, message: &AssistantMessage, luck: Luck) -> CallUsage {
        let calls = message
            .tool_calls
            .iter()
            .map(|call| text::tokens(&call.name) + argument_tokens(&call.arguments) + 4);
        let output_tokens = text::tokens(message.text()) + calls.sum::<u64>();
        let model = self.parameters;
        let usd = (input_tokens as f64 * model.usd_per_million_input
            + output_tokens as f64 * model.usd_per_million_output)
            / 1e6;
        // Reading is a hundred times as fast as writing; some answers take longer than others.
        let seconds = (model.seconds_to_start
            + output_tokens as f64 / model.tokens_per_second
            + input_tokens as f64 / (100.0 * model.tokens_per_second))
            * (0.8 + 0.4 * luck.named("latency").uniform());
        CallUsage {
            input_tokens,
            output_tokens,
            usd: Some(usd),
            seconds,
        }
    }
}

impl Llm for Simulated {
    fn name(&self) -> &str {
        &self.name
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        Box::pin(ready(self.answer(&request)))
    }
}

/// Crossover, paraphrase and mutation: the prompts stand in tags or after labels.
fn vary_prompt(part: Part, instruction: &str, luck: Luck) -> String {
    let prompts = prompts(instruction);
    let prompt = match (part, &prompts[..]) {
        (Part::Crossover, [first, second, ..]) => vary::cross(first, second, luck),
        (Part::Paraphrase, [first, ..]) => vary::paraphrase(first, luck),
        (_, [first, ..]) => vary::mutate(first, luck),
        (_, []) => return "I find no prompt between <prompt> and </prompt>.".to_owned(),
    };
    format!("<prompt>\n{prompt}\n</prompt>")
}

/// The prompts a request quotes: in numbered or plain tags.
fn prompts(instruction: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for tag in [
        "prompt", "prompt1", "prompt2", "prompt_1", "prompt_2", "parent", "parent1", "parent2", "first",
        "second",
    ] {
        // "between <prompt> and </prompt>" quotes no prompt.
        found.extend(
            review::blocks(instruction, tag)
                .into_iter()
                .filter(|text| !matches!(text.trim(), "" | "and")),
        );
    }
    found
}

/// Tokens of messages, with a few for the role of each.
fn message_tokens(messages: &[Message]) -> u64 {
    let count = |message: &Message| {
        4 + match message {
            Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
                text::tokens(content)
            }
            Message::Assistant(answer) => {
                let calls = answer
                    .tool_calls
                    .iter()
                    .map(|call| text::tokens(&call.name) + argument_tokens(&call.arguments));
                text::tokens(answer.text()) + calls.sum::<u64>()
            }
        }
    };
    messages.iter().map(count).sum()
}

/// Tokens of the tools on offer.
fn tool_tokens(tools: &[ToolSpec]) -> u64 {
    let count = |tool: &ToolSpec| {
        8 + text::tokens(&tool.name) + text::tokens(&tool.description) + argument_tokens(&tool.parameters)
    };
    tools.iter().map(count).sum()
}

/// Tokens of a JSON value, without writing it out.
fn argument_tokens(value: &serde_json::Value) -> u64 {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text::tokens(text),
        Value::Array(items) => 1 + items.iter().map(argument_tokens).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields
                .iter()
                .map(|(name, value)| 1 + text::tokens(name) + argument_tokens(value))
                .sum::<u64>()
        }
    }
}
