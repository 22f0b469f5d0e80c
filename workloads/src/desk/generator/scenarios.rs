//! The kinds of task, with what customers say.

use serde_json::{Value, json};

use super::super::language::{Deed, Topic};
use super::super::shop::{Payment, Service, ShipmentState};
use super::super::task::{Request, Task};
use super::catalogue::{SERVICES, TODAY};
use super::draft::{Draft, Knowledge, Subject, cancelled, spoken, written};
use super::{Progress, World};

type Template = fn(&mut World, &'static str, usize) -> Draft;

const SCENARIOS: [(&str, usize, Template); 23] = [
    ("cancel_placed", 8, cancel_placed),
    ("cancel_packed_club", 5, cancel_packed_club),
    ("return_original", 8, return_original),
    ("return_voucher", 6, return_voucher),
    ("return_some", 4, return_some),
    ("exchange", 8, exchange),
    ("exchange_sold_out", 4, exchange_sold_out),
    ("address", 7, address),
    ("book", 6, book),
    ("move_appointment", 6, move_appointment),
    ("track", 6, track),
    ("two_requests", 8, two_requests),
    ("return_too_late", 4, return_too_late),
    ("return_clearance", 4, return_clearance),
    ("cancel_shipped", 4, cancel_shipped),
    ("cancel_packed", 3, cancel_packed),
    ("address_expensive", 3, address_expensive),
    ("move_same_day", 2, move_same_day),
    ("not_the_holder", 2, not_the_holder),
    ("parcel_lost", 5, parcel_lost),
    ("paid_by_invoice", 4, paid_by_invoice),
    ("account_locked", 3, account_locked),
    ("injury", 4, injury),
];

/// Every task, without ids.
pub(super) fn all(world: &mut World) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (scenario, count, template) in SCENARIOS {
        for index in 0..count {
            tasks.push(template(world, scenario, index).finish());
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
    (0..count).map(|rank| INSISTENCE[(index + rank) % INSISTENCE.len()].to_owned()).collect()
}

/// A request that wants one deed.
fn request(deed: Deed, text: String, again: String, recognises: Vec<String>) -> Request {
    Request {
        text,
        again,
        wants: vec![deed],
        declines: if deed == Deed::Voucher { Vec::new() } else { vec![Deed::Voucher] },
        recognises,
        pushes: Vec::new(),
        haggles: None,
        answer: Vec::new(),
        facts: indexmap::IndexMap::new(),
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

// Cancelling

fn cancel_request(index: usize, subject: &Subject) -> Request {
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("I'd like to cancel {mention}, please."),
            format!("I don't need {mention} any more. Can you call it off?"),
            format!("please stop {mention}, I ordered by mistake and want to cancel."),
            format!("is it still possible to cancel {mention}? I found it cheaper elsewhere."),
            format!("I have changed my mind about {mention} and would like it cancelled."),
        ],
    );
    let again = format!("I want to cancel {mention}.");
    about(request(Deed::Cancel, text, again, subject.recognises.clone()), subject)
}

fn cancel(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, progress: Progress) {
    let skus = [
        ["P-101-M", "P-120-M"], ["P-301-BLACK", "P-404-BLUE"], ["P-110-L", "P-111-L"], ["P-204-16INCH", "P-310-BLACK"], ["P-320-GREEN", "P-402-11SPEED"],
    ][index % 5];
    let skus = &skus[..1 + index % 2];
    let subject = draft.order(world, knowledge, progress, Payment::Card, skus);
    draft.request(cancel_request(index, &subject));
    draft.call("cancel_order", json!({"order_id": subject.order}));
    for (path, value) in cancelled(world, &subject.order) {
        draft.change(path, value);
    }
}

fn cancel_placed(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 0, false);
    draft.wants_human = index % 4 == 2;
    cancel(world, &mut draft, index, Knowledge::nth(index), Progress::Placed(2 + index as i32 % 2));
    draft
}

fn cancel_packed_club(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, true, false);
    cancel(world, &mut draft, index + 1, Knowledge::nth(index + 1), Progress::Packed(3));
    draft
}

