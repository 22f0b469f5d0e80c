//! Records of the telephone company, with fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::super::cached_json::CachedJson;
use super::super::changes::Changes;
use super::super::environment::Side;
use super::super::number::lax_float;
use super::super::tool::{Key, ToolError, fail};

/// It is always this day.
pub(super) const TODAY: &str = "2025-02-25";

/// The company's records.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Records {
    pub(super) plans: Vec<CachedJson<Plan>>,
    pub(super) customers: Vec<CachedJson<Customer>>,
    pub(super) lines: Vec<CachedJson<Line>>,
    pub(super) bills: Vec<CachedJson<Bill>>,
    pub(super) devices: Vec<CachedJson<Device>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) plan_id: SmolStr,
    pub(super) name: SmolStr,
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
    pub(super) device_id: SmolStr,
    pub(super) device_type: SmolStr,
    pub(super) model: SmolStr,
    #[serde(default)]
    pub(super) imei: Option<SmolStr>,
    pub(super) is_esim_capable: bool,
    #[serde(default)]
    pub(super) activated: bool,
    #[serde(default, deserialize_with = "optional_moment")]
    pub(super) activation_date: Option<SmolStr>,
    #[serde(default, deserialize_with = "optional_moment")]
    pub(super) last_esim_transfer_date: Option<SmolStr>,
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
    pub(super) line_id: SmolStr,
    pub(super) phone_number: SmolStr,
    #[serde(default)]
    pub(super) status: LineStatus,
    pub(super) plan_id: SmolStr,
    #[serde(default)]
    pub(super) device_id: Option<SmolStr>,
    /// Set unchecked by a task.
    #[serde(default = "nothing")]
    pub(super) data_used_gb: Value,
    #[serde(default, deserialize_with = "lax_float")]
    pub(super) data_refueling_gb: f64,
    #[serde(default)]
    pub(super) roaming_enabled: bool,
    #[serde(default)]
    pub(super) contract_end_date: Option<SmolStr>,
    #[serde(default)]
    pub(super) last_plan_change_date: Option<SmolStr>,
    #[serde(default)]
    pub(super) last_sim_replacement_date: Option<SmolStr>,
    #[serde(default)]
    pub(super) suspension_start_date: Option<SmolStr>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineItem {
    pub(super) description: SmolStr,
    #[serde(deserialize_with = "lax_float")]
    pub(super) amount: f64,
    pub(super) date: SmolStr,
    pub(super) item_type: SmolStr,
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
    pub(super) bill_id: SmolStr,
    pub(super) customer_id: SmolStr,
    pub(super) period_start: SmolStr,
    pub(super) period_end: SmolStr,
    pub(super) issue_date: SmolStr,
    #[serde(deserialize_with = "lax_float")]
    pub(super) total_due: f64,
    pub(super) due_date: SmolStr,
    #[serde(default)]
    pub(super) line_items: Vec<LineItem>,
    #[serde(default)]
    pub(super) status: BillStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Address {
    pub(super) street: SmolStr,
    pub(super) city: SmolStr,
    pub(super) state: SmolStr,
    pub(super) zip_code: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaymentMethod {
    pub(super) method_type: SmolStr,
    pub(super) account_number_last_4: SmolStr,
    pub(super) expiration_date: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Customer {
    pub(super) customer_id: SmolStr,
    pub(super) full_name: SmolStr,
    pub(super) date_of_birth: SmolStr,
    pub(super) email: SmolStr,
    pub(super) phone_number: SmolStr,
    pub(super) address: Arc<Address>,
    #[serde(default = "pending_verification")]
    pub(super) account_status: SmolStr,
    #[serde(default)]
    pub(super) payment_methods: Arc<Vec<PaymentMethod>>,
    #[serde(default)]
    pub(super) line_ids: Arc<Vec<SmolStr>>,
    #[serde(default)]
    pub(super) bill_ids: Vec<SmolStr>,
    #[serde(default = "new_year", deserialize_with = "moment")]
    pub(super) created_at: SmolStr,
    #[serde(default)]
    pub(super) last_extension_date: Option<SmolStr>,
    #[serde(default, deserialize_with = "lax_float")]
    pub(super) goodwill_credit_used_this_year: f64,
}

fn nothing() -> Value {
    0.0.into()
}

fn pending_verification() -> SmolStr {
    "Pending Verification".into()
}

fn new_year() -> SmolStr {
    "2025-01-01 00:00:00".into()
}

/// A day and a time, with a blank between them.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SmolStr, D::Error> {
    Ok(SmolStr::deserialize(deserializer)?.replacen('T', " ", 1).into())
}

fn optional_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SmolStr>, D::Error> {
    let moment: Option<SmolStr> = Option::deserialize(deserializer)?;
    Ok(moment.map(|moment| moment.replacen('T', " ", 1).into()))
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

/// Whether two ids or numbers are the same. They differ at their ends, which are looked at first.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().last() == other.as_bytes().last() && one == other
}

/// The place of a record with this id, which may be anything.
pub(super) fn place<'a, T: Identified>(
    records: &[CachedJson<T>],
    id: impl Into<Key<'a>>,
) -> Result<usize, ToolError> {
    let id = id.into();
    let is_it = |record: &CachedJson<T>| id.id().is_some_and(|id| is_same(id, record.id()));
    let place = records.iter().position(is_it);
    place.map_or_else(|| fail(format!("{} with ID {id} not found", T::CALLED)), Ok)
}

/// The record with this id.
pub(super) fn find<'a, 'b, T: Identified>(
    records: &'a [CachedJson<T>],
    id: impl Into<Key<'b>>,
) -> Result<&'a CachedJson<T>, ToolError> {
    Ok(&records[place(records, id)?])
}

