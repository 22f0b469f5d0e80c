//! Intents of customers, read from their words.

/// The kinds of request a help desk knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// Call off an order.
    Cancel,
    /// Send items back.
    Return,
    /// Get another variant of an item.
    Exchange,
    /// Have an order delivered elsewhere.
    Address,
    /// Get a workshop appointment.
    Book,
    /// Have an appointment on another day.
    Move,
    /// Know where a parcel is.
    Track,
    /// Report an injury or a part that failed.
    Injury,
}

/// A customer's words for what they want: others than `Operation` has of an agent for what it does.
const CUES: [(Intent, &[&str]); 8] = [
    (
        Intent::Injury,
        &[
            "hurt",
            "injur",
            "crash",
            "snapped",
            "broke while",
            "broke off",
            "gave way",
            "fell off",
            "failed while",
            "accident",
            "hospital",
            "bruis",
            "broke under",
            "cracked",
            "came off",
        ],
    ),
    (
        Intent::Move,
        &[
            "reschedul",
            "another day",
            "move my",
            "move the appointment",
            "move it to",
            "can't make it",
            "cannot make it",
            "can't make my",
            "postpone",
            "different day",
            "other day",
            "change my appointment",
            "different time",
            "move an appointment",
            "can't come",
            "later day",
        ],
    ),
    (
        Intent::Exchange,
        &[
            "exchang",
            "swap",
            "too small",
            "too big",
            "too large",
            "too tight",
            "another size",
            "other size",
            "different size",
            "bigger size",
            "smaller size",
            "another colour",
            "other colour",
            "different colour",
            "instead of the",
            "replace",
        ],
    ),
    (
        Intent::Address,
        &[
            "new address",
            "delivery address",
            "wrong address",
            "different address",
            "another address",
            "other address",
            "old address",
            "the address",
            "i've moved",
            "i have moved",
            "we moved",
            "moving house",
            "i moved",
            "i'm moving",
            "i am moving",
            "deliver it to",
            "deliver to",
            "delivered to",
            "send it to",
            "ship it to",
            "new place",
            "new flat",
        ],
    ),
    (
        Intent::Return,
        &[
            "return",
            "send back",
            "sending back",
            "send it back",
            "send them back",
            "send the",
            "money back",
            "refund",
            "give back",
            "take back",
            "bring back",
            "back to you",
        ],
    ),
    (
        Intent::Cancel,
        &[
            "cancel",
            "call off",
            "any more",
            "anymore",
            "stop the order",
            "stop my order",
            "no longer want",
            "no longer need",
            "changed my mind",
            "don't want the order",
            "drop the order",
        ],
    ),
    (
        Intent::Track,
        &[
            "where is",
            "where's",
            "when will",
            "when does",
            "when is",
            "arrive",
            "tracking",
            "track my",
            "track the",
            "on its way",
            "not here yet",
            "still waiting",
            "parcel",
            "expected",
            "delivery status",
            "shipment",
        ],
    ),
    (
        Intent::Book,
        &[
            "book",
            "appointment",
            "bring in",
            "bring my",
            "slot",
            "tune-up",
            "tune up",
            "workshop",
            "serviced",
            "fitted",
            "fitting",
            "brakes",
            "suspension",
        ],
    ),
];

/// What a lower-case text asks for.
pub(super) fn intent(text: &str) -> Option<Intent> {
    CUES.iter()
        .find(|(_, cues)| cues.iter().any(|cue| text.contains(cue)))
        .map(|(intent, _)| *intent)
}

/// The workshop service a lower-case text speaks of, among those a deployment knows.
pub(super) fn service(text: &str) -> Option<&'static str> {
    const SERVICES: [(&str, &[&str]); 4] = [
        ("brake_service", &["brake"]),
        ("suspension_service", &["suspension", "fork", "shock"]),
        (
            "fitting",
            &["fitting", "fitted", "bike fit", "position", "saddle height"],
        ),
        (
            "tune_up",
            &[
                "tune-up",
                "tune up",
                "tune_up",
                "tuned",
                "general service",
                "check-up",
                "once-over",
                "gears",
            ],
        ),
    ];
    SERVICES
        .iter()
        .find(|(_, cues)| cues.iter().any(|cue| text.contains(cue)))
        .map(|(name, _)| *name)
}

