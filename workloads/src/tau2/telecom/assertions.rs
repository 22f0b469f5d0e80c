//! Assertions of tasks on the end of a conversation.

use serde_json::{Map, Value};

use super::super::environment::Side;
use super::super::number::Number;
use super::super::tool::{Call, Parameter, Shape, ToolError, fail, required};
use super::Telecom;
use super::company::{CUSTOMER, LINE};
use super::records::{BillStatus, LineStatus, place};

/// A statement that is true or false.
struct Assertion {
    name: &'static str,
    parameters: &'static [Parameter],
    holds: fn(&Telecom, &Call) -> Result<bool, ToolError>,
}

const fn any(name: &'static str) -> Parameter {
    required(name, Shape::Text, "")
}

const STATUS: Parameter = any("expected_status");

static COMPANY: &[Assertion] = &[
    Assertion {
        name: "assert_data_refueling_amount",
        parameters: &[CUSTOMER, LINE, any("expected_amount")],
        holds: |world, call| {
            let added = world.records.lines[world.line(call)?].data_refueling_gb;
            Ok((added - Number::of(call.given("expected_amount"))?.float()).abs() < 1e-6)
        },
    },
    Assertion {
        name: "assert_line_status",
        parameters: &[CUSTOMER, LINE, STATUS],
        holds: |world, call| {
            let status = world.records.lines[world.line(call)?].status;
            Ok(
                serde_json::from_value::<LineStatus>(call.given("expected_status").clone())
                    .is_ok_and(|expected| expected == status),
            )
        },
    },
    Assertion {
        name: "assert_overdue_bill_exists",
        parameters: &[CUSTOMER, any("overdue_bill_id")],
        holds: |world, call| {
            place(&world.records.customers, call.given("customer_id"))?;
            let bill = place(&world.records.bills, call.given("overdue_bill_id"))?;
            match world.records.bills[bill].status {
                BillStatus::Overdue => Ok(true),
                _ => fail("the bill is not overdue"),
            }
        },
    },
    Assertion {
        name: "assert_no_overdue_bill",
        parameters: &[any("overdue_bill_id")],
        holds: |world, call| {
            let bill = place(&world.records.bills, call.given("overdue_bill_id"));
            Ok(bill.is_err() || bill.is_ok_and(|bill| world.records.bills[bill].status == BillStatus::Paid))
        },
    },
];

static TELEPHONE: &[Assertion] = &[
    Assertion {
        name: "assert_airplane_mode_status",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.device.airplane_mode),
    },
    Assertion {
        name: "assert_service_status",
        parameters: &[STATUS],
        holds: |world, call| {
            let status = world.user.device.network_connection_status.text();
            Ok(call.given("expected_status").as_str() == Some(status))
        },
    },
    Assertion {
        name: "assert_mobile_data_status",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.has_mobile_data()),
    },
    Assertion {
        name: "assert_mobile_roaming_status",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.device.roaming_enabled),
    },
    Assertion {
        name: "assert_mobile_data_saver_mode_status",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.device.data_saver_mode),
    },
    Assertion {
        name: "assert_internet_speed",
        parameters: &[
            any("expected_speed"),
            Parameter {
                required: false,
                ..any("expected_desc")
            },
        ],
        holds: |world, call| {
            let (speed, called) = world.user.speed().unwrap_or((0.0, "No Connection"));
            let is_called = match call.given("expected_desc").as_str() {
                Some(wanted) => wanted.eq_ignore_ascii_case(called),
                None => true,
            };
            Ok(speed >= Number::of(call.given("expected_speed"))?.float() && is_called)
        },
    },
    Assertion {
        name: "assert_internet_not_excellent",
        parameters: &[],
        holds: |world, _| Ok(world.user.speed().is_none_or(|(_, called)| called != "Excellent")),
    },
    Assertion {
        name: "assert_can_send_mms",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.can_send_mms()),
    },
    Assertion {
        name: "assert_mobile_data_usage_exceeded",
        parameters: &[STATUS],
        holds: |world, call| expected(call, world.user.surroundings.mobile_data_usage_exceeded),
    },
];

#[expect(clippy::unnecessary_wraps, reason = "what an assertion returns")]
fn expected(call: &Call, status: bool) -> Result<bool, ToolError> {
    Ok(*call.given("expected_status") == Value::Bool(status))
}

/// Whether an assertion holds.
///
/// # Errors
/// When there is none of this name, or it cannot be answered.
pub(super) fn holds(
    world: &Telecom,
    side: Side,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<bool, ToolError> {
    let all = match side {
        Side::Assistant => COMPANY,
        Side::User => TELEPHONE,
    };
    let Some(assertion) = all.iter().find(|assertion| assertion.name == name) else {
        return fail(format!("Assertion '{name}' not found."));
    };
    let call = Call::bind(assertion.name, assertion.parameters, arguments)?;
    (assertion.holds)(world, &call)
}
