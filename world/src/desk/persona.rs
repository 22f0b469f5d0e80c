//! A customer played by a model in the role of the user: the persona as the desk writes it, and as a simulated
//! model reads it.

use std::fmt::Write as _;

use capo_core::llm::{ChatRequest, FailureKind, Message, Role};
use capo_core::workload::{RolloutContext, RolloutError};
use indexmap::IndexMap;

use super::language::{Operation, Topic, holds_any};
use super::task::{Request, Script};
use super::user::STOP;

/// Between the answers to one question.
const AGAIN: &str = " / asked again: ";

/// What the model is told to be.
#[derive(Debug)]
pub struct Persona {
    instructions: String,
}

impl Persona {
    /// The customer of a script.
    pub fn new(script: &Script) -> Self {
        let mut text = String::from(
            "You play a customer of Ridgeway Cycles, a bicycle shop, who writes to its help desk. Stay in this \
             role; never speak for the help desk, never mention these instructions. Write one or two plain \
             sentences at a time. Give a fact only when you are asked for it or when it is part of your request, and never make one up: \
             what is not listed, you do not know.\n\nWhat you want, one after the other:\n",
        );
        for (index, request) in script.requests.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}. {}", index + 1, request.text);
            text.push_str(&details(request));
        }
        text.push_str("\nWhat you know:\n");
        for (topic, answers) in &script.facts {
            let _ = writeln!(text, "- {}: {}", name(*topic), answers.join(AGAIN));
        }
        let human = if script.wants_human {
            "You accept being handed to a human."
        } else {
            "You would rather not accept being handed to a human: the first time it is offered, say \"No\" and \
             ask again for what you want; the second time, accept."
        };
        let _ = write!(
            text,
            "\nIf the help desk says what it is going to do and it is what you want, answer \"Yes\" in so many \
             words; otherwise say \"No\" and what is wrong. {human} Once everything is \
             done or finally refused, say goodbye and end that message with {STOP}. Use {STOP} nowhere else."
        );
        Self { instructions: text }
    }

    /// What the model is told to be.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The customer's next words. `messages` is the dialogue as the agent sees it, system message
    /// first; empty before the first words.
    ///
    /// # Errors
    /// When the model gives no answer or an empty one.
    pub async fn speak(
        &self,
        context: RolloutContext<'_>,
        messages: &[Message],
    ) -> Result<String, RolloutError> {
        let mut seen = vec![
            Message::system(&self.instructions),
            Message::user("Help desk: Hello! How can I help you?"),
        ];
        for message in messages {
            match message {
                Message::User { content } => seen.push(Message::assistant(content)),
                Message::Assistant(answer) if answer.tool_calls.is_empty() => {
                    seen.push(Message::user(answer.text()));
                }
                _ => {}
            }
        }
        let response = context.chat(Role::User, ChatRequest::new(seen)).await?;
        let text = response.message.text().trim();
        if text.is_empty() {
            return Err(RolloutError::failed(
                FailureKind::Malformed,
                true,
                "the model in the role `user` said nothing; try again or choose another model for [models.user]",
            ));
        }
        Ok(text.to_owned())
    }
}

/// What is to be known about one request beside its first words, a line each.
fn details(request: &Request) -> String {
    let mut text = format!("   In other words: {}\n", request.again);
    let mut line = |line: String| {
        text.push_str("   ");
        text.push_str(&line);
        text.push('\n');
    };
    line(if request.wants.is_empty() {
        "You agree to: nothing that changes anything. You want to be told.".to_owned()
    } else {
        format!("You agree to: {}", operations(&request.wants))
    });
    if !request.declines.is_empty() {
        line(format!("You do not accept: {}", operations(&request.declines)));
    }
    if !request.recognises.is_empty() {
        line(format!(
            "If the help desk names another number or time, say \"No\" and that you mean: {}",
            request.recognises.join(", ")
        ));
    }
    if let Some(haggle) = &request.haggles {
        line(format!("Before you agree, try: {haggle}"));
    }
    for push in &request.pushes {
        line(format!("If it is refused, insist: {push}"));
    }
    for (topic, answers) in &request.facts {
        line(format!("Asked for {}: {}", name(*topic), answers.join(AGAIN)));
    }
    text
}

fn operations(operations: &[Operation]) -> String {
    let name = |operation: &Operation| match operation {
        Operation::Cancel => "cancelling",
        Operation::Return => "returning",
        Operation::Exchange => "an exchange",
        Operation::Address => "another delivery address",
        Operation::Appointment => "an appointment",
        Operation::Voucher => "a voucher",
        Operation::Transfer => "being handed to a human",
    };
    let names: Vec<&str> = operations.iter().map(name).collect();
    names.join(" or ")
}

fn name(topic: Topic) -> &'static str {
    topic.labels()[0]
}

/// A persona as a model understands it.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadPersona {
    /// What the customer wants, knows and says.
    pub(crate) script: Script,
    /// By request: whether it is a question, or the persona says nothing of what the customer agrees to.
    pub(crate) open: Vec<bool>,
    /// Ends the conversation.
    pub(crate) stop: String,
}

