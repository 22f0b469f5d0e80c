//! The model object.

use capo_core::llm::{
    AgentScript, AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError,
    Message, ToolSpec,
};
use futures::future::{LocalBoxFuture, ready};

use super::agent::Instructed;
use super::answer_form::AnswerForm;
use super::memory::Memory;
use super::parameters::{MODELS, Parameters};
use super::random::{Draw, hash_text};
use super::router::{self, Part};
use super::{critic, judge, quoted, request, review, rewriter, tau2_customer, text, vary, vectors};

/// What the first prompt of somebody who has none is made from.
const SCRATCH: &str = "Help the user with their request.";

/// A simulated model.
///
/// ```
/// use capo_core::llm::{ChatRequest, Llm, Message};
/// use capo_world::simulated::Simulated;
///
/// let model = Simulated::new("sim-medium", 0)?;
/// let request = ChatRequest::new(vec![Message::user("How many times does the letter \"r\" occur in \"strawberry\"?")]);
/// let answer = futures::executor::block_on(model.chat(request)).unwrap();
/// assert!(!answer.message.text().is_empty());
/// assert!(answer.usage.usd.is_some());
/// # Ok::<(), capo_world::simulated::UnknownModel>(())
/// ```
#[derive(Debug)]
pub struct Simulated {
    name: String,
    parameters: &'static Parameters,
    draw: Draw,
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
    /// The model of that name (`sim-small`, `sim-medium`, `sim-large`), with random draws of its own for every
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
            draw: Draw::new(seed),
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
        self.respond(request, None)
    }

    fn respond(
        &self,
        request: &ChatRequest,
        script: Option<&dyn AgentScript>,
    ) -> Result<ChatResponse, LlmError> {
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
        if script.is_none() && router::is_beyond(request) {
            return Err(LlmError::failed(
                FailureKind::Provider,
                false,
                format!(
                    "{}: the simulated models play the agent of the tau2 domains in Capo's own runs only, where they \
                     know what solves a task",
                    self.name
                ),
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
        // Requests of one seed share their draws; without a seed, those that begin alike do.
        let seed = request
            .seed
            .unwrap_or_else(|| hash_text(router::first_user(request)));
        let draw = self.draw.keyed(seed);
        if let Some(texts) = request.texts() {
            let (wrote_nothing, draw) = (AssistantMessage::default(), draw.at(request.messages.len()));
            return Ok(ChatResponse {
                message: AssistantMessage {
                    content: Some(vectors::of(&texts)),
                    tool_calls: Vec::new(),
                },
                finish: Finish::Stop,
                usage: self.usage(input_tokens, &wrote_nothing, draw),
                failed_tries: None,
            });
        }
        let message = match script {
            Some(script) => script.next(request, self.parameters.name, draw.named("agent").key()),
            None => self.message(request, draw),
        };
        let finish = if message.tool_calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        };
        let usage = self.usage(input_tokens, &message, draw.at(request.messages.len()));
        Ok(ChatResponse {
            message,
            finish,
            usage,
            failed_tries: None,
        })
    }

    fn message(&self, request: &ChatRequest, draw: Draw) -> AssistantMessage {
        let said = |text: String| AssistantMessage {
            content: Some(text),
            tool_calls: Vec::new(),
        };
        let instruction = router::first_user(request);
        let part = router::part(request);
        match part {
            Part::Agent => {
                let instructed = self.instructed(request::system(request));
                self.memory.with_notes(&request.messages, |notes| {
                    instructed.act(notes, &request.tools, draw.named("agent"))
                })
            }
            Part::Caller => tau2_customer::speak(request),
            Part::Answer => {
                let instructed = self.instructed(request::system(request));
                let reply = instructed.reply(request::last_user(request), draw.named("answer"));
                said(match AnswerForm::of(request) {
                    form @ (AnswerForm::Fields(_) | AnswerForm::Object(_)) => form.write(&[reply]),
                    _ => reply,
                })
            }
            Part::User => said(super::user::speak(request::system(request), &request.messages)),
            Part::Judge => said(judge::answer(
                &format!("{}\n{instruction}", request::system(request)),
                self.parameters,
                draw,
            )),
            Part::Checker => said(match judge::statements(instruction) {
                Some((conversation, statements)) => {
                    judge::check(conversation, statements, self.parameters, draw)
                }
                None => "I find no statements to check.".to_owned(),
            }),
            Part::Critic => said(match review::read(request::system(request), instruction) {
                Some(review) => {
                    let text = critic::answer(&review, self.parameters, draw);
                    match AnswerForm::of(request) {
                        // Evidence may end with anything; who states measurements asks for plain text.
                        _ if review.is_measured => text,
                        form @ AnswerForm::Tags { .. } => {
                            form.write(&critic::reasons(&text, AnswerForm::count(request)))
                        }
                        form => form.write(&[text]),
                    }
                }
                None => "I find no prompt to review.".to_owned(),
            }),
            Part::Rewriter => {
                // Asked once more after an unusable answer, the draw is another.
                let draw = draw.at(request.messages.len());
                said(self.rewritten(request, draw))
            }
            Part::Crossover | Part::Paraphrase | Part::Mutation => said(vary_prompt(request, part, draw)),
        }
    }

    /// New prompts, as many as are asked for. Where the first one is wanted they start from [`SCRATCH`].
    fn rewritten(&self, request: &ChatRequest, draw: Draw) -> String {
        let instruction = router::first_user(request);
        let review = if router::wants_first_prompt(instruction) {
            Some(review::Review::of(SCRATCH, instruction))
        } else {
            review::read(request::system(request), instruction)
        };
        let Some(mut review) = review else {
            return "I find no prompt to rewrite.".to_owned();
        };
        // Who states measurements asks for one prompt, whatever numbers its evidence ends with.
        let count = if review.is_measured {
            1
        } else {
            AnswerForm::count(request)
        };
        let mut prompts = Vec::new();
        for _ in 0..count {
            let rewrite = rewriter::rewrite(&review, self.parameters, draw);
            if rewrite.forgets_form {
                return format!("Here is the new version:\n\n{}", rewrite.prompt);
            }
            prompts.push(rewrite.prompt);
            review.variant = review.variant.saturating_add(1);
        }
        AnswerForm::of(request).write(&prompts)
    }

    fn instructed(&self, system: &str) -> std::rc::Rc<Instructed> {
        self.memory
            .instructed(system, || Instructed::read(system, self.parameters))
    }

    fn usage(&self, input_tokens: u64, message: &AssistantMessage, draw: Draw) -> CallUsage {
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
            * (0.8 + 0.4 * draw.named("latency").uniform());
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
        Box::pin(ready(self.respond(&request, None)))
    }

    fn act<'a>(
        &'a self,
        request: ChatRequest,
        script: &'a dyn AgentScript,
    ) -> LocalBoxFuture<'a, Result<ChatResponse, LlmError>> {
        Box::pin(ready(self.respond(&request, Some(script))))
    }
}

