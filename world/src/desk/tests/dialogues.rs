//! Whole dialogues and what is measured of them.

use std::cell::Cell;

use capo_core::llm::{AssistantMessage, ChatRequest, Message, Role};
use capo_core::workload::{RolloutContext, RolloutError, Split, Workload};
use futures::executor::block_on;
use serde_json::json;

use super::agents::{Answering, calls, last_user, perfect, playing, says};
use super::{Desk, DeskSettings, UserKind, desk, hundred_batches, rollout, value};
use crate::desk::task::Task;
use crate::desk::user::STOP;

fn task<'a>(desk: &'a Desk, scenario: &str) -> &'a Task {
    desk.tasks()
        .values()
        .find(|task| task.scenario == scenario)
        .unwrap()
}

#[test]
fn a_perfect_agent_solves_every_task_without_excess_or_violation() {
    let desk = hundred_batches();
    for task in desk.tasks().values() {
        let done = rollout(&desk, &task.id, &perfect(task));
        let story = || {
            format!(
                "{} {}\n{}\n{:#?}",
                task.id, task.scenario, done.trace.outcome, done.trace.messages
            )
        };
        assert_eq!(value(&done.measurements, "success"), 1.0, "{}", story());
        for metric in [
            "excess_tools",
            "policy_violations",
            "tool_errors",
            "repeated_calls",
        ] {
            assert_eq!(value(&done.measurements, metric), 0.0, "{metric}: {}", story());
        }
        assert_eq!(
            value(&done.measurements, "human_requests"),
            f64::from(u8::from(task.expected.transfer))
        );
        for metric in desk.metrics() {
            let value = value(&done.measurements, &metric.name);
            assert!(
                value.is_finite() && metric.min.is_none_or(|min| value >= min),
                "{}",
                metric.name
            );
        }
        assert_eq!(done.measurements.len(), desk.metrics().len());
    }
}

#[test]
fn an_agent_that_only_greets_solves_nothing_and_calls_nothing() {
    let desk = desk();
    let mut excess = Vec::new();
    for id in desk.examples(Split::Optimize) {
        let done = rollout(&desk, id, &playing(vec![says("Hello and welcome.")]));
        assert_eq!(value(&done.measurements, "success"), 0.0, "{id}");
        excess.push(value(&done.measurements, "excess_tools"));
        assert_eq!(value(&done.measurements, "policy_violations"), 0.0);
        assert_eq!(
            value(&done.measurements, "turns"),
            3.0,
            "the customer loses patience"
        );
    }
    let mean = excess.iter().sum::<f64>() / excess.len() as f64;
    assert!((mean + 1.0).abs() < 1e-12, "{mean}");
}

#[test]
fn an_agent_that_hands_everything_over_solves_only_what_must_be_and_breaks_the_policy() {
    let desk = desk();
    for task in desk.tasks().values() {
        let agent = playing(vec![calls("transfer_to_human", json!({"reason": "too hard"}))]);
        let done = rollout(&desk, &task.id, &agent);
        assert_eq!(
            value(&done.measurements, "success") > 0.0,
            task.expected.transfer,
            "{}",
            task.id
        );
        assert_eq!(value(&done.measurements, "human_requests"), 1.0);
        assert_eq!(value(&done.measurements, "policy_violations"), 1.0);
    }
}

#[test]
fn a_write_to_an_unverified_account_without_a_yes_breaks_two_rules() {
    let desk = desk();
    let task = task(&desk, "cancel_placed");
    let write = task.reference.last().unwrap();
    let agent = playing(vec![
        calls(&write.tool, write.arguments.clone()),
        says("Your order has been cancelled."),
    ]);
    let done = rollout(&desk, &task.id, &agent);
    assert_eq!(
        value(&done.measurements, "success"),
        1.0,
        "the records are as expected"
    );
    assert_eq!(value(&done.measurements, "policy_violations"), 2.0);
    assert!(
        done.trace.outcome.contains("before its owner was verified"),
        "{}",
        done.trace.outcome
    );
    assert!(
        done.trace.outcome.contains("without the customer's yes"),
        "{}",
        done.trace.outcome
    );
}

