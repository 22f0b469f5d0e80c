//! Logs of chats as rows of a table.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use super::layout::counted;

/// What became of a log of chats: lists of messages with `role` and `content`, or objects with such `messages`, one a line
/// or all in one list.
pub(super) struct Chats {
    /// An object with `question` and `answer` a line: all up to the last turn of the user, and the assistant's answer.
    pub(super) rows: String,
    /// The system prompt that all of them share.
    pub(super) system: Option<String>,
    /// How many chats became rows, and why others did not.
    pub(super) told: String,
}

impl Chats {
    /// Reads a log; none of a file that holds something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let chats = chats(std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}'))?;
        let (mut rows, mut count) = (String::new(), 0);
        let mut systems = IndexSet::new();
        let mut left_out: IndexMap<&str, u64> = IndexMap::new();
        for chat in &chats {
            match Row::of(chat) {
                Ok(row) => {
                    rows += &format!("{}\n", json!({ "question": row.question, "answer": row.answer }));
                    systems.insert(row.system);
                    count += 1;
                }
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
        let mut told = format!("{count} of {} became rows", counted(chats.len() as u64, "chat"));
        for (index, (why, count)) in left_out.iter().enumerate() {
            told += if index == 0 { "; left out: " } else { ", " };
            told += &format!("{count} {why}");
        }
        if systems.len() > 1 {
            told += "; their system prompts differ, and none is taken over";
            systems.clear();
        }
        Some(Self {
            rows,
            system: systems.pop().filter(|system: &String| !system.is_empty()),
            told,
        })
    }
}

/// The chats of a file, if it is a log of them.
fn chats(text: &str) -> Option<Vec<Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) if list.first().is_some_and(|first| messages(first).is_some()) => Some(list),
        Ok(one) => messages(&one).is_some().then(|| vec![one]),
        Err(_) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let mut chats = lines.map(|line| serde_json::from_str::<Value>(line).ok());
            let first = chats.next()?.filter(|first| messages(first).is_some())?;
            std::iter::once(Some(first)).chain(chats).collect()
        }
    }
}

fn messages(chat: &Value) -> Option<&[Value]> {
    let list = chat.get("messages").unwrap_or(chat).as_array()?;
    let are_messages = list.iter().all(|message| message.get("role").is_some());
    are_messages.then_some(list.as_slice())
}

/// What of a chat is measured again.
struct Row {
    system: String,
    question: String,
    answer: String,
}

impl Row {
    /// The row of a chat, or what keeps it from being one.
    fn of(chat: &Value) -> Result<Self, &'static str> {
        let messages = messages(chat).ok_or("without a list of messages")?;
        if messages.iter().any(uses_tools) {
            return Err("with calls of tools");
        }
        let turn = |message: &Value| Some((role(message).to_owned(), text(message.get("content"))?));
        let turns: Option<Vec<(String, String)>> = messages.iter().map(turn).collect();
        let turns = turns.ok_or("with more than text")?;
        let is_system = |(role, _): &&(String, String)| ["system", "developer"].contains(&role.as_str());
        let (system, turns) = turns.split_at(turns.iter().take_while(is_system).count());
        let last = |turns: &[(String, String)], of: &str| {
            let is_of = |(role, text): &(String, String)| role == of && !text.trim().is_empty();
            turns.iter().rposition(is_of)
        };
        let answer = last(turns, "assistant").ok_or("without an answer of the assistant")?;
        let question = last(&turns[..answer], "user").ok_or("without a question before the answer")?;
        let said = |(role, text): &(String, String)| match role.as_str() {
            "user" => format!("User: {text}"),
            "assistant" => format!("Assistant: {text}"),
            other => format!("{other}: {text}"),
        };
        let texts: Vec<&str> = system.iter().map(|(_, text)| text.as_str()).collect();
        Ok(Self {
            system: texts.join("\n\n"),
            answer: turns[answer].1.clone(),
            question: match &turns[..=question] {
                [(_, alone)] => alone.clone(),
                several => several.iter().map(said).collect::<Vec<_>>().join("\n\n"),
            },
        })
    }
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

fn uses_tools(message: &Value) -> bool {
    let is_call = |key: &str| match message.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(calls)) => !calls.is_empty(),
        Some(_) => true,
    };
    ["tool", "function"].contains(&role(message)) || is_call("tool_calls") || is_call("function_call")
}

/// The text of a message, whole or in parts; none where parts are something else.
fn text(content: Option<&Value>) -> Option<String> {
    match content {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => parts.iter().map(|part| part.get("text")?.as_str()).collect(),
        Some(_) => None,
    }
}
