//! What tools do on good and bad calls.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{desk, fresh};
use crate::desk::shop::OrderState;
use crate::desk::tools;

/// Arguments that fit, nearly fit, or do not fit at all.
fn argument() -> impl Strategy<Value = Value> {
    let desk = desk();
    let mut texts: Vec<String> = [
        "",
        "T-999",
        "O-0000",
        "C-1",
        "original",
        "voucher",
        "tune_up",
        "2026-03-20",
        "2026-13-40",
        "4810",
        "12 Mill Lane",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend(desk.shop().orders.keys().take(40).cloned());
    texts.extend(desk.shop().slots.keys().take(40).cloned());
    texts.extend(desk.shop().customers.keys().take(10).cloned());
    for order in desk.shop().orders.values().take(20) {
        texts.extend(order.items.keys().cloned());
    }
    let text = proptest::sample::select(texts);
    prop_oneof![
        6 => text.clone().prop_map(Value::from),
        2 => proptest::collection::vec(text, 0..3).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<i32>().prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_failed_call_changes_nothing(
        tool in 0_usize..12,
        values in proptest::collection::vec(argument(), 5),
        dropped in 0_usize..20,
        extra in proptest::bool::weighted(0.1),
    ) {
        let desk = desk_once();
        let tool = &tools::all()[tool];
        let spec = tool.spec();
        let names: Vec<String> = spec.parameters["properties"].as_object().unwrap().keys().cloned().collect();
        let mut arguments: serde_json::Map<String, Value> = names.into_iter().zip(values)
            .enumerate().filter(|(index, _)| *index != dropped).map(|(_, pair)| pair).collect();
        if extra {
            arguments.insert("extra".to_owned(), json!(1));
        }
        let mut state = fresh(&desk);
        if tool.call(&mut state, &Value::Object(arguments)).is_err() {
            prop_assert!(state.changes().is_empty());
            prop_assert_eq!(state.verified(), None);
        }
    }

    #[test]
    fn any_json_is_answered(tool in 0_usize..12, arguments in argument()) {
        let desk = desk_once();
        prop_assert!(tools::all()[tool].call(&mut fresh(&desk), &arguments).is_err(), "an object is needed");
    }
}

fn desk_once() -> std::rc::Rc<crate::desk::Desk> {
    thread_local! {
        static DESK: std::rc::Rc<crate::desk::Desk> = std::rc::Rc::new(desk());
    }
    DESK.with(std::rc::Rc::clone)
}

#[test]
fn schemas_are_closed_objects_with_described_arguments() {
    for tool in desk().tools() {
        let schema = &tool.parameters;
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{} {name}", tool.name);
            assert!(property.get("$ref").is_none(), "{} {name}", tool.name);
        }
        assert!(schema.get("$schema").is_none() && !tool.description.is_empty());
    }
}

#[test]
fn the_shop_refuses_what_its_software_forbids() {
    let desk = desk();
    let find = |wanted: &dyn Fn(&crate::desk::shop::Order) -> bool| {
        desk.shop()
            .orders
            .iter()
            .find(|(_, order)| wanted(order))
            .map(|(id, order)| (id.clone(), order.clone()))
            .unwrap()
    };
    let (delivered, order) = find(&|order| order.state == OrderState::Delivered);
    let (placed, _) = find(&|order| order.state == OrderState::Placed);
    let sku = order.items.keys().next().unwrap().clone();
    for (tool, arguments, words) in [
        (
            "cancel_order",
            json!({"order_id": delivered}),
            "cannot be cancelled",
        ),
        (
            "return_items",
            json!({"order_id": placed, "skus": ["P-101-M"], "refund_to": "original"}),
            "not delivered",
        ),
        (
            "return_items",
            json!({"order_id": delivered, "skus": [], "refund_to": "original"}),
            "empty",
        ),
        (
            "return_items",
            json!({"order_id": delivered, "skus": [sku, sku], "refund_to": "voucher"}),
            "twice",
        ),
        (
            "return_items",
            json!({"order_id": delivered, "skus": [sku], "refund_to": "cash"}),
            "cash",
        ),
        (
            "exchange_item",
            json!({"order_id": delivered, "sku": sku, "new_sku": "P-999-X"}),
            "no variant",
        ),
        (
            "exchange_item",
            json!({"order_id": delivered, "sku": sku, "new_sku": sku}),
            "another variant",
        ),
        (
            "change_address",
            json!({"order_id": delivered, "street": "1 A", "city": "B", "postcode": "4810"}),
            "no longer",
        ),
        (
            "change_address",
            json!({"order_id": placed, "street": "1 A", "city": "B", "postcode": "48"}),
            "four digits",
        ),
        (
            "book_appointment",
            json!({"customer_id": "C-2001", "slot_id": "T-001"}),
            "taken",
        ),
        ("get_order", json!({"order_id": "O-0001"}), "no order"),
        ("get_order", json!({}), "order_id"),
        ("find_slots", json!({"service": "wash"}), "wash"),
        ("search_products", json!({"query": " "}), "empty"),
        ("transfer_to_human", json!({"reason": ""}), "empty"),
    ] {
        let error = tools::named(tool)
            .unwrap()
            .call(&mut fresh(&desk), &arguments)
            .unwrap_err();
        assert!(error.to_string().contains(words), "{tool}: {error}");
    }
    assert!(
        tools::named("fly")
            .err()
            .unwrap()
            .to_string()
            .contains("get_order")
    );
}