#[test]
fn a_yes_to_something_else_confirms_nothing() {
    let desk = desk();
    let task = task(&desk, "cancel_placed");
    let write = task.reference.last().unwrap();
    let verify = &task.reference[0];
    let agent = playing(vec![
        calls(&verify.tool, verify.arguments.clone()),
        says("Shall I look into it?"),
        calls(&write.tool, write.arguments.clone()),
        says("Your order has been cancelled."),
    ]);
    let done = rollout(&desk, &task.id, &agent);
    assert!(matches!(&done.trace.messages[4], Message::User { content } if content.starts_with("Yes")));
    assert_eq!(
        value(&done.measurements, "policy_violations"),
        1.0,
        "{}",
        done.trace.outcome
    );
}

#[test]
fn an_ineligible_write_fails_the_task_and_names_the_rule() {
    let desk = desk();
    let task = task(&desk, "return_clearance");
    let order = task.reference.last().unwrap().arguments["order_id"]
        .as_str()
        .unwrap();
    let sku = desk.shop().orders[order].items.keys().next().unwrap();
    let arguments = json!({"order_id": order, "skus": [sku], "refund_to": "original"});
    let agent = playing(vec![
        calls("return_items", arguments),
        says("The return has been registered."),
    ]);
    let done = rollout(&desk, &task.id, &agent);
    assert_eq!(value(&done.measurements, "success"), 0.0);
    assert_eq!(value(&done.measurements, "policy_violations"), 3.0);
    assert!(
        done.trace.outcome.contains("clearance items"),
        "{}",
        done.trace.outcome
    );
    assert!(
        done.trace.outcome.contains("nobody needed"),
        "{}",
        done.trace.outcome
    );
}

#[test]
fn malformed_calls_are_answered_and_counted() {
    let desk = desk();
    let task = task(&desk, "track");
    let agent = playing(vec![
        calls("fly", json!({})),
        calls("get_order", json!("O-1042")),
        calls("get_order", json!({"order": "O-1042"})),
        calls("get_order", json!({"order_id": 7})),
        calls("get_order", json!({"order_id": 7})),
        says("It will arrive some day."),
    ]);
    let done = rollout(&desk, &task.id, &agent);
    assert_eq!(value(&done.measurements, "tool_errors"), 5.0);
    assert_eq!(value(&done.measurements, "repeated_calls"), 1.0);
    let errors = done.trace.messages.iter().filter(
        |message| matches!(message, Message::Tool { content, .. } if content.starts_with("{\"error\":")),
    );
    assert_eq!(errors.count(), 5);
}

#[test]
fn the_dialogue_ends_at_the_step_limit() {
    let desk = Desk::new(DeskSettings {
        max_steps: 5,
        ..DeskSettings::default()
    })
    .unwrap();
    let task = task(&desk, "book");
    let asked = Cell::new(0);
    let agent = Answering(|_, _: &ChatRequest| {
        asked.set(asked.get() + 1);
        calls("find_slots", json!({"service": "fitting"}))
    });
    let done = rollout(&desk, &task.id, &agent);
    assert_eq!(asked.get(), 5);
    assert_eq!(value(&done.measurements, "repeated_calls"), 4.0);
    assert_eq!(value(&done.measurements, "latency"), 2.5);
    assert!(done.trace.outcome.contains("used up its steps"));
}

#[test]
fn nothing_is_executed_after_a_transfer() {
    let desk = desk();
    let task = task(&desk, "cancel_placed");
    let write = task.reference.last().unwrap();
    let mut answer = calls("transfer_to_human", json!({"reason": "no idea"}));
    answer
        .tool_calls
        .extend(calls(&write.tool, write.arguments.clone()).tool_calls);
    let done = rollout(&desk, &task.id, &playing(vec![answer]));
    assert_eq!(done.trace.details["calls"], 1);
    assert_eq!(done.trace.details["changes"], json!({}));
}

