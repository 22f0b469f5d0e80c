use capo_core::llm::{Message, ToolCall, ToolSpec};
use serde_json::json;

use super::super::temper::Temper;
use super::{Act, Follower};
use crate::simulated::luck::Luck;
use crate::simulated::parameters::Parameters;
use crate::simulated::profile::Profile;

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

/// The calls of a whole conversation with a customer who agrees to everything, and the texts.
fn played(
    prompt: &str,
    model: &str,
    reference: &[ToolCall],
    seed: u64,
) -> (Vec<(String, serde_json::Value)>, Vec<String>) {
    let temper = Temper::new(&Profile::read(prompt), Parameters::named(model).unwrap());
    let tools = tools();
    let mut messages = vec![
        Message::assistant("Hi! How can I help you today?"),
        Message::user("Please cancel order 17."),
    ];
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let follower = Follower::new(reference, &tools, &messages, &temper, Luck::new(seed));
        match follower.act() {
            Act::Say(text) => {
                messages.push(Message::assistant(&text));
                messages.push(Message::user("Yes."));
                texts.push(text);
            }
            Act::Call(name, arguments) => {
                let known = arguments["order_id"] == "17";
                let result = if known || name.starts_with("transfer") {
                    "{\"order_id\": \"17\"}"
                } else {
                    "Error: Order not found"
                };
                messages.push(Message::Assistant(capo_core::llm::AssistantMessage {
                    content: None,
                    tool_calls: vec![ToolCall {
                        id: "1".to_owned(),
                        name: name.clone(),
                        arguments: arguments.clone(),
                    }],
                }));
                messages.push(Message::tool("1", result));
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
    let exhaust = "Try every option before you transfer to a human.";
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
