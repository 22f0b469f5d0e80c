//! The shop during one dialogue: shared records with the dialogue's own changes on top.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use indexmap::IndexMap;
use jiff::civil::Date;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::appointment::Appointment;
use super::shop::{Customer, Order, Product, Shipment, Shop, Slot, Variant};

/// What differs from the start: new value by path, such as `orders/O-1042/state`.
pub type Changes = BTreeMap<String, Value>;

/// The records every dialogue starts from, with what the tools need to find them quickly.
#[derive(Debug)]
pub struct Records {
    shop: Shop,
    /// Lower-case text a product is found by, in the order of the products.
    search_texts: Vec<String>,
    /// Where the orders of a customer stand among all orders.
    orders_of: HashMap<String, Vec<usize>>,
    /// Slots as agents see them, in the order of the slots. Nobody changes what is shown of them.
    shown_slots: Vec<Rc<RawValue>>,
}

impl Records {
    /// Indexes a shop.
    pub fn new(shop: Shop) -> Self {
        let search_texts = shop
            .products
            .iter()
            .map(|(id, product)| {
                let mut text = format!("{id} {} {}", product.name, product.category);
                for (sku, variant) in &product.variants {
                    text.push(' ');
                    text.push_str(sku);
                    text.push(' ');
                    text.push_str(&variant.option);
                }
                text.to_lowercase()
            })
            .collect();
        let mut orders_of: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, order) in shop.orders.values().enumerate() {
            orders_of.entry(order.customer.clone()).or_default().push(index);
        }
        let shown_slots = shop.slots.iter().map(|(id, slot)| shown(id, slot)).collect();
        Self {
            shop,
            search_texts,
            orders_of,
            shown_slots,
        }
    }

    /// The shop as it is at the start.
    pub fn shop(&self) -> &Shop {
        &self.shop
    }
}

/// The shop as one dialogue sees and changes it. Starting one copies nothing.
#[derive(Debug, Clone)]
pub struct State {
    records: Rc<Records>,
    orders: BTreeMap<String, Order>,
    slots: BTreeMap<String, Slot>,
    verified: Option<String>,
}

impl State {
    /// The state at the start of a dialogue.
    pub fn new(records: Rc<Records>) -> Self {
        Self {
            records,
            orders: BTreeMap::new(),
            slots: BTreeMap::new(),
            verified: None,
        }
    }

    /// The day of the dialogue.
    pub fn today(&self) -> Date {
        self.records.shop.today
    }

    /// The account whose holder proved to be the customer of this dialogue.
    pub fn verified(&self) -> Option<&str> {
        self.verified.as_deref()
    }

    /// Notes that the customer of this dialogue holds the account.
    pub fn verify(&mut self, customer: &str) {
        self.verified = Some(customer.to_owned());
    }

    /// An account.
    pub fn customer(&self, id: &str) -> Option<&Customer> {
        self.records.shop.customers.get(id)
    }

    /// The account of an e-mail address, with its id. Case does not matter.
    pub fn customer_by_email(&self, email: &str) -> Option<(&str, &Customer)> {
        let email = email.trim();
        let customers = self.records.shop.customers.iter();
        customers
            .map(|(id, customer)| (id.as_str(), customer))
            .find(|(_, customer)| customer.email.eq_ignore_ascii_case(email))
    }

    /// An order as it is now.
    pub fn order(&self, id: &str) -> Option<&Order> {
        self.orders.get(id).or_else(|| self.records.shop.orders.get(id))
    }

    /// An order, to be changed.
    pub fn order_mut(&mut self, id: &str) -> Option<&mut Order> {
        changeable(&self.records.shop.orders, &mut self.orders, id)
    }

    /// A customer's orders as they are now, oldest order number first.
    pub fn orders_of(&self, customer: &str) -> impl Iterator<Item = (&str, &Order)> {
        let places = self.records.orders_of.get(customer).into_iter().flatten();
        places
            .filter_map(|&place| self.records.shop.orders.get_index(place))
            .map(|(id, order)| (id.as_str(), self.orders.get(id).unwrap_or(order)))
    }