#[test]
fn the_agent_sees_frame_tools_and_no_task() {
    let desk = desk();
    let task = task(&desk, "exchange");
    let agent = Answering(|role, request: &ChatRequest| {
        assert_eq!(role, Role::Agent);
        let Message::System { content } = &request.messages[0] else {
            panic!("system first")
        };
        assert!(content.contains("<instructions>\nBe kind.\n</instructions>"));
        assert!(content.contains("<policy>\nRidgeway Cycles sells"));
        assert!(!content.contains(&task.id) && !content.contains(&task.script.requests[0].text));
        assert_eq!(request.tools.len(), 12);
        assert_eq!(request.seed, Some(7));
        says("Hello.")
    });
    let done = rollout(&desk, &task.id, &agent);
    assert!(
        !done
            .trace
            .messages
            .iter()
            .any(|message| matches!(message, Message::System { .. }))
    );
}

#[test]
fn customers_push_as_often_as_their_task_says_and_then_give_in() {
    let desk = desk();
    for task in desk.tasks().values().filter(|task| task.difficulty().impossible) {
        let done = rollout(
            &desk,
            &task.id,
            &playing(vec![says("Unfortunately that is not possible.")]),
        );
        let pushes = task.script.requests[0].pushes.len();
        assert_eq!(
            value(&done.measurements, "turns"),
            pushes as f64 + 1.0,
            "{}",
            task.id
        );
        let replies = done
            .trace
            .messages
            .iter()
            .filter(|message| matches!(message, Message::User { .. }));
        assert_eq!(replies.count(), pushes + 2);
    }
}

#[test]
fn a_customer_corrects_a_wrong_number_and_refuses_what_was_not_wanted() {
    let desk = desk();
    let task = desk
        .tasks()
        .values()
        .find(|task| task.scenario == "return_original" && !task.script.requests[0].recognises.is_empty())
        .unwrap();
    let known = &task.script.requests[0].recognises[0];
    let mut user = crate::desk::user::ScriptedUser::new(&task.script);
    assert!(
        user.reply("I will return the items of O-9999. Shall I go ahead?")
            .contains(known)
    );
    assert!(
        user.reply(&format!("Shall I exchange the item of {known}?"))
            .starts_with("No")
    );
    assert!(
        user.reply(&format!("Shall I return the items of {known}?"))
            .starts_with("Yes")
    );
    let refused = user.reply(&format!("Shall I return the items of {known} for a voucher?"));
    assert!(refused.contains(STOP), "{refused}");
}

#[test]
fn a_model_can_play_the_customer() {
    let desk = Desk::new(DeskSettings {
        user: UserKind::Llm,
        ..DeskSettings::default()
    })
    .unwrap();
    let task = task(&desk, "cancel_placed");
    let wish = &task.script.requests[0].text;
    let agent = perfect(task);
    let both = Answering(|role, request: &ChatRequest| {
        if role == Role::Agent {
            return (agent.0)(role, request);
        }
        let Message::System { content } = &request.messages[0] else {
            panic!("system first")
        };
        assert!(content.contains(wish) && content.contains(STOP));
        let heard = last_user(request);
        if heard.contains("anything else") {
            says(&format!("No, thank you. {STOP}"))
        } else if heard.contains("Shall I") {
            says("Yes, please.")
        } else {
            says(wish)
        }
    });
    let done = rollout(&desk, &task.id, &both);
    assert_eq!(
        value(&done.measurements, "success"),
        1.0,
        "{}",
        done.trace.outcome
    );
    assert_eq!(value(&done.measurements, "policy_violations"), 0.0);
}

#[test]
fn a_customer_model_that_says_nothing_is_a_failure_and_no_score() {
    let desk = Desk::new(DeskSettings {
        user: UserKind::Llm,
        ..DeskSettings::default()
    })
    .unwrap();
    let caller = playing(vec![AssistantMessage::default()]);
    let context = RolloutContext {
        prompt: "",
        example: "desk-001",
        repeat: 0,
        seed: 0,
        caller: &caller,
    };
    assert!(matches!(
        block_on(desk.rollout(context)),
        Err(RolloutError::Failed { retryable: true, .. })
    ));
}

#[test]
fn an_unknown_example_is_a_failure() {
    let desk = desk();
    let caller = playing(vec![says("Hello.")]);
    let context = RolloutContext {
        prompt: "",
        example: "desk-999",
        repeat: 0,
        seed: 0,
        caller: &caller,
    };
    let error = block_on(desk.rollout(context)).unwrap_err();
    assert!(error.to_string().contains("desk-999"));
}
