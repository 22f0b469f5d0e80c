//! Another variant of an item.

use serde_json::json;

use crate::desk::generator::draft::{Draft, Knowledge, Subject};
use crate::desk::generator::{Progress, World};
use crate::desk::language::{Operation, Topic};
use crate::desk::shop::Payment;
use crate::desk::task::Request;
use crate::tool_names;

use super::returning::take_back;
use super::{about, choose, request};

pub(super) fn exchange_request(
    world: &World,
    index: usize,
    subject: &Subject,
    sku: &str,
    new: &str,
) -> Request {
    let (item, had, wanted) = (world.product_name(sku), world.option(sku), world.option(new));
    let mention = &subject.beside_item;
    let text = choose(
        index,
        [
            format!("I'd like to exchange the {item} ({had}) from {mention} for {wanted}."),
            format!("The {item} in {had} from {mention} is not right for me. Can I swap it for {wanted}?"),
            format!(
                "I chose the wrong one: the {item} in {had} should have been {wanted}. That's from {mention}. Could you replace it?"
            ),
            format!("Can I get the {item} from {mention} in {wanted} instead of {had}?"),
        ],
    );
    let again = format!("I want to exchange the {item} ({had}) from {mention} for {wanted}.");
    let mut request = about(
        request(Operation::Exchange, text, again, subject.recognises.clone()),
        subject,
    );
    request
        .facts
        .insert(Topic::Item, vec![format!("The {item} in {had}.")]);
    request.facts.insert(
        Topic::Variant,
        vec![format!("I have {had} and would like {wanted}.")],
    );
    request
}

pub(super) const EXCHANGED: [(&str, &str); 5] = [
    ("P-101-M", "P-101-L"),
    ("P-110-L", "P-110-XL"),
    ("P-130-42", "P-130-43"),
    ("P-301-BLACK", "P-301-SILVER"),
    ("P-120-S", "P-120-M"),
];

pub(super) fn swap(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, days: i32) {
    let (sku, new) = EXCHANGED[index % EXCHANGED.len()];
    let subject = draft.order(world, knowledge, Progress::Delivered(days), Payment::Card, &[sku]);
    let request = exchange_request(world, index, &subject, sku, new);
    draft.request(request);
    draft.call(
        tool_names::SEARCH_PRODUCTS,
        json!({"query": world.product_name(sku)}),
    );
    draft.call(
        tool_names::EXCHANGE_ITEM,
        json!({"order_id": subject.order, "sku": sku, "new_sku": new}),
    );
    let path = format!("orders/{}/items/{sku}", subject.order);
    draft.change(format!("{path}/state"), json!("exchange_requested"));
    draft.change(format!("{path}/exchanged_for"), json!(new));
}

pub(super) fn exchange(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 5 == 2, false);
    draft.wants_human = index == 6;
    let days = [5, 21, 34, 48, 59, 13, 40, 8][index];
    swap(world, &mut draft, index, Knowledge::nth(index + 1), days);
    draft
}

pub(super) fn exchange_sold_out(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let (sku, new) = [
        ("P-102-M", "P-102-L"),
        ("P-130-43", "P-130-44"),
        ("P-403-40MM", "P-403-47MM"),
        ("P-302-BLACK", "P-302-RED"),
    ][index];
    let days = [7, 16, 28, 20][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Delivered(days),
        Payment::Card,
        &[sku],
    );
    let mut request = exchange_request(world, index + 1, &subject, sku, new);
    let item = world.product_name(sku);
    request.wants.push(Operation::Return);
    request.pushes = vec![format!(
        "If you don't have it, then I'd rather return the {item} and get my money back."
    )];
    draft.request(request);
    draft.call(tool_names::SEARCH_PRODUCTS, json!({"query": item}));
    take_back(world, &mut draft, &subject.order, &[sku], "original");
    draft.told(
        "that the variant wanted is sold out",
        &[
            "out of stock",
            "sold out",
            "not in stock",
            "no stock",
            "not available",
            "unavailable",
            "none in stock",
            "don't have",
        ],
    );
    draft
}
