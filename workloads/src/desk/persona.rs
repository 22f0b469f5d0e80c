//! A customer played by a model in the role of the user.

use std::fmt::Write as _;

use capo_core::llm::{ChatRequest, FailureKind, Message, Role};
use capo_core::workload::{RolloutContext, RolloutError};

use super::task::Script;
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
            let _ = writeln!(text, "{}. {} ({})", index + 1, request.text, request.again);
            for push in &request.pushes {
                let _ = writeln!(text, "   If it is refused, insist: {push}");
            }
            if let Some(haggle) = &request.haggles {
                let _ = writeln!(text, "   Before you agree, try: {haggle}");
            }
            if !request.declines.is_empty() {
                let _ = writeln!(text, "   You do not accept: {:?}", request.declines);
            }
            for (topic, answers) in &request.facts {
                let _ = writeln!(text, "   Asked for {topic:?}: {}", answers.join(" / then: "));
            }
        }
        text.push_str("\nWhat you know:\n");
        for (topic, answers) in &script.facts {
            let _ = writeln!(text, "- {topic:?}: {}", answers.join(" / asked again: "));
        }
        let human = if script.wants_human {
            "You accept"
        } else {
            "You would rather not accept"
        };
        let _ = write!(
            text,
            "\nIf the help desk says what it is going to do and it is what you want, answer \"Yes\" in so many \
             words; otherwise say \"No\" and what is wrong. {human} being handed to a human. Once everything is \
             done or finally refused, say goodbye and end that message with {STOP}. Use {STOP} nowhere else."
        );
        Self { instructions: text }
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