fn cancel_packed(world: &mut World, scenario: &'static str, index: usize) -> Draft {
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

fn cancel_shipped(world: &mut World, scenario: &'static str, index: usize) -> Draft {
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
    draft.wants_human = index % 2 == 0;
    let mut request = cancel_request(index + 1, &subject);
    request.pushes = pushes(index + 1, index);
    draft.request(request);
    draft.told(
        "that the order was already shipped or delivered",
        &["shipped", "delivered", "on its way", "left our warehouse"],
    );
    draft
}

// Returning

/// The items in words: `Alder helmet` or `Alder helmet and the Fern gloves`.
fn names(world: &World, skus: &[&str]) -> String {
    skus.iter().map(|sku| world.product_name(sku)).collect::<Vec<_>>().join(" and the ")
}

fn return_request(world: &World, index: usize, subject: &Subject, skus: &[&str]) -> Request {
    let items = names(world, skus);
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("I want to return the {items} from {mention}."),
            format!("the {items} from {mention} doesn't suit me. I'd like to send it back and get my money back."),
            format!("can I get a refund for the {items}? It's {mention}."),
            format!("I'm not happy with the {items} from {mention} and would like to send it back."),
            format!("how do I return the {items}? I bought it with {mention}."),
        ],
    );
    let again = format!("I want to return the {items} from {mention}.");
    let mut request = about(request(Deed::Return, text, again, subject.recognises.clone()), subject);
    request.facts.insert(Topic::Item, vec![format!("Only the {items}.")]);
    request
}

fn take_back(world: &World, draft: &mut Draft, order: &str, skus: &[&str], refund_to: &str) {
    draft.call("return_items", json!({"order_id": order, "skus": skus, "refund_to": refund_to}));
    let items = &world.shop.orders[order].items;
    let amount: super::super::shop::Money = skus.iter().map(|sku| items[*sku].price).sum();
    for sku in skus {
        draft.change(format!("orders/{order}/items/{sku}/state"), json!("return_requested"));
    }
    draft.change(format!("orders/{order}/refunds"), json!([{"amount": amount, "to": refund_to}]));
}

const RETURNED: [&[&str]; 6] = [
    &["P-110-M", "P-120-L"],
    &["P-130-43"],
    &["P-320-BLACK", "P-301-BLACK"],
    &["P-404-BLACK"],
    &["P-101-L", "P-402-12SPEED"],
    &["P-403-40MM"],
];

fn give_back(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, days: i32) {
    let skus = RETURNED[index % RETURNED.len()];
    let subject = draft.order(world, knowledge, Progress::Delivered(days), Payment::Card, skus);
    let request = return_request(world, index, &subject, &skus[..1]);
    draft.request(request);
    take_back(world, draft, &subject.order, &skus[..1], "original");
}

fn return_original(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 4 == 1, false);
    draft.wants_human = index == 4;
    let days = [6, 12, 19, 25, 29, 9, 30, 15][index];
    give_back(world, &mut draft, index, Knowledge::nth(index), days);
    draft
}

fn return_voucher(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 1, false);
    let skus = RETURNED[(index + 3) % RETURNED.len()];
    let days = [33, 41, 52, 31, 60, 47][index];
    let subject = draft.order(world, Knowledge::nth(index), Progress::Delivered(days), Payment::Card, skus);
    let mut request = return_request(world, index + 2, &subject, &skus[..1]);
    request.declines.clear();
    request.pushes =
        vec!["If the money is not possible, then I'd take a voucher for the return.".to_owned()];
    if index % 2 == 0 {
        request.haggles = Some("Hmm, I'd rather have the money back. Is there really no way?".to_owned());
        request.pushes.insert(0, INSISTENCE[index % INSISTENCE.len()].to_owned());
    }
    draft.request(request);
    take_back(world, &mut draft, &subject.order, &skus[..1], "voucher");
    draft
}

