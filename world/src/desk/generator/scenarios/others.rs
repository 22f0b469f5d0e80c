//! Requests that are for somebody else to do, or for nobody.

use serde_json::json;

use crate::desk::generator::draft::{Draft, Knowledge};
use crate::desk::generator::{Progress, World};
use crate::desk::language::{Operation, Topic};
use crate::desk::shop::Payment;
use crate::tool_names;

use super::cancelling::cancel_request;
use super::returning::return_request;
use super::{about, choose, pushes, request};

pub(super) fn not_the_holder(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let subject = draft.order(
        world,
        Knowledge::Number,
        Progress::Placed(3),
        Payment::Card,
        &["P-110-M"],
    );
    draft.forget_calls_after(0);
    let holder = world.shop.customers[&draft.customer].clone();
    let relative = ["husband", "sister"][index];
    let guesses = [["4899", "4801"], ["4802", "4898"]][index];
    draft.introduces_nobody = true;
    draft.facts(
        Topic::Email,
        &[format!("It's my {relative}'s account: {}.", holder.email)],
    );
    draft.facts(
        Topic::Postcode,
        &[
            format!("I think the postcode is {}.", guesses[0]),
            format!("Hmm, then try {}.", guesses[1]),
        ],
    );
    draft.fact(
        Topic::Name,
        format!("I'm not {}, I'm calling for my {relative}.", holder.name),
    );
    for postcode in guesses {
        draft.call(
            tool_names::VERIFY_IDENTITY,
            json!({"email": holder.email, "postcode": postcode}),
        );
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
        &[
            "verify",
            "verified",
            "verification",
            "not match",
            "don't match",
            "doesn't match",
            "no match",
        ],
    );
    draft
}

pub(super) fn paid_by_invoice(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, false, false);
    let knowledge = Knowledge::nth(index);
    if index.is_multiple_of(2) {
        let skus = ["P-310-BLACK", "P-301-BLACK"];
        let subject = draft.order(world, knowledge, Progress::Delivered(10), Payment::Invoice, &skus);
        let mut request = return_request(world, index, &subject, &skus[..1]);
        request.pushes = pushes(index, 1);
        draft.request(request);
    } else {
        let subject = draft.order(
            world,
            knowledge,
            Progress::Placed(2),
            Payment::Invoice,
            &["P-204-20INCH"],
        );
        let mut request = cancel_request(index, &subject);
        request.pushes = pushes(index, 1);
        draft.request(request);
    }
    draft.transfer("The order was paid by invoice.");
    draft
}

pub(super) fn account_locked(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 1, true);
    let subject = draft.order(
        world,
        Knowledge::Number,
        Progress::Placed(2),
        Payment::Card,
        &["P-320-BLACK"],
    );
    draft.forget_calls_after(1);
    draft.wants_human = index == 2;
    let mut request = cancel_request(index + 3, &subject);
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("The account is locked.");
    draft
}

pub(super) fn injury(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index == 3, false);
    let sku = ["P-404-BLACK", "P-406-80MM", "P-201-56CM", "P-402-12SPEED"][index];
    let subject = draft.order(
        world,
        Knowledge::Number,
        Progress::Delivered(9 + index as i32),
        Payment::Card,
        &[sku],
    );
    draft.forget_calls_after(1);
    let item = world.product_name(sku);
    let text = choose(
        index,
        [
            format!(
                "One of the {item} from {} broke while I was riding and I crashed and hurt my wrist.",
                subject.mention
            ),
            format!(
                "The {item} from {} snapped while riding. I was injured.",
                subject.mention
            ),
            format!(
                "The frame of my {item} from {} cracked while I was riding, I nearly fell.",
                subject.mention
            ),
            format!(
                "The {item} from {} snapped while I was riding and I got hurt.",
                subject.mention
            ),
        ],
    );
    let again = format!("The {item} failed while I was riding and I got hurt. What happens now?");
    let mut request = about(
        request(Operation::Return, text, again, subject.recognises.clone()),
        &subject,
    );
    request.wants.clear();
    draft.wants_human = true;
    request.pushes = pushes(index, 1);
    draft.request(request);
    draft.transfer("A part failed while riding.");
    draft
}
