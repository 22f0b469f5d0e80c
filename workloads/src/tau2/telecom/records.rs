//! What the telephone company knows, with fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::super::number::lax_float;
use super::super::python;
use super::super::tool::{ToolError, fail};

/// It is always this day.
pub(super) const TODAY: &str = "2025-02-25";

/// The company's records.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Records {
    pub(super) plans: Vec<Plan>,
    pub(super) customers: Vec<Customer>,
    pub(super) lines: Vec<Line>,
    pub(super) bills: Vec<Bill>,
    pub(super) devices: Vec<Device>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) plan_id: String,
    pub(super) name: String,
    #[serde(deserialize_with = "lax_float")]
    pub(super) data_limit_gb: f64,
    #[serde(deserialize_with = "lax_float")]
    pub(super) price_per_month: f64,
    #[serde(deserialize_with = "lax_float")]
    pub(super) data_refueling_price_per_gb: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub(super) device_id: String,
    pub(super) device_type: String,
    pub(super) model: String,
    #[serde(default)]
    pub(super) imei: Option<String>,
    pub(super) is_esim_capable: bool,
    #[serde(default)]
    pub(super) activated: bool,
    #[serde(default, deserialize_with = "optional_moment")]
    pub(super) activation_date: Option<String>,
    #[serde(default, deserialize_with = "optional_moment")]
    pub(super) last_esim_transfer_date: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum LineStatus {
    Active,
    Suspended,
    #[default]
    #[serde(rename = "Pending Activation")]
    PendingActivation,
    Closed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) line_id: String,
    pub(super) phone_number: String,
    #[serde(default)]
    pub(super) status: LineStatus,
    pub(super) plan_id: String,
    #[serde(default)]
    pub(super) device_id: Option<String>,
    /// Set unchecked by a task.
    #[serde(default = "nothing")]
    pub(super) data_used_gb: Value,
    #[serde(default, deserialize_with = "lax_float")]
    pub(super) data_refueling_gb: f64,
    #[serde(default)]
    pub(super) roaming_enabled: bool,
    #[serde(default)]
    pub(super) contract_end_date: Option<String>,
    #[serde(default)]
    pub(super) last_plan_change_date: Option<String>,
    #[serde(default)]
    pub(super) last_sim_replacement_date: Option<String>,
    #[serde(default)]
    pub(super) suspension_start_date: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineItem {
    pub(super) description: String,
    #[serde(deserialize_with = "lax_float")]
    pub(super) amount: f64,
    pub(super) date: String,
    pub(super) item_type: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum BillStatus {
    #[default]
    Draft,
    Issued,
    #[serde(rename = "Awaiting Payment")]
    AwaitingPayment,
    Paid,
    Overdue,
    Disputed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bill {
    pub(super) bill_id: String,
    pub(super) customer_id: String,
    pub(super) period_start: String,
    pub(super) period_end: String,
    pub(super) issue_date: String,
    #[serde(deserialize_with = "lax_float")]
    pub(super) total_due: f64,
    pub(super) due_date: String,
    #[serde(default)]
    pub(super) line_items: Vec<LineItem>,
    #[serde(default)]
    pub(super) status: BillStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Address {
    pub(super) street: String,
    pub(super) city: String,
    pub(super) state: String,
    pub(super) zip_code: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaymentMethod {
    pub(super) method_type: String,
    pub(super) account_number_last_4: String,
    pub(super) expiration_date: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Customer {
    pub(super) customer_id: String,
    pub(super) full_name: String,
    pub(super) date_of_birth: String,
    pub(super) email: String,
    pub(super) phone_number: String,
    pub(super) address: Address,
    #[serde(default = "pending_verification")]
    pub(super) account_status: String,
    #[serde(default)]
    pub(super) payment_methods: Vec<PaymentMethod>,
    #[serde(default)]
    pub(super) line_ids: Vec<String>,
    #[serde(default)]
    pub(super) bill_ids: Vec<String>,
    #[serde(default = "new_year", deserialize_with = "moment")]
    pub(super) created_at: String,
    #[serde(default)]
    pub(super) last_extension_date: Option<String>,
    #[serde(default, deserialize_with = "lax_float")]
    pub(super) goodwill_credit_used_this_year: f64,
}

fn nothing() -> Value {
    0.0.into()
}

fn pending_verification() -> String {
    "Pending Verification".to_owned()
}

fn new_year() -> String {
    "2025-01-01 00:00:00".to_owned()
}

/// A day and a time, with a blank between them.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(String::deserialize(deserializer)?.replacen('T', " ", 1))
}

fn optional_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let moment: Option<String> = Option::deserialize(deserializer)?;
    Ok(moment.map(|moment| moment.replacen('T', " ", 1)))
}

/// Records that are found by their id.
pub(super) trait Identified {
    /// What they are called in errors.
    const CALLED: &'static str;

    fn id(&self) -> &str;
}

macro_rules! identified {
    ($($record:ident, $called:literal, $id:ident;)*) => {$(
        impl Identified for $record {
            const CALLED: &'static str = $called;

            fn id(&self) -> &str {
                &self.$id
            }
        }
    )*};
}

identified! {
    Customer, "Customer", customer_id;
    Line, "Line", line_id;
    Plan, "Plan", plan_id;
    Device, "Device", device_id;
    Bill, "Bill", bill_id;
}

/// The place of a record with this id, which may be anything.
pub(super) fn place<T: Identified>(records: &[T], id: &Value) -> Result<usize, ToolError> {
    let place = records.iter().position(|record| *id == record.id());
    place.map_or_else(
        || fail(format!("{} with ID {} not found", T::CALLED, python::text(id))),
        Ok,
    )
}

/// The record with this id.
pub(super) fn find<'a, T: Identified>(records: &'a [T], id: &Value) -> Result<&'a T, ToolError> {
    Ok(&records[place(records, id)?])
}

impl Records {
    /// The place of a customer's line.
    pub(super) fn target_line(&self, customer: &Value, line: &Value) -> Result<usize, ToolError> {
        let customer = find(&self.customers, customer)?;
        if !customer.line_ids.iter().any(|id| line == id) {
            return fail(format!(
                "Line {} not found for customer {}",
                python::text(line),
                customer.customer_id
            ));
        }
        place(&self.lines, line)
    }

    pub(super) fn plan_of(&self, line: &Line) -> Result<&Plan, ToolError> {
        find(&self.plans, &line.plan_id.as_str().into())
    }

    /// The bills of a customer, in the customer's order.
    pub(super) fn bills_of<'a>(&'a self, customer: &'a Customer) -> Result<Vec<&'a Bill>, ToolError> {
        let bill = |id: &String| find(&self.bills, &id.as_str().into());
        customer.bill_ids.iter().map(bill).collect()
    }

    /// Whom a number belongs to: the customer's own one or that of a line.
    pub(super) fn customer_of(&self, number: &Value) -> Option<&Customer> {
        let is_of = |customer: &&Customer| {
            let is_it =
                |line: &Line| customer.line_ids.contains(&line.line_id) && *number == line.phone_number;
            *number == customer.phone_number || self.lines.iter().any(is_it)
        };
        self.customers.iter().find(is_of)
    }

    pub(super) fn line_with(&self, number: &str) -> Result<&Line, ToolError> {
        let line = self.lines.iter().find(|line| line.phone_number == number);
        line.map_or_else(|| fail(format!("Line with phone number {number} not found")), Ok)
    }
}
