//! How texts between customer and agent are read: plain cues of ordinary English.
//!
//! Used by the scripted customer and by the check that a write was confirmed. Everything works on
//! lower-case text.

use serde::{Deserialize, Serialize};

/// What an agent can propose or report to have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Cancelling an order.
    Cancel,
    /// Taking items back.
    Return,
    /// Another variant for an item.
    Exchange,
    /// Another delivery address.
    Address,
    /// Booking or moving an appointment.
    Appointment,
    /// Paying back as a voucher.
    Voucher,
    /// Handing over to a human.
    Transfer,
}

impl Deed {
    const ALL: [Self; 7] = [
        Self::Cancel,
        Self::Return,
        Self::Exchange,
        Self::Address,
        Self::Appointment,
        Self::Voucher,
        Self::Transfer,
    ];

    /// Beginnings of words that name it.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Cancel => &["cancel", "call off"],
            Self::Return => &["return", "refund", "send back", "take back", "taking back", "sending back"],
            Self::Exchange => &["exchang", "swap", "replac"],
            Self::Address => &["address"],
            Self::Appointment => &["book", "appointment", "move", "moving", "reschedul"],
            Self::Voucher => &["voucher", "store credit"],
            Self::Transfer => &[
                "human",
                "colleague",
                "transfer you",
                "transferring you",
                "connect you",
                "put you through",
                "specialist",
                "supervisor",
            ],
        }
    }

    /// Whether a lower-case text names it.
    pub fn named_in(self, text: &str) -> bool {
        holds_any(text, self.words())
    }

    /// Whether a lower-case text names any at all.
    pub fn any_named_in(text: &str) -> bool {
        Self::ALL.iter().any(|deed| deed.named_in(text))
    }
}

/// Whether any of the cues stands in the text at the beginning of a word.
pub fn holds_any(text: &str, cues: &[&str]) -> bool {
    cues.iter().any(|cue| {
        text.match_indices(cue)
            .any(|(at, _)| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric))
    })
}

/// Whether a phrase stands in the text as whole words. The text is lower-case, the phrase need not
/// be.
pub fn mentions(text: &str, phrase: &str) -> bool {
    let phrase = phrase.to_lowercase();
    text.match_indices(&phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// The sentences of a text: ends are `.`, `?`, `!` before white space, and line ends.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .flat_map(|line| {
            let mut ended = false;
            line.split_inclusive(move |character: char| {
                let split = ended && character.is_whitespace();
                ended = matches!(character, '.' | '?' | '!');
                split
            })
        })
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
}

const YES: [&str; 13] = [
    "yes",
    "yeah",
    "yep",
    "sure",
    "go ahead",
    "please do",
    "do it",
    "that's right",
    "that is right",
    "correct",
    "i confirm",
    "sounds good",
    "okay",
];
const NO: [&str; 8] = ["no,", "no.", "no ", "don't", "do not", "not yet", "rather not", "wait"];

/// Whether a customer's reply is a clear yes: it holds a word of agreement in one of its first two
/// sentences and no word of refusal there.
pub fn affirms(reply: &str) -> bool {
    let reply = reply.to_lowercase();
    if reply.trim() == "no" {
        return false;
    }
    let mut yes = false;
    for sentence in sentences(&reply).take(2) {
        if sentence == "no" || holds_any(sentence, &NO) {
            return false;
        }
        yes |= holds_any(sentence, &YES);
    }
    yes
}

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

const TOPICS: [(Topic, &[&str]); 12] = [
    (Topic::Email, &["e-mail", "email"]),
    (Topic::Postcode, &["postcode", "post code", "postal code", "zip"]),
    (Topic::Name, &["your name", "your full name", "full name", "name on the account"]),
    (
        Topic::Order,
        &["order number", "order id", "number of the order", "number of your order", "which order", "what order", "order's number"],
    ),
    (
        Topic::Item,
        &["which item", "what item", "which product", "which article", "which of the items", "what product", "like to return", "like to exchange"],
    ),
    (Topic::Variant, &["size", "colour", "color", "which variant", "which option"]),
    (
        Topic::Address,
        &["new address", "delivery address", "shipping address", "full address", "complete address", "which address", "what address", "street"],
    ),
    (
        Topic::Date,
        &[
            "which day", "what day", "which date", "what date", "which time", "what time", "when would", "when do you",
            "when should", "which slot", "preferred da", "preferred time", "preferred slot", "date and time", "day and time", "suits you", "suit you",
            "works for you", "work for you", "works best", "which of these",
        ],
    ),
    (Topic::Service, &["which service", "what service", "kind of service", "type of service", "what kind of work"]),
    (
        Topic::Appointment,
        &["which appointment", "current appointment", "existing appointment", "which booking", "appointment number"],
    ),
    (Topic::Reason, &["reason", "why"]),
    (
        Topic::Goal,
        &[
            "can i help", "may i help", "can i do for", "what would you like", "what is it about", "what is this about",
            "what do you need", "how can i assist", "more detail", "describe",
        ],
    ),
];

