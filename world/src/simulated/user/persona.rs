//! What a system message tells a customer to be.

use super::hearing::{Deed, Topic, holds};

/// A persona as its system message describes it.
#[derive(Debug)]
pub(super) struct Persona<'a> {
    /// What the customer wants, one after the other. Never empty.
    pub(super) wants: Vec<Want<'a>>,
    /// What holds whatever the customer wants.
    pub(super) facts: Vec<Fact<'a>>,
    /// Whether the customer likes the idea of being handed to a human.
    pub(super) accepts_human: bool,
    /// Ends the conversation.
    pub(super) stop: &'a str,
}

/// One thing a customer wants.
#[derive(Debug, Default)]
pub(super) struct Want<'a> {
    /// The first words about it.
    pub(super) text: &'a str,
    /// The same in other words.
    pub(super) again: &'a str,
    /// What the customer agrees to; `None` when the persona does not say.
    pub(super) agrees_to: Option<Vec<Deed>>,
    /// What the customer does not agree to.
    pub(super) declines: Vec<Deed>,
    /// Numbers and times that are right.
    pub(super) known: Vec<&'a str>,
    /// What the customer says to the first proposal.
    pub(super) haggle: Option<&'a str>,
    /// What the customer says to the first refusal, the second, ….
    pub(super) insists: Vec<&'a str>,
    /// What holds for this want only.
    pub(super) facts: Vec<Fact<'a>>,
}

/// Something the customer knows.
#[derive(Debug)]
pub(super) struct Fact<'a> {
    /// What it is about, in the persona's words, in lower case.
    label: String,
    /// The answer to the first question about it, the second, …. Never empty.
    pub(super) answers: Vec<&'a str>,
}

impl<'a> Fact<'a> {
    fn new(label: &str, answers: &'a str) -> Self {
        Self {
            label: label.to_lowercase(),
            answers: answers.split(" / asked again: ").collect(),
        }
    }

    /// Whether it answers a question.
    pub(super) fn is_about(&self, topic: Topic) -> bool {
        holds(&self.label, topic.labels())
    }
}

impl<'a> Persona<'a> {
    /// Reads a system message: wants in numbered lines, each with what belongs to it in the lines
    /// below, and `- label: fact` lines.
    pub(super) fn read(system: &'a str) -> Self {
        let mut persona = Self {
            wants: Vec::new(),
            facts: Vec::new(),
            accepts_human: !system.contains("rather not accept"),
            stop: stop_token(system),
        };
        for line in system.lines().map(str::trim) {
            if let Some((number, text)) = line.split_once(". ")
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                persona.wants.push(Want {
                    text,
                    again: text,
                    ..Want::default()
                });
            } else if let Some(fact) = line.strip_prefix("- ") {
                if let Some((label, answers)) = fact.split_once(": ") {
                    persona.facts.push(Fact::new(label, answers));
                }
            } else if let Some(want) = persona.wants.last_mut() {
                want.take(line);
            }
        }
        if persona.wants.is_empty() {
            persona.wants.push(Want {
                text: "Hello.",
                again: "Please help me.",
                ..Want::default()
            });
        }
        persona
    }
}

impl<'a> Want<'a> {
    /// Takes in a line below the want.
    fn take(&mut self, line: &'a str) {
        let Some((about, rest)) = line.split_once(": ") else {
            return;
        };
        match about {
            "In other words" => self.again = rest,
            "You agree to" => {
                let (deeds, _) = rest.split_once('.').unwrap_or((rest, ""));
                self.agrees_to = Some(Deed::named_in(deeds));
            }
            "You do not accept" => self.declines = Deed::named_in(rest),
            "Before you agree, try" => self.haggle = Some(rest),
            "If it is refused, insist" => self.insists.push(rest),
            _ if about.ends_with("that you mean") => self.known = rest.split(", ").collect(),
            _ => {
                if let Some(label) = about.strip_prefix("Asked for ") {
                    self.facts.push(Fact::new(label, rest));
                }
            }
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
        .unwrap_or("[END]")
}
