//! What tasks do to the world before a conversation begins; no side can call these.

use serde_json::Value;
use smol_str::{SmolStr, format_smolstr};

use super::super::cached_json::CachedJson;
use super::super::number;
use super::super::tool::{Answer, Call, Kind, Parameter, Shape, Tool, fail, required};
use super::Telecom;
use super::company::{CUSTOMER, LINE};
use super::phone::{ApnName, Performance, SimStatus, User};
use super::records::{Bill, BillStatus, LineItem, LineStatus, TODAY, find, place};
use super::telephone::{set_network_mode, toggle_airplane_mode, toggle_roaming};

/// A setting. Its parameters are offered to nobody and need no words.
const fn setting(
    name: &'static str,
    parameters: &'static [Parameter],
    run: fn(&mut Telecom, &Call) -> Answer,
) -> Tool<Telecom> {
    Tool {
        name,
        kind: Kind::Generic,
        description: "",
        parameters,
        run,
    }
}

/// An argument of a setting, of any type.
const fn any(name: &'static str) -> Parameter {
    required(name, Shape::Text, "")
}

/// Settings of the company's records.
pub(super) static COMPANY: &[Tool<Telecom>] = &[
    setting(
        "set_data_usage",
        &[CUSTOMER, LINE, any("data_used_gb")],
        |world, call| {
            let line = world.line(call)?;
            world.records_mut().lines[line].to_mut().data_used_gb = call.given("data_used_gb").clone();
            done()
        },
    ),
    setting(
        "suspend_line_for_overdue_bill",
        &[CUSTOMER, LINE, any("new_bill_id"), any("contract_ended")],
        suspend_line_for_overdue_bill,
    ),
];

/// Settings of the telephone and of what is around it.
pub(super) static TELEPHONE: &[Tool<Telecom>] = &[
    setting(
        "set_user_info",
        &[any("name"), any("phone_number")],
        |world, call| {
            let (name, number) = (
                SmolStr::new(call.text("name")?),
                SmolStr::new(call.text("phone_number")?),
            );
            let around = &mut world.user_mut().surroundings;
            around.name = Some(name);
            around.phone_number = Some(number);
            done()
        },
    ),
    setting("set_user_location", &[any("abroad")], |world, call| {
        world.user_mut().surroundings.is_abroad = flag(call, "abroad")?;
        done()
    }),
    setting("turn_airplane_mode_on", &[], |world, _| {
        turn(world, toggle_airplane_mode, |user| user.device.airplane_mode)
    }),
    setting("turn_airplane_mode_off", &[], |world, _| {
        turn(world, toggle_airplane_mode, |user| !user.device.airplane_mode)
    }),
    setting("turn_roaming_on", &[], |world, _| {
        turn(world, toggle_roaming, |user| user.device.roaming_enabled)
    }),
    setting("turn_roaming_off", &[], |world, _| {
        turn(world, toggle_roaming, |user| !user.device.roaming_enabled)
    }),
    setting("turn_data_on", &[], |world, _| {
        world.user_mut().device.data_enabled = true;
        done()
    }),
    setting("turn_data_off", &[], |world, _| {
        turn(world, toggle_data, |user| !user.device.data_enabled)
    }),
    setting("turn_data_saver_mode_on", &[], |world, _| {
        turn(world, toggle_data_saver, |user| user.device.data_saver_mode)
    }),
    setting("turn_data_saver_mode_off", &[], |world, _| {
        turn(world, toggle_data_saver, |user| !user.device.data_saver_mode)
    }),
    setting("unseat_sim_card", &[], |world, _| {
        let user = world.user_mut();
        user.device.sim_card_missing = true;
        user.search_network();
        done()
    }),
    setting("lock_sim_card", &[any("mode")], |world, call| {
        let status = match call.text("mode")? {
            "pin" => SimStatus::LockedPin,
            "puk" => SimStatus::LockedPuk,
            other => return fail(format!("a SIM card is locked by pin or puk, not {other}")),
        };
        let user = world.user_mut();
        user.device.sim_card_status = status;
        user.search_network();
        done()
    }),
    setting("break_apn_settings", &[], |world, _| {
        let user = world.user_mut();
        user.device.active_apn_settings.apn_name = ApnName::Broken;
        user.search_network();
        done()
    }),
    setting("break_apn_mms_setting", &[], |world, _| {
        world.user_mut().device.active_apn_settings.mmsc_url = None;
        done()
    }),
    setting("break_vpn", &[], |world, _| {
        // The details are one object in the benchmark: a later connection is as poor.
        world.vpn = Performance::Poor;
        world.connect_vpn();
        done()
    }),
    setting(
        "set_wifi_calling",
        &[
            any("enabled"),
            Parameter {
                required: false,
                ..any("mms_over_wifi")
            },
        ],
        |world, call| {
            let enabled = flag(call, "enabled")?;
            let over_wifi = match call.given("mms_over_wifi") {
                Value::Null => None,
                _ => Some(flag(call, "mms_over_wifi")?),
            };
            let device = &mut world.user_mut().device;
            device.wifi_calling_enabled = enabled;
            device.wifi_calling_mms_over_wifi = over_wifi;
            done()
        },
    ),
    setting(
        "remove_app_permission",
        &[any("app_name"), any("permission")],
        |world, call| {
            let (app, permission) = (call.text("app_name")?, call.text("permission")?.to_lowercase());
            let app = world.user_mut().device.app_statuses.get_mut(app);
            match app.and_then(|app| app.permissions.get_mut(&permission)) {
                Some(granted) => {
                    *granted = false;
                    done()
                }
                None => fail("there is no such permission to remove"),
            }
        },
    ),
    setting("simulate_network_search", &[], |world, _| {
        world.user_mut().search_network();
        done()
    }),
    setting("set_network_mode_preference", &[any("mode")], set_network_mode),
];