fn return_some(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let skus: [&str; 3] =
        [["P-101-S", "P-120-S", "P-302-BLACK"], ["P-310-BLACK", "P-320-GREY", "P-401-RIM"]][index % 2];
    let days = [8, 22, 35, 14][index];
    let subject =
        draft.order(world, Knowledge::nth(index), Progress::Delivered(days), Payment::Bank, &skus);
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

fn return_too_late(world: &mut World, scenario: &'static str, index: usize) -> Draft {
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

fn return_clearance(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 0, false);
    let skus: &[&str] = [&["P-121-M"], &["P-322-BLUE"], &["P-405-WIDE"], &["P-322-GREY"]][index];
    let days = [5, 11, 17, 36][index];
    let subject = draft.order(world, Knowledge::nth(index), Progress::Delivered(days), Payment::Card, skus);
    draft.wants_human = index == 2;
    let mut request = return_request(world, index + 1, &subject, skus);
    request.pushes = pushes(index, 1 + index % 3);
    draft.request(request);
    draft.told("that clearance items are not taken back", &["clearance"]);
    draft
}

// Exchanging

fn exchange_request(world: &World, index: usize, subject: &Subject, sku: &str, new: &str) -> Request {
    let (item, had, wanted) = (world.product_name(sku), world.option(sku), world.option(new));
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("I'd like to exchange the {item} ({had}) from {mention} for {wanted}."),
            format!("the {item} from {mention} in {had} is not right for me. Can I swap it for {wanted}?"),
            format!("I chose the wrong one: the {item} in {had} should have been {wanted}. It's {mention}. Could you replace it?"),
            format!("can I get the {item} from {mention} in {wanted} instead of {had}?"),
        ],
    );
    let again = format!("I want to exchange the {item} ({had}) from {mention} for {wanted}.");
    let mut request = about(request(Deed::Exchange, text, again, subject.recognises.clone()), subject);
    request.facts.insert(Topic::Item, vec![format!("The {item} in {had}.")]);
    request.facts.insert(Topic::Variant, vec![format!("I have {had} and would like {wanted}.")]);
    request
}

const EXCHANGED: [(&str, &str); 5] = [
    ("P-101-M", "P-101-L"),
    ("P-110-L", "P-110-XL"),
    ("P-130-42", "P-130-43"),
    ("P-301-BLACK", "P-301-SILVER"),
    ("P-120-S", "P-120-M"),
];

fn swap(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, days: i32) {
    let (sku, new) = EXCHANGED[index % EXCHANGED.len()];
    let subject = draft.order(world, knowledge, Progress::Delivered(days), Payment::Card, &[sku]);
    let request = exchange_request(world, index, &subject, sku, new);
    draft.request(request);
    draft.call("search_products", json!({"query": world.product_name(sku)}));
    draft.call("exchange_item", json!({"order_id": subject.order, "sku": sku, "new_sku": new}));
    let path = format!("orders/{}/items/{sku}", subject.order);
    draft.change(format!("{path}/state"), json!("exchange_requested"));
    draft.change(format!("{path}/exchanged_for"), json!(new));
}

fn exchange(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 5 == 2, false);
    draft.wants_human = index == 6;
    let days = [5, 21, 34, 48, 59, 13, 40, 8][index];
    swap(world, &mut draft, index, Knowledge::nth(index + 1), days);
    draft
}

fn exchange_sold_out(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let (sku, new) =
        [("P-102-M", "P-102-L"), ("P-130-43", "P-130-44"), ("P-403-40MM", "P-403-47MM"), ("P-302-BLACK", "P-302-RED")]
            [index];
    let days = [7, 16, 28, 20][index];
    let subject = draft.order(world, Knowledge::nth(index), Progress::Delivered(days), Payment::Card, &[sku]);
    let mut request = exchange_request(world, index + 1, &subject, sku, new);
    let item = world.product_name(sku);
    request.wants.push(Deed::Return);
    request.pushes = vec![format!("If you don't have it, then I'd rather return the {item} and get my money back.")];
    draft.request(request);
    draft.call("search_products", json!({"query": item}));
    take_back(world, &mut draft, &subject.order, &[sku], "original");
    draft.told(
        "that the variant wanted is sold out",
        &["out of stock", "sold out", "not in stock", "no stock", "not available", "unavailable", "none in stock", "don't have"],
    );
    draft
}

// Delivery