const QUESTION_WORDS: [&str; 8] = ["what", "which", "when", "where", "who", "why", "how", "for what"];
const REQUESTS: [&str; 17] = [
    "could you", "can you", "would you", "please", "may i have", "can i have", "could i have", "i need", "i'll need",
    "i will need", "provide", "tell me", "give me", "send me", "let me know", "share", "may i ask",
];
const PROPOSALS: [&str; 24] = [
    "shall i", "shall we", "should i", "would you like me", "do you want", "want me to", "may i ", "can i ", "go ahead", "proceed",
    "yes or no", "yes/no", "is that right", "is that correct", "is this correct", "is this right", "is that ok",
    "is this ok", "is it ok", "do you agree", "do you confirm", "confirm that", "to confirm", "would you accept",
];
const REFUSALS: [&str; 16] = [
    "cannot", "can't", "can not", "unable", "not able", "not possible", "impossible", "not allowed", "not permitted", "unfortunately",
    "not eligible", "could not verify", "couldn't verify", "no longer", "not available", "out of stock",
];
const DONE: [&str; 26] = [
    "been cancel", "been return", "been refund", "been exchang", "been swap", "been replac", "been chang", "been updat",
    "been book", "been move", "been reschedul", "been regist", "been arrang", "been request", "been process",
    "been set", "is now", "are now", "is done", "all done", "done.", "done:", "done!", "all set", "is booked", "is cancelled",
];
const DONE_BY_ME: [&str; 4] = ["i have ", "i've ", "i just ", "we have "];
const DONE_WORDS: [&str; 13] = [
    "cancelled", "canceled", "returned", "refunded", "exchanged", "swapped", "changed", "updated", "booked", "moved",
    "rescheduled", "registered", "arranged",
];
const CLOSING: [&str; 3] = ["anything else", "something else", "any other"];

/// What one text of an agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
            && !holds_any(sentence, &["may i have", "can i have", "may i ask", "can i help", "can i do for"]);
        if proposes {
            reading.proposes = true;
        } else if requests {
            let before = reading.topics.len();
            for (topic, cues) in TOPICS {
                if holds_any(sentence, cues) && !reading.topics.contains(&topic) {
                    reading.topics.push(topic);
                }
            }
            reading.proposes |= reading.topics.len() == before && holds_any(sentence, &["confirm", "ok?", "okay?", "right?", "agree"]);
        }
        if !refuses {
            reading.offered.push_str(sentence);
            reading.offered.push(' ');
        }
    }
    reading
}

/// Whether a text holds something of the shape of `known` (digits stand for digits, so `O-1042`
/// has the shape of every order number) but never `known` itself.
pub fn contradicts(text: &str, known: &str) -> bool {
    let mut shaped = false;
    let (text, known) = (text.to_lowercase().into_bytes(), known.to_lowercase().into_bytes());
    for window in text.windows(known.len().max(1)) {
        let same_shape = window.iter().zip(&known).all(|(seen, wanted)| {
            if wanted.is_ascii_digit() { seen.is_ascii_digit() } else { seen == wanted }
        });
        if same_shape && window == known.as_slice() {
            return false;
        }
        shaped |= same_shape;
    }
    shaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_end_before_white_space_only() {
        let parts: Vec<_> = sentences("Order O-1042 costs 59.90. Is a.b@c.example right?\n\nYes! ").collect();
        assert_eq!(parts, ["Order O-1042 costs 59.90.", "Is a.b@c.example right?", "Yes!"]);
    }

    #[test]
    fn a_yes_is_told_from_a_no() {
        for yes in ["Yes, please go ahead.", "Sure, do it.", "That's right. Thanks!", "Okay, go ahead"] {
            assert!(affirms(yes), "{yes}");
        }
        for no in [
            "No, that's not the one.",
            "no",
            "No",
            "I don't want a voucher.",
            "Yes, but wait until tomorrow.",
            "My postcode is 4810.",
            "",
            "I know it is late.",
        ] {
            assert!(!affirms(no), "{no}");
        }
    }

    #[test]
    fn questions_for_facts_are_understood() {
        for (text, topics) in [
            ("May I have your e-mail address and postcode?", vec![Topic::Email, Topic::Postcode]),
            ("Please tell me the order number.", vec![Topic::Order]),
            ("Which size would you like instead?", vec![Topic::Variant]),
            ("What is the new address?", vec![Topic::Address]),
            ("Could you please confirm the email address on the account?", vec![Topic::Email]),
            ("Which slot would you like me to book?", vec![Topic::Date]),
            ("How can I help you today?", vec![Topic::Goal]),
            ("Why do you want to cancel?", vec![Topic::Reason]),
        ] {
            let reading = read(text);
            assert_eq!(reading.topics, topics, "{text}");
            assert!(!reading.proposes, "{text}");
        }
    }

    #[test]
    fn proposals_are_told_from_questions_and_statements() {
        for text in [
            "I will cancel order O-1042 and refund 59.90. Shall I go ahead?",
            "Would you like me to change the delivery address of O-1042 to 5 Mill Lane?",
            "I'll book slot T-041 on 2026-03-18. Please confirm.",
            "Return the helmet for a voucher of 59.90 (yes/no)?",
            "Is that right?",
        ] {
            let reading = read(text);
            assert!(reading.proposes && reading.topics.is_empty(), "{text}: {reading:?}");
        }
        for text in ["Your order has been cancelled.", "I am looking into it.", "We sell helmets."] {
            assert!(!read(text).proposes, "{text}");
        }
    }

    #[test]
    fn refusals_and_reports_are_told_apart() {
        let refusal = read("I'm sorry, since it has been shipped I cannot cancel the order.");
        assert!(refusal.refuses && !refusal.reports);
        let report = read("Your order has been cancelled. Is there anything else I can help with?");
        assert!(report.reports && report.closes && !report.refuses && report.topics.is_empty());
    }

    #[test]
    fn a_wrong_number_contradicts_and_no_number_does_not() {
        assert!(contradicts("Shall I cancel O-1043?", "O-1042"));
        assert!(!contradicts("Shall I cancel O-1042, not O-1043?", "O-1042"));
        assert!(!contradicts("Shall I cancel it?", "O-1042"));
        assert!(contradicts("At 11:00?", "09:00"));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC{0,200}", known in "\\PC{0,8}") {
            let reading = read(&text);
            prop_assert!(reading.offered.len() <= 4 * text.len() + 1 + text.len());
            contradicts(&text, &known);
            affirms(&text);
        }
    }
}
