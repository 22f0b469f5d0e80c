//! Appointments.

use jiff::ToSpan;
use serde_json::{Value, json};

use crate::desk::generator::World;
use crate::desk::generator::catalogue::{SERVICES, TODAY};
use crate::desk::generator::draft::{Draft, spoken};
use crate::desk::language::{Operation, Topic};
use crate::desk::shop::Service;
use crate::desk::task::Request;
use crate::tool_names;

use super::{choose, pushes, request};

/// Which slot the customer means: always the first free one at or after a day and time.
pub(super) fn preference(world: &World, index: usize, service: Service) -> (String, String, Vec<String>) {
    let free: Vec<(&String, _)> = world
        .shop
        .slots
        .iter()
        .filter(|(_, slot)| slot.service == service && slot.booked_by.is_none())
        .collect();
    match index % 3 {
        0 => {
            let (id, slot) = free[2 + index % 5];
            let words = format!("{} at {}", spoken(slot.date), slot.time);
            (id.clone(), words, vec![slot.time.clone()])
        }
        1 => {
            let day = TODAY.saturating_add((2 + (index % 4) as i64).days());
            let (id, _) = free
                .iter()
                .find(|(_, slot)| slot.date >= day)
                .expect("the calendar has free slots");
            (
                (*id).clone(),
                format!("the first free slot on or after {}", spoken(day)),
                Vec::new(),
            )
        }
        _ => {
            let taken: Vec<_> = world
                .shop
                .slots
                .values()
                .filter(|slot| slot.service == service && slot.booked_by.is_some() && slot.date > TODAY)
                .filter(|slot| {
                    free.iter()
                        .any(|(_, other)| (other.date, &other.time) > (slot.date, &slot.time))
                })
                .collect();
            let slot = taken[(1 + index % 3).min(taken.len() - 1)];
            let (id, _) = free
                .iter()
                .find(|(_, other)| (other.date, &other.time) > (slot.date, &slot.time))
                .expect("the calendar has free slots");
            let words = format!(
                "{} at {}, or the next free slot after that",
                spoken(slot.date),
                slot.time
            );
            ((*id).clone(), words, Vec::new())
        }
    }
}

pub(super) fn appointment_request(
    index: usize,
    service: &str,
    words: &str,
    recognises: Vec<String>,
    moved: bool,
) -> Request {
    let at_once = index.is_multiple_of(2);
    let text = if moved {
        choose(
            index,
            [
                format!("I need to reschedule my {service} appointment."),
                format!("I can't make it to my {service}. Can we move it to another day?"),
                format!("Please move my {service} appointment."),
            ],
        )
    } else {
        choose(
            index,
            [
                format!("I'd like to book a {service} for my bike."),
                format!("Can I bring in my bike for a {service}?"),
                format!("I need an appointment for a {service}."),
            ],
        )
    };
    let text = if at_once {
        format!("{text} It should be {words}.")
    } else {
        text
    };
    let verb = if moved { "move" } else { "book" };
    let again = format!("I want to {verb} a {service}: {words}.");
    let mut request = request(Operation::Appointment, text, again, recognises);
    request
        .facts
        .insert(Topic::Date, vec![format!("I'd like {words}.")]);
    request
        .facts
        .insert(Topic::Service, vec![format!("A {service}.")]);
    request.pushes = vec![format!("Then please look again, I'd like {words}.")];
    request
}

pub(super) fn bring_in(world: &mut World, draft: &mut Draft, index: usize) {
    let (service, name) = SERVICES[index % SERVICES.len()];
    let (slot, words, recognises) = preference(world, index, service);
    draft.request(appointment_request(index, name, &words, recognises, false));
    draft.call(tool_names::FIND_SLOTS, json!({"service": service}));
    draft.call(
        tool_names::BOOK_APPOINTMENT,
        json!({"customer_id": draft.customer, "slot_id": slot}),
    );
    draft.change(format!("slots/{slot}/booked_by"), json!(draft.customer));
}

pub(super) fn book(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index.is_multiple_of(2), false);
    draft.wants_human = index == 4;
    bring_in(world, &mut draft, index);
    draft
}

pub(super) fn move_appointment(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index.is_multiple_of(3), false);
    let (service, name) = SERVICES[(index + 1) % SERVICES.len()];
    let old = world.appointment(&draft.customer, service, |day| day > TODAY);
    let (slot, words, recognises) = preference(world, index + 1, service);
    draft.request(appointment_request(index, name, &words, recognises, true));
    draft.see_account();
    draft.call(tool_names::FIND_SLOTS, json!({"service": service}));
    draft.call(
        tool_names::BOOK_APPOINTMENT,
        json!({"customer_id": draft.customer, "slot_id": slot, "moves": old}),
    );
    draft.change(format!("slots/{slot}/booked_by"), json!(draft.customer));
    draft.change(format!("slots/{old}/booked_by"), Value::Null);
    draft
}

pub(super) fn move_same_day(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let (service, name) = SERVICES[2 * index];
    world.appointment(&draft.customer, service, |day| day == TODAY);
    let (_, words, _) = preference(world, index, service);
    draft.wants_human = index == 1;
    let mut request = appointment_request(index, name, &words, Vec::new(), true);
    request.pushes = pushes(index, 1 + index);
    draft.request(request);
    draft.see_account();
    draft.told(
        "that an appointment cannot be moved on its own day",
        &["day before", "same day", "own day", "on the day", "today"],
    );
    draft
}