impl Records {
    /// The place of a customer's line.
    pub(super) fn target_line(&self, customer: &Value, line: &Value) -> Result<usize, ToolError> {
        let customer = find(&self.customers, customer)?;
        if !customer.line_ids.iter().any(|id| line == id.as_str()) {
            return fail(format!(
                "Line {} not found for customer {}",
                Key::from(line),
                customer.customer_id
            ));
        }
        place(&self.lines, line)
    }

    pub(super) fn plan_of(&self, line: &Line) -> Result<&Plan, ToolError> {
        find(&self.plans, line.plan_id.as_str()).map(|plan| &**plan)
    }

    /// The bills of a customer, in the customer's order.
    pub(super) fn bills_of<'a>(
        &'a self,
        customer: &Customer,
    ) -> impl Iterator<Item = Result<&'a CachedJson<Bill>, ToolError>> {
        customer.bill_ids.iter().map(|id| find(&self.bills, id.as_str()))
    }

    /// The first bill of a customer that stands so, where all of them are there.
    pub(super) fn bill_that_is(
        &self,
        status: BillStatus,
        customer: &Customer,
    ) -> Result<Option<&Bill>, ToolError> {
        let mut first = None;
        for bill in self.bills_of(customer) {
            let bill = bill?;
            if first.is_none() && bill.status == status {
                first = Some(&**bill);
            }
        }
        Ok(first)
    }

    /// Whom a number belongs to: the customer's own one or that of a line.
    pub(super) fn customer_of(&self, number: Key) -> Option<&CachedJson<Customer>> {
        let number = number.id()?;
        let is_of = |customer: &&CachedJson<Customer>| {
            let is_it = |line: &CachedJson<Line>| {
                is_same(number, &line.phone_number) && customer.line_ids.contains(&line.line_id)
            };
            is_same(number, &customer.phone_number) || self.lines.iter().any(is_it)
        };
        self.customers.iter().find(is_of)
    }

    pub(super) fn line_with(&self, number: &str) -> Result<&Line, ToolError> {
        let line = self.lines.iter().find(|line| is_same(&line.phone_number, number));
        line.map_or_else(
            || fail(format!("Line with phone number {number} not found")),
            |line| Ok(&**line),
        )
    }

    /// Whether both are written alike.
    pub(super) fn equals(&self, other: &Self) -> bool {
        fn are_same<T: Serialize>(one: &[CachedJson<T>], other: &[CachedJson<T>]) -> bool {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.equals(other))
        }
        are_same(&self.plans, &other.plans)
            && are_same(&self.customers, &other.customers)
            && are_same(&self.lines, &other.lines)
            && are_same(&self.bills, &other.bills)
            && are_same(&self.devices, &other.devices)
    }

    /// Tells what differs from the records that these were cloned from; records are only added, at the end.
    pub(super) fn changes_since(&self, began: &Self, changes: &mut Changes) {
        fn of<T: Identified + Serialize>(
            name: &str,
            began: &[CachedJson<T>],
            now: &[CachedJson<T>],
            changes: &mut Changes,
        ) {
            for (place, now) in now.iter().enumerate() {
                let before = began.get(place);
                if before.is_none_or(|before| !before.equals(now)) {
                    let path = format!("{name}.{}", now.id());
                    changes.compare(Side::Assistant, &path, before, Some(now));
                }
            }
        }
        of("plans", &began.plans, &self.plans, changes);
        of("customers", &began.customers, &self.customers, changes);
        of("lines", &began.lines, &self.lines, changes);
        of("bills", &began.bills, &self.bills, changes);
        of("devices", &began.devices, &self.devices, changes);
    }
}