fn address_request(world: &mut World, draft: &mut Draft, index: usize, subject: &Subject) -> Request {
    let mention = &subject.mention;
    let old = world.shop.orders[&subject.order].address.clone();
    let new = loop {
        let new = world.address();
        if new.street != old.street && new.city != old.city {
            break new;
        }
    };
    let full = format!("{}, {} {}", new.street, new.postcode, new.city);
    let at_once = index % 2 == 0;
    let text = choose(
        index,
        [
            format!("I'm moving. Please deliver {mention} to a new address."),
            format!("I gave the wrong address for {mention}, can you change it?"),
            format!("could {mention} go to a different delivery address?"),
            format!("I need the delivery address of {mention} changed."),
        ],
    );
    let text = if at_once { format!("{text} The new address is {full}.") } else { text };
    let again = format!("I want {mention} delivered to {full}.");
    let mut request = about(request(Deed::Address, text, again, subject.recognises.clone()), subject);
    request.facts.insert(Topic::Address, vec![format!("The new address is {full}.")]);
    draft.call(
        "change_address",
        json!({"order_id": subject.order, "street": new.street, "city": new.city, "postcode": new.postcode}),
    );
    let path = format!("orders/{}/address", subject.order);
    draft.change(format!("{path}/street"), json!(new.street));
    draft.change(format!("{path}/city"), json!(new.city));
    draft.change(format!("{path}/postcode"), json!(new.postcode));
    request
}

fn redirect(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge, progress: Progress) {
    let skus: &[&str] = [&["P-204-20INCH"][..], &["P-111-M", "P-120-M"], &["P-201-52CM"], &["P-402-11SPEED"]][index % 4];
    let subject = draft.order(world, knowledge, progress, Payment::Card, skus);
    let request = address_request(world, draft, index, &subject);
    draft.request(request);
}

fn address(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 4 == 3, false);
    draft.wants_human = index == 5;
    let progress = if index % 3 == 1 { Progress::Packed(3) } else { Progress::Placed(2) };
    redirect(world, &mut draft, index, Knowledge::nth(index), progress);
    draft
}

fn address_expensive(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 0, false);
    let skus: &[&str] = [&["P-203-M"][..], &["P-202-56CM", "P-101-M"], &["P-201-56CM", "P-201-52CM"]][index];
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

fn track_request(index: usize, subject: &Subject) -> Request {
    let mention = &subject.mention;
    let text = choose(
        index,
        [
            format!("where is {mention}? It hasn't arrived."),
            format!("when will {mention} arrive?"),
            format!("I'm still waiting for {mention}. Do you know where the parcel is?"),
            format!("can you give me tracking news on {mention}? When should I expect it?"),
        ],
    );
    let again = format!("I want to know when {mention} will arrive.");
    let mut request = about(request(Deed::Transfer, text, again, subject.recognises.clone()), subject);
    request.wants.clear();
    request
}

fn follow(world: &mut World, draft: &mut Draft, index: usize, knowledge: Knowledge) {
    let (parcel, due) = [
        (ShipmentState::InTransit, 2),
        (ShipmentState::Delayed, 5),
        (ShipmentState::InTransit, 1),
        (ShipmentState::Delayed, 8),
    ][index % 4];
    let skus = [["P-404-BLUE"], ["P-310-ORANGE"], ["P-110-S"], ["P-320-GREEN"]][index % 4];
    let subject = draft.order(world, knowledge, Progress::Shipped(6, parcel, due), Payment::Card, &skus);
    let shipment = world.shop.orders[&subject.order].shipment.clone().expect("it was shipped");
    let expected = world.shop.shipments[&shipment].expected;
    draft.call("get_shipment", json!({"shipment_id": shipment}));
    let mut request = track_request(index, &subject);
    request.answer = written(expected);
    draft.told(
        &format!("that the parcel is expected on {expected}"),
        &written(expected).iter().map(String::as_str).collect::<Vec<_>>(),
    );
    draft.request(request);
}

fn track(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 2, false);
    draft.wants_human = index == 4;
    follow(world, &mut draft, index, Knowledge::nth(index + 2));
    draft
}

