//! Durations, and moments of the local calendar.

use super::NOTHING;

/// A place in the log, from seconds since the run began: "41:07", from an hour on "1:50:07".
pub fn clock(seconds: f64) -> String {
    let Some(seconds) = whole(seconds, 1.0) else {
        return NOTHING.to_owned();
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

/// How long something took, in seconds: "40 s", "41 min", "1 h 50 min".
pub fn span(seconds: f64) -> String {
    match (whole(seconds, 1.0), whole(seconds, 60.0)) {
        (Some(short @ 0..60), _) => format!("{short} s"),
        (_, Some(minutes @ 0..60)) => format!("{minutes} min"),
        (_, Some(minutes)) => match minutes % 60 {
            0 => format!("{} h", minutes / 60),
            rest => format!("{} h {rest} min", minutes / 60),
        },
        _ => NOTHING.to_owned(),
    }
}

/// How long something lasted so far: [`span`], or an en dash where nothing is known of it.
pub fn lasted(seconds: f64) -> String {
    if seconds > 0.0 {
        span(seconds)
    } else {
        NOTHING.to_owned()
    }
}

/// An estimated duration in seconds: "about 18 min".
pub fn about(seconds: f64) -> String {
    let span = span(seconds);
    if span == NOTHING {
        span
    } else {
        format!("about {span}")
    }
}

/// Rounded count of units; `None` for what is no duration.
fn whole(seconds: f64, unit: f64) -> Option<u64> {
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds / unit).round() as u64)
}

/// A moment in the reader's own time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The year, such as 2025.
    pub year: i32,
    /// The month, from 1 to 12.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// The hour, from 0 to 23.
    pub hour: u8,
    /// The minute, from 0 to 59.
    pub minute: u8,
}

impl Moment {
    /// Day and month, with the year unless it is `this_year`: "21 Nov", "21 Nov 2024".
    pub fn date(&self, this_year: i32) -> String {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let month = usize::from(self.month)
            .checked_sub(1)
            .and_then(|index| MONTHS.get(index))
            .unwrap_or(&NOTHING);
        if self.year == this_year {
            format!("{} {month}", self.day)
        } else {
            format!("{} {month} {}", self.day, self.year)
        }
    }

    /// Hours and minutes: "14:32".
    pub fn time(&self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }

    /// Date and time: "21 Nov, 14:32".
    pub fn date_and_time(&self, this_year: i32) -> String {
        format!("{}, {}", self.date(this_year), self.time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_counts_minutes_and_seconds() {
        assert_eq!(clock(2467.0), "41:07");
        assert_eq!(clock(0.4), "00:00");
        assert_eq!(clock(6607.0), "1:50:07");
        assert_eq!(clock(-1.0), NOTHING);
    }

    #[test]
    fn durations_are_as_coarse_as_they_are_long() {
        for (seconds, text) in [
            (40.0, "40 s"),
            (59.6, "1 min"),
            (2460.0, "41 min"),
            (3599.0, "1 h"),
            (6600.0, "1 h 50 min"),
        ] {
            assert_eq!(span(seconds), text);
        }
        assert_eq!(about(1075.0), "about 18 min");
        assert_eq!(about(f64::NAN), NOTHING);
        assert_eq!((lasted(0.0).as_str(), lasted(40.0).as_str()), (NOTHING, "40 s"));
    }

    #[test]
    fn a_moment_leaves_out_the_year_of_today() {
        let moment = Moment {
            year: 2025,
            month: 11,
            day: 21,
            hour: 14,
            minute: 2,
        };
        assert_eq!(moment.date_and_time(2025), "21 Nov, 14:02");
        assert_eq!(moment.date(2026), "21 Nov 2025");
    }
}
