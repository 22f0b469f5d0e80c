//! The tools of the company's agent.

use serde::Serialize;
use serde_json::Value;
use smol_str::SmolStr;

use super::super::cached_json::CachedJson;
use super::super::number::Number;
use super::super::python;
use super::super::tool::{Answer, Call, Kind, Parameter, Shape, Tool, ToolError, fail, required};
use super::super::transfer;
use super::Telecom;
use super::records::{Bill, BillStatus, Customer, Line, LineItem, LineStatus, TODAY, find, place};

pub(super) const CUSTOMER: Parameter = required("customer_id", Shape::Text, "Id of the customer.");
pub(super) const LINE: Parameter = required("line_id", Shape::Text, "Id of the line.");

/// The day on which the running cycle ends.
const CYCLE_END: &str = "2025-02-28";
/// Gigabytes, or their price in dollars, that no refuel exceeds: sums of them stay finite, as JSON needs.
const MOST_REFUELED: f64 = 1e300;

/// In the benchmark's order.
pub(super) static ALL: &[Tool<Telecom>] = &[
    Tool {
        name: "get_customer_by_phone",
        kind: Kind::Read,
        description: "Find a customer by phone number, the customer's own or that of a line.",
        parameters: &[required("phone_number", Shape::Text, "The number.")],
        run: |world, call| {
            let number = call.given("phone_number").into();
            match world.records.customer_of(number) {
                Some(customer) => Ok(customer.dumps()),
                None => fail(format!("Customer with phone number {number} not found")),
            }
        },
    },
    Tool {
        name: "get_customer_by_id",
        kind: Kind::Read,
        description: "Look a customer up.",
        parameters: &[CUSTOMER],
        run: |world, call| Ok(find(&world.records.customers, call.given("customer_id"))?.dumps()),
    },
    Tool {
        name: "get_customer_by_name",
        kind: Kind::Read,
        description: "Find customers by name and date of birth, for verification where there is no number or id.",
        parameters: &[
            required("full_name", Shape::Text, "The whole name."),
            required("dob", Shape::Text, "Date of birth, YYYY-MM-DD."),
        ],
        run: get_customer_by_name,
    },
    Tool {
        name: "get_details_by_id",
        kind: Kind::Read,
        description: "Look up whatever has an id: a line, device, bill, customer or plan.",
        parameters: &[required("id", Shape::Text, "The id.")],
        run: get_details_by_id,
    },
    Tool {
        name: "suspend_line",
        kind: Kind::Write,
        description: "Suspend an active line, for six months at most.",
        parameters: &[CUSTOMER, LINE, required("reason", Shape::Text, "Why.")],
        run: |world, call| {
            let line = world.line(call)?;
            if world.records.lines[line].status != LineStatus::Active {
                return fail("Line must be active to suspend");
            }
            let line = world.records_mut().lines[line].to_mut();
            line.status = LineStatus::Suspended;
            line.suspension_start_date = Some(TODAY.into());
            Ok(python::dumps(&Done {
                message: "Line suspended successfully. $5/month holding fee will apply.",
                line,
            }))
        },
    },
    Tool {
        name: "resume_line",
        kind: Kind::Write,
        description: "Resume a suspended line.",
        parameters: &[CUSTOMER, LINE],
        run: |world, call| {
            let line = world.line(call)?;
            let status = world.records.lines[line].status;
            if !matches!(status, LineStatus::Suspended | LineStatus::PendingActivation) {
                return fail("Line must be suspended to resume");
            }
            let line = world.records_mut().lines[line].to_mut();
            line.status = LineStatus::Active;
            line.suspension_start_date = None;
            Ok(python::dumps(&Done {
                message: "Line resumed successfully",
                line,
            }))
        },
    },
    Tool {
        name: "get_bills_for_customer",
        kind: Kind::Read,
        description: "List a customer's bills, the latest first.",
        parameters: &[
            CUSTOMER,
            Parameter {
                name: "limit",
                description: "The most bills listed.",
                shape: Shape::Integer,
                required: false,
                default: Some(12),
            },
        ],
        run: get_bills_for_customer,
    },
    Tool {
        name: "send_payment_request",
        kind: Kind::Write,
        description: "Ask the customer to pay a bill; one at a time.",
        parameters: &[CUSTOMER, required("bill_id", Shape::Text, "Id of the bill.")],
        run: send_payment_request,
    },
    Tool {
        name: "get_data_usage",
        kind: Kind::Read,
        description: "Look up how much data a line has used in this cycle.",
        parameters: &[CUSTOMER, LINE],
        run: |world, call| {
            let line = &world.records.lines[world.line(call)?];
            let plan = world.records.plan_of(line)?;
            // Numbers print as texts here.
            Ok(python::dumps(&Usage {
                line_id: &line.line_id,
                data_used_gb: python::text(&line.data_used_gb),
                data_limit_gb: python::float(plan.data_limit_gb),
                data_refueling_gb: python::float(line.data_refueling_gb),
                cycle_end_date: CYCLE_END,
            }))
        },
    },
    Tool {
        name: "enable_roaming",
        kind: Kind::Write,
        description: "Let a line roam abroad.",
        parameters: &[CUSTOMER, LINE],
        run: |world, call| set_roaming(world, call, true),
    },
    Tool {
        name: "disable_roaming",
        kind: Kind::Write,
        description: "Let a line roam no more.",
        parameters: &[CUSTOMER, LINE],
        run: |world, call| set_roaming(world, call, false),
    },
    transfer::tool(),
    Tool {
        name: "refuel_data",
        kind: Kind::Write,
        description: "Add data to a line; the customer is charged for them.",
        parameters: &[CUSTOMER, LINE, required("gb_amount", Shape::Number, "Gigabytes.")],
        run: refuel_data,
    },
];

