//! The simulated customer of the tau2 domains: plays the scenario at the end of its system message.
//!
//! Says why it calls, tells what it knows when it is asked who it is, agrees to what the agent proposes,
//! uses the tools that the agent names, and ends with the stop tokens of its guidelines. Like a model, it
//! holds no state.

use capo_core::llm::{AssistantMessage, ChatRequest, Message, ToolCall, ToolSpec};
use serde_json::{Map, Value};

use super::request;

/// Turns after which the customer leaves.
const PATIENCE: usize = 60;

/// Whether a request asks to play such a customer.
pub(super) fn is_asked(request: &ChatRequest) -> bool {
    let system = request::system(request).trim_end();
    // As the benchmark's guidelines begin, and as the scenario behind them ends.
    system.starts_with("# User Simulation") && system.ends_with("</scenario>")
}

/// The customer's next turn. In its own conversation the model is the customer and the agent is the user.
pub(super) fn speak(request: &ChatRequest) -> AssistantMessage {
    let said = |text: String| AssistantMessage {
        content: Some(text),
        tool_calls: Vec::new(),
    };
    let scenario = Scenario::read(request::system(request));
    let own = |message: &&Message| matches!(message, Message::Assistant(_));
    let turns = request.messages.iter().filter(own).count();
    if turns == 0 {
        return said(scenario.reason());
    }
    if let Some(Message::Tool { content, .. }) = request.messages.last() {
        return said(format!("I have done that. It says: {content}"));
    }
    let heard = request::last_user(request);
    let calls = request
        .messages
        .iter()
        .filter(own)
        .filter_map(|message| match message {
            Message::Assistant(answer) => Some(answer.tool_calls.len()),
            _ => None,
        });
    if let Some(call) = wanted(request, heard, calls.sum()) {
        return AssistantMessage {
            content: None,
            tool_calls: vec![call],
        };
    }
    let lower = heard.to_lowercase();
    let has = |cues: &[&str]| cues.iter().any(|cue| lower.contains(cue));
    let is_asked_for_itself = lower.contains('?')
        && has(&[
            "who you are",
            "your name",
            "your id",
            "user id",
            "customer id",
            "zip",
            "email",
            "e-mail",
            "identi",
        ]);
    said(if turns > PATIENCE {
        "This takes too long. ###STOP###".to_owned()
    } else if has(&["being transferred to a human"]) {
        "All right. ###TRANSFER###".to_owned()
    } else if has(&["anything else"]) {
        "No, thank you, that was all. ###STOP###".to_owned()
    } else if is_asked_for_itself {
        scenario.known()
    } else if has(&["shall i", "should i", "confirm"]) {
        "Yes, please go ahead.".to_owned()
    } else if has(&["cannot", "can't", "unable"]) {
        "Then I leave it at that. ###STOP###".to_owned()
    } else {
        "I see. Please go on.".to_owned()
    })
}

/// The call that an agent asks for: a tool's name in backticks, and its arguments as a JSON object behind it.
fn wanted(request: &ChatRequest, heard: &str, calls: usize) -> Option<ToolCall> {
    let named = |tool: &&ToolSpec| heard.contains(&format!("`{}`", tool.name));
    let tool = request.tools.iter().find(named)?;
    let (_, rest) = heard.split_once(&format!("`{}`", tool.name))?;
    let given = rest.trim_start().strip_prefix("with ").and_then(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        values.next()?.ok()
    });
    Some(ToolCall {
        id: format!("user-call-{calls}"),
        name: tool.name.clone(),
        arguments: Value::Object(given.unwrap_or_default()),
    })
}

/// Who the customer is, in the parts of the scenario.
struct Scenario<'a>(&'a str);

impl<'a> Scenario<'a> {
    fn read(system: &'a str) -> Self {
        let scenario = system
            .rsplit_once("<scenario>")
            .map_or(system, |(_, after)| after);
        Self(scenario.trim_end().trim_end_matches("</scenario>"))
    }

