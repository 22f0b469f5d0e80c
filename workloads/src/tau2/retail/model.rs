//! The records of the shop, with their fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::super::cached_json::CachedJson;
use super::super::number::lax_float;

/// A variant of a product that can be bought.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Variant {
    pub(super) item_id: SmolStr,
    pub(super) options: Arc<IndexMap<SmolStr, SmolStr>>,
    pub(super) available: bool,
    #[serde(deserialize_with = "lax_float")]
    pub(super) price: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) name: SmolStr,
    pub(super) product_id: SmolStr,
    /// By item id.
    pub(super) variants: IndexMap<SmolStr, Variant>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) user_id: SmolStr,
    pub(super) name: Name,
    pub(super) address: CachedJson<Address>,
    pub(super) email: SmolStr,
    /// Means of payment by id.
    pub(super) payment_methods: IndexMap<SmolStr, PaymentMethod>,
    pub(super) orders: CachedJson<Vec<SmolStr>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) first_name: SmolStr,
    pub(super) last_name: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) address1: SmolStr,
    pub(super) address2: SmolStr,
    pub(super) city: SmolStr,
    pub(super) country: SmolStr,
    pub(super) state: SmolStr,
    pub(super) zip: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub(super) enum PaymentMethod {
    CreditCard {
        id: SmolStr,
        brand: SmolStr,
        last_four: SmolStr,
    },
    GiftCard {
        id: SmolStr,
        #[serde(deserialize_with = "lax_float")]
        balance: f64,
    },
    Paypal {
        id: SmolStr,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) name: SmolStr,
    pub(super) product_id: SmolStr,
    pub(super) item_id: SmolStr,
    #[serde(deserialize_with = "lax_float")]
    pub(super) price: f64,
    pub(super) options: Arc<IndexMap<SmolStr, SmolStr>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fulfillment {
    pub(super) tracking_id: Vec<SmolStr>,
    pub(super) item_ids: Vec<SmolStr>,
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
    pub(super) payment_method_id: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) order_id: SmolStr,
    pub(super) user_id: SmolStr,
    pub(super) address: CachedJson<Address>,
    pub(super) items: CachedJson<Vec<Item>>,
    pub(super) status: SmolStr,
    pub(super) fulfillments: CachedJson<Vec<Fulfillment>>,
    pub(super) payment_history: Vec<Payment>,
    #[serde(default)]
    pub(super) cancel_reason: Option<SmolStr>,
    #[serde(default)]
    pub(super) exchange_items: Option<Vec<SmolStr>>,
    #[serde(default)]
    pub(super) exchange_new_items: Option<Vec<SmolStr>>,
    #[serde(default)]
    pub(super) exchange_payment_method_id: Option<SmolStr>,
    /// Set unchecked: the whole number 0 where nothing is exchanged.
    #[serde(default)]
    pub(super) exchange_price_difference: Value,
    #[serde(default)]
    pub(super) return_items: Option<Vec<SmolStr>>,
    #[serde(default)]
    pub(super) return_payment_method_id: Option<SmolStr>,
}
