//! Agents and customers that stand in for models.

use std::cell::RefCell;

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, LlmError, Message, Role, ToolCall,
};
use capo_core::workload::Caller;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::desk::language::affirms;
use crate::desk::task::{Action, Task};
use crate::desk::tools::{self, Kind};

/// A model that is a function of what it is asked.
pub(super) struct Answering<F>(pub(super) F);

impl<F: Fn(Role, &ChatRequest) -> AssistantMessage> Caller for Answering<F> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let message = (self.0)(role, &request);
        let usage = CallUsage {
            seconds: 0.5,
            ..CallUsage::default()
        };
        async move {
            Ok(ChatResponse {
                message,
                finish: Finish::Stop,
                usage,
                failed_tries: None,
            })
        }
        .boxed_local()
    }
}

pub(super) fn says(text: &str) -> AssistantMessage {
    AssistantMessage {
        content: Some(text.to_owned()),
        tool_calls: Vec::new(),
    }
}

pub(super) fn calls(tool: &str, arguments: Value) -> AssistantMessage {
    let call = ToolCall {
        id: "call".to_owned(),
        name: tool.to_owned(),
        arguments,
    };
    AssistantMessage {
        content: None,
        tool_calls: vec![call],
    }
}

pub(super) fn last_user(request: &ChatRequest) -> &str {
    request
        .messages
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::User { content } => Some(content.as_str()),
            _ => None,
        })
        .unwrap_or_default()
}

/// Plays a list of answers, then repeats the last.
pub(super) fn playing(answers: Vec<AssistantMessage>) -> impl Caller {
    let next = RefCell::new(0);
    Answering(move |_, _: &ChatRequest| {
        let mut next = next.borrow_mut();
        let answer = answers[(*next).min(answers.len() - 1)].clone();
        *next += 1;
        answer
    })
}

/// An agent that knows the task: it asks for identity, follows the reference, asks before every
/// write, reports, and says what must be told.
pub(super) fn perfect(task: &Task) -> Answering<impl Fn(Role, &ChatRequest) -> AssistantMessage> {
    let progress = RefCell::new(Progress::default());
    Answering(move |_, request: &ChatRequest| progress.borrow_mut().act(task, request))
}

/// How far such an agent is.
#[derive(Default)]
pub(super) struct Progress {
    done: usize,
    identity_asked: usize,
    proposed: bool,
    wrote: bool,
}

impl Progress {
    pub(super) fn act(&mut self, task: &Task, request: &ChatRequest) -> AssistantMessage {
        if std::mem::take(&mut self.wrote) {
            return says("That is done. Is there anything else?");
        }
        let Some(action) = task.reference.get(self.done) else {
            return says(&conclusion(task));
        };
        let kind = tools::named(&action.tool).unwrap().kind;
        if action.tool == "verify_identity" && self.identity_asked == self.done {
            self.identity_asked += 1;
            return says("Could you give me your e-mail address and postcode?");
        }
        if kind == Kind::Write {
            if !(self.proposed && affirms(last_user(request))) {
                self.proposed = true;
                return says(&proposal(task, action));
            }
            self.proposed = false;
            self.wrote = true;
        }
        self.done += 1;
        calls(&action.tool, action.arguments.clone())
    }
}

fn proposal(task: &Task, action: &Action) -> String {
    let arguments = &action.arguments;
    let record = arguments["order_id"]
        .as_str()
        .or(arguments["slot_id"].as_str())
        .unwrap();
    let operation = match action.tool.as_str() {
        "cancel_order" => "cancel",
        "return_items" if arguments["refund_to"] == "voucher" => "take back for a voucher the items of",
        "return_items" => "take back the items of",
        "exchange_item" => "exchange the item of",
        "change_address" => "change the address of",
        "book_appointment" => "book",
        other => panic!("{other} is no write"),
    };
    let mut told = task.expected.told.iter();
    let told = told.find(|told| told.what.contains("sold out"));
    let told = told.map_or(String::new(), |told| format!("It is {}. ", told.any_of[0]));
    format!("{told}I will {operation} {record}. Shall I go ahead?")
}

fn conclusion(task: &Task) -> String {
    let told: Vec<&str> = task
        .expected
        .told
        .iter()
        .map(|told| told.any_of[0].as_str())
        .collect();
    if task.difficulty().impossible {
        format!("I am sorry, I cannot do that ({}).", told.join(", "))
    } else {
        format!("It is expected on {}.", told.join(", "))
    }
}
