//! Records as they appear in tool results.
//!
//! A result is read for the fields it has; fields an agent has no use for are skipped.

#![expect(
    clippy::struct_field_names,
    reason = "fields are called as the tools call them"
)]

use serde::Deserialize;

/// Who a customer proved to be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Identity {
    pub(super) verified: bool,
    #[serde(default)]
    pub(super) customer_id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) club_member: bool,
    #[serde(default)]
    pub(super) account: String,
}

/// An account with its orders and appointments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Account {
    pub(super) customer_id: String,
    #[serde(default)]
    pub(super) club_member: bool,
    #[serde(default)]
    pub(super) account: String,
    #[serde(default)]
    pub(super) orders: Vec<OrderLine>,
    #[serde(default)]
    pub(super) appointments: Vec<Slot>,
}

/// An order as an account lists it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct OrderLine {
    pub(super) order_id: String,
    #[serde(default)]
    pub(super) placed: String,
    #[serde(default)]
    pub(super) state: String,
}

/// An order in full.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Order {
    pub(super) order_id: String,
    #[serde(default)]
    pub(super) customer_id: String,
    #[serde(default)]
    pub(super) placed: String,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default)]
    pub(super) payment: String,
    #[serde(default)]
    pub(super) items: Vec<Item>,
    #[serde(default)]
    pub(super) total: String,
    #[serde(default)]
    pub(super) shipment_id: Option<String>,
    #[serde(default)]
    pub(super) days_since_delivery: Option<i64>,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Item {
    pub(super) sku: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) option: String,
    #[serde(default)]
    pub(super) price: String,
    #[serde(default)]
    pub(super) clearance: bool,
    #[serde(default)]
    pub(super) state: String,
}

/// A parcel on its way.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Shipment {
    #[serde(default)]
    pub(super) order_id: String,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default)]
    pub(super) expected: Option<String>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Products {
    pub(super) products: Vec<Product>,
}

/// A product with its variants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Product {
    pub(super) product_id: String,
    #[serde(default)]
    pub(super) variants: Vec<Variant>,
}

/// A variant of a product.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Variant {
    pub(super) sku: String,
    #[serde(default)]
    pub(super) option: String,
    #[serde(default)]
    pub(super) in_stock: i64,
}

/// Free workshop slots.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Slots {
    pub(super) slots: Vec<Slot>,
}

/// A workshop slot.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Slot {
    pub(super) slot_id: String,
    #[serde(default)]
    pub(super) service: String,
    #[serde(default)]
    pub(super) date: String,
    #[serde(default)]
    pub(super) weekday: String,
    #[serde(default)]
    pub(super) time: String,
}
