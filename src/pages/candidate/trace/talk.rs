//! A conversation, turn by turn: what both sides said, and the calls of either with their answers.

use capo_core::llm::{AssistantMessage, Message, ToolCall};
use capo_workloads::KINDS;
use leptos::prelude::*;
use serde_json::Value;

use crate::format::count;

/// Turns drawn at once; the rest of a long conversation is drawn when asked for.
const TURNS: usize = 60;
/// Characters of one text drawn at once.
const CHARACTERS: usize = 3_000;
/// Whether a tool's answer is that of a failed call, in any kind of workload.
fn is_failure(answer: &str) -> bool {
    let mut begun = KINDS.iter().filter_map(|kind| kind.failed);
    begun.any(|begin| answer.starts_with(begin))
}

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
    /// It was answered by an error.
    failed: bool,
    /// The agent made the very same call before.
    again: bool,
}

/// Who said and called what. Tools' answers stand with their calls. `messages` is the conversation as the
/// agent saw it, `user` as a user with tools of its own saw it, empty for others.
pub(super) fn talk(messages: &[Message], user: &[Message]) -> AnyView {
    let turns = turns(&both(messages, user));
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
    let beside = match (turn.number, turn.calls.len()) {
        (Some(number), _) => format!("turn {number}"),
        (None, 0) => String::new(),
        (None, 1) => "tool call".to_owned(),
        (None, calls) => format!("{calls} tool calls"),
    };
    let text = turn.text.map(|text| view! { <Long text class="say"/> });
    view! {
        <li class=turn.speaker.class()>
            <div class="who">
                <span>{turn.speaker.name()}</span>
                <span>{beside}</span>
            </div>
            {text}
            {turn.calls.into_iter().map(|call| view! { <CallView call/> }).collect_view()}
        </li>
    }
}

#[component]
fn CallView(call: Call) -> impl IntoView {
    let answer = call.answer.map(|text| view! { <Long text class="ret"/> });
    let note = |holds: bool, words: &'static str| {
        holds.then(|| {
            view! {
                <p class="note is-i">
                    <span class="m i" aria-hidden="true"></span>
                    {words}
                </p>
            }
        })
    };
    view! {
        <div class="call" class:flagged=call.again || call.failed>
            <b>{call.name}</b>
            "("
            {call.arguments}
            ")"
            {answer}
        </div>
        {note(call.failed, "answered by an error")}
        {note(call.again, "the same call as before")}
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

/// Messages in the order in which they came, each with the side that saw it. What is said both saw; a side's
/// calls and their answers it alone saw, and only the side whose turn it is calls.
fn both<'a>(agent: &'a [Message], user: &'a [Message]) -> Vec<(Speaker, &'a Message)> {
    let is_own = |message: &Message| match message {
        Message::Tool { .. } => true,
        Message::Assistant(answer) => !answer.tool_calls.is_empty(),
        Message::User { .. } | Message::System { .. } => false,
    };
    let mut of_user = user.iter();
    let mut all = Vec::new();
    for message in agent {
        if !is_own(message) {
            // Up to the same text in the other's eyes.
            all.extend(
                of_user
                    .by_ref()
                    .take_while(|own| is_own(own))
                    .map(|own| (Speaker::User, own)),
            );
        }
        all.push((Speaker::Agent, message));
    }
    all.extend(of_user.map(|own| (Speaker::User, own)));
    all
}

fn turns(messages: &[(Speaker, &Message)]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut asked: Vec<(&str, &Value)> = Vec::new();
    let mut persons = 0;
    let said = |speaker, number, text: &str| Turn {
        speaker,
        number,
        text: Some(text.to_owned()),
        calls: Vec::new(),
    };
    for &(speaker, message) in messages {
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
                    let of_agent = speaker == Speaker::Agent;
                    calls.push(made(call, of_agent && asked.contains(&key)));
                    if of_agent {
                        asked.push(key);
                    }
                }
                turns.push(Turn {
                    speaker,
                    number: None,
                    text: content.clone().filter(|text| !text.trim().is_empty()),
                    calls,
                });
            }
            Message::Tool { call_id, content } => match open_call(&mut turns, speaker, call_id) {
                Some(call) => {
                    call.failed = is_failure(content);
                    call.answer = Some(content.clone());
                }
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
        failed: false,
        again,
    }
}

/// A side's latest call of this id that has no answer yet.
fn open_call<'a>(turns: &'a mut [Turn], side: Speaker, id: &str) -> Option<&'a mut Call> {
    let turns = turns.iter_mut().rev().filter(|turn| turn.speaker == side);
    let calls = turns.flat_map(|turn| &mut turn.calls);
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
        let turns = turns(&both(&messages, &[]));
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
        let turns = turns(&both(&[Message::tool("9", "late")], &[]));
        assert_eq!(turns[0].speaker, Speaker::Tool);
    }

    #[test]
    fn both_sides_calls_stand_where_they_were_made() {
        let agent = [
            Message::assistant("Hi!"),
            Message::user("No signal."),
            call("1", "48143"),
            Message::tool("1", "{\"error\": \"none\"}"),
            Message::assistant("Please look."),
            Message::user("I looked."),
            Message::assistant("Goodbye."),
        ];
        // Both sides number their calls alike.
        let user = [
            Message::user("Hi!"),
            Message::assistant("No signal."),
            Message::user("Please look."),
            call("1", "48143"),
            Message::tool("1", "Error: not found"),
            call("1", "48143"),
            Message::tool("1", "bars: 0"),
            Message::assistant("I looked."),
            Message::user("Goodbye."),
            call("2", "1"),
            Message::tool("2", "cut off"),
        ];
        let turns = turns(&both(&agent, &user));
        let told: Vec<String> = turns
            .iter()
            .map(|turn| {
                let calls = turn.calls.iter().map(|call| {
                    let answer = call.answer.as_deref().unwrap_or_default();
                    format!("{answer} {} {}", call.failed, call.again)
                });
                let said = turn.text.clone().into_iter().chain(calls).collect::<String>();
                format!("{}: {said}", turn.speaker.name())
            })
            .collect();
        assert_eq!(
            told,
            [
                "Agent: Hi!",
                "User: No signal.",
                "Agent: {\"error\": \"none\"} true false",
                "Agent: Please look.",
                "User: Error: not found true false",
                "User: bars: 0 false false",
                "User: I looked.",
                "Agent: Goodbye.",
                "User: cut off false false",
            ]
        );
    }
}
