//! A workshop slot as agents see it.

use jiff::civil::{Date, Weekday};
use serde::Serialize;

use super::shop::{Service, Slot};

/// English name of a day of the week.
pub(in crate::desk) fn weekday(date: Date) -> &'static str {
    match date.weekday() {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

/// A workshop slot as agents see it.
#[derive(Serialize)]
pub(in crate::desk) struct Appointment {
    slot_id: String,
    service: Service,
    date: Date,
    weekday: &'static str,
    time: String,
}

impl Appointment {
    pub(in crate::desk) fn new(slot_id: &str, slot: &Slot) -> Self {
        Self {
            slot_id: slot_id.to_owned(),
            service: slot.service,
            date: slot.date,
            weekday: weekday(slot.date),
            time: slot.time.clone(),
        }
    }
}
