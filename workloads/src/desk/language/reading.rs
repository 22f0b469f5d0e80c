//! What an agent's text asks, proposes, refuses and reports.

use serde::{Deserialize, Serialize};

use super::cues::{
    CLOSING, DONE, DONE_BY_ME, DONE_WORDS, PROPOSALS, QUESTION_WORDS, REFUSALS, REQUESTS, TOPICS,
};
use super::{holds_any, sentences};

/// What an agent can ask a customer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The e-mail address of the account.
    Email,
    /// The postcode of the account.
    Postcode,
    /// The customer's name.
    Name,
    /// The order's number, or what it can be told by.
    Order,
    /// Which items of the order.
    Item,
    /// The size or colour.
    Variant,
    /// The new delivery address.
    Address,
    /// Day and time of an appointment.
    Date,
    /// The workshop's service.
    Service,
    /// The appointment the customer has.
    Appointment,
    /// Why.
    Reason,
    /// What it is all about.
    Goal,
}

/// What one text of an agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a text can do all of these at once")]
pub struct Reading {
    /// Asks for these, in the order of the text.
    pub topics: Vec<Topic>,
    /// Asks for a yes.
    pub proposes: bool,
    /// Says that something cannot be.
    pub refuses: bool,
    /// Says that something is done.
    pub reports: bool,
    /// Asks whether there is anything else.
    pub closes: bool,
    /// The lower-case text without the sentences that refuse.
    pub offered: String,
}

/// Reads a text of an agent.
pub fn read(text: &str) -> Reading {
    let text = text.to_lowercase().replace('’', "'");
    let mut reading = Reading::default();
    for sentence in sentences(&text) {
        if holds_any(sentence, &CLOSING) {
            reading.closes = true;
            continue;
        }
        let refuses = holds_any(sentence, &REFUSALS);
        reading.refuses |= refuses;
        reading.reports |= !refuses
            && (holds_any(sentence, &DONE)
                || sentence == "done"
                || (holds_any(sentence, &DONE_BY_ME) && holds_any(sentence, &DONE_WORDS)));
        let question = QUESTION_WORDS.iter().any(|word| sentence.starts_with(word));
        let requests = question || holds_any(sentence, &REQUESTS) || sentence.ends_with('?');
        let proposes = !question
            && holds_any(sentence, &PROPOSALS)
            && !holds_any(
                sentence,
                &[
                    "may i have",
                    "can i have",
                    "may i ask",
                    "can i help",
                    "can i do for",
                ],
            );
        if proposes {
            reading.proposes = true;
        } else if requests {
            let before = reading.topics.len();
            for (topic, cues) in TOPICS {
                if holds_any(sentence, cues) && !reading.topics.contains(&topic) {
                    reading.topics.push(topic);
                }
            }
            reading.proposes |= reading.topics.len() == before
                && holds_any(sentence, &["confirm", "ok?", "okay?", "right?", "agree"]);
        }
        if !refuses {
            reading.offered.push_str(sentence);
            reading.offered.push(' ');
        }
    }
    reading
}
