//! The embedded shop and tasks.

use std::collections::BTreeSet;

use crate::desk::language::{Topic, affirms, mentions};
use crate::desk::task::{Difficulty, Task};
use crate::desk::tools::{self, Effect};
use crate::desk::user::{STOP, ScriptedUser};

use super::{State, desk, fresh, hundred_batches};

#[test]
fn there_are_114_tasks_unless_more_are_asked_for_and_12_tools() {
    let desk = desk();
    assert_eq!(desk.tasks().len(), 114);
    let many = hundred_batches();
    assert_eq!(many.tasks().len(), 11_400);
    assert!(many.tasks().iter().take(114).eq(desk.tasks()), "they come first");
    assert_eq!(tools::all().len(), 12);
    assert_eq!(desk.tools().len(), 12);
}

#[test]
fn references_reach_exactly_the_expected_changes_within_the_rules() {
    let desk = hundred_batches();
    for (index, task) in desk.tasks().values().enumerate() {
        let mut state = State::new(desk.records(index));
        let mut transferred = false;
        for action in &task.reference {
            let tool = tools::named(&action.tool).unwrap();
            let (_, effect) = tool
                .call(&mut state, &action.arguments)
                .unwrap_or_else(|error| panic!("{}: {}: {error}", task.id, action.tool));
            match effect {
                Effect::Wrote(write) => {
                    assert!(write.verified, "{}", task.id);
                    assert_eq!(write.broken_rule, None, "{}", task.id);
                }
                Effect::Transferred => transferred = true,
                Effect::Looked => {}
            }
        }
        assert_eq!(
            state.changes(),
            task.expected.changes,
            "{} {}",
            task.id,
            task.scenario
        );
        assert_eq!(transferred, task.expected.transfer, "{}", task.id);
    }
}

#[test]
fn references_have_one_to_nine_calls_and_four_on_average() {
    let desk = hundred_batches();
    let counts: Vec<usize> = desk.tasks().values().map(|task| task.reference.len()).collect();
    assert!(counts.iter().all(|count| (1..=9).contains(count)), "{counts:?}");
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    assert!((3.5..5.0).contains(&mean), "{mean}");
}

#[test]
fn the_mix_holds_every_kind_of_difficulty() {
    let desk = desk();
    let all: Vec<_> = desk.tasks().values().map(Task::difficulty).collect();
    let count = |holds: &dyn Fn(&Difficulty) -> bool| all.iter().filter(|one| holds(one)).count();
    assert_eq!(count(&|one| one.impossible), 38);
    assert!(
        count(&|one| one.ambiguous) >= 30,
        "{}",
        count(&|one| one.ambiguous)
    );
    assert!(
        count(&|one| one.pushes >= 2) >= 15,
        "{}",
        count(&|one| one.pushes >= 2)
    );
    assert!(
        count(&|one| one.lookups >= 4) >= 20,
        "{}",
        count(&|one| one.lookups >= 4)
    );
}

#[test]
fn every_record_refers_to_records_that_exist() {
    let desk = desk();
    let shop = desk.shop();
    let state = fresh(&desk);
    for (id, order) in &shop.orders {
        assert!(shop.customers.contains_key(&order.customer), "{id}");
        assert!(order.items.keys().all(|sku| state.variant(sku).is_some()), "{id}");
        assert!(
            order.placed <= shop.today && order.delivered.is_none_or(|day| day >= order.placed),
            "{id}"
        );
        let shipment = order
            .shipment
            .as_ref()
            .map(|shipment| &shop.shipments[shipment].order);
        assert!(shipment.is_none_or(|of| of == id), "{id}");
    }
    for (id, slot) in &shop.slots {
        assert!(
            slot.booked_by
                .as_ref()
                .is_none_or(|holder| shop.customers.contains_key(holder)),
            "{id}"
        );
    }
    let emails: BTreeSet<_> = shop.customers.values().map(|customer| &customer.email).collect();
    assert_eq!(emails.len(), shop.customers.len());
}

#[test]
fn slots_are_listed_by_service_date_and_time() {
    let desk = desk();
    let slots: Vec<_> = desk.shop().slots.values().collect();
    for pair in slots.windows(2).filter(|pair| pair[0].service == pair[1].service) {
        assert!((pair[0].date, &pair[0].time) < (pair[1].date, &pair[1].time));
    }
}

#[test]
fn what_must_be_told_is_not_what_the_customer_says_is_asked() {
    // An agent that only repeats the customer's words must not pass a refusal.
    let desk = desk();
    for task in desk.tasks().values() {
        let said: String = task
            .script
            .requests
            .iter()
            .map(|request| request.text.to_lowercase() + "\n")
            .collect();
        for told in &task.expected.told {
            assert!(
                !told.any_of.iter().any(|text| mentions(&said, text)),
                "{}: {}",
                task.id,
                told.what
            );
        }
    }
}

#[test]
fn customers_answer_every_question_and_agree_to_nothing_by_it() {
    let desk = desk();
    for task in desk.tasks().values() {
        for (question, topic) in [
            ("May I have the e-mail address of the account?", Topic::Email),
            ("What is your postcode?", Topic::Postcode),
            ("Could you tell me your full name?", Topic::Name),
            ("Which order is it?", Topic::Order),
            ("Which item do you mean?", Topic::Item),
            ("Which size or colour would you like?", Topic::Variant),
            ("What is the new address?", Topic::Address),
            ("Which day and time suits you?", Topic::Date),
            ("Which service do you need?", Topic::Service),
            ("Which appointment do you have now?", Topic::Appointment),
            ("May I ask for the reason?", Topic::Reason),
            ("What can I do for you?", Topic::Goal),
        ] {
            let mut user = ScriptedUser::new(&task.script);
            let reply = user.reply(question);
            assert!(
                !reply.is_empty() && !reply.contains(STOP),
                "{}: {question}",
                task.id
            );
            assert!(!affirms(&reply), "{}: {question} → {reply}", task.id);
            let first = &task.script.requests[0];
            if let Some(answers) = first.facts.get(&topic).or_else(|| task.script.facts.get(&topic)) {
                assert!(reply.contains(&answers[0]), "{}: {question} → {reply}", task.id);
            }
        }
    }
}

#[test]
fn customers_write_in_several_ways() {
    let desk = desk();
    let openings: BTreeSet<_> = desk
        .tasks()
        .values()
        .map(|task| ScriptedUser::new(&task.script).open())
        .collect();
    assert_eq!(openings.len(), desk.tasks().len());
    assert!(openings.iter().all(|opening| !opening.contains(STOP)));
}
