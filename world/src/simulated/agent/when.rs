//! Days and times, as a customer puts them.

use super::handbook::iso_date;

/// When a customer would like to come, as far as a text says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct When {
    /// The days named by their date.
    pub(super) dates: Dates,
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

/// A day named by its date. Customers seldom say the year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: Option<i32>,
    month: u8,
    day: u8,
}

impl Date {
    /// A day of the form `2026-03-19`.
    fn iso(date: &str) -> Option<Self> {
        let mut parts = date.split('-');
        Some(Self {
            year: Some(parts.next()?.parse().ok()?),
            month: parts.next()?.parse().ok()?,
            day: parts.next()?.parse().ok()?,
        })
    }

    fn is(self, other: Self) -> bool {
        (self.month, self.day) == (other.month, other.day)
            && (self.year.is_none() || other.year.is_none() || self.year == other.year)
    }

    /// This day in a year: the one said, else the one that brings it nearest to `other`. In the last
    /// week of the year, "3 January" is a week ahead and not a year ago.
    fn near(self, other: Self) -> (i32, u8, u8) {
        const HALF_A_YEAR: i32 = 186;
        let in_year = |day: Self| 31 * i32::from(day.month) + i32::from(day.day);
        let ahead = in_year(self) - in_year(other);
        let turn = i32::from(ahead < -HALF_A_YEAR) - i32::from(ahead > HALF_A_YEAR);
        let year = self.year.or(other.year.map(|year| year + turn));
        (year.unwrap_or_default(), self.month, self.day)
    }
}

/// Days named by their dates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dates(Vec<Date>);

impl Dates {
    /// Whether a date of the form `2026-03-19` was named, with its year or without.
    pub(super) fn contains(&self, date: &str) -> bool {
        Date::iso(date).is_some_and(|date| self.0.iter().any(|day| day.is(date)))
    }
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
            when.dates.0.extend(Date::iso(date));
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
                    when.dates.0.push(Date {
                        year: None,
                        month: month as u8 + 1,
                        day,
                    });
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
            && let Some(from) = self.dates.0.last()
            && let Some(day) = Date::iso(date)
        {
            let from_time = self.times.last().map_or("", String::as_str);
            return (day.near(day), time) >= (from.near(day), from_time);
        }
        let day_given = !self.dates.0.is_empty() || !self.weekdays.is_empty();
        let day_fits = self.dates.contains(date)
            || (self.dates.0.is_empty()
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
    fn days_are_understood() {
        let when = When::read("Thursday 19 March at 9:00 would be best");
        assert!(when.allows("2026-03-19", "Thursday", "09:00"));
        assert!(!when.allows("2026-03-26", "Thursday", "09:00"));
        assert!(When::read("any time in the morning").allows("2026-03-20", "Friday", "09:00"));
        assert!(!When::read("in the afternoon").allows("2026-03-20", "Friday", "09:00"));
        assert!(When::read("hello").is_open());
        assert!(When::read("on 2027-03-19").allows("2027-03-19", "Friday", "09:00"));
        assert!(!When::read("on 2027-03-19").allows("2026-03-19", "Thursday", "09:00"));
        let onwards = When::read("Wednesday 25 March at 11:00, or the next free slot after that");
        assert!(
            onwards.allows("2026-03-25", "Wednesday", "14:00")
                && !onwards.allows("2026-03-25", "Wednesday", "09:00")
        );
    }

    #[test]
    fn a_day_is_meant_in_the_year_of_the_calendar() {
        let when = When::read("Friday 19 March at 9:00");
        assert!(when.allows("2027-03-19", "Friday", "09:00") && when.dates.contains("2027-03-19"));
        assert!(!when.allows("2027-03-20", "Saturday", "09:00"));
        let after = When::read("the first free slot on or after 3 January");
        for (date, allowed) in [
            ("2027-12-30", false),
            ("2028-01-02", false),
            ("2028-01-03", true),
            ("2028-01-10", true),
        ] {
            assert_eq!(after.allows(date, "Monday", "09:00"), allowed, "{date}");
        }
        assert!(When::read("from 30 December onwards").allows("2028-01-03", "Monday", "09:00"));
    }
}
