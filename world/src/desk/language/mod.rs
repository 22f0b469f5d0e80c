//! Reading of texts between customer and agent: plain cues of ordinary English.
//!
//! Used by the customers, scripted and simulated, and by the check that a write was confirmed. Everything works
//! on lower-case text.

mod cues;
mod reading;
mod topic;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use reading::{Reading, read};
pub use topic::Topic;

/// What an agent can propose or report to have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
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

impl Operation {
    pub(in crate::desk) const ALL: [Self; 7] = [
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
            Self::Return => &[
                "return",
                "refund",
                "send back",
                "take back",
                "taking back",
                "sending back",
            ],
            Self::Exchange => &["exchang", "swap", "replac"],
            Self::Address => &["address"],
            Self::Appointment => &["book", "appointment", "move", "moving", "reschedul"],
            Self::Voucher => &["voucher", "store credit"],
            Self::Transfer => &[
                "human",
                "colleague",
                "transfer you",
                "hand you over",
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

    /// All that a lower-case text names.
    pub(in crate::desk) fn all_named_in(text: &str) -> Vec<Self> {
        Self::ALL.into_iter().filter(|one| one.named_in(text)).collect()
    }

    /// Whether a lower-case text names any at all.
    pub fn any_named_in(text: &str) -> bool {
        Self::ALL.iter().any(|one| one.named_in(text))
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
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    let phrase = if phrase.bytes().all(is_lower) {
        Cow::Borrowed(phrase)
    } else {
        Cow::Owned(phrase.to_lowercase())
    };
    text.match_indices(&*phrase).any(|(at, _)| {
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
const NO: [&str; 4] = ["no", "don't", "do not", "nope"];
const HESITATION: [&str; 5] = ["but", "wait", "not yet", "rather not", "instead"];

/// Whether a customer's reply is a clear yes: one of its first two sentences agrees, and neither
/// hesitates or, before agreeing, refuses.
pub fn affirms(reply: &str) -> bool {
    let reply = reply.to_lowercase().replace('’', "'");
    let mut yes = false;
    for sentence in sentences(&reply).take(2) {
        let agrees = YES.iter().any(|word| {
            sentence
                .strip_prefix(word)
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        let refuses = NO.iter().any(|word| mentions(sentence, word));
        if holds_any(sentence, &HESITATION) || (refuses && !agrees) {
            return false;
        }
        yes |= YES.iter().any(|word| mentions(sentence, word));
    }
    yes
}

/// Whether a text holds something of the shape of `known` (digits stand for digits, so `O-1042`
/// has the shape of every order number) but never `known` itself.
pub fn contradicts(text: &str, known: &str) -> bool {
    let mut shaped = false;
    let (text, known) = (
        text.to_lowercase().into_bytes(),
        known.to_lowercase().into_bytes(),
    );
    for window in text.windows(known.len().max(1)) {
        let same_shape = window.iter().zip(&known).all(|(seen, wanted)| {
            if wanted.is_ascii_digit() {
                seen.is_ascii_digit()
            } else {
                seen == wanted
            }
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
        assert_eq!(
            parts,
            ["Order O-1042 costs 59.90.", "Is a.b@c.example right?", "Yes!"]
        );
    }

    #[test]
    fn a_yes_is_told_from_a_no() {
        for yes in [
            "Yes, please go ahead.",
            "Sure, do it.",
            "That's right. Thanks!",
            "Okay, go ahead",
        ] {
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
            "Rather not.",
            "Please don't do it.",
        ] {
            assert!(!affirms(no), "{no}");
        }
    }

    #[test]
    fn questions_for_facts_are_understood() {
        for (text, topics) in [
            (
                "May I have your e-mail address and postcode?",
                vec![Topic::Email, Topic::Postcode],
            ),
            ("Please tell me the order number.", vec![Topic::Order]),
            ("Which size would you like instead?", vec![Topic::Variant]),
            ("What is the new address?", vec![Topic::Address]),
            (
                "Could you please confirm the email address on the account?",
                vec![Topic::Email],
            ),
            ("Which slot would you like me to book?", vec![Topic::Date]),
            ("How can I help you today?", vec![Topic::Goal]),
            ("Why do you want to cancel?", vec![Topic::Reason]),
            (
                "Could you tell me which item of the order you mean?",
                vec![Topic::Item],
            ),
            ("Could you tell me which service you need?", vec![Topic::Service]),
            ("Which appointment is it about?", vec![Topic::Appointment]),
            ("What would you like me to do for you?", vec![Topic::Goal]),
            ("Please confirm your email.", vec![Topic::Email]),
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
            assert!(
                reading.proposes && reading.topics.is_empty(),
                "{text}: {reading:?}"
            );
        }
        for text in [
            "Your order has been cancelled.",
            "I am looking into it.",
            "We sell helmets.",
        ] {
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
    fn what_tells_something_is_told_from_small_talk() {
        assert!(read("It is expected on 2026-03-19.").informs);
        assert!(read("Your parcel is on its way.").informs);
        assert!(!read("I am looking into order O-1042.").informs);
        assert!(!read("Hello and welcome.").informs);
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
