//! The shop's records.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use indexmap::IndexMap;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Everything the shop knows at the start of every dialogue, each table keyed by id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shop {
    /// The day on which every dialogue happens.
    pub today: Date,
    /// By customer id, such as `C-2001`.
    pub customers: IndexMap<String, Customer>,
    /// By product id, such as `P-104`.
    pub products: IndexMap<String, Product>,
    /// By order number, such as `O-1042`.
    pub orders: IndexMap<String, Order>,
    /// By shipment number, such as `S-3042`.
    pub shipments: IndexMap<String, Shipment>,
    /// By slot number, such as `T-041`, in order of service, date and time.
    pub slots: IndexMap<String, Slot>,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Customer {
    /// Full name.
    pub name: String,
    /// Unique among customers.
    pub email: String,
    /// Where the customer lives.
    pub address: Address,
    /// Whether the customer is a club member.
    #[serde(default, skip_serializing_if = "is_false")]
    pub club_member: bool,
    /// Whether the account was locked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub locked: bool,
}

/// Where something is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Number and street.
    pub street: String,
    /// Town.
    pub city: String,
    /// Four digits.
    pub postcode: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.street, self.postcode, self.city)
    }
}

/// Something the shop sells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Such as `Alder helmet`.
    pub name: String,
    /// Such as `helmets`.
    pub category: String,
    /// Sold off: neither taken back nor exchanged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub clearance: bool,
    /// By sku, such as `P-104-M`.
    pub variants: IndexMap<String, Variant>,
}

/// One size or colour of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The size or colour.
    pub option: String,
    /// Price of today.
    pub price: Money,
    /// Pieces in stock.
    pub stock: u32,
}

/// What a customer bought at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Who bought.
    pub customer: String,
    /// The day it was placed.
    pub placed: Date,
    /// How far it got.
    pub state: OrderState,
    /// How it was paid.
    pub payment: Payment,
    /// One piece of each variant, by sku.
    pub items: IndexMap<String, Item>,
    /// Where it goes.
    pub address: Address,
    /// The parcel, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipment: Option<String>,
    /// When it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Date>,
    /// Money given back, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<Refund>,
}

impl Order {
    /// The sum of the prices paid.
    pub fn total(&self) -> Money {
        self.items.values().map(|item| item.price).sum()
    }
}

/// How far an order got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Received, nothing done yet.
    Placed,
    /// In its box, still in the warehouse.
    Packed,
    /// With the carrier.
    Shipped,
    /// With the customer.
    Delivered,
    /// Called off.
    Cancelled,
}

impl OrderState {
    /// The name used in results of tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Packed => "packed",
            Self::Shipped => "shipped",
            Self::Delivered => "delivered",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How an order was paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payment {
    /// Credit or debit card.
    Card,
    /// Bank transfer in advance.
    Bank,
    /// Invoice to a company.
    Invoice,
}

/// One piece in an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Price paid.
    pub price: Money,
    /// What happens to it.
    #[serde(default)]
    pub state: ItemState,
    /// The sku sent instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged_for: Option<String>,
}

/// What happens to one piece of an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Nothing beyond the order itself.
    #[default]
    Ordered,
    /// The customer sends it back.
    ReturnRequested,
    /// The customer sends it back for another variant.
    ExchangeRequested,
}

/// Money given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refund {
    /// Sum paid back.
    pub amount: Money,
    /// In which way.
    pub to: RefundTo,
}

/// In which way money is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RefundTo {
    /// The way the order was paid.
    Original,
    /// A voucher of the shop.
    Voucher,
}

/// A parcel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shipment {
    /// The order it holds.
    pub order: String,
    /// Who carries it.
    pub carrier: String,
    /// Where it stands.
    pub state: ShipmentState,
    /// When it should arrive, or arrived.
    pub expected: Date,
    /// The carrier's last word.
    pub last_event: String,
}

/// Where a parcel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShipmentState {
    /// On its way as planned.
    InTransit,
    /// On its way, later than planned.
    Delayed,
    /// Handed over.
    Delivered,
    /// The carrier cannot find it.
    Lost,
}

/// An hour of the workshop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// What is done in it.
    pub service: Service,
    /// The day.
    pub date: Date,
    /// The beginning, such as `09:00`.
    pub time: String,
    /// Whose appointment it is; free if nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_by: Option<String>,
}

/// What the workshop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Service {
    /// A general check and adjustment.
    TuneUp,
    /// Brakes.
    BrakeService,
    /// Forks and shocks.
    SuspensionService,
    /// Fitting a bicycle to its rider.
    Fitting,
}

/// Euros and cents, never negative in the shop's records; written `"59.90"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money {
    cents: u64,
}

impl Money {
    /// From cents.
    pub const fn from_cents(cents: u64) -> Self {
        Self { cents }
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self {
            cents: amounts.map(|amount| amount.cents).sum(),
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.cents / 100, self.cents % 100)
    }
}

/// A text that is no amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount of money; write euros and two digits of cents, such as 59.90")]
pub struct MoneyError(String);

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        text.split_once('.')
            .filter(|(euros, cents)| digits(euros) && digits(cents) && cents.len() == 2)
            .and_then(|(euros, cents)| {
                let euros: u64 = euros.parse().ok()?;
                euros.checked_mul(100)?.checked_add(cents.parse().ok()?)
            })
            .map(Self::from_cents)
            .ok_or_else(|| MoneyError(text.to_owned()))
    }
}

impl Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "5",
            "5.",
            ".50",
            "5.5",
            "5.555",
            "-5.00",
            "5,00",
            "5.0a",
            "99999999999999999999.00",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn money_reads_what_it_writes(cents in 0_u64..10_000_000) {
            let money = Money::from_cents(cents);
            prop_assert_eq!(money.to_string().parse::<Money>(), Ok(money));
        }
    }
}
