//! The model object.

use capo_core::llm::{
    AgentScript, AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, Llm, LlmError,
    Message, ToolSpec,
};
use futures::future::{LocalBoxFuture, ready};

use super::agent::Instructed;
use super::memory::Memory;
use super::parameters::{MODELS, Parameters};
use super::random::{Draw, hash_text};
use super::router::{self, Part};
use super::{critic, judge, request, review, rewriter, tau2_customer, text, vary};

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
        match router::part(request) {
            Part::Agent => {
                let instructed = self.instructed(request::system(request));
                self.memory.with_notes(&request.messages, |notes| {
                    instructed.act(notes, &request.tools, draw.named("agent"))
                })
            }
            Part::Caller => tau2_customer::speak(request),
            Part::Answer => {
                let instructed = self.instructed(request::system(request));
                said(instructed.reply(request::last_user(request), draw.named("answer")))
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
            Part::Critic => said(match review::read(instruction) {
                Some(review) => critic::answer(&review, self.parameters, draw),
                None => "I find no prompt to review between <prompt> and </prompt>.".to_owned(),
            }),
            Part::Rewriter => {
                // Asked once more after an unusable answer, the draw is another.
                let draw = draw.at(request.messages.len());
                said(match review::read(instruction) {
                    Some(review) => rewriter::answer(&review, self.parameters, draw),
                    None => "I find no prompt to rewrite between <prompt> and </prompt>.".to_owned(),
                })
            }
            Part::Crossover | Part::Paraphrase | Part::Mutation => {
                said(vary_prompt(router::part(request), instruction, draw))
            }
        }
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
fn vary_prompt(part: Part, instruction: &str, draw: Draw) -> String {
    let prompts = prompts(part, instruction);
    let prompt = match (part, &prompts[..]) {
        (Part::Crossover, [first, second, ..]) => vary::cross(first, second, draw),
        (Part::Paraphrase, [first, ..]) => vary::paraphrase(first, draw),
        (_, [first, ..]) => vary::mutate(first, draw),
        (_, []) => {
            return "I find no prompt between <prompt> and </prompt> or after \"Prompt:\".".to_owned();
        }
    };
    format!("<prompt>\n{prompt}\n</prompt>")
}

/// The prompts a request quotes: in numbered or plain tags, or else after labels.
fn prompts(part: Part, instruction: &str) -> Vec<&str> {
    let tagged = tagged_prompts(instruction);
    // A crossover needs two; a single prompt in tags beside labels is one made earlier, shown as an
    // example.
    if tagged.len() >= 2 || (part != Part::Crossover && !tagged.is_empty()) {
        return tagged;
    }
    let labelled = labelled_prompts(instruction);
    if labelled.len() > tagged.len() {
        labelled
    } else {
        tagged
    }
}

/// The prompts in tags.
fn tagged_prompts(instruction: &str) -> Vec<&str> {
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

/// The prompts after labels such as `Prompt 1:`, up to the next label or step of the instruction. A
/// label that comes again, as after an example, counts where it stands last.
fn labelled_prompts(instruction: &str) -> Vec<&str> {
    let mut found: Vec<(String, &str)> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    let mut offset = 0;
    for line in instruction.split_inclusive('\n') {
        let label = Label::of(line);
        if label.is_some()
            && let Some((name, start)) = open.take()
        {
            note(&mut found, name, instruction[start..offset].trim());
        }
        if let Some(Label::Prompt { name, length }) = label {
            open = Some((name, offset + length));
        }
        offset += line.len();
    }
    if let Some((name, start)) = open {
        note(&mut found, name, instruction[start..].trim());
    }
    found.into_iter().map(|(_, prompt)| prompt).collect()
}

/// Keeps a prompt under its label's name, in place of an earlier one.
fn note<'a>(found: &mut Vec<(String, &'a str)>, name: String, prompt: &'a str) {
    if !prompt.is_empty() {
        found.retain(|(known, _)| *known != name);
        found.push((name, prompt));
    }
}

/// A line that begins a part of a request.
enum Label {
    /// A prompt follows after `length` bytes of the line.
    Prompt { name: String, length: usize },
    /// Something else follows.
    Other,
}

impl Label {
    fn of(line: &str) -> Option<Self> {
        let lower = line.to_lowercase();
        // "2. Mutate the prompt generated in step 1"
        let step = lower
            .split_once(". ")
            .is_some_and(|(number, _)| number.trim().parse::<u8>().is_ok());
        if step && lower.contains("prompt") {
            return Some(Self::Other);
        }
        let length = line.find(':')? + 1;
        let before = line[..length].to_lowercase();
        let words: Vec<&str> = before
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let of_prompt = |word: &&str| {
            matches!(
                *word,
                "prompt" | "parent" | "first" | "second" | "basic" | "original" | "current" | "a" | "b"
            ) || word.parse::<u8>().is_ok()
        };
        if !words
            .iter()
            .any(|word| matches!(*word, "prompt" | "parent" | "output"))
            || words.len() > 4
        {
            None
        } else if words.iter().all(of_prompt) {
            Some(Self::Prompt {
                name: words.join(" "),
                length,
            })
        } else {
            Some(Self::Other)
        }
    }
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

    const BRIEF: &str = "Be brief.\n- Never repeat a call.";
    const CAREFUL: &str = "Ask before you change anything.";

    #[test]
    fn prompts_are_found_in_tags_and_after_labels() {
        for (part, request) in [
            (
                Part::Crossover,
                format!("Combine both.\n<prompt>{BRIEF}</prompt>\n<prompt>{CAREFUL}</prompt>"),
            ),
            (
                Part::Crossover,
                format!(
                    "1. Crossover the following prompts and generate a new prompt:\nPrompt 1: {BRIEF}\nPrompt 2: {CAREFUL}\n2. Mutate the prompt generated in step 1 and put it between <prompt> and </prompt>."
                ),
            ),
            (
                Part::Crossover,
                format!(
                    "Crossover the prompts:\nPrompt 1: Sing.\nPrompt 2: Dance.\nNew prompt: <prompt>Sing and dance.</prompt>\n\nCrossover the prompts:\nPrompt 1: {BRIEF}\nPrompt 2: {CAREFUL}\nNew prompt:"
                ),
            ),
            (
                Part::Crossover,
                format!("Merge the two.\n\n## First parent:\n{BRIEF}\n\n## Second parent:\n{CAREFUL}\n"),
            ),
        ] {
            assert_eq!(prompts(part, &request), [BRIEF, CAREFUL], "{request}");
        }
        let one = format!("Paraphrase the prompt.\nPrompt: {BRIEF}\nOutput:");
        assert_eq!(prompts(Part::Paraphrase, &one), [BRIEF]);
        let tagged = format!("Paraphrase this prompt:\n<prompt>\n{BRIEF}\n</prompt>");
        assert_eq!(prompts(Part::Paraphrase, &tagged), [BRIEF]);
        assert_eq!(prompts(Part::Mutation, "Mutate the prompt."), [""; 0]);
    }

    #[test]
    fn a_labelled_crossover_is_answered_with_a_prompt() {
        let request = format!("Crossover these prompts.\nPrompt 1: {BRIEF}\nPrompt 2: {CAREFUL}\n");
        let answer = vary_prompt(Part::Crossover, &request, Draw::new(1));
        let child = review::block(&answer, "prompt").unwrap();
        assert!(child.starts_with("Be brief."), "{answer}");
    }
}