/// Crossover, paraphrase and mutation: the prompts stand in tags or after labels.
fn vary_prompt(request: &ChatRequest, part: Part, draw: Draw) -> String {
    let needed = if part == Part::Crossover { 2 } else { 1 };
    let prompts = quoted::prompts(needed, request::system(request), router::first_user(request));
    let vary = |draw: Draw| match (part, &prompts[..]) {
        (Part::Crossover, [first, second, others @ ..]) => {
            let child = vary::cross(first, second, draw);
            Some(
                others
                    .iter()
                    .fold(child, |child, other| vary::cross(&child, other, draw)),
            )
        }
        (Part::Paraphrase, [first, ..]) => Some(vary::paraphrase(first, draw)),
        (_, [first, ..]) => Some(vary::mutate(first, draw)),
        (_, []) => None,
    };
    let Some(first) = vary(draw) else {
        return "I find no prompt between <prompt> and </prompt> or after \"Prompt:\".".to_owned();
    };
    let others = (1..AnswerForm::count(request)).filter_map(|index| vary(draw.at(index)));
    let varied: Vec<String> = std::iter::once(first).chain(others).collect();
    AnswerForm::of(request).write(&varied)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_labelled_crossover_is_answered_with_a_prompt() {
        let request = ChatRequest::new(vec![Message::user(
            "Crossover these prompts.\nPrompt 1: Be brief.\n- Never repeat a call.\nPrompt 2: Ask before you change anything.\n",
        )]);
        let child = vary_prompt(&request, Part::Crossover, Draw::new(1));
        assert!(child.starts_with("Be brief."), "{child}");
    }
}
