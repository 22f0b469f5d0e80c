//! What a customer hears in a text of the help desk.

use crate::simulated::text;

/// What a customer can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Email,
    Postcode,
    Name,
    Order,
    Item,
    Variant,
    Address,
    Date,
    Service,
    Appointment,
    Reason,
    Goal,
}

impl Topic {
    const ALL: [Self; 12] = [
        Self::Email,
        Self::Postcode,
        Self::Name,
        Self::Order,
        Self::Item,
        Self::Variant,
        Self::Address,
        Self::Date,
        Self::Service,
        Self::Appointment,
        Self::Reason,
        Self::Goal,
    ];

    /// What a persona calls it.
    pub(super) fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Email => &["email", "e-mail"],
            Self::Postcode => &["postcode", "zip", "postal"],
            Self::Name => &["name"],
            Self::Order => &["order"],
            Self::Item => &["item", "product"],
            Self::Variant => &["size", "colour", "color", "variant"],
            Self::Address => &["new address", "delivery address", "street"],
            Self::Date => &["day", "date", "time"],
            Self::Service => &["service"],
            Self::Appointment => &["appointment", "booking"],
            Self::Reason => &["reason"],
            Self::Goal => &["goal"],
        }
    }

    /// How a help desk asks for it.
    fn questions(self) -> &'static [&'static str] {
        match self {
            Self::Email => &["e-mail", "email"],
            Self::Postcode => &["postcode", "post code", "postal code", "zip"],
            Self::Name => &["your name", "your full name", "full name"],
            Self::Order => &[
                "order number",
                "order id",
                "which order",
                "what order",
                "number of the order",
                "number of your order",
            ],
            Self::Item => &[
                "which item",
                "what item",
                "which of the items",
                "which product",
                "which article",
                "like to return",
                "like to exchange",
            ],
            Self::Variant => &["size", "colour", "color", "which variant", "which option"],
            Self::Address => &[
                "new address",
                "delivery address",
                "full address",
                "which address",
                "what address",
                "street",
            ],
            Self::Date => &[
                "which day",
                "what day",
                "which date",
                "what date",
                "which time",
                "what time",
                "which slot",
                "day and time",
                "date and time",
                "when would",
                "when should",
                "suit you",
                "suits you",
                "work for you",
                "works for you",
            ],
            Self::Service => &[
                "which service",
                "what service",
                "kind of service",
                "type of service",
            ],
            Self::Appointment => &[
                "which appointment",
                "which booking",
                "current appointment",
                "existing appointment",
            ],
            Self::Reason => &["reason", "why"],
            Self::Goal => &[
                "can i help",
                "may i help",
                "can i do for",
                "can i assist",
                "what would you like",
                "what is it about",
                "what is this about",
                "what do you need",
                "more detail",
            ],
        }
    }
}

/// What a help desk can offer to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Cancel,
    Return,
    Exchange,
    Address,
    Appointment,
    Voucher,
    Human,
}

impl Deed {
    const ALL: [Self; 7] = [
        Self::Cancel,
        Self::Return,
        Self::Exchange,
        Self::Address,
        Self::Appointment,
        Self::Voucher,
        Self::Human,
    ];

    /// Beginnings of words that name it.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Cancel => &["cancel", "call off"],
            Self::Return => &[
                "return",
                "refund",
                "send back",
                "sending back",
                "take back",
                "taking back",
            ],
            Self::Exchange => &["exchang", "swap", "replac"],
            Self::Address => &["address"],
            Self::Appointment => &["appointment", "book", "move", "moving", "reschedul"],
            Self::Voucher => &["voucher", "store credit"],
            Self::Human => &[
                "human",
                "colleague",
                "transfer you",
                "hand you over",
                "connect you",
                "put you through",
                "specialist",
                "supervisor",
            ],
        }
    }

    /// Whether a lower-case text names it.
    pub(super) fn is_named_in(self, text: &str) -> bool {
        holds(text, self.words())
    }

    /// Whether a lower-case text names any.
    pub(super) fn any_is_named_in(text: &str) -> bool {
        Self::ALL.iter().any(|deed| deed.is_named_in(text))
    }

    /// All that a text names.
    pub(super) fn named_in(text: &str) -> Vec<Self> {
        let lower = text.to_lowercase();
        let mut deeds = Self::ALL.to_vec();
        deeds.retain(|deed| deed.is_named_in(&lower));
        deeds
    }
}

/// What a text does, as far as a customer understands it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a text can do all of these at once")]
pub(super) struct Heard {
    /// Asks for these.
    pub(super) topics: Vec<Topic>,
    /// Asks for something, whether the customer understands what or not.
    pub(super) asks: bool,
    /// Asks for a yes.
    pub(super) proposes: bool,
    /// Says that something cannot be.
    pub(super) refuses: bool,
    /// Says that something is done.
    pub(super) reports: bool,
    /// Asks whether there is more.
    pub(super) closes: bool,
    /// Tells something that may answer a question: a date, where a parcel is.
    pub(super) informs: bool,
    /// The lower-case text without the sentences that refuse.
    pub(super) offered: String,
}

