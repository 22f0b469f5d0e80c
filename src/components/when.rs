//! Moments in the reader's own time zone.

use js_sys::Date;
use leptos::prelude::*;

use crate::format::{Moment, NOTHING};

/// A moment of RFC 3339, which stands as it is in the title.
#[component]
pub fn When(at: String) -> impl IntoView {
    let shown = date_and_time(&Date::new(&at.as_str().into()));
    view! {
        <time class="nw" datetime=at.clone() title=at>
            {shown}
        </time>
    }
}

/// Whether a moment of RFC 3339 has passed.
pub fn is_past(at: &str) -> bool {
    Date::new(&at.into()).get_time() <= Date::now()
}

/// "21 Nov, 14:32".
pub fn date_and_time(date: &Date) -> String {
    if date.get_time().is_nan() {
        return NOTHING.to_owned();
    }
    let moment = Moment {
        year: year(date),
        month: date.get_month() as u8 + 1,
        day: date.get_date() as u8,
        hour: date.get_hours() as u8,
        minute: date.get_minutes() as u8,
    };
    moment.date_and_time(year(&Date::new_0()))
}

fn year(date: &Date) -> i32 {
    i32::try_from(date.get_full_year()).unwrap_or(i32::MAX)
}