fn parcel_lost(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 2 == 1, false);
    let skus = [["P-101-S"], ["P-404-BLACK"], ["P-403-32MM"], ["P-406-100MM"], ["P-321-GREY"]][index];
    let subject = draft.order(
        world,
        Knowledge::nth(index),
        Progress::Shipped(14 + index as i32, ShipmentState::Lost, -6),
        Payment::Card,
        &skus,
    );
    let shipment = world.shop.orders[&subject.order].shipment.clone().expect("it was shipped");
    draft.call("get_shipment", json!({"shipment_id": shipment}));
    draft.wants_human = index % 2 == 0;
    let mut request = track_request(index + 1, &subject);
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("The parcel is lost.");
    draft
}

// Workshop

/// Which slot the customer means: always the first free one at or after a day and time.
fn preference(world: &World, index: usize, service: Service) -> (String, String, Vec<String>) {
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
            let day = TODAY.saturating_add(jiff::ToSpan::days(2 + (index % 4) as i64));
            let (id, _) = free.iter().find(|(_, slot)| slot.date >= day).expect("the calendar has free slots");
            ((*id).clone(), format!("the first free slot on or after {}", spoken(day)), Vec::new())
        }
        _ => {
            let taken: Vec<_> = world
                .shop
                .slots
                .values()
                .filter(|slot| slot.service == service && slot.booked_by.is_some() && slot.date > TODAY)
                .collect();
            let slot = taken[1 + index % 3];
            let (id, _) = free
                .iter()
                .find(|(_, other)| (other.date, &other.time) > (slot.date, &slot.time))
                .expect("the calendar has free slots");
            let words = format!("{} at {}, or the next free slot after that", spoken(slot.date), slot.time);
            ((*id).clone(), words, Vec::new())
        }
    }
}

fn appointment_request(index: usize, service: &str, words: &str, recognises: Vec<String>, moved: bool) -> Request {
    let at_once = index % 2 == 0;
    let text = if moved {
        choose(
            index,
            [
                format!("I need to reschedule my {service} appointment."),
                format!("I can't make it to my {service}. Can we move it to another day?"),
                format!("please move my {service} appointment."),
            ],
        )
    } else {
        choose(
            index,
            [
                format!("I'd like to book a {service} for my bike."),
                format!("can I bring in my bike for a {service}?"),
                format!("I need an appointment for a {service}."),
            ],
        )
    };
    let text = if at_once { format!("{text} It should be {words}.") } else { text };
    let verb = if moved { "move" } else { "book" };
    let again = format!("I want to {verb} a {service}: {words}.");
    let mut request = request(Deed::Appointment, text, again, recognises);
    request.facts.insert(Topic::Date, vec![format!("I'd like {words}.")]);
    request.facts.insert(Topic::Service, vec![format!("A {service}.")]);
    request.pushes = vec![format!("Then please look again, I'd like {words}.")];
    request
}

fn bring_in(world: &mut World, draft: &mut Draft, index: usize) {
    let (service, name) = SERVICES[index % SERVICES.len()];
    let (slot, words, recognises) = preference(world, index, service);
    draft.request(appointment_request(index, name, &words, recognises, false));
    draft.call("find_slots", json!({"service": service}));
    draft.call("book_appointment", json!({"customer_id": draft.customer, "slot_id": slot}));
    draft.change(format!("slots/{slot}/booked_by"), json!(draft.customer));
}

fn book(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 2 == 0, false);
    draft.wants_human = index == 4;
    bring_in(world, &mut draft, index);
    draft
}

fn move_appointment(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 3 == 0, false);
    let (service, name) = SERVICES[(index + 1) % SERVICES.len()];
    let old = world.appointment(&draft.customer, service, |day| day > TODAY);
    let (slot, words, recognises) = preference(world, index + 1, service);
    draft.request(appointment_request(index, name, &words, recognises, true));
    draft.see_account();
    draft.call("find_slots", json!({"service": service}));
    draft.call("book_appointment", json!({"customer_id": draft.customer, "slot_id": slot, "moves": old}));
    draft.change(format!("slots/{slot}/booked_by"), json!(draft.customer));
    draft.change(format!("slots/{old}/booked_by"), Value::Null);
    draft
}