/// Nobody reads what a setting says.
#[expect(clippy::unnecessary_wraps, reason = "what a tool returns")]
fn done() -> Answer {
    Ok(String::new())
}

fn flag(call: &Call, name: &str) -> Result<bool, super::ToolError> {
    match call.given(name) {
        Value::Bool(flag) => Ok(*flag),
        other => match number::int(other) {
            Some(number) => Ok(number != 0),
            None => fail(format!("{name} should be true or false")),
        },
    }
}

fn toggle_data(user: &mut User) {
    user.device.data_enabled ^= true;
    user.search_network();
}

fn toggle_data_saver(user: &mut User) {
    user.device.data_saver_mode ^= true;
}

/// Toggles once, and once more where that was the wrong way, as the benchmark does.
fn turn(world: &mut Telecom, toggle: fn(&mut User), is_wanted: fn(&User) -> bool) -> Answer {
    let user = world.user_mut();
    toggle(user);
    if !is_wanted(user) {
        toggle(user);
    }
    done()
}

fn suspend_line_for_overdue_bill(world: &mut Telecom, call: &Call) -> Answer {
    let line = world.line(call)?;
    let records = &world.records;
    if records.lines[line].status != LineStatus::Active {
        return fail("Line must be active to suspend for unpaid bill");
    }
    let amount = records.plan_of(&records.lines[line])?.price_per_month;
    if amount <= 0.0 {
        return fail("the plan costs nothing");
    }
    let customer = find(&records.customers, call.given("customer_id"))?;
    if records.bill_that_is(BillStatus::Overdue, customer)?.is_some() {
        return fail("Customer already has an overdue bill");
    }
    let (id, ended) = (
        SmolStr::new(call.text("new_bill_id")?),
        flag(call, "contract_ended")?,
    );
    let bill = Bill {
        bill_id: id.clone(),
        customer_id: customer.customer_id.clone(),
        period_start: "2025-01-01".into(),
        period_end: "2025-01-31".into(),
        issue_date: "2025-01-01".into(),
        total_due: amount,
        due_date: "2025-01-15".into(),
        line_items: vec![LineItem {
            description: format_smolstr!("Charge for line {}", records.lines[line].line_id),
            amount,
            date: TODAY.into(),
            item_type: "Charge".into(),
        }],
        status: BillStatus::Overdue,
    };
    let customer = place(&records.customers, call.given("customer_id"))?;
    let records = world.records_mut();
    records.bills.push(CachedJson::new(bill));
    records.customers[customer].to_mut().bill_ids.push(id);
    let line = records.lines[line].to_mut();
    line.status = LineStatus::Suspended;
    line.suspension_start_date = Some(TODAY.into());
    if ended {
        line.contract_end_date = Some("2025-01-31".into());
    }
    done()
}
