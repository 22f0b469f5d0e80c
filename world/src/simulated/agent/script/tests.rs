use capo_core::llm::{AssistantMessage, Message, ToolCall, ToolSpec};
use serde_json::json;

use super::super::behaviour::BehaviourModel;
use super::{Act, Follower};
use crate::simulated::parameters::Parameters;
use crate::simulated::profile::Profile;
use crate::simulated::random::Draw;

fn call(name: &str, arguments: serde_json::Value) -> ToolCall {
    ToolCall {
        id: String::new(),
        name: name.to_owned(),
        arguments,
    }
}

fn tools() -> Vec<ToolSpec> {
    [
        ("get_order", "order_id"),
        ("cancel_order", "order_id"),
        ("transfer_to_human_agents", "summary"),
    ]
    .map(|(name, argument)| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "required": [argument] }),
    })
    .to_vec()
}

/// Calls with their arguments, and texts.
type Said = (Vec<(String, serde_json::Value)>, Vec<String>);

/// A whole conversation with a customer who agrees to everything.
fn played(prompt: &str, model: &str, reference: &[ToolCall], seed: u64) -> Said {
    let answer = |turn| match turn {
        0 => "Please cancel order 17.",
        _ => "Yes.",
    };
    conversation(prompt, model, &tools(), reference, seed, answer)
}

/// What an agent does in 30 turns when the customer's texts are these, the opening first.
fn conversation(
    prompt: &str,
    model: &str,
    tools: &[ToolSpec],
    reference: &[ToolCall],
    seed: u64,
    customer: impl Fn(usize) -> &'static str,
) -> Said {
    let behaviours = BehaviourModel::new(&Profile::read(prompt), Parameters::named(model).unwrap());
    let mut messages = vec![
        Message::assistant("Hi! How can I help you today?"),
        Message::user(customer(0)),
    ];
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let follower = Follower::new(reference, tools, &messages, &behaviours, Draw::new(seed));
        match follower.act() {
            Act::Say(text) => {
                texts.push(text.clone());
                messages.push(Message::assistant(&text));
                messages.push(Message::user(customer(texts.len())));
            }
            Act::Call(name, arguments) => {
                let known = arguments["order_id"] == "17" || arguments.get("order_id").is_none();
                let result = if known {
                    "{\"order_id\": \"17\"}"
                } else {
                    "Error: Order not found"
                };
                messages.push(Message::Assistant(AssistantMessage {
                    content: None,
                    tool_calls: vec![call(&name, arguments.clone())],
                }));
                messages.push(Message::tool("", result));
                calls.push((name, arguments));
            }
        }
    }
    (calls, texts)
}

fn solution() -> Vec<ToolCall> {
    vec![
        call("get_order", json!({ "order_id": "17" })),
        call("cancel_order", json!({ "order_id": "17" })),
    ]
}

/// Of 300 seeds, how many hold.
fn count(
    prompt: &str,
    model: &str,
    reference: &[ToolCall],
    holds: impl Fn(&[(String, serde_json::Value)], &[String]) -> bool,
) -> usize {
    (0..300)
        .filter(|&seed| {
            let (calls, texts) = played(prompt, model, reference, seed);
            holds(&calls, &texts)
        })
        .count()
}

const PLAIN: &str = "You are a customer service agent.";

#[test]
fn the_solution_is_followed_more_often_than_not() {
    let done = |calls: &[(String, serde_json::Value)], _: &[String]| {
        calls.contains(&("cancel_order".to_owned(), json!({ "order_id": "17" })))
            && !calls.iter().any(|(name, _)| name.starts_with("transfer"))
    };
    let (small, large) = (
        count(PLAIN, "sim-small", &solution(), done),
        count(PLAIN, "sim-large", &solution(), done),
    );
    assert!(
        (30..270).contains(&small) && small + 30 < large,
        "{small} {large}"
    );
}

#[test]
fn prompts_move_what_the_agent_does() {
    let transfers = |calls: &[(String, serde_json::Value)], _: &[String]| {
        calls.iter().any(|(name, _)| name.starts_with("transfer"))
    };
    let exhaust = "Try every option before you transfer to a human. Plan before you act.";
    let (plain, tried) = (
        count(PLAIN, "sim-medium", &solution(), transfers),
        count(exhaust, "sim-medium", &solution(), transfers),
    );
    assert!(tried + 20 < plain, "{tried} {plain}");
    let repeats = |calls: &[(String, serde_json::Value)], _: &[String]| {
        calls.iter().filter(|(name, _)| name == "get_order").count() > 1
    };
    let reuse = "Reuse what you know and never repeat a call.";
    let (plain, reused) = (
        count(PLAIN, "sim-medium", &solution(), repeats),
        count(reuse, "sim-medium", &solution(), repeats),
    );
    assert!(reused + 20 < plain, "{reused} {plain}");
    let proposes = |_: &[(String, serde_json::Value)], texts: &[String]| {
        texts.iter().any(|text| text.contains("Shall I go ahead?"))
    };
    let confirm = "Always confirm with the customer before you change anything.";
    let (plain, asked) = (
        count(PLAIN, "sim-medium", &solution(), proposes),
        count(confirm, "sim-medium", &solution(), proposes),
    );
    assert!(asked > plain + 20, "{asked} {plain}");
}

#[test]
fn what_may_not_be_done_is_sometimes_done() {
    let reads_only = [call("get_order", json!({ "order_id": "17" }))];
    let cancels = |calls: &[(String, serde_json::Value)], _: &[String]| {
        calls.iter().any(|(name, _)| name == "cancel_order")
    };
    let check = "Check whether the policy allows what is asked before you act.";
    let (plain, checked) = (
        count(PLAIN, "sim-medium", &reads_only, cancels),
        count(check, "sim-medium", &reads_only, cancels),
    );
    assert!(plain > 30 && checked + 20 < plain, "{checked} {plain}");
}

#[test]
fn what_the_customer_must_do_is_asked_for_by_name() {
    let on_the_telephone = [call("toggle_data", json!({}))];
    let asks = |calls: &[(String, serde_json::Value)], texts: &[String]| {
        texts.iter().any(|text| text.contains("`toggle_data`"))
            && calls.iter().all(|(name, _)| name != "toggle_data")
    };
    assert!(count(PLAIN, "sim-large", &on_the_telephone, asks) > 150);
}

#[test]
fn a_customer_is_looked_up_by_a_number_given_in_time_and_a_late_one_changes_nothing() {
    let by_number = ToolSpec {
        name: "get_customer_by_phone".to_owned(),
        description: String::new(),
        parameters: json!({ "required": ["phone_number"] }),
    };
    let tools = [tools(), vec![by_number]].concat();
    let said = |seed, number_at: usize| {
        conversation(PLAIN, "sim-large", &tools, &solution(), seed, |turn| {
            if turn == number_at {
                "My number is 555-123-2002."
            } else {
                "Yes."
            }
        })
    };
    let look_up = (
        "get_customer_by_phone".to_owned(),
        json!({ "phone_number": "555-123-2002" }),
    );
    let mut found = 0;
    for seed in 0..100 {
        let (calls, _) = said(seed, 0);
        found += usize::from(calls.contains(&look_up));
        // The agent asks at most once before its look-up, so that a third text comes too late.
        let (late, never) = (said(seed, 2), said(seed, usize::MAX));
        assert_eq!(late, never);
        assert!(!never.0.contains(&look_up));
    }
    assert!(found > 30, "{found} of 100");
}