fn move_same_day(world: &mut World, scenario: &'static str, index: usize) -> Draft {
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

// Several at once

fn two_requests(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index % 4 == 0, false);
    draft.wants_human = index == 3;
    let knowledge = if index % 2 == 0 { Knowledge::Number } else { Knowledge::Placed };
    match index % 4 {
        0 => {
            cancel(world, &mut draft, index, knowledge, Progress::Placed(3));
            give_back(world, &mut draft, index + 1, knowledge, 11);
        }
        1 => {
            redirect(world, &mut draft, index, knowledge, Progress::Placed(2));
            follow(world, &mut draft, index, knowledge);
        }
        2 => {
            swap(world, &mut draft, index, knowledge, 18);
            cancel(world, &mut draft, index + 1, knowledge, Progress::Placed(1));
        }
        _ => {
            give_back(world, &mut draft, index, knowledge, 24);
            bring_in(world, &mut draft, index);
        }
    }
    draft
}

// For somebody else to do, or for nobody

fn not_the_holder(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let subject = draft.order(world, Knowledge::Number, Progress::Placed(3), Payment::Card, &["P-110-M"]);
    draft.forget_calls_after(0);
    let holder = world.shop.customers[&draft.customer].clone();
    let relative = ["husband", "sister"][index];
    let guesses = [["4899", "4801"], ["4802", "4898"]][index];
    draft.facts(Topic::Email, &[format!("It's my {relative}'s account: {}.", holder.email)]);
    draft.facts(
        Topic::Postcode,
        &[format!("I think the postcode is {}.", guesses[0]), format!("Hmm, then try {}.", guesses[1])],
    );
    draft.fact(Topic::Name, format!("I'm not {}, I'm calling for my {relative}.", holder.name));
    for postcode in guesses {
        draft.call("verify_identity", json!({"email": holder.email, "postcode": postcode}));
    }
    draft.wants_human = index == 1;
    let mut request = cancel_request(index, &subject);
    request.pushes = vec![
        format!("Hmm, then try postcode {}.", guesses[1]),
        format!("But my {relative} asked me to do this. Come on."),
    ];
    draft.request(request);
    draft.told(
        "that the account could not be verified",
        &["verify", "verified", "verification", "not match", "don't match", "doesn't match", "no match"],
    );
    draft
}

fn paid_by_invoice(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let knowledge = Knowledge::nth(index);
    if index % 2 == 0 {
        let skus = ["P-310-BLACK", "P-301-BLACK"];
        let subject = draft.order(world, knowledge, Progress::Delivered(10), Payment::Invoice, &skus);
        let mut request = return_request(world, index, &subject, &skus[..1]);
        request.pushes = pushes(index, 1);
        draft.request(request);
    } else {
        let subject = draft.order(world, knowledge, Progress::Placed(2), Payment::Invoice, &["P-204-20INCH"]);
        let mut request = cancel_request(index, &subject);
        request.pushes = pushes(index, 1);
        draft.request(request);
    }
    draft.transfer("The order was paid by invoice.");
    draft
}

fn account_locked(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 1, true);
    let subject = draft.order(world, Knowledge::Number, Progress::Placed(2), Payment::Card, &["P-320-BLACK"]);
    draft.forget_calls_after(1);
    draft.wants_human = index == 2;
    let mut request = cancel_request(index + 3, &subject);
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("The account is locked.");
    draft
}

fn injury(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 3, false);
    let sku = ["P-404-BLACK", "P-406-80MM", "P-201-56CM", "P-402-12SPEED"][index];
    let subject = draft.order(world, Knowledge::Number, Progress::Delivered(9 + index as i32), Payment::Card, &[sku]);
    draft.forget_calls_after(1);
    let item = world.product_name(sku);
    let text = choose(
        index,
        [
            format!("one of the {item} from {} broke while I was riding and I crashed and hurt my wrist.", subject.mention),
            format!("the {item} from {} snapped while riding. I was injured.", subject.mention),
            format!("the frame of my {item} from {} cracked while I was riding, I nearly fell.", subject.mention),
            format!("the {item} from {} snapped while I was riding and I got hurt.", subject.mention),
        ],
    );
    let again = format!("The {item} failed while I was riding and I got hurt. What happens now?");
    let mut request = about(request(Deed::Return, text, again, subject.recognises.clone()), &subject);
    request.wants.clear();
    draft.wants_human = true;
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("A part failed while riding.");
    draft
}
