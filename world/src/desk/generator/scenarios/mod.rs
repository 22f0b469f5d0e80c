//! The kinds of task, with what customers say.

mod cancelling;
mod delivery;
mod exchanging;
mod others;
mod returning;
mod several;
mod workshop;

use indexmap::IndexMap;

use crate::desk::generator::World;
use crate::desk::generator::draft::{Draft, Subject};
use crate::desk::language::{Operation, Topic};
use crate::desk::task::{Request, Task};

type Template = fn(&mut World, &'static str, usize) -> Draft;

const SCENARIOS: [(&str, usize, Template); 23] = [
    ("cancel_placed", 8, cancelling::cancel_placed),
    ("cancel_packed_club", 5, cancelling::cancel_packed_club),
    ("return_original", 8, returning::return_original),
    ("return_voucher", 6, returning::return_voucher),
    ("return_some", 4, returning::return_some),
    ("exchange", 8, exchanging::exchange),
    ("exchange_sold_out", 4, exchanging::exchange_sold_out),
    ("address", 7, delivery::address),
    ("book", 6, workshop::book),
    ("move_appointment", 6, workshop::move_appointment),
    ("track", 6, delivery::track),
    ("two_requests", 8, several::two_requests),
    ("return_too_late", 4, returning::return_too_late),
    ("return_clearance", 4, returning::return_clearance),
    ("cancel_shipped", 4, cancelling::cancel_shipped),
    ("cancel_packed", 3, cancelling::cancel_packed),
    ("address_expensive", 3, delivery::address_expensive),
    ("move_same_day", 2, workshop::move_same_day),
    ("not_the_holder", 2, others::not_the_holder),
    ("parcel_lost", 5, delivery::parcel_lost),
    ("paid_by_invoice", 4, others::paid_by_invoice),
    ("account_locked", 3, others::account_locked),
    ("injury", 4, others::injury),
];

/// Every task, without ids.
pub(super) fn all(world: &mut World) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (scenario, count, template) in SCENARIOS {
        for index in 0..count {
            tasks.push(template(world, scenario, index).finish(world));
        }
    }
    tasks
}

const INSISTENCE: [&str; 4] = [
    "Come on, surely you can make an exception just this once.",
    "That's ridiculous. I have been a customer for years.",
    "Then I want to speak to a human right now.",
    "I won't accept that. Please check again.",
];

/// The lines of a customer who takes no for an answer only after `count` times.
fn pushes(index: usize, count: usize) -> Vec<String> {
    (0..count)
        .map(|rank| INSISTENCE[(index + rank) % INSISTENCE.len()].to_owned())
        .collect()
}

/// A request that wants one operation.
fn request(operation: Operation, text: String, again: String, recognises: Vec<String>) -> Request {
    Request {
        text,
        again,
        wants: vec![operation],
        declines: if operation == Operation::Voucher {
            Vec::new()
        } else {
            vec![Operation::Voucher]
        },
        recognises,
        pushes: Vec::new(),
        haggles: None,
        answer: Vec::new(),
        facts: IndexMap::new(),
    }
}

/// What the customer says about the order is true of this request alone.
fn about(mut request: Request, subject: &Subject) -> Request {
    request.facts.insert(Topic::Order, vec![subject.fact.clone()]);
    request
}

fn choose<const N: usize>(index: usize, mut wordings: [String; N]) -> String {
    std::mem::take(&mut wordings[index % N])
}
