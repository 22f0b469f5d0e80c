//! The customer who follows a script, that of a task or one that a simulated model read off a persona.
//!
//! Reads the agent's text ([`super::language::read`]) and answers from the task's script, always
//! the same way to the same words. What it understands, in which order, and what it says is
//! described in [`super`].

use std::collections::HashMap;

use super::language::{Operation, Reading, Topic, contradicts, mentions, read};
use super::task::{Request, Script};

/// Ends the customer's last message and with it the dialogue.
pub const STOP: &str = "[END]";

/// How often a customer says what they want again before leaving.
const PATIENCE: u32 = 2;
/// How often a customer answers the same question.
const REPETITIONS: usize = 4;

const YES: [&str; 4] = [
    "Yes, please go ahead.",
    "Yes, that's right. Please do.",
    "Yes, please.",
    "Yes, go ahead, thank you.",
];
const THANKS: [&str; 4] = [
    "Thank you, that's all.",
    "Great, thanks for your help. Goodbye.",
    "Perfect, that was everything.",
    "Thanks, nothing else.",
];
const GIVES_IN: [&str; 3] = [
    "All right, then leave it. Goodbye.",
    "Fine. I'll leave it at that.",
    "That's a pity. Goodbye.",
];
const NEXT: [&str; 3] = [
    "Thanks. One more thing:",
    "Good. There is something else:",
    "Okay, and another matter:",
];

/// A customer in the middle of a dialogue.
#[derive(Debug)]
pub struct ScriptedUser<'a> {
    script: &'a Script,
    /// Ends the last message.
    stop: &'a str,
    /// By request: whether whatever tells something is an answer to it, for a customer who does not know how the
    /// answer reads.
    open: &'a [bool],
    request: usize,
    pushed: usize,
    haggled: bool,
    transfer_declined: bool,
    lost: u32,
    asked: HashMap<Topic, usize>,
}

impl<'a> ScriptedUser<'a> {
    /// A customer who has said nothing yet.
    pub fn new(script: &'a Script) -> Self {
        Self::of_persona(script, STOP, &[])
    }

    /// Like [`ScriptedUser::new`], of a script that was read off a persona: with the stop token of that, and by
    /// request whether whatever tells something is an answer to it.
    pub(crate) fn of_persona(script: &'a Script, stop: &'a str, open: &'a [bool]) -> Self {
        Self {
            script,
            stop,
            open,
            request: 0,
            pushed: 0,
            haggled: false,
            transfer_declined: false,
            lost: 0,
            asked: HashMap::new(),
        }
    }

    /// The first message.
    pub fn open(&self) -> String {
        self.wish().text.clone()
    }

    /// The answer to a text of the agent.
    pub fn reply(&mut self, text: &str) -> String {
        let reading = read(text);
        if !reading.topics.is_empty() {
            return self.tell(&reading.topics);
        }
        if reading.proposes {
            return self.decide(&reading);
        }
        if self.is_answered(text, &reading) || (reading.reports && !reading.refuses) {
            return self.next();
        }
        if reading.refuses {
            return self.take_refusal();
        }
        if reading.reports || reading.closes {
            return self.next();
        }
        self.lose_the_thread()
    }

    fn wish(&self) -> &'a Request {
        &self.script.requests[self.request]
    }

    fn pick<'t>(&self, wordings: &[&'t str]) -> &'t str {
        wordings[(self.script.voice + self.request) % wordings.len()]
    }

    /// Answers questions for facts.
    fn tell(&mut self, topics: &[Topic]) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for topic in topics {
            let times = self.asked.entry(*topic).or_insert(0);
            *times += 1;
            if *times > REPETITIONS {
                return format!(
                    "You have asked me that often enough. I'll try elsewhere. {}",
                    self.stop
                );
            }
            let answers = self
                .wish()
                .facts
                .get(topic)
                .or_else(|| self.script.facts.get(topic));
            let part = match answers {
                Some(answers) => answers[(self.asked[topic] - 1).min(answers.len() - 1)].as_str(),
                None => match topic {
                    Topic::Goal => &self.wish().again,
                    Topic::Reason => "I simply changed my mind.",
                    Topic::Item | Topic::Variant => "As I said, nothing beyond what I told you.",
                    _ => "I don't know that, sorry.",
                },
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(" ")
    }

    /// Says yes or no to a proposal.
    fn decide(&mut self, reading: &Reading) -> String {
        let wish = self.wish();
        let offered = reading.offered.as_str();
        let wanted = wish.wants.iter().any(|operation| operation.named_in(offered));
        if let Some(operation) = wish.declines.iter().find(|operation| operation.named_in(offered)) {
            if self.is_unmoved() {
                return self.push(if *operation == Operation::Voucher {
                    "No, I don't want a voucher."
                } else {
                    "No, I don't want that."
                });
            }
            return self.leave();
        }
        if Operation::Transfer.named_in(offered) && !wanted {
            if self.script.wants_human || self.transfer_declined {
                return "Yes, please put me through.".to_owned();
            }
            self.transfer_declined = true;
            return format!("No, I'd rather you solved it here. {}", wish.again);
        }
        if let Some(known) = wish.recognises.iter().find(|known| contradicts(offered, known)) {
            return format!("No, that's not the one. I mean {known}.");
        }
        if wanted || !Operation::any_named_in(offered) {
            if let Some(haggle) = wish.haggles.as_ref().filter(|_| wanted && !self.haggled) {
                self.haggled = true;
                return haggle.clone();
            }
            return self.pick(&YES).to_owned();
        }
        if reading.refuses {
            return self.take_refusal();
        }
        self.lost += 1;
        if self.lost > PATIENCE {
            return self.leave();
        }
        format!("No, that is not what I asked for. {}", wish.again)
    }

    fn is_answered(&self, text: &str, reading: &Reading) -> bool {
        if self.open.get(self.request).is_some_and(|open| *open) {
            return reading.informs && (self.wish().wants.is_empty() || !reading.refuses);
        }
        let text = text.to_lowercase();
        self.wish().answer.iter().any(|answer| mentions(&text, answer))
    }

    fn is_unmoved(&self) -> bool {
        self.pushed < self.wish().pushes.len()
    }

    fn take_refusal(&mut self) -> String {
        if self.is_unmoved() {
            return self.push("");
        }
        if self.request + 1 < self.script.requests.len() {
            return self.next();
        }
        self.leave()
    }

    fn push(&mut self, before: &str) -> String {
        let push = &self.wish().pushes[self.pushed];
        self.pushed += 1;
        if before.is_empty() {
            push.clone()
        } else {
            format!("{before} {push}")
        }
    }

    fn leave(&self) -> String {
        format!("{} {}", self.pick(&GIVES_IN), self.stop)
    }

    /// Comes with the next request, or ends.
    fn next(&mut self) -> String {
        if self.request + 1 == self.script.requests.len() {
            return format!("{} {}", self.pick(&THANKS), self.stop);
        }
        self.request += 1;
        self.pushed = 0;
        self.haggled = false;
        format!("{} {}", self.pick(&NEXT), self.wish().text)
    }

    fn lose_the_thread(&mut self) -> String {
        self.lost += 1;
        if self.lost > PATIENCE {
            return format!("This is leading nowhere. I'll try elsewhere. {}", self.stop);
        }
        format!("Sorry, I don't follow. {}", self.wish().again)
    }
}
