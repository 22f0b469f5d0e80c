//! Tools that change the shop. Each checks everything before it changes anything.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::appointment::weekday;
use super::super::language::Operation;
use super::super::policy;
use super::super::shop::{
    Address, Customer, ItemState, Money, Order, OrderState, Payment, Refund, RefundTo, Service,
};
use super::super::state::State;
use super::reading::{order, unknown};
use super::{Declared, ToolError, Writing};
use crate::tool_names;

/// An order with its owner, where both exist.
fn owned<'a>(state: &'a State, order_id: &str) -> Option<(&'a Order, &'a Customer)> {
    let order = state.order(order_id)?;
    Some((order, state.customer(&order.customer)?))
}

/// Fails unless the order has not been shipped; `so` says what cannot be done then.
fn unshipped(state: &State, order_id: &str, so: &str) -> Result<(), ToolError> {
    match order(state, order_id)?.state {
        OrderState::Placed | OrderState::Packed => Ok(()),
        now => Err(ToolError::new(format!("order {order_id} is {}{so}", now.name()))),
    }
}

/// The order, to be changed.
fn order_mut<'a>(state: &'a mut State, order_id: &str) -> Result<&'a mut Order, ToolError> {
    state
        .order_mut(order_id)
        .ok_or_else(|| unknown("order", order_id, "O-1042"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelOrder {
    /// Such as O-1042.
    order_id: String,
}

impl Declared for CancelOrder {
    const NAME: &'static str = tool_names::CANCEL_ORDER;
    const DESCRIPTION: &'static str = "Cancel a whole order that has not been shipped and refund it the way it was paid. Changes the order.";
}

#[derive(Serialize)]
pub(super) struct Cancelled {
    order_id: String,
    state: OrderState,
    refund: Money,
    refund_to: Payment,
}

impl Writing for CancelOrder {
    const OPERATION: Operation = Operation::Cancel;
    type Answer = Cancelled;

    fn record(&self) -> &str {
        &self.order_id
    }

    fn broken_rule(&self, state: &State) -> Option<&'static str> {
        let (order, owner) = owned(state, &self.order_id)?;
        policy::cancellation(order, owner)
    }

    fn write(&self, state: &mut State) -> Result<Cancelled, ToolError> {
        unshipped(state, &self.order_id, " and cannot be cancelled")?;
        let order = order_mut(state, &self.order_id)?;
        let amount = order.total();
        order.state = OrderState::Cancelled;
        order.refunds.push(Refund {
            amount,
            to: RefundTo::Original,
        });
        Ok(Cancelled {
            order_id: self.order_id.clone(),
            state: order.state,
            refund: amount,
            refund_to: order.payment,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReturnItems {
    /// Such as O-1042.
    order_id: String,
    /// The variants to take back, such as P-104-M.
    skus: Vec<String>,
    /// How the money is given back.
    refund_to: RefundTo,
}

impl Declared for ReturnItems {
    const NAME: &'static str = tool_names::RETURN_ITEMS;
    const DESCRIPTION: &'static str =
        "Register items of a delivered order for return and refund them. Changes the order.";
}

#[derive(Serialize)]
pub(super) struct Returned {
    order_id: String,
    #[serde(rename = "returned")]
    skus: Vec<String>,
    refund: Money,
    refund_to: RefundTo,
}

impl Writing for ReturnItems {
    const OPERATION: Operation = Operation::Return;
    type Answer = Returned;

    fn record(&self) -> &str {
        &self.order_id
    }

    fn broken_rule(&self, state: &State) -> Option<&'static str> {
        let (order, owner) = owned(state, &self.order_id)?;
        policy::take_back(state, order, owner, &self.skus, self.refund_to)
    }

    fn write(&self, state: &mut State) -> Result<Returned, ToolError> {
        let before = order(state, &self.order_id)?;
        if self.skus.is_empty() {
            return Err(ToolError::new("`skus` is empty; name the items to return"));
        }
        for (index, sku) in self.skus.iter().enumerate() {
            with_customer(before, &self.order_id, sku)?;
            if self.skus[..index].contains(sku) {
                return Err(ToolError::new(format!("`skus` names {sku} twice")));
            }
        }
        let order = order_mut(state, &self.order_id)?;
        let mut amount = Vec::new();
        for sku in &self.skus {
            if let Some(item) = order.items.get_mut(sku) {
                item.state = ItemState::ReturnRequested;
                amount.push(item.price);
            }
        }
        let refund = Refund {
            amount: amount.into_iter().sum(),
            to: self.refund_to,
        };
        order.refunds.push(refund);
        Ok(Returned {
            order_id: self.order_id.clone(),
            skus: self.skus.clone(),
            refund: refund.amount,
            refund_to: refund.to,
        })
    }
}

/// Fails unless the item was delivered and nothing happens to it yet.
fn with_customer(order: &Order, order_id: &str, sku: &str) -> Result<(), ToolError> {
    if order.state != OrderState::Delivered {
        return Err(ToolError::new(format!(
            "order {order_id} is {}, not delivered",
            order.state.name()
        )));
    }
    match order.items.get(sku) {
        None => Err(ToolError::new(format!("order {order_id} holds no item {sku}"))),
        Some(item) if item.state != ItemState::Ordered => Err(ToolError::new(format!(
            "item {sku} of order {order_id} is already being returned or exchanged"
        ))),
        Some(_) => Ok(()),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeItem {
    /// Such as O-1042.
    order_id: String,
    /// The variant the customer has, such as P-104-M.
    sku: String,
    /// The variant the customer gets instead: the same product, in stock.
    new_sku: String,
}

impl Declared for ExchangeItem {
    const NAME: &'static str = tool_names::EXCHANGE_ITEM;
    const DESCRIPTION: &'static str =
        "Exchange an item of a delivered order for another variant of the same product. Changes the order.";
}

#[derive(Serialize)]
pub(super) struct Exchanged {
    order_id: String,
    sku: String,
    new_sku: String,
    state: ItemState,
}

impl Writing for ExchangeItem {
    const OPERATION: Operation = Operation::Exchange;
    type Answer = Exchanged;

    fn record(&self) -> &str {
        &self.order_id
    }

    fn broken_rule(&self, state: &State) -> Option<&'static str> {
        let (order, owner) = owned(state, &self.order_id)?;
        policy::exchange(state, order, owner, &self.sku)
    }

    fn write(&self, state: &mut State) -> Result<Exchanged, ToolError> {
        with_customer(order(state, &self.order_id)?, &self.order_id, &self.sku)?;
        let product = |sku: &str| {
            state
                .variant(sku)
                .ok_or_else(|| unknown("variant", sku, "P-104-M"))
        };
        let (old, _) = product(&self.sku)?;
        let (new, variant) = product(&self.new_sku)?;
        if old != new || self.sku == self.new_sku {
            return Err(ToolError::new(format!(
                "{} is not another variant of the product of {}",
                self.new_sku, self.sku
            )));
        }
        if variant.stock == 0 {
            return Err(ToolError::new(format!("{} is out of stock", self.new_sku)));
        }
        let order = order_mut(state, &self.order_id)?;
        if let Some(item) = order.items.get_mut(&self.sku) {
            item.state = ItemState::ExchangeRequested;
            item.exchanged_for = Some(self.new_sku.clone());
        }
        Ok(Exchanged {
            order_id: self.order_id.clone(),
            sku: self.sku.clone(),
            new_sku: self.new_sku.clone(),
            state: ItemState::ExchangeRequested,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeAddress {
    /// Such as O-1042.
    order_id: String,
    /// Number and street, such as 12 Mill Lane.
    street: String,
    /// Town.
    city: String,
    /// Four digits.
    postcode: String,
}

impl Declared for ChangeAddress {
    const NAME: &'static str = tool_names::CHANGE_ADDRESS;
    const DESCRIPTION: &'static str =
        "Deliver an order that has not been shipped to another address. Changes the order.";
}

#[derive(Serialize)]
pub(super) struct Redirected {
    order_id: String,
    address: Address,
}

impl Writing for ChangeAddress {
    const OPERATION: Operation = Operation::Address;
    type Answer = Redirected;

    fn record(&self) -> &str {
        &self.order_id
    }

    fn broken_rule(&self, state: &State) -> Option<&'static str> {
        let (order, owner) = owned(state, &self.order_id)?;
        policy::new_address(order, owner)
    }

    fn write(&self, state: &mut State) -> Result<Redirected, ToolError> {
        unshipped(state, &self.order_id, "; its address can no longer be changed")?;
        let postcode = self.postcode.trim();
        if postcode.len() != 4 || !postcode.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ToolError::new(format!(
                "`{postcode}` is no postcode; postcodes have four digits"
            )));
        }
        let address = Address {
            street: self.street.trim().to_owned(),
            city: self.city.trim().to_owned(),
            postcode: postcode.to_owned(),
        };
        if address.street.is_empty() || address.city.is_empty() {
            return Err(ToolError::new("`street` and `city` must not be empty"));
        }
        order_mut(state, &self.order_id)?.address = address.clone();
        Ok(Redirected {
            order_id: self.order_id.clone(),
            address,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BookAppointment {
    /// Such as C-2001.
    customer_id: String,
    /// The free slot to book, such as T-041.
    slot_id: String,
    /// The slot of the appointment that is given up, when one is moved.
    #[serde(default)]
    moves: Option<String>,
}

impl Declared for BookAppointment {
    const NAME: &'static str = tool_names::BOOK_APPOINTMENT;
    const DESCRIPTION: &'static str = "Book a free workshop slot for a customer, or move an appointment there. Changes the workshop's calendar.";
}

/// A booked slot.
#[derive(Serialize)]
pub(super) struct Booking {
    slot_id: String,
    service: Service,
    date: Date,
    weekday: &'static str,
    time: String,
    moved_from: Option<String>,
}

impl Writing for BookAppointment {
    const OPERATION: Operation = Operation::Appointment;
    type Answer = Booking;

    fn record(&self) -> &str {
        &self.slot_id
    }

    fn owner<'a>(&'a self, _: &'a State) -> Option<&'a str> {
        Some(&self.customer_id)
    }

    fn broken_rule(&self, state: &State) -> Option<&'static str> {
        let owner = state.customer(&self.customer_id)?;
        policy::appointment(
            state,
            &self.customer_id,
            owner,
            &self.slot_id,
            self.moves.as_deref(),
        )
    }

    fn write(&self, state: &mut State) -> Result<Booking, ToolError> {
        let slot = |id: &str| state.slot(id).ok_or_else(|| unknown("slot", id, "T-041"));
        state
            .customer(&self.customer_id)
            .ok_or_else(|| unknown("customer", &self.customer_id, "C-2001"))?;
        let new = slot(&self.slot_id)?.clone();
        if new.booked_by.is_some() {
            return Err(ToolError::new(format!("slot {} is taken", self.slot_id)));
        }
        if let Some(moves) = &self.moves {
            let old = slot(moves)?;
            if old.booked_by.as_ref() != Some(&self.customer_id) || old.service != new.service {
                return Err(ToolError::new(format!(
                    "slot {moves} is no appointment of {} for the same service",
                    self.customer_id
                )));
            }
        }
        for (id, holder) in [
            (Some(&self.slot_id), Some(self.customer_id.clone())),
            (self.moves.as_ref(), None),
        ] {
            if let Some(slot) = id.and_then(|id| state.slot_mut(id)) {
                slot.booked_by = holder;
            }
        }
        Ok(Booking {
            slot_id: self.slot_id.clone(),
            service: new.service,
            date: new.date,
            weekday: weekday(new.date),
            time: new.time,
            moved_from: self.moves.clone(),
        })
    }
}
