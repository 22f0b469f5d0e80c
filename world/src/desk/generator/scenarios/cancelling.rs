//! Cancelling orders.

use serde_json::json;

use crate::desk::generator::draft::{Draft, Knowledge, Subject, cancelled};
use crate::desk::generator::{Progress, World};
use crate::desk::language::Operation;
use crate::desk::shop::{Payment, ShipmentState};
use crate::desk::task::Request;
use crate::tool_names;

use super::{about, choose, pushes, request};

pub(super) fn cancel_request(index: usize, subject: &Subject) -> Request {
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("I'd like to cancel {mention}, please."),
            format!("I don't need {mention} any more. Can you call it off?"),
            format!("Please stop {mention}, I ordered by mistake and want to cancel."),
            format!("Is it still possible to cancel {mention}? I found it cheaper elsewhere."),
            format!("I have changed my mind about {mention} and would like it cancelled."),
        ],
    );
    let again = format!("I want to cancel {mention}.");
    about(
        request(Operation::Cancel, text, again, subject.recognises.clone()),
        subject,
    )
}

pub(super) fn cancel(
    world: &mut World,
    draft: &mut Draft,
    index: usize,
    knowledge: Knowledge,
    progress: Progress,
) {
    let skus = [
        ["P-101-M", "P-120-M"],
        ["P-301-BLACK", "P-404-BLUE"],
        ["P-110-L", "P-111-L"],
        ["P-204-16INCH", "P-310-BLACK"],
        ["P-320-GREEN", "P-402-11SPEED"],
    ][index % 5];
    let skus = &skus[..=index % 2];
    let subject = draft.order(world, knowledge, progress, Payment::Card, skus);
    draft.request(cancel_request(index, &subject));
    draft.call(tool_names::CANCEL_ORDER, json!({"order_id": subject.order}));
    for (path, value) in cancelled(world, &subject.order) {
        draft.change(path, value);
    }
}

pub(super) fn cancel_placed(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index.is_multiple_of(3), false);
    draft.wants_human = index % 4 == 2;
    cancel(
        world,
        &mut draft,
        index,
        Knowledge::nth(index),
        Progress::Placed(2 + index as i32 % 2),
    );
    draft
}

pub(super) fn cancel_packed_club(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, true, false);
    cancel(
        world,
        &mut draft,
        index + 1,
        Knowledge::nth(index + 1),
        Progress::Packed(3),
    );
    draft
}

pub(super) fn cancel_packed(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Packed(3),
        Payment::Card,
        &[["P-102-S"], ["P-321-BLACK"], ["P-403-32MM"]][index],
    );
    draft.wants_human = index > 0;
    let mut request = cancel_request(index + 2, &subject);
    request.pushes = pushes(index, 1 + index);
    draft.request(request);
    draft.told(
        "that a packed order can be cancelled for club members only",
        &["packed", "club", "club members"],
    );
    draft
}

pub(super) fn cancel_shipped(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 1, false);
    let progress = if index == 3 {
        Progress::Delivered(4)
    } else {
        Progress::Shipped(4, ShipmentState::InTransit, 2)
    };
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        progress,
        Payment::Card,
        &[["P-130-42"], ["P-320-GREY"], ["P-201-56CM"], ["P-406-80MM"]][index],
    );
    draft.wants_human = index.is_multiple_of(2);
    let mut request = cancel_request(index + 1, &subject);
    request.pushes = pushes(index + 1, index);
    draft.request(request);
    draft.told(
        "that the order was already shipped or delivered",
        &["shipped", "delivered", "on its way", "left our warehouse"],
    );
    draft
}