/// The e-mail address in a text.
pub(super) fn email(text: &str) -> Option<&str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()))
        .find(|word| word.contains('@') && word.contains('.'))
}

/// Ids of a shape such as `O-1042`: a capital letter, a dash, digits.
pub(super) fn ids(text: &str, letter: char) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || character == '-'))
        .filter(move |word| {
            word.strip_prefix(letter)
                .and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        })
}

/// A postal address such as `12 Mill Lane, 4821 Aldport`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) street: String,
    pub(super) city: String,
    pub(super) postcode: String,
}

/// The last postal address in a text: house number and street, comma, four-digit postcode, town.
pub(super) fn address(text: &str) -> Option<Address> {
    let mut found = None;
    for (comma, _) in text.match_indices(", ") {
        let after = &text[comma + 2..];
        let postcode: String = after.chars().take_while(char::is_ascii_digit).collect();
        if postcode.len() != 4 {
            continue;
        }
        let city: Vec<&str> = after[4..]
            .split_whitespace()
            .take_while(|word| word.starts_with(char::is_uppercase))
            .scan(false, |ended, word| {
                if *ended {
                    return None;
                }
                *ended = word.ends_with(['.', ',', '!', '?', ';']);
                Some(word.trim_matches(|character: char| !character.is_alphanumeric()))
            })
            .collect();
        let before = &text[..comma];
        let words: Vec<(usize, &str)> = before
            .split(' ')
            .scan(0, |at, word| {
                let start = *at;
                *at += word.len() + 1;
                Some((start, word))
            })
            .collect();
        let street = words
            .iter()
            .rev()
            .take(6)
            .find(|(_, word)| word.starts_with(|character: char| character.is_ascii_digit()))
            .map(|(start, _)| before[*start..].to_owned());
        if let Some(street) = street
            && !city.is_empty()
        {
            found = Some(Address {
                street,
                city: city.join(" "),
                postcode,
            });
        }
    }
    found
}

/// A postcode in a text that is not part of an address: four digits by themselves.
pub(super) fn postcode(text: &str) -> Option<&str> {
    let lower = text.to_lowercase();
    let named = lower
        .find("postcode")
        .or_else(|| lower.find("post code"))
        .or_else(|| lower.find("postal code"));
    let mut fallback = None;
    let mut offset = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let start = offset;
        offset += word.len();
        let digits = word.trim_matches(|character: char| !character.is_alphanumeric());
        if digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            if named.is_some_and(|at| start.abs_diff(at) < 40) {
                return Some(digits);
            }
            let follows_comma = text[..start].trim_end().ends_with(',');
            if !follows_comma {
                fallback = Some(digits);
            }
        }
    }
    fallback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        for (text, expected) in [
            ("please cancel order o-1042", Intent::Cancel),
            ("i don't need the helmet any more", Intent::Cancel),
            ("i'd like my money back for the gloves", Intent::Return),
            (
                "the jersey is too small, can i swap it for an l?",
                Intent::Exchange,
            ),
            ("please change the delivery address of my order", Intent::Address),
            ("i'd like to book a tune-up", Intent::Book),
            ("i can't make it on friday, can we reschedule?", Intent::Move),
            ("where is my parcel?", Intent::Track),
            ("the handlebar snapped while riding", Intent::Injury),
        ] {
            assert_eq!(intent(text), Some(expected), "{text}");
        }
        assert_eq!(intent("hello there"), None);
    }

    #[test]
    fn facts_are_found() {
        assert_eq!(
            email("It's ada.krol@mail.example, thanks"),
            Some("ada.krol@mail.example")
        );
        assert_eq!(
            ids("Orders O-1042 and (O-7).", 'O').collect::<Vec<_>>(),
            ["O-1042", "O-7"]
        );
        assert_eq!(postcode("My postcode is 4810."), Some("4810"));
        assert_eq!(postcode("I live at 12 Mill Lane, 4821 Aldport."), None);
        let found = address("Please send it to 12 Mill Lane, 4821 Aldport.").unwrap();
        assert_eq!(
            (
                found.street.as_str(),
                found.postcode.as_str(),
                found.city.as_str()
            ),
            ("12 Mill Lane", "4821", "Aldport")
        );
        assert_eq!(address("nowhere"), None);
    }
}
