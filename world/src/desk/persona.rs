//! A customer played by a model in the role of the user.

use std::fmt::Write as _;

use capo_core::llm::{ChatRequest, FailureKind, Message, Role};
use capo_core::workload::{RolloutContext, RolloutError};

use super::language::{Deed, Topic};
use super::task::{Request, Script};
use super::user::STOP;

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
            let _ = writeln!(text, "- {}: {}", name(*topic), answers.join(" / asked again: "));
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
        format!("You agree to: {}", deeds(&request.wants))
    });
    if !request.declines.is_empty() {
        line(format!("You do not accept: {}", deeds(&request.declines)));
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
        line(format!(
            "Asked for {}: {}",
            name(*topic),
            answers.join(" / asked again: ")
        ));
    }
    text
}

fn deeds(deeds: &[Deed]) -> String {
    let name = |deed: &Deed| match deed {
        Deed::Cancel => "cancelling",
        Deed::Return => "returning",
        Deed::Exchange => "an exchange",
        Deed::Address => "another delivery address",
        Deed::Appointment => "an appointment",
        Deed::Voucher => "a voucher",
        Deed::Transfer => "being handed to a human",
    };
    let names: Vec<&str> = deeds.iter().map(name).collect();
    names.join(" or ")
}

fn name(topic: Topic) -> &'static str {
    match topic {
        Topic::Email => "e-mail address",
        Topic::Postcode => "postcode",
        Topic::Name => "name",
        Topic::Order => "order number",
        Topic::Item => "item",
        Topic::Variant => "size or colour",
        Topic::Address => "new address",
        Topic::Date => "day and time",
        Topic::Service => "service",
        Topic::Appointment => "appointment",
        Topic::Reason => "reason",
        Topic::Goal => "goal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::{Desk, DeskSettings};

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
                    let fact = format!(
                        "   Asked for {}: {}",
                        name(*topic),
                        answers.join(" / asked again: ")
                    );
                    assert!(own.contains(&fact.as_str()), "{}: {fact}", task.id);
                }
            }
        }
    }
}
