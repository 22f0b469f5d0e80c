//! Addresses and parcels.

use serde_json::json;

use crate::desk::generator::draft::{Draft, Knowledge, Subject, written};
use crate::desk::generator::{Progress, World};
use crate::desk::language::{Operation, Topic};
use crate::desk::shop::{Payment, ShipmentState};
use crate::desk::task::Request;
use crate::tool_names;

use super::{about, choose, pushes, request};

pub(super) fn address_request(
    world: &mut World,
    draft: &mut Draft,
    index: usize,
    subject: &Subject,
) -> Request {
    let mention = &subject.mention;
    let old = world.shop.orders[&subject.order].address.clone();
    let new = loop {
        let new = world.address();
        if new.street != old.street && new.city != old.city {
            break new;
        }
    };
    let full = format!("{}, {} {}", new.street, new.postcode, new.city);
    let at_once = index.is_multiple_of(2);
    let text = choose(
        index,
        [
            format!("I'm moving. Please deliver {mention} to a new address."),
            format!("I gave the wrong address for {mention}, can you change it?"),
            format!("Could {mention} go to a different delivery address?"),
            format!("I need the delivery address of {mention} changed."),
        ],
    );
    let text = if at_once {
        format!("{text} The new address is {full}.")
    } else {
        text
    };
    let again = format!("I want {mention} delivered to {full}.");
    let mut request = about(
        request(Operation::Address, text, again, subject.recognises.clone()),
        subject,
    );
    request
        .facts
        .insert(Topic::Address, vec![format!("The new address is {full}.")]);
    draft.call(
        tool_names::CHANGE_ADDRESS,
        json!({"order_id": subject.order, "street": new.street, "city": new.city, "postcode": new.postcode}),
    );
    let path = format!("orders/{}/address", subject.order);
    draft.change(format!("{path}/street"), json!(new.street));
    draft.change(format!("{path}/city"), json!(new.city));
    draft.change(format!("{path}/postcode"), json!(new.postcode));
    request
}

pub(super) fn redirect(
    world: &mut World,
    draft: &mut Draft,
    index: usize,
    knowledge: Knowledge,
    progress: Progress,
) {
    let skus: &[&str] = [
        &["P-204-20INCH"][..],
        &["P-111-M", "P-120-M"],
        &["P-201-52CM"],
        &["P-402-11SPEED"],
    ][index % 4];
    let subject = draft.order(world, knowledge, progress, Payment::Card, skus);
    let request = address_request(world, draft, index, &subject);
    draft.request(request);
}

pub(super) fn address(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 4 == 3, false);
    draft.wants_human = index == 5;
    let progress = if index % 3 == 1 {
        Progress::Packed(3)
    } else {
        Progress::Placed(2)
    };
    redirect(world, &mut draft, index, Knowledge::nth(index), progress);
    draft
}

pub(super) fn address_expensive(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 0, false);
    let skus: &[&str] = [
        &["P-203-M"][..],
        &["P-202-56CM", "P-101-M"],
        &["P-201-56CM", "P-201-52CM"],
    ][index];
    let knowledge = [Knowledge::Number, Knowledge::Content, Knowledge::Placed][index];
    let subject = draft.order(world, knowledge, Progress::Placed(2), Payment::Bank, skus);
    let mut request = address_request(world, &mut draft, index + 1, &subject);
    draft.refuse_last();
    draft.wants_human = index == 1;
    request.pushes = pushes(index + 1, 1 + index);
    draft.request(request);
    draft.told(
        "that the address of an order of 1500.00 or more is not changed",
        &["1500", "1500.00", "1,500", "1,500.00", "1 500"],
    );
    draft
}

pub(super) fn track_request(index: usize, subject: &Subject) -> Request {
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("Where is {mention}? It hasn't arrived."),
            format!("When will {mention} arrive?"),
            format!("I'm still waiting for {mention}. Do you know where the parcel is?"),
            format!("Can you give me tracking news on {mention}? When should I expect it?"),
        ],
    );
    let again = format!("I want to know when {mention} will arrive.");
    let mut request = about(
        request(Operation::Transfer, text, again, subject.recognises.clone()),
        subject,
    );
    request.wants.clear();
    request
}

pub(super) fn follow(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge) {
    let (parcel, due) = [
        (ShipmentState::InTransit, 2),
        (ShipmentState::Delayed, 5),
        (ShipmentState::InTransit, 1),
        (ShipmentState::Delayed, 8),
    ][index % 4];
    let skus = [["P-404-BLUE"], ["P-310-ORANGE"], ["P-110-S"], ["P-320-GREEN"]][index % 4];
    let subject = draft.order(
        world,
        knowledge,
        Progress::Shipped(6, parcel, due),
        Payment::Card,
        &skus,
    );
    let shipment = world.shop.orders[&subject.order]
        .shipment
        .clone()
        .expect("it was shipped");
    let expected = world.shop.shipments[&shipment].expected;
    draft.call(tool_names::GET_SHIPMENT, json!({"shipment_id": shipment}));
    let mut request = track_request(index, &subject);
    request.answer = written(expected);
    draft.told(
        &format!("that the parcel is expected on {expected}"),
        &written(expected).iter().map(String::as_str).collect::<Vec<_>>(),
    );
    draft.request(request);
}

pub(super) fn track(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 2, false);
    draft.wants_human = index == 4;
    follow(world, &mut draft, index, Knowledge::nth(index + 2));
    draft
}

pub(super) fn parcel_lost(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 2 == 1, false);
    let skus = [
        ["P-101-S"],
        ["P-404-BLACK"],
        ["P-403-32MM"],
        ["P-406-100MM"],
        ["P-321-GREY"],
    ][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Shipped(14 + index as i32, ShipmentState::Lost, -6),
        Payment::Card,
        &skus,
    );
    let shipment = world.shop.orders[&subject.order]
        .shipment
        .clone()
        .expect("it was shipped");
    draft.call(tool_names::GET_SHIPMENT, json!({"shipment_id": shipment}));
    draft.wants_human = index.is_multiple_of(2);
    let mut request = track_request(index + 1, &subject);
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("The parcel is lost.");
    draft
}