impl Heard {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        const OPENINGS: [&str; 7] = ["what", "which", "when", "where", "who", "why", "how"];
        let lower = text.to_lowercase().replace('’', "'");
        let mut heard = Self::default();
        for (start, end) in text::sentence_ranges(&lower) {
            let sentence = &lower[start..end];
            if holds(sentence, &["anything else", "something else", "any other"]) {
                heard.closes = true;
                continue;
            }
            let refuses = holds(sentence, &REFUSING);
            heard.refuses |= refuses;
            if !refuses {
                heard.offered.push_str(sentence);
                heard.offered.push(' ');
                heard.reports |= holds(sentence, &REPORTING);
            }
            let opens = OPENINGS.iter().any(|word| sentence.starts_with(word));
            if holds(sentence, &PROPOSING) && !opens && !holds(sentence, &["may i have", "may i ask"]) {
                heard.proposes = true;
            } else if opens || sentence.ends_with('?') || holds(sentence, &ASKING) {
                let before = heard.topics.len();
                for topic in Topic::ALL {
                    if holds(sentence, topic.questions()) && !heard.topics.contains(&topic) {
                        heard.topics.push(topic);
                    }
                }
                let understood = heard.topics.len() > before;
                heard.proposes |= !understood && holds(sentence, &["confirm", "agree", "okay?", "right?"]);
                heard.asks = true;
            } else if !refuses {
                heard.informs |= informs(sentence);
            }
        }
        heard
    }
}

const ASKING: [&str; 13] = [
    "could you",
    "can you",
    "may i have",
    "can i have",
    "could i have",
    "i need",
    "i'll need",
    "please tell",
    "please give",
    "please send",
    "provide",
    "let me know",
    "please confirm",
];

const PROPOSING: [&str; 14] = [
    "shall i",
    "shall we",
    "should i",
    "would you like me to",
    "do you want me to",
    "may i ",
    "go ahead?",
    "proceed",
    "yes or no",
    "yes/no",
    "is that right",
    "is that correct",
    "do you agree",
    "would you accept",
];

const REFUSING: [&str; 17] = [
    "cannot",
    "can't",
    "can not",
    "unable",
    "not able",
    "not possible",
    "impossible",
    "not allowed",
    "not permitted",
    "unfortunately",
    "not eligible",
    "could not",
    "couldn't",
    "no longer",
    "not available",
    "out of stock",
    "does not accept",
];

const REPORTING: [&str; 26] = [
    "been cancel",
    "been return",
    "been refund",
    "been exchang",
    "been swap",
    "been replac",
    "been chang",
    "been updat",
    "been book",
    "been moved",
    "been reschedul",
    "been regist",
    "been arrang",
    "been process",
    "been block",
    "is booked",
    "is cancelled",
    "is done",
    "are done",
    "all done",
    "all set",
    "i have cancelled",
    "i have booked",
    "i have moved",
    "i have changed",
    "i have registered",
];

/// Whether any of the cues stands in a text at the beginning of a word.
pub(super) fn holds(text: &str, cues: &[&str]) -> bool {
    cues.iter().any(|cue| {
        text.match_indices(cue)
            .any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
    })
}

/// Whether a sentence holds a day or tells where something is. Numbers of orders tell nothing.
fn informs(sentence: &str) -> bool {
    holds(
        sentence,
        &[
            "on its way",
            "has arrived",
            "been delivered",
            "is lost",
            "was lost",
        ],
    ) || sentence
        .split_whitespace()
        .any(|word| word.starts_with(|character: char| character.is_ascii_digit()))
}

/// Whether a text holds something of the shape of `known` (digits stand for digits, so `O-1042` has
/// the shape of every order number) but never `known` itself. The text is lower-case.
pub(super) fn contradicts(text: &str, known: &str) -> bool {
    let shape = |word: &str| word.replace(|character: char| character.is_ascii_digit(), "0");
    let known = known.to_lowercase();
    let mut alike = text
        .split_whitespace()
        .map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()))
        .filter(|word| shape(word) == shape(&known))
        .peekable();
    alike.peek().is_some() && !alike.any(|word| word == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_proposals_refusals_and_reports_are_told_apart() {
        for (text, topics) in [
            (
                "May I have your e-mail address and postcode?",
                vec![Topic::Email, Topic::Postcode],
            ),
            (
                "Could you tell me which item of the order you mean?",
                vec![Topic::Item],
            ),
            ("Could you tell me which service you need?", vec![Topic::Service]),
            ("Which appointment is it about?", vec![Topic::Appointment]),
            ("What would you like me to do for you?", vec![Topic::Goal]),
            ("Why do you want to cancel?", vec![Topic::Reason]),
            ("Please confirm your email.", vec![Topic::Email]),
        ] {
            let heard = Heard::read(text);
            assert_eq!(heard.topics, topics, "{text}");
            assert!(!heard.proposes && heard.asks, "{text}");
        }
        for text in [
            "Shall I change the delivery address of O-1042 to 5 Mill Lane?",
            "I'll book slot T-041. Please confirm.",
            "Is that right?",
        ] {
            let heard = Heard::read(text);
            assert!(heard.proposes && heard.topics.is_empty(), "{text}: {heard:?}");
        }
        let refusal = Heard::read("It has been shipped, so I cannot cancel the order.");
        assert!(refusal.refuses && !refusal.reports && refusal.offered.is_empty());
        let report = Heard::read("Your order has been cancelled. Is there anything else I can help with?");
        assert!(report.reports && report.closes && !report.refuses && !report.asks);
    }

    #[test]
    fn what_tells_something_is_told_from_small_talk() {
        assert!(Heard::read("It is expected on 2026-03-19.").informs);
        assert!(Heard::read("Your parcel is on its way.").informs);
        assert!(!Heard::read("I am looking into order O-1042.").informs);
        assert!(!Heard::read("Hello and welcome.").informs);
    }

    #[test]
    fn another_number_contradicts_and_none_does_not() {
        assert!(contradicts("shall i cancel o-1043?", "O-1042"));
        assert!(!contradicts("shall i cancel o-1042, not o-1043?", "O-1042"));
        assert!(!contradicts("shall i cancel it?", "O-1042"));
        assert!(contradicts("at 11:00?", "09:00"));
    }
}
