//! A conversation, turn by turn.

use capo_core::llm::{AssistantMessage, Message, ToolCall};
use leptos::prelude::*;
use serde_json::Value;

use crate::format::count;

/// Turns drawn at once; the rest of a long conversation is drawn when asked for.
const TURNS: usize = 60;
/// Characters of one text drawn at once.
const CHARACTERS: usize = 3_000;

/// What one side said or called.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Turn {
    speaker: Speaker,
    /// The person's turns are counted from 1.
    number: Option<usize>,
    text: Option<String>,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
    System,
    Tool,
}

impl Speaker {
    fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Agent => "Agent",
            Self::System => "System",
            Self::Tool => "Tool",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System | Self::Tool => "",
        }
    }
}

/// A tool call with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    answer: Option<String>,
    /// The agent made the very same call before.
    again: bool,
}

/// Who said and called what. Tools' answers stand with their calls.
pub(super) fn talk(messages: &[Message]) -> AnyView {
    let turns = turns(messages);
    if turns.is_empty() {
        return view! { <p class="quiet small">"No conversation was recorded."</p> }.into_any();
    }
    let left = turns.len().saturating_sub(TURNS);
    let turns = StoredValue::new(turns);
    let whole = RwSignal::new(left == 0);
    let some = move |range: std::ops::Range<usize>| {
        turns.with_value(|turns| {
            let drawn = turns[range].iter().cloned();
            drawn.map(|turn| view! { <TurnView turn/> }).collect_view()
        })
    };
    let all = turns.with_value(Vec::len);
    view! {
        <ol class="talk">
            {some(0..all.min(TURNS))}
            {move || whole.get().then(|| some(all.min(TURNS)..all))}
        </ol>
        <Show when=move || !whole.get()>
            <button type="button" on:click=move |_| whole.set(true)>
                "Show the other " {count(left as u64)} " turns"
            </button>
        </Show>
    }
    .into_any()
}

#[component]
fn TurnView(turn: Turn) -> impl IntoView {
    let number = turn.number.map(|number| view! { <span>"turn " {number}</span> });
    let text = turn.text.map(|text| view! { <Long text class="say"/> });
    view! {
        <li class=turn.speaker.class()>
            <div class="who">
                <span>{turn.speaker.name()}</span>
                {number}
            </div>
            {text}
            {turn.calls.into_iter().map(|call| view! { <CallView call/> }).collect_view()}
        </li>
    }
}

#[component]
fn CallView(call: Call) -> impl IntoView {
    let answer = call.answer.map(|text| view! { <Long text class="ret"/> });
    let again = call.again.then(|| {
        view! {
            <p class="note is-i">
                <span class="m i" aria-hidden="true"></span>
                "the same call as before"
            </p>
        }
    });
    view! {
        <div class="call" class:flagged=call.again>
            <b>{call.name}</b>
            "("
            {call.arguments}
            ")"
            {answer}
        </div>
        {again}
    }
}

/// A text whose end, when it is very long, is drawn when asked for.
#[component]
fn Long(text: String, class: &'static str) -> impl IntoView {
    let cut = text.char_indices().nth(CHARACTERS).map(|(at, _)| at);
    let Some(cut) = cut else {
        return view! { <div class=class>{text}</div> }.into_any();
    };
    let characters = count(text.chars().count() as u64);
    let begin = format!("{}…", &text[..cut]);
    let whole = RwSignal::new(false);
    let shown = move || if whole.get() { text.clone() } else { begin.clone() };
    view! {
        <div class=class>{shown}</div>
        <Show when=move || !whole.get()>
            <button type="button" class="link" on:click=move |_| whole.set(true)>
                {format!("Show all {characters} characters")}
            </button>
        </Show>
    }
    .into_any()
}

fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut asked: Vec<(&str, &Value)> = Vec::new();
    let mut persons = 0;
    let said = |speaker, number, text: &str| Turn {
        speaker,
        number,
        text: Some(text.to_owned()),
        calls: Vec::new(),
    };
    for message in messages {
        match message {
            Message::System { content } => turns.push(said(Speaker::System, None, content)),
            Message::User { content } => {
                persons += 1;
                turns.push(said(Speaker::User, Some(persons), content));
            }
            Message::Assistant(AssistantMessage { content, tool_calls }) => {
                let mut calls = Vec::new();
                for call in tool_calls {
                    let key = (call.name.as_str(), &call.arguments);
                    calls.push(made(call, asked.contains(&key)));
                    asked.push(key);
                }
                turns.push(Turn {
                    speaker: Speaker::Agent,
                    number: None,
                    text: content.clone().filter(|text| !text.trim().is_empty()),
                    calls,
                });
            }
            Message::Tool { call_id, content } => match open_call(&mut turns, call_id) {
                Some(call) => call.answer = Some(content.clone()),
                None => turns.push(said(Speaker::Tool, None, content)),
            },
        }
    }
    turns
}

fn made(call: &ToolCall, again: bool) -> Call {
    Call {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: arguments(&call.arguments),
        answer: None,
        again,
    }
}

/// The latest call of this id that has no answer yet.
fn open_call<'a>(turns: &'a mut [Turn], id: &str) -> Option<&'a mut Call> {
    let calls = turns.iter_mut().rev().flat_map(|turn| &mut turn.calls);
    calls
        .into_iter()
        .find(|call| call.id == id && call.answer.is_none())
}

/// `name: "Noor Haddad", postcode: "48143"`, or whatever JSON the model produced instead.
fn arguments(arguments: &Value) -> String {
    match arguments.as_object() {
        Some(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            fields.join(", ")
        }
        None => arguments.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, postcode: &str) -> Message {
        Message::Assistant(AssistantMessage {
            content: None,
            tool_calls: vec![ToolCall {
                id: id.into(),
                name: "find_customer".into(),
                arguments: json!({ "name": "Noor", "postcode": postcode }),
            }],
        })
    }

    #[test]
    fn answers_stand_with_their_calls_and_a_repeated_call_is_one() {
        let messages = [
            Message::user("Hi"),
            call("1", "48143"),
            Message::tool("1", "not found"),
            call("2", "48144"),
            Message::tool("2", "found"),
            call("3", "48144"),
            Message::user("And?"),
            Message::assistant("Done."),
        ];
        let turns = turns(&messages);
        let (agent, user) = (Speaker::Agent, Speaker::User);
        let speakers: Vec<Speaker> = turns.iter().map(|turn| turn.speaker).collect();
        assert_eq!(speakers, [user, agent, agent, agent, user, agent]);
        let calls: Vec<&Call> = turns.iter().flat_map(|turn| &turn.calls).collect();
        assert_eq!(calls[0].arguments, r#"name: "Noor", postcode: "48143""#);
        let answers: Vec<Option<&str>> = calls.iter().map(|call| call.answer.as_deref()).collect();
        assert_eq!(answers, [Some("not found"), Some("found"), None]);
        assert_eq!(
            calls.iter().map(|call| call.again).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!(turns[4].number, Some(2));
    }

    #[test]
    fn an_answer_without_its_call_stands_alone() {
        let turns = turns(&[Message::tool("9", "late")]);
        assert_eq!(turns[0].speaker, Speaker::Tool);
    }
}