    /// A shipment.
    pub fn shipment(&self, id: &str) -> Option<&Shipment> {
        self.records.shop.shipments.get(id)
    }

    /// The product of a variant, with the variant.
    pub fn variant(&self, sku: &str) -> Option<(&Product, &Variant)> {
        let (product, _) = sku.rsplit_once('-')?;
        let product = self.records.shop.products.get(product)?;
        Some((product, product.variants.get(sku)?))
    }

    /// The products that hold every one of these lower-case words in id, name, category, skus or
    /// options.
    pub fn products_with<'a>(&'a self, words: &'a [String]) -> impl Iterator<Item = (&'a str, &'a Product)> {
        let products = self.records.shop.products.iter().zip(&self.records.search_texts);
        products
            .filter(move |(_, text)| words.iter().all(|word| text.contains(word.as_str())))
            .map(|((id, product), _)| (id.as_str(), product))
    }

    /// A workshop slot as it is now.
    pub fn slot(&self, id: &str) -> Option<&Slot> {
        self.slots.get(id).or_else(|| self.records.shop.slots.get(id))
    }

    /// A workshop slot, to be changed.
    pub fn slot_mut(&mut self, id: &str) -> Option<&mut Slot> {
        changeable(&self.records.shop.slots, &mut self.slots, id)
    }

    /// All workshop slots as they are now, by service, date and time, each with what agents see of
    /// it.
    pub fn slots(&self) -> impl Iterator<Item = (&Slot, &Rc<RawValue>)> {
        let slots = self.records.shop.slots.iter().zip(&self.records.shown_slots);
        slots.map(|((id, slot), shown)| (self.slots.get(id).unwrap_or(slot), shown))
    }

    /// What differs from the start of the dialogue.
    pub fn changes(&self) -> Changes {
        let mut changes = Changes::new();
        table_changes("orders", &self.records.shop.orders, &self.orders, &mut changes);
        table_changes("slots", &self.records.shop.slots, &self.slots, &mut changes);
        changes
    }
}

/// A slot as JSON.
fn shown(id: &str, slot: &Slot) -> Rc<RawValue> {
    let text = serde_json::value::to_raw_value(&Appointment::new(id, slot));
    Rc::from(text.expect("a slot has no key that is not a string"))
}

/// The dialogue's own copy of a record, made when it is first asked for.
fn changeable<'a, T: Clone>(
    start: &IndexMap<String, T>,
    own: &'a mut BTreeMap<String, T>,
    id: &str,
) -> Option<&'a mut T> {
    if !own.contains_key(id) {
        own.insert(id.to_owned(), start.get(id)?.clone());
    }
    own.get_mut(id)
}

fn table_changes<T: Serialize + PartialEq>(
    table: &str,
    start: &IndexMap<String, T>,
    own: &BTreeMap<String, T>,
    changes: &mut Changes,
) {
    for (id, now) in own {
        let before = start.get(id);
        if before != Some(now) {
            let value = |record| serde_json::to_value(record).unwrap_or(Value::Null);
            value_changes(
                &format!("{table}/{id}"),
                &before.map_or(Value::Null, value),
                &value(now),
                changes,
            );
        }
    }
}

/// Walks objects field by field; everything else changes as a whole. An absent field is `null`.
fn value_changes(path: &str, before: &Value, now: &Value, changes: &mut Changes) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (field, value) in now {
                let old = before.get(field).unwrap_or(&Value::Null);
                value_changes(&format!("{path}/{field}"), old, value, changes);
            }
            for field in before.keys().filter(|field| !now.contains_key(*field)) {
                changes.insert(format!("{path}/{field}"), Value::Null);
            }
        }
        _ if before != now => {
            changes.insert(path.to_owned(), now.clone());
        }
        _ => {}
    }
}
