//! Sending items back.

use serde_json::json;

use crate::desk::generator::draft::{Draft, Knowledge, Subject};
use crate::desk::generator::{Progress, World};
use crate::desk::language::{Operation, Topic};
use crate::desk::shop::{Money, Payment};
use crate::desk::task::Request;
use crate::tool_names;

use super::{INSISTENCE, about, choose, pushes, request};

/// The items in words: `Alder helmet` or `Alder helmet and the Fern gloves`.
pub(super) fn names(world: &World, skus: &[&str]) -> String {
    skus.iter()
        .map(|sku| world.product_name(sku))
        .collect::<Vec<_>>()
        .join(" and the ")
}

pub(super) fn return_request(world: &World, index: usize, subject: &Subject, skus: &[&str]) -> Request {
    let items = names(world, skus);
    let mention = &subject.beside_item;
    let text = choose(
        index,
        [
            format!("I want to return the {items} from {mention}."),
            format!(
                "I ordered the {items} ({mention}) and would like to send that back and get my money back."
            ),
            format!("Can I get a refund for the {items}? I bought that with {mention}."),
            format!("I'm not happy with the {items} from {mention} and would like to send that back."),
            format!("How do I return the {items}? That's from {mention}."),
        ],
    );
    let again = format!("I want to return the {items} from {mention}.");
    let mut request = about(
        request(Operation::Return, text, again, subject.recognises.clone()),
        subject,
    );
    request
        .facts
        .insert(Topic::Item, vec![format!("Only the {items}.")]);
    request
}

pub(super) fn take_back(world: &World, draft: &mut Draft, order: &str, skus: &[&str], refund_to: &str) {
    draft.call(
        tool_names::RETURN_ITEMS,
        json!({"order_id": order, "skus": skus, "refund_to": refund_to}),
    );
    let items = &world.shop.orders[order].items;
    let amount: Money = skus.iter().map(|sku| items[*sku].price).sum();
    for sku in skus {
        draft.change(
            format!("orders/{order}/items/{sku}/state"),
            json!("return_requested"),
        );
    }
    draft.change(
        format!("orders/{order}/refunds"),
        json!([{"amount": amount, "to": refund_to}]),
    );
}

pub(super) const RETURNED: [&[&str]; 6] = [
    &["P-110-M", "P-120-L"],
    &["P-130-43"],
    &["P-320-BLACK", "P-301-BLACK"],
    &["P-404-BLACK"],
    &["P-101-L", "P-402-12SPEED"],
    &["P-403-40MM"],
];

pub(super) fn give_back(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, days: i32) {
    let skus = RETURNED[index % RETURNED.len()];
    let subject = draft.order(world, knowledge, Progress::Delivered(days), Payment::Card, skus);
    let request = return_request(world, index, &subject, &skus[..1]);
    draft.request(request);
    take_back(world, draft, &subject.order, &skus[..1], "original");
}

pub(super) fn return_original(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 4 == 1, false);
    draft.wants_human = index == 4;
    let days = [6, 12, 19, 25, 29, 9, 30, 15][index];
    give_back(world, &mut draft, index, Knowledge::nth(index), days);
    draft
}

pub(super) fn return_voucher(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 1, false);
    let skus = RETURNED[(index + 3) % RETURNED.len()];
    let days = [33, 41, 52, 31, 60, 47][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Delivered(days),
        Payment::Card,
        skus,
    );
    let mut request = return_request(world, index + 2, &subject, &skus[..1]);
    request.declines.clear();
    request.pushes = vec!["If the money is not possible, then I'd take a voucher for the return.".to_owned()];
    if index.is_multiple_of(2) {
        request.haggles = Some("Hmm, I'd rather have the money back. Is there really no way?".to_owned());
        request
            .pushes
            .insert(0, INSISTENCE[index % INSISTENCE.len()].to_owned());
    }
    draft.request(request);
    take_back(world, &mut draft, &subject.order, &skus[..1], "voucher");
    draft
}

pub(super) fn return_some(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let skus: [&str; 3] = [
        ["P-101-S", "P-120-S", "P-302-BLACK"],
        ["P-310-BLACK", "P-320-GREY", "P-401-RIM"],
    ][index % 2];
    let days = [8, 22, 35, 14][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Delivered(days),
        Payment::Bank,
        &skus,
    );
    let mut request = return_request(world, index + 1, &subject, &skus[..2]);
    let refund_to = if days > 30 { "voucher" } else { "original" };
    if days > 30 {
        request.declines.clear();
        request.pushes = vec!["Then a voucher is fine for the return.".to_owned()];
    }
    draft.request(request);
    take_back(world, &mut draft, &subject.order, &skus[..2], refund_to);
    draft
}

pub(super) fn return_too_late(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 2, false);
    let skus = RETURNED[index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Delivered([64, 75, 61, 90][index]),
        Payment::Card,
        skus,
    );
    draft.wants_human = index % 2 == 1;
    let mut request = return_request(world, index + 3, &subject, &skus[..1]);
    request.pushes = pushes(index + 2, index);
    draft.request(request);
    draft.told(
        "that nothing is taken back more than 60 days after delivery",
        &["60 days", "60-day", "60 day", "sixty days"],
    );
    draft
}

pub(super) fn return_clearance(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 0, false);
    let skus: &[&str] = [&["P-121-M"], &["P-322-BLUE"], &["P-405-WIDE"], &["P-322-GREY"]][index];
    let days = [5, 11, 17, 36][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Delivered(days),
        Payment::Card,
        skus,
    );
    draft.wants_human = index == 2;
    let mut request = return_request(world, index + 1, &subject, skus);
    request.pushes = pushes(index, 1 + index % 3);
    draft.request(request);
    draft.told("that clearance items are not taken back", &["clearance"]);
    draft
}