    /// The text below a heading, up to the next line that is indented no deeper.
    fn part(&self, heading: &str) -> Option<String> {
        let mut lines = self.0.lines();
        let depth = |line: &str| line.len() - line.trim_start().len();
        let above = lines.find(|line| line.trim() == heading).map(depth)?;
        let below = lines.take_while(|line| line.trim().is_empty() || depth(line) > above);
        let words: Vec<&str> = below.flat_map(str::split_whitespace).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn reason(&self) -> String {
        let reason = self
            .part("Reason for call:")
            .or_else(|| self.part("Instructions:"));
        let known = self.part("Known info:");
        let said = [reason, known]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        if said.is_empty() {
            return "Hello, I need your help.".to_owned();
        }
        as_oneself(&said)
    }

    fn known(&self) -> String {
        let known = self.part("Known info:");
        known.map_or_else(
            || "I don't know more than I said.".to_owned(),
            |known| as_oneself(&known),
        )
    }
}

/// What is said to somebody about them, as they say it of themselves.
fn as_oneself(text: &str) -> String {
    const PAIRS: [(&str, &str); 6] = [
        ("are", "am"),
        ("were", "was"),
        ("you", "I"),
        ("you're", "I'm"),
        ("your", "my"),
        ("yourself", "myself"),
    ];
    let mut after_you = false;
    let turned = text.split(' ').map(|word| {
        let lower = word.to_lowercase();
        let is_verb = matches!(lower.as_str(), "are" | "were");
        let turned = PAIRS
            .iter()
            .find(|(other, _)| *other == lower && (after_you || !is_verb))
            .map_or(word, |(_, own)| own);
        after_you = lower == "you";
        turned
    });
    turned.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::*;

    const SYSTEM: &str = "# User Simulation Guidelines\nPlay.\n\n<scenario>\nInstructions:\n\tDomain: shop\n\tReason for \
        call:\n\t\tYou want your money back.\n\tKnown info:\n\t\tYou are Ada Krol.\n\tTask instructions:\n\t\tBe \
        brief.\n</scenario>";

    fn request(messages: Vec<Message>) -> ChatRequest {
        let mut all = vec![Message::system(SYSTEM)];
        all.extend(messages);
        ChatRequest {
            tools: Rc::new([ToolSpec {
                name: "toggle_data".to_owned(),
                description: String::new(),
                parameters: json!({}),
            }]),
            ..ChatRequest::new(all)
        }
    }

    #[test]
    fn the_scenario_is_said_in_the_first_person() {
        let greeted = request(vec![Message::user("Hi! How can I help you today?")]);
        assert!(is_asked(&greeted));
        assert_eq!(speak(&greeted).text(), "I want my money back. I am Ada Krol.");
    }

    #[test]
    fn the_customer_answers_what_is_asked() {
        for (heard, answer) in [
            ("I cannot find that. What is your user id?", "I am Ada Krol."),
            ("Could you tell me who you are, please?", "I am Ada Krol."),
            (
                "I would now refund it. Shall I go ahead?",
                "Yes, please go ahead.",
            ),
            (
                "You are being transferred to a human agent.",
                "All right. ###TRANSFER###",
            ),
            (
                "I'm sorry, but I cannot do that.",
                "Then I leave it at that. ###STOP###",
            ),
            (
                "That is done. Is there anything else?",
                "No, thank you, that was all. ###STOP###",
            ),
        ] {
            let heard = request(vec![
                Message::user("Hi!"),
                Message::assistant("I want it back."),
                Message::user(heard),
            ]);
            assert_eq!(speak(&heard).text(), answer);
        }
    }

    #[test]
    fn tools_are_used_that_are_named_and_there() {
        let asked = |text: &str| {
            speak(&request(vec![
                Message::user("Hi!"),
                Message::assistant("It is slow."),
                Message::user(text),
            ]))
        };
        let turn = asked("Please use `toggle_data` with {\"on\":true} on your side now.");
        assert_eq!(turn.tool_calls[0].name, "toggle_data");
        assert_eq!(turn.tool_calls[0].arguments, json!({ "on": true }));
        assert_eq!(
            asked("Please use `toggle_data`.").tool_calls[0].arguments,
            json!({})
        );
        assert!(asked("Please use `toggle_wifi`.").tool_calls.is_empty());
    }
}
