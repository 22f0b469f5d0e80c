//! The records of the shop, with their fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::number::lax_float;

/// A variant of a product that can be bought.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Variant {
    pub(super) item_id: String,
    pub(super) options: IndexMap<String, String>,
    pub(super) available: bool,
    #[serde(deserialize_with = "lax_float")]
    pub(super) price: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) name: String,
    pub(super) product_id: String,
    /// By item id.
    pub(super) variants: IndexMap<String, Variant>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) user_id: String,
    pub(super) name: Name,
    pub(super) address: Address,
    pub(super) email: String,
    /// By id.
    pub(super) payment_methods: IndexMap<String, PaymentMethod>,
    pub(super) orders: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) first_name: String,
    pub(super) last_name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) address1: String,
    pub(super) address2: String,
    pub(super) city: String,
    pub(super) country: String,
    pub(super) state: String,
    pub(super) zip: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub(super) enum PaymentMethod {
    CreditCard {
        id: String,
        brand: String,
        last_four: String,
    },
    GiftCard {
        id: String,
        #[serde(deserialize_with = "lax_float")]
        balance: f64,
    },
    Paypal {
        id: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) product_id: String,
    pub(super) item_id: String,
    #[serde(deserialize_with = "lax_float")]
    pub(super) price: f64,
    pub(super) options: IndexMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fulfillment {
    pub(super) tracking_id: Vec<String>,
    pub(super) item_ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transaction {
    Payment,
    Refund,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payment {
    pub(super) transaction_type: Transaction,
    #[serde(deserialize_with = "lax_float")]
    pub(super) amount: f64,
    pub(super) payment_method_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) order_id: String,
    pub(super) user_id: String,
    pub(super) address: Address,
    pub(super) items: Vec<Item>,
    pub(super) status: String,
    pub(super) fulfillments: Vec<Fulfillment>,
    pub(super) payment_history: Vec<Payment>,
    #[serde(default)]
    pub(super) cancel_reason: Option<String>,
    #[serde(default)]
    pub(super) exchange_items: Option<Vec<String>>,
    #[serde(default)]
    pub(super) exchange_new_items: Option<Vec<String>>,
    #[serde(default)]
    pub(super) exchange_payment_method_id: Option<String>,
    /// Set unchecked: the whole number 0 where nothing is exchanged.
    #[serde(default)]
    pub(super) exchange_price_difference: Value,
    #[serde(default)]
    pub(super) return_items: Option<Vec<String>>,
    #[serde(default)]
    pub(super) return_payment_method_id: Option<String>,
}
