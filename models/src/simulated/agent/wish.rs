//! What a customer wants, read from their words.

use super::handbook::iso_date;

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

/// When a customer would like to come, as far as a text says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct When {
    /// Dates of the form `2026-03-19`.
    pub(super) dates: Vec<String>,
    /// Days of the week, lower case.
    pub(super) weekdays: Vec<&'static str>,
    /// Times of the form `09:00`.
    pub(super) times: Vec<String>,
    /// In the morning (`true`) or in the afternoon (`false`).
    pub(super) morning: Option<bool>,
    /// As early as possible.
    pub(super) earliest: bool,
    /// From the day and time on, not only then.
    pub(super) onwards: bool,
}

impl When {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        const WEEKDAYS: [&str; 7] = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        const MONTHS: [&str; 12] = [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ];
        let lower = text.to_lowercase();
        let mut when = Self::default();
        let mut rest = lower.as_str();
        while let Some(date) = iso_date(rest) {
            when.dates.push(date.to_owned());
            let end = date.as_ptr() as usize - rest.as_ptr() as usize + date.len();
            rest = &rest[end..];
        }
        let words: Vec<&str> = lower
            .split(|character: char| !(character.is_alphanumeric() || character == ':'))
            .filter(|word| !word.is_empty())
            .collect();
        for (index, word) in words.iter().enumerate() {
            if let Some(month) = MONTHS.iter().position(|month| month == word) {
                let near = [index.checked_sub(1), Some(index + 1), index.checked_sub(2)];
                let day = near
                    .into_iter()
                    .flatten()
                    .find_map(|at| day_number(words.get(at)?));
                if let Some(day) = day {
                    when.dates.push(format!("2026-{:02}-{day:02}", month + 1));
                }
            }
            if let Some(weekday) = WEEKDAYS.iter().find(|weekday| *weekday == word) {
                when.weekdays.push(weekday);
            }
            if let Some((hours, minutes)) = word.split_once(':')
                && let (Ok(hours), Ok(minutes)) = (hours.parse::<u8>(), minutes.parse::<u8>())
            {
                when.times.push(format!("{hours:02}:{minutes:02}"));
            }
        }
        when.morning = if lower.contains("morning") {
            Some(true)
        } else if lower.contains("afternoon") {
            Some(false)
        } else {
            None
        };
        when.earliest = [
            "earliest",
            "soonest",
            "as soon as",
            "first free",
            "next free",
            "first available",
            "any day",
            "any time",
        ]
        .iter()
        .any(|cue| lower.contains(cue));
        when.onwards = [
            "on or after",
            "or later",
            "or the next",
            "from then",
            "onwards",
            "at the earliest",
        ]
        .iter()
        .any(|cue| lower.contains(cue));
        when
    }

    /// Whether nothing was said.
    pub(super) fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a slot fits.
    pub(super) fn allows(&self, date: &str, weekday: &str, time: &str) -> bool {
        if self.onwards
            && let Some(from) = self.dates.last()
        {
            let from_time = self.times.last().map_or("", String::as_str);
            return (date, time) >= (from.as_str(), from_time);
        }
        let day_given = !self.dates.is_empty() || !self.weekdays.is_empty();
        let day_fits = self.dates.iter().any(|wanted| wanted == date)
            || (self.dates.is_empty()
                && self
                    .weekdays
                    .iter()
                    .any(|wanted| weekday.eq_ignore_ascii_case(wanted)));
        let time_fits = self.times.is_empty() || self.times.iter().any(|wanted| wanted == time);
        let half_fits = self.morning.is_none_or(|morning| (time < "12:00") == morning);
        (!day_given || day_fits) && time_fits && half_fits
    }
}

fn day_number(word: &str) -> Option<u8> {
    let digits = word.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    digits.parse().ok().filter(|day| (1..=31).contains(day))
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

    #[test]
    fn days_are_understood() {
        let when = When::read("Thursday 19 March at 9:00 would be best");
        assert!(when.allows("2026-03-19", "Thursday", "09:00"));
        assert!(!when.allows("2026-03-26", "Thursday", "09:00"));
        assert!(When::read("any time in the morning").allows("2026-03-20", "Friday", "09:00"));
        assert!(!When::read("in the afternoon").allows("2026-03-20", "Friday", "09:00"));
        assert!(When::read("hello").is_open());
        let onwards = When::read("Wednesday 25 March at 11:00, or the next free slot after that");
        assert!(
            onwards.allows("2026-03-25", "Wednesday", "14:00")
                && !onwards.allows("2026-03-25", "Wednesday", "09:00")
        );
    }
}