impl Telecom {
    /// The place of the line that a call is about.
    pub(super) fn line(&self, call: &Call) -> Result<usize, ToolError> {
        self.records
            .target_line(call.given("customer_id"), call.given("line_id"))
    }

    /// Puts a charge on the customer's next bill.
    fn charge(&mut self, customer: &Value, amount: f64, description: String) -> Result<(), ToolError> {
        let holder = find(&self.records.customers, customer)?;
        let draft = self.records.bill_that_is(BillStatus::Draft, holder)?;
        let id = draft.map(|bill| bill.bill_id.clone());
        let id = id.unwrap_or_else(|| self.add_draft(customer));
        let bill = place(&self.records.bills, id.as_str())?;
        let bill = self.records_mut().bills[bill].to_mut();
        bill.line_items.push(LineItem {
            description: description.into(),
            amount,
            date: TODAY.into(),
            item_type: if amount < 0.0 { "Credit" } else { "Charge" }.into(),
        });
        bill.total_due += amount;
        Ok(())
    }

    /// Adds an empty bill for the next month and returns its id.
    fn add_draft(&mut self, customer: &Value) -> SmolStr {
        let id = self.bill_id();
        let records = self.records_mut();
        records.bills.push(CachedJson::new(Bill {
            bill_id: id.clone(),
            customer_id: python::text(customer).into(),
            period_start: "2025-03-01".into(),
            period_end: "2025-03-31".into(),
            issue_date: "2025-03-01".into(),
            total_due: 0.0,
            due_date: "2025-03-15".into(),
            line_items: Vec::new(),
            status: BillStatus::Draft,
        }));
        if let Ok(customer) = place(&records.customers, customer) {
            records.customers[customer].to_mut().bill_ids.push(id.clone());
        }
        id
    }
}

/// How much data a line has used. Numbers are shown as texts.
#[derive(Serialize)]
struct Usage<'a> {
    line_id: &'a str,
    data_used_gb: String,
    data_limit_gb: String,
    data_refueling_gb: String,
    cycle_end_date: &'static str,
}

/// What was done to a line.
#[derive(Serialize)]
struct Done<'a> {
    message: &'static str,
    line: &'a Line,
}

/// What data were added for which charge. Numbers are shown as texts.
#[derive(Serialize)]
struct Refueled {
    message: String,
    new_data_refueling_gb: String,
    charge: String,
}