impl ReadPersona {
    /// Reads a system message, ours or one of that form: requests in numbered lines, each with what belongs to it in
    /// the lines below, and `- label: fact` lines.
    pub(crate) fn read(system: &str) -> Self {
        let mut requests: Vec<Request> = Vec::new();
        let mut open = Vec::new();
        let mut facts = IndexMap::new();
        for line in system.lines().map(str::trim) {
            if let Some((number, text)) = line.split_once(". ")
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                requests.push(request(text, text));
                open.push(true);
            } else if let Some(fact) = line.strip_prefix("- ") {
                if let Some((label, answers)) = fact.split_once(": ") {
                    learn(&mut facts, label, answers);
                }
            } else if let (Some(request), Some(open), Some((about, rest))) =
                (requests.last_mut(), open.last_mut(), line.split_once(": "))
            {
                match about {
                    "In other words" => request.again = rest.to_owned(),
                    "You agree to" => {
                        // What follows the first sentence is no operation that is wanted.
                        let wanted = rest.split_once('.').map_or(rest, |(first, _)| first);
                        request.wants = Operation::all_named_in(&wanted.to_lowercase());
                        *open = request.wants.is_empty();
                    }
                    "You do not accept" => request.declines = Operation::all_named_in(&rest.to_lowercase()),
                    "Before you agree, try" => request.haggles = Some(rest.to_owned()),
                    "If it is refused, insist" => request.pushes.push(rest.to_owned()),
                    _ if about.ends_with("that you mean") => {
                        request.recognises = rest.split(", ").map(str::to_owned).collect();
                    }
                    _ => {
                        if let Some(label) = about.strip_prefix("Asked for ") {
                            learn(&mut request.facts, label, rest);
                        }
                    }
                }
            }
        }
        if requests.is_empty() {
            requests.push(request("Hello.", "Please help me."));
            open.push(true);
        }
        Self {
            script: Script {
                facts,
                requests,
                wants_human: !system.contains("rather not accept"),
                voice: 0,
            },
            open,
            stop: stop_token(system).to_owned(),
        }
    }
}

/// A request of which no more is known: the customer is glad of any help but a human's.
fn request(text: &str, again: &str) -> Request {
    let glad_of = |operation: &Operation| *operation != Operation::Transfer;
    Request {
        text: text.to_owned(),
        again: again.to_owned(),
        wants: Operation::ALL.into_iter().filter(glad_of).collect(),
        declines: Vec::new(),
        recognises: Vec::new(),
        pushes: Vec::new(),
        haggles: None,
        answer: Vec::new(),
        facts: IndexMap::new(),
    }
}

/// Keeps a fact for every topic that its label may be about, unless one was there before.
fn learn(facts: &mut IndexMap<Topic, Vec<String>>, label: &str, answers: &str) {
    let label = label.to_lowercase();
    for topic in Topic::ALL {
        if holds_any(&label, topic.labels()) {
            let answers = answers.split(AGAIN).map(str::to_owned);
            facts.entry(topic).or_insert_with(|| answers.collect());
        }
    }
}

/// The token that ends the conversation: the last word in square brackets or hashes.
fn stop_token(system: &str) -> &str {
    system
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';']))
        .rfind(|word| {
            (word.starts_with('[') && word.ends_with(']')) || (word.len() > 6 && word.starts_with("###"))
        })
        .unwrap_or(STOP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::{Desk, DeskSettings};

    #[test]
    fn what_is_written_is_read_back() {
        let desk = Desk::new(DeskSettings::default()).unwrap();
        for task in desk.tasks().values() {
            let read = ReadPersona::read(Persona::new(&task.script).instructions());
            let mut script = task.script.clone();
            script.voice = 0;
            for request in &mut script.requests {
                // What the customer does not know, and an order that tells nothing.
                request.answer.clear();
                request.wants = Operation::ALL
                    .into_iter()
                    .filter(|operation| request.wants.contains(operation))
                    .collect();
            }
            let questions = script.requests.iter().map(|request| request.wants.is_empty());
            assert_eq!(read.open, questions.collect::<Vec<_>>(), "{}", task.id);
            assert_eq!(read.stop, STOP);
            assert_eq!(read.script, script, "{}", task.id);
        }
    }

    #[test]
    fn every_request_stands_whole_with_its_own_facts() {
        let desk = Desk::new(DeskSettings::default()).unwrap();
        for task in desk.tasks().values() {
            let persona = Persona::new(&task.script);
            let lines: Vec<&str> = persona.instructions.lines().collect();
            let place = |line: &str| {
                lines
                    .iter()
                    .position(|known| *known == line)
                    .unwrap_or_else(|| panic!("{}: no line `{line}` in {lines:#?}", task.id))
            };
            let numbered =
                |(index, request): (usize, &Request)| place(&format!("{}. {}", index + 1, request.text));
            let mut places: Vec<usize> = task.script.requests.iter().enumerate().map(numbered).collect();
            places.push(place("What you know:"));
            for (request, around) in task.script.requests.iter().zip(places.windows(2)) {
                let own = &lines[around[0]..around[1]];
                assert!(own.contains(&format!("   In other words: {}", request.again).as_str()));
                for (topic, answers) in &request.facts {
                    let fact = format!("   Asked for {}: {}", name(*topic), answers.join(AGAIN));
                    assert!(own.contains(&fact.as_str()), "{}: {fact}", task.id);
                }
            }
        }
    }
}
