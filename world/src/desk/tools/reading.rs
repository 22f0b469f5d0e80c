//! Tools that look something up.

use std::rc::Rc;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::policy::days_between;
use super::super::shop::{Address, ItemState, Money, Order, OrderState, Payment, Service, ShipmentState};
use super::super::state::State;
use super::{Declared, Reading, ToolError};
use crate::tool_names;

/// What an account is called when it may be used, and when not.
fn account_state(locked: bool) -> &'static str {
    if locked { "locked" } else { "open" }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyIdentity {
    /// E-mail address of the account, as the customer gave it.
    email: String,
    /// Postcode of the account, as the customer gave it.
    postcode: String,
}

impl Declared for VerifyIdentity {
    const NAME: &'static str = tool_names::VERIFY_IDENTITY;
    const DESCRIPTION: &'static str = "Check that the customer holds an account, by its e-mail address and postcode. Gives the customer id.";
}

/// Whether somebody holds an account.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Identity {
    Verified {
        verified: bool,
        customer_id: String,
        name: String,
        club_member: bool,
        account: &'static str,
    },
    Unknown {
        verified: bool,
        message: &'static str,
    },
}

impl Reading for VerifyIdentity {
    type Answer = Identity;

    fn read(self, state: &mut State) -> Result<Identity, ToolError> {
        let found = state
            .customer_by_email(&self.email)
            .map(|(id, customer)| (id.to_owned(), customer));
        let Some((customer_id, customer)) =
            found.filter(|(_, customer)| customer.address.postcode == self.postcode.trim())
        else {
            return Ok(Identity::Unknown {
                verified: false,
                message: "No account has this e-mail address and postcode.",
            });
        };
        let answer = Identity::Verified {
            verified: true,
            name: customer.name.clone(),
            club_member: customer.club_member,
            account: account_state(customer.locked),
            customer_id: customer_id.clone(),
        };
        state.verify(&customer_id);
        Ok(answer)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetAccount {
    /// Such as C-2001.
    customer_id: String,
}

impl Declared for GetAccount {
    const NAME: &'static str = tool_names::GET_ACCOUNT;
    const DESCRIPTION: &'static str =
        "Show an account: its holder, address, orders (without their items) and workshop appointments.";
}

#[derive(Serialize)]
pub(super) struct Profile {
    customer_id: String,
    name: String,
    club_member: bool,
    account: &'static str,
    address: Address,
    orders: Vec<OrderSummary>,
    appointments: Vec<Rc<RawValue>>,
}

#[derive(Serialize)]
struct OrderSummary {
    order_id: String,
    placed: Date,
    state: OrderState,
    items: usize,
    total: Money,
}

impl Reading for GetAccount {
    type Answer = Profile;

    fn read(self, state: &mut State) -> Result<Profile, ToolError> {
        let customer = state
            .customer(&self.customer_id)
            .ok_or_else(|| unknown("customer", &self.customer_id, "C-2001"))?;
        let orders = state
            .orders_of(&self.customer_id)
            .map(|(id, order)| OrderSummary {
                order_id: id.to_owned(),
                placed: order.placed,
                state: order.state,
                items: order.items.len(),
                total: order.total(),
            });
        let appointments = state
            .slots()
            .filter(|(slot, _)| slot.booked_by.as_ref() == Some(&self.customer_id))
            .map(|(_, shown)| Rc::clone(shown));
        Ok(Profile {
            name: customer.name.clone(),
            club_member: customer.club_member,
            account: account_state(customer.locked),
            address: customer.address.clone(),
            orders: orders.collect(),
            appointments: appointments.collect(),
            customer_id: self.customer_id.clone(),
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetOrder {
    /// Such as O-1042.
    order_id: String,
}

impl Declared for GetOrder {
    const NAME: &'static str = tool_names::GET_ORDER;
    const DESCRIPTION: &'static str =
        "Show an order: items, state, payment, delivery address, shipment and date of delivery.";
}

#[derive(Serialize)]
pub(super) struct OrderDetails {
    order_id: String,
    customer_id: String,
    placed: Date,
    state: OrderState,
    payment: Payment,
    items: Vec<ItemDetails>,
    total: Money,
    address: Address,
    shipment_id: Option<String>,
    delivered: Option<Date>,
    days_since_delivery: Option<i32>,
}

#[derive(Serialize)]
struct ItemDetails {
    sku: String,
    name: String,
    option: String,
    price: Money,
    clearance: bool,
    state: ItemState,
}

impl Reading for GetOrder {
    type Answer = OrderDetails;

    fn read(self, state: &mut State) -> Result<OrderDetails, ToolError> {
        let order = order(state, &self.order_id)?;
        let items = order.items.iter().map(|(sku, item)| {
            let (product, variant) = state
                .variant(sku)
                .ok_or_else(|| ToolError::new(format!("`{sku}` is no longer in the catalogue")))?;
            Ok(ItemDetails {
                sku: sku.clone(),
                name: product.name.clone(),
                option: variant.option.clone(),
                price: item.price,
                clearance: product.clearance,
                state: item.state,
            })
        });
        Ok(OrderDetails {
            customer_id: order.customer.clone(),
            placed: order.placed,
            state: order.state,
            payment: order.payment,
            items: items.collect::<Result<_, _>>()?,
            total: order.total(),
            address: order.address.clone(),
            shipment_id: order.shipment.clone(),
            delivered: order.delivered,
            days_since_delivery: order.delivered.map(|date| days_between(date, state.today())),
            order_id: self.order_id,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetShipment {
    /// Such as S-3042.
    shipment_id: String,
}

impl Declared for GetShipment {
    const NAME: &'static str = tool_names::GET_SHIPMENT;
    const DESCRIPTION: &'static str = "Show where a parcel stands and when it is expected.";
}

#[derive(Serialize)]
pub(super) struct ShipmentDetails {
    shipment_id: String,
    order_id: String,
    carrier: String,
    state: ShipmentState,
    expected: Date,
    last_event: String,
}

impl Reading for GetShipment {
    type Answer = ShipmentDetails;

    fn read(self, state: &mut State) -> Result<ShipmentDetails, ToolError> {
        let shipment = state
            .shipment(&self.shipment_id)
            .ok_or_else(|| unknown("shipment", &self.shipment_id, "S-3042"))?;
        Ok(ShipmentDetails {
            order_id: shipment.order.clone(),
            carrier: shipment.carrier.clone(),
            state: shipment.state,
            expected: shipment.expected,
            last_event: shipment.last_event.clone(),
            shipment_id: self.shipment_id,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchProducts {
    /// Words of the product's name, category, id, size or colour.
    query: String,
}

impl Declared for SearchProducts {
    const NAME: &'static str = tool_names::SEARCH_PRODUCTS;
    const DESCRIPTION: &'static str = "Find products with their variants, prices and stock.";
}

#[derive(Serialize)]
pub(super) struct Products {
    products: Vec<ProductDetails>,
}

#[derive(Serialize)]
struct ProductDetails {
    product_id: String,
    name: String,
    category: String,
    variants: Vec<VariantDetails>,
}

#[derive(Serialize)]
struct VariantDetails {
    sku: String,
    option: String,
    price: Money,
    in_stock: u32,
}

impl Reading for SearchProducts {
    type Answer = Products;

    fn read(self, state: &mut State) -> Result<Products, ToolError> {
        let words: Vec<String> = self.query.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Err(ToolError::new("`query` is empty; name a product or a category"));
        }
        let products = state.products_with(&words).map(|(id, product)| ProductDetails {
            product_id: id.to_owned(),
            name: product.name.clone(),
            category: product.category.clone(),
            variants: product
                .variants
                .iter()
                .map(|(sku, variant)| VariantDetails {
                    sku: sku.clone(),
                    option: variant.option.clone(),
                    price: variant.price,
                    in_stock: variant.stock,
                })
                .collect(),
        });
        Ok(Products {
            products: products.collect(),
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindSlots {
    /// What the workshop should do.
    service: Service,
    /// First day to look at, such as 2026-03-18; today if absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    from: Option<Date>,
    /// Last day to look at; open if absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    until: Option<Date>,
}

impl Declared for FindSlots {
    const NAME: &'static str = tool_names::FIND_SLOTS;
    const DESCRIPTION: &'static str = "List the workshop's free slots for a service, earliest first.";
}

#[derive(Serialize)]
pub(super) struct Slots {
    slots: Vec<Rc<RawValue>>,
}

impl Reading for FindSlots {
    type Answer = Slots;

    fn read(self, state: &mut State) -> Result<Slots, ToolError> {
        let from = self.from.unwrap_or_else(|| state.today());
        let slots = state.slots().filter(|(slot, _)| {
            slot.service == self.service
                && slot.booked_by.is_none()
                && slot.date >= from
                && self.until.is_none_or(|until| slot.date <= until)
        });
        Ok(Slots {
            slots: slots.map(|(_, shown)| Rc::clone(shown)).collect(),
        })
    }
}

/// An order, or the error that says there is none.
pub(super) fn order<'a>(state: &'a State, id: &str) -> Result<&'a Order, ToolError> {
    state.order(id).ok_or_else(|| unknown("order", id, "O-1042"))
}

/// The error for an id that names nothing.
pub(super) fn unknown(what: &str, id: &str, shape: &str) -> ToolError {
    ToolError::new(format!("there is no {what} `{id}`; such ids look like {shape}"))
}
