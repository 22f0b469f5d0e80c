//! One dialogue from the customer's first words to its end.

use std::rc::Rc;

use capo_core::llm::{ChatRequest, Message, Role, ToolCall, ToolSpec};
use capo_core::workload::{RolloutContext, RolloutError};
use serde_json::{Value, json};

use super::language::affirms;
use super::persona::Persona;
use super::policy;
use super::state::{Records, State};
use super::tools::{self, Effect, Write};
use super::user::{STOP, ScriptedUser};

/// The system message: role, candidate prompt, policy.
pub fn frame(prompt: &str) -> String {
    format!(
        "You are the help-desk agent of Ridgeway Cycles. You talk to one customer in a chat and act through \
         your tools. Follow the instructions and the policy below.\n\n<instructions>\n{prompt}\n</instructions>\n\n\
         <policy>\n{}</policy>",
        policy::TEXT
    )
}

/// Who answers the agent.
pub enum Customer<'a> {
    /// The task's script.
    Scripted(ScriptedUser<'a>),
    /// A model in the role [`Role::User`].
    Played(Persona),
}

/// A call the agent made, with what the judge needs.
#[derive(Debug)]
pub struct Call {
    /// The tool's name, as the agent wrote it.
    pub tool: String,
    /// The arguments, as the agent wrote them.
    pub arguments: Value,
    /// What it did, or `None` when it was answered by an error.
    pub effect: Option<Effect>,
    /// For a write: whether the customer had agreed to it. For a transfer: whether the customer had
    /// been verified.
    pub cleared: bool,
}

/// Why a dialogue ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The customer was done or had enough.
    Customer,
    /// It was handed to a human.
    Transfer,
    /// The agent used up its steps.
    Steps,
}

/// A finished dialogue.
#[derive(Debug)]
pub struct Dialogue {
    /// All messages but the system message.
    pub messages: Vec<Message>,
    /// All calls of tools, in order.
    pub calls: Vec<Call>,
    /// The shop at the end.
    pub state: State,
    /// Why it ended.
    pub end: End,
    /// Seconds of the agent's model calls.
    pub seconds: f64,
}

impl Dialogue {
    /// The texts the agent sent to the customer, those beside tool calls included.
    pub fn agent_texts(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter_map(|message| match message {
            Message::Assistant(answer) if !answer.text().trim().is_empty() => Some(answer.text()),
            _ => None,
        })
    }
}

/// Has a dialogue under the context's prompt.
///
/// # Errors
/// When a model gives no answer.
pub async fn converse(
    context: RolloutContext<'_>,
    records: Rc<Records>,
    tools: Rc<[ToolSpec]>,
    mut customer: Customer<'_>,
    max_steps: u32,
) -> Result<Dialogue, RolloutError> {
    let mut counter = Counter {
        state: State::new(records),
        calls: Vec::new(),
    };
    let mut messages = Rc::new(vec![Message::system(frame(context.prompt))]);
    let opening = match &mut customer {
        Customer::Scripted(user) => user.open(),
        Customer::Played(persona) => persona.speak(context, &[]).await?,
    };
    let mut end = if opening.contains(STOP) {
        Some(End::Customer)
    } else {
        None
    };
    Rc::make_mut(&mut messages).push(Message::user(opening));
    let mut seconds = 0.0;
    for _ in 0..max_steps {
        if end.is_some() {
            break;
        }
        let request = ChatRequest {
            messages: Rc::clone(&messages),
            tools: Rc::clone(&tools),
            ..ChatRequest::default()
        };
        let response = context.chat(Role::Agent, request).await?;
        seconds += response.usage.seconds;
        let answer = response.message;
        // The request is gone, so that this copies nothing.
        let said = Rc::make_mut(&mut messages);
        if answer.tool_calls.is_empty() {
            let text = answer.text().to_owned();
            said.push(Message::Assistant(answer));
            let reply = match &mut customer {
                Customer::Scripted(user) => user.reply(&text),
                Customer::Played(persona) => persona.speak(context, said).await?,
            };
            if reply.contains(STOP) {
                end = Some(End::Customer);
            }
            said.push(Message::user(reply));
        } else {
            let calls = answer.tool_calls.clone();
            said.push(Message::Assistant(answer));
            end = counter.serve(calls, said);
        }
    }
    let mut messages = Rc::unwrap_or_clone(messages);
    messages.remove(0);
    Ok(Dialogue {
        messages,
        calls: counter.calls,
        state: counter.state,
        end: end.unwrap_or(End::Steps),
        seconds,
    })
}

/// The agent's side of the counter: the shop and what was done to it.
struct Counter {
    state: State,
    calls: Vec<Call>,
}

impl Counter {
    /// Executes the calls of one answer, in order, up to a transfer.
    fn serve(&mut self, calls: Vec<ToolCall>, messages: &mut Vec<Message>) -> Option<End> {
        for ToolCall { id, name, arguments } in calls {
            let outcome = tools::named(&name).and_then(|tool| tool.call(&mut self.state, &arguments));
            let (content, effect) = match outcome {
                Ok((content, effect)) => (content, Some(effect)),
                Err(error) => (json!({"error": error.to_string()}).to_string(), None),
            };
            let cleared = match &effect {
                Some(Effect::Wrote(write)) => is_confirmed(write, messages),
                _ => self.state.verified().is_some(),
            };
            let transferred = effect == Some(Effect::Transferred);
            self.calls.push(Call {
                tool: name,
                arguments,
                effect,
                cleared,
            });
            messages.push(Message::tool(id, content));
            if transferred {
                return Some(End::Transfer);
            }
        }
        None
    }
}

/// Whether a text of the agent named the write's record and operation, and the customer's reply to it
/// said yes.
fn is_confirmed(write: &Write, messages: &[Message]) -> bool {
    let record = write.record.to_lowercase();
    messages.windows(2).any(|pair| match pair {
        [Message::Assistant(asked), Message::User { content }] => {
            let text = asked.text().to_lowercase();
            text.contains(&record) && write.operation.named_in(&text) && affirms(content)
        }
        _ => false,
    })
}
