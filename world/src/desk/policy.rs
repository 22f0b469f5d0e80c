//! The rules of `policy.md` that a write can break, one function for each of its sections.
//!
//! Each says in plain words which rule the write breaks, or nothing.

use jiff::civil::Date;

use super::shop::{Customer, Money, Order, OrderState, Payment, RefundTo};
use super::state::State;

/// The policy as the agent reads it.
pub const TEXT: &str = include_str!("policy.md");

/// Orders of this total or more keep their delivery address.
const ADDRESS_LIMIT: Money = Money::from_cents(150_000);

/// Days from one date to a later one; negative if it is earlier.
pub fn days_between(from: Date, until: Date) -> i32 {
    (until - from).get_days()
}

/// Rules that stand above every change of an account.
fn account(owner: &Customer) -> Option<&'static str> {
    owner
        .locked
        .then_some("nothing may be changed for a locked account")
}

/// Rules that stand above every change of an order.
fn order(order: &Order, owner: &Customer) -> Option<&'static str> {
    account(owner).or_else(|| {
        (order.payment == Payment::Invoice).then_some("an order paid by invoice is for a human to change")
    })
}

/// Cancelling an order.
pub fn cancellation(subject: &Order, owner: &Customer) -> Option<&'static str> {
    order(subject, owner).or_else(|| {
        (subject.state == OrderState::Packed && !owner.club_member)
            .then_some("a packed order can be cancelled for club members only")
    })
}

/// Taking items back.
pub fn take_back(
    state: &State,
    subject: &Order,
    owner: &Customer,
    skus: &[String],
    refund_to: RefundTo,
) -> Option<&'static str> {
    order(subject, owner)
        .or_else(|| clearance(state, skus))
        .or_else(|| {
            let days = days_between(subject.delivered?, state.today());
            match (days, refund_to) {
                (61.., _) => Some("nothing is taken back more than 60 days after delivery"),
                (31.., RefundTo::Original) => Some("after 30 days a return is refunded by voucher only"),
                (..31, RefundTo::Voucher) => Some("within 30 days a return is refunded the way it was paid"),
                _ => None,
            }
        })
}

/// Exchanging an item.
pub fn exchange(state: &State, subject: &Order, owner: &Customer, sku: &str) -> Option<&'static str> {
    order(subject, owner)
        .or_else(|| clearance(state, &[sku.to_owned()]))
        .or_else(|| {
            (days_between(subject.delivered?, state.today()) > 60)
                .then_some("nothing is exchanged more than 60 days after delivery")
        })
}

/// Delivering an order elsewhere.
pub fn new_address(subject: &Order, owner: &Customer) -> Option<&'static str> {
    order(subject, owner).or_else(|| {
        (subject.total() >= ADDRESS_LIMIT)
            .then_some("the address of an order of 1500.00 or more must not be changed")
    })
}

/// Booking or moving an appointment.
pub fn appointment(
    state: &State,
    customer: &str,
    owner: &Customer,
    slot: &str,
    moves: Option<&str>,
) -> Option<&'static str> {
    let given_up = moves.and_then(|id| state.slot(id));
    account(owner).or_else(|| match (given_up, state.slot(slot)) {
        (Some(old), _) if old.date <= state.today() => Some("an appointment cannot be moved on its own day"),
        (None, Some(new)) => state
            .slots()
            .any(|(other, _)| other.service == new.service && other.booked_by.as_deref() == Some(customer))
            .then_some("a customer may hold one open appointment of each service"),
        _ => None,
    })
}

fn clearance(state: &State, skus: &[String]) -> Option<&'static str> {
    skus.iter()
        .any(|sku| state.variant(sku).is_some_and(|(product, _)| product.clearance))
        .then_some("clearance items are neither taken back nor exchanged")
}