fn get_customer_by_name(world: &mut Telecom, call: &Call) -> Answer {
    let (name, born) = (call.text("full_name")?.to_lowercase(), call.given("dob"));
    let customers = world.records.customers.iter();
    let is_it = |customer: &&CachedJson<Customer>| {
        customer.full_name.to_lowercase() == name && *born == customer.date_of_birth.as_str()
    };
    let found: Vec<&CachedJson<Customer>> = customers.filter(is_it).collect();
    Ok(python::dumps(&found))
}

fn get_details_by_id(world: &mut Telecom, call: &Call) -> Answer {
    let (id, records) = (call.given("id"), &world.records);
    match call.text("id")?.chars().next() {
        Some('L') => Ok(find(&records.lines, id)?.dumps()),
        Some('D') => Ok(find(&records.devices, id)?.dumps()),
        Some('B') => Ok(find(&records.bills, id)?.dumps()),
        Some('C') => Ok(find(&records.customers, id)?.dumps()),
        Some('P') => Ok(find(&records.plans, id)?.dumps()),
        _ => fail(format!("Unknown ID format or type: {}", python::text(id))),
    }
}

fn get_bills_for_customer(world: &mut Telecom, call: &Call) -> Answer {
    let customer = find(&world.records.customers, call.given("customer_id"))?;
    let bills: Result<Vec<_>, _> = world.records.bills_of(customer).collect();
    let mut bills = bills?;
    bills.sort_by(|a, b| b.issue_date.cmp(&a.issue_date));
    let most = match call.value("limit") {
        Value::Null => bills.len(),
        Value::Number(limit) if limit.is_f64() => {
            return fail("slice indices must be integers or None");
        }
        limit => match Number::of(&limit)? {
            // From the end.
            Number::Int(limit) if limit < 0 => bills
                .len()
                .saturating_sub(usize::try_from(-limit).unwrap_or(usize::MAX)),
            Number::Int(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
            Number::Float(_) => return fail("slice indices must be integers or None"),
        },
    };
    bills.truncate(most);
    Ok(python::dumps(&bills))
}

fn send_payment_request(world: &mut Telecom, call: &Call) -> Answer {
    let customer = find(&world.records.customers, call.given("customer_id"))?;
    let awaiting = world
        .records
        .bill_that_is(BillStatus::AwaitingPayment, customer)?;
    if awaiting.is_some() {
        return fail("A bill is already awaiting payment for this customer");
    }
    let id = call.given("bill_id");
    if !customer.bill_ids.iter().any(|bill| id == bill.as_str()) {
        return fail(format!(
            "Bill {} not found for customer {}",
            python::text(id),
            customer.customer_id
        ));
    }
    let bill = place(&world.records.bills, id)?;
    world.records_mut().bills[bill].to_mut().status = BillStatus::AwaitingPayment;
    Ok(format!(
        "Payment request sent to the customer for bill {}",
        python::text(id)
    ))
}

fn set_roaming(world: &mut Telecom, call: &Call, enabled: bool) -> Answer {
    let line = world.line(call)?;
    let words = if enabled { "enabled" } else { "disabled" };
    if world.records.lines[line].roaming_enabled == enabled {
        return Ok(format!("Roaming was already {words}"));
    }
    world.records_mut().lines[line].to_mut().roaming_enabled = enabled;
    Ok(format!("Roaming {words} successfully"))
}

fn refuel_data(world: &mut Telecom, call: &Call) -> Answer {
    let place = world.line(call)?;
    let given = call.given("gb_amount");
    let amount = Number::of(given)?.float();
    if amount <= 0.0 {
        return fail("Refuel amount must be positive");
    }
    let line = &world.records.lines[place];
    let price = world.records.plan_of(line)?.data_refueling_price_per_gb;
    let charge = amount * price;
    if amount.max(charge) > MOST_REFUELED {
        return fail("Refuel amount is too large");
    }
    let (id, given) = (line.line_id.clone(), python::text(given));
    let description = format!("Data refueling: {given} GB at ${}/GB", python::float(price));
    world.charge(call.given("customer_id"), charge, description)?;
    let line = world.records_mut().lines[place].to_mut();
    line.data_refueling_gb += amount;
    Ok(python::dumps(&Refueled {
        message: format!("Successfully added {given} GB of data for line {id} for ${charge:.2}"),
        new_data_refueling_gb: python::float(line.data_refueling_gb),
        charge: python::float(charge),
    }))
}
