//! Arguments that no recording has.

use serde_json::{Value, json};

use super::super::airline::Airline;
use super::super::environment::{Side, World, call_any};
use super::super::telecom::Telecom;
use super::own;

fn is_refused<W: World>(world: &W, side: Side, name: &str, arguments: &Value) {
    let mut after = world.clone();
    let result = call_any(&mut after, side, name, arguments);
    assert!(result.error, "{name}({arguments}): {}", result.content);
    assert!(after.equals(world), "{name}({arguments})");
}

#[test]
fn amounts_that_json_does_not_have_are_refused() {
    let airline = own::<Airline>();
    for amount in [json!("inf"), json!("-Infinity"), json!("nan"), json!("1e999")] {
        let arguments = json!({ "user_id": "ada_nyman_11", "amount": amount });
        is_refused(&airline, Side::Assistant, "send_certificate", &arguments);
    }
    let arguments = json!({ "customer_id": "C71", "line_id": "L71", "gb_amount": 1e308 });
    is_refused(&own::<Telecom>(), Side::Assistant, "refuel_data", &arguments);
}

#[test]
fn a_payment_that_has_no_opposite_is_not_refunded() {
    let mut airline = own::<Airline>();
    let payment = |amount: i64| json!({ "payment_id": "credit_card_31", "amount": amount });
    let booking = json!({
        "user_id": "ada_nyman_11", "origin": "OSL", "destination": "FRA", "flight_type": "one_way",
        "cabin": "economy", "flights": [], "passengers": [], "payment_methods": [payment(i64::MIN), payment(8)],
        "total_baggages": 0, "nonfree_baggages": (i64::MIN + 8) / 50, "insurance": "no",
    });
    let booked = call_any(&mut airline, Side::Assistant, "book_reservation", &booking);
    assert!(!booked.error, "{}", booked.content);
    let arguments = json!({ "reservation_id": "HATHAT" });
    is_refused(&airline, Side::Assistant, "cancel_reservation", &arguments);
}

#[test]
fn settings_of_an_access_point_are_an_object_of_texts() {
    for settings in [
        json!([]),
        json!(["broken"]),
        json!(null),
        json!({ "apn_name": { "broken": null } }),
    ] {
        let arguments = json!({ "apn_settings": settings });
        is_refused(&own::<Telecom>(), Side::User, "set_apn_settings", &arguments);
    }
}

#[test]
fn a_network_mode_is_a_text() {
    let mut telecom = own::<Telecom>();
    let arguments = json!({ "mode": { "2g_only": null } });
    let result = call_any(
        &mut telecom,
        Side::User,
        "set_network_mode_preference",
        &arguments,
    );
    assert!(result.content.starts_with("Failed to set"), "{}", result.content);
}
