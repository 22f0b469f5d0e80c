//! Plans, ids and dates in the agent's words.

use crate::simulated::random::Draw;
use crate::tool_names;

/// The part of an operation that names action and record: up to the end of the first id.
pub(super) fn first_words(operation: &str) -> &str {
    let end = operation
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|&at| {
            operation[..at].ends_with(['O', 'T'])
                && operation[at + 1..].starts_with(|character: char| character.is_ascii_digit())
        })
        .map(|at| at + 1 + operation[at + 1..].bytes().take_while(u8::is_ascii_digit).count());
    end.map_or(operation, |end| &operation[..end])
}

/// A plan before the calls that carry it out, in words that ask, promise and report nothing.
pub(super) fn plan(first: &str, calls: usize, draw: Draw) -> String {
    const BEGINNINGS: [&str; 3] = [
        "Let me take this in order.",
        "One step after the other.",
        "Let me think about what is known and what is still open here.",
    ];
    const ENDS: [&str; 3] = [
        "With that in hand I can see which rules apply and what the right course is.",
        "Then I compare it with the request before I go on to the next step.",
        "After that the rest of the plan is only to be followed through.",
    ];
    let step = match first {
        tool_names::VERIFY_IDENTITY => "The first thing is to establish who is writing",
        tool_names::GET_ACCOUNT => "The account comes first, as it lists all that belongs to it",
        tool_names::GET_ORDER => "The order itself comes first, with its state and its items",
        tool_names::GET_SHIPMENT => "The parcel's record comes first, as it knows more than the order",
        tool_names::SEARCH_PRODUCTS => "The range and the stock come first",
        tool_names::FIND_SLOTS => "The workshop's calendar comes first",
        tool_names::TRANSFER_TO_HUMAN => "This is one for a colleague",
        _ => "Everything that has to be known is known, so this is the step to take",
    };
    let beginning = BEGINNINGS[draw.named("beginning").pick(BEGINNINGS.len())];
    let end = ENDS[draw.named("end").pick(ENDS.len())];
    let count = if calls > 1 { ", in several calls" } else { "" };
    format!("{beginning} {step}{count}. {end}")
}

/// `2026-03-19` → `19 March`.
pub(super) fn spoken_date(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-').skip(1);
    match (
        parts.next().and_then(|month| month.parse::<usize>().ok()),
        parts.next().and_then(|day| day.parse::<u8>().ok()),
    ) {
        (Some(month @ 1..=12), Some(day)) => format!("{day} {}", MONTHS[month - 1]),
        _ => date.to_owned(),
    }
}
