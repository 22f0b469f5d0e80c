//! The tools of the shop's agent.

use serde_json::Value;
use smol_str::SmolStr;

use super::super::cached_json::CachedJson;
use super::super::python;
use super::super::tool::{Answer, Call, Key, Kind, Parameter, Shape, Tool, ToolError, fail, required};
use super::super::{calculate, transfer};
use super::Retail;
use super::model::{Address, Item, Order, Payment, PaymentMethod, Product, Transaction, User, Variant};

const ORDER: Parameter = required(
    "order_id",
    Shape::Text,
    "Id of the order with its `#`, such as `#W0000000`.",
);
const USER: Parameter = required(
    "user_id",
    Shape::Text,
    "Id of the customer, such as `sara_doe_496`.",
);
const METHOD: Parameter = required(
    "payment_method_id",
    Shape::Text,
    "Id of a payment method of the customer's profile, such as `gift_card_0000000`.",
);
const ITEMS: Parameter = required(
    "item_ids",
    Shape::Texts,
    "Ids of the items; one that is meant twice stands twice.",
);
const NEW_ITEMS: Parameter = required(
    "new_item_ids",
    Shape::Texts,
    "Ids of what replaces them, in the same order, each a variant of the same product.",
);
const ADDRESS: [Parameter; 6] = [
    required("address1", Shape::Text, "First line, such as `123 Main St`."),
    required("address2", Shape::Text, "Second line, such as `Apt 1`, or empty."),
    required("city", Shape::Text, "City."),
    required("state", Shape::Text, "State, such as `CA`."),
    required("country", Shape::Text, "Country, such as `USA`."),
    required("zip", Shape::Text, "Postal code."),
];

/// What all pending orders have in their status.
const PENDING: &str = "pending";
const DELIVERED: &str = "delivered";

/// In the benchmark's order.
pub(super) static ALL: &[Tool<Retail>] = &[
    calculate::tool(),
    Tool {
        name: "cancel_pending_order",
        kind: Kind::Write,
        description: "Cancel a pending order and refund it. The customer must have agreed to the details.",
        parameters: &[
            ORDER,
            required(
                "reason",
                Shape::Text,
                "Either `no longer needed` or `ordered by mistake`.",
            ),
        ],
        run: cancel_pending_order,
    },
    Tool {
        name: "exchange_delivered_order_items",
        kind: Kind::Write,
        description: "Exchange items of a delivered order for variants of the same products; once for each order. \
                      The customer must have agreed to the details.",
        parameters: &[ORDER, ITEMS, NEW_ITEMS, METHOD],
        run: exchange_delivered_order_items,
    },
    Tool {
        name: "find_user_id_by_name_zip",
        kind: Kind::Read,
        description: "Find a customer's id by name and postal code, where the e-mail address finds none.",
        parameters: &[
            required("first_name", Shape::Text, "First name."),
            required("last_name", Shape::Text, "Last name."),
            required("zip", Shape::Text, "Postal code."),
        ],
        run: find_user_id_by_name_zip,
    },
    Tool {
        name: "find_user_id_by_email",
        kind: Kind::Read,
        description: "Find a customer's id by e-mail address.",
        parameters: &[required("email", Shape::Text, "E-mail address.")],
        run: |world, call| {
            let email = lower(call.given("email"))?;
            let user = world.directory.with_email(&email);
            user.map_or_else(|| fail("User not found"), |id| Ok(id.to_owned()))
        },
    },
    Tool {
        name: "get_order_details",
        kind: Kind::Read,
        description: "Look an order up: status, items and payments.",
        parameters: &[ORDER],
        run: |world, call| Ok(world.order(call)?.dumps()),
    },
    Tool {
        name: "get_product_details",
        kind: Kind::Read,
        description: "Look a product up with all its variants.",
        parameters: &[required(
            "product_id",
            Shape::Text,
            "Id of the product, which is no item's id.",
        )],
        run: |world, call| Ok(world.product(call.key("product_id")?)?.dumps()),
    },
    Tool {
        name: "get_item_details",
        kind: Kind::Read,
        description: "Look a variant of a product up by its item id.",
        parameters: &[required(
            "item_id",
            Shape::Text,
            "Id of the item, which is no product's id.",
        )],
        run: |world, call| {
            let item = call.key("item_id")?.id().and_then(|id| {
                let product = world.products.get(world.directory.product_of(id)?)?;
                product.variants.get(id)
            });
            item.map_or_else(|| fail("Item not found"), |item| Ok(python::dumps(item)))
        },
    },
    Tool {
        name: "get_user_details",
        kind: Kind::Read,
        description: "Look a customer up: profile, payment methods and orders.",
        parameters: &[USER],
        run: |world, call| Ok(world.user(call.key("user_id")?)?.dumps()),
    },
    Tool {
        name: "list_all_product_types",
        kind: Kind::Read,
        description: "List all products with their ids. Each comes in variants with item ids of their own.",
        parameters: &[],
        run: |world, _| Ok(world.directory.product_types().to_owned()),
    },
    Tool {
        name: "modify_pending_order_address",
        kind: Kind::Write,
        description: "Change where a pending order goes. The customer must have agreed to the details.",
        parameters: &[
            ORDER, ADDRESS[0], ADDRESS[1], ADDRESS[2], ADDRESS[3], ADDRESS[4], ADDRESS[5],
        ],
        run: |world, call| {
            let order = world.order_with(call, |status| status.contains(PENDING), NOT_PENDING)?;
            let (id, address) = (order.order_id.clone(), address(call)?);
            world.change(&id, |order| order.address = CachedJson::new(address))
        },
    },
    Tool {
        name: "modify_pending_order_items",
        kind: Kind::Write,
        description: "Change items of a pending order into other variants of the same products; once for each order. \
                      The customer must have agreed to the details.",
        parameters: &[ORDER, ITEMS, NEW_ITEMS, METHOD],
        run: modify_pending_order_items,
    },
    Tool {
        name: "modify_pending_order_payment",
        kind: Kind::Write,
        description: "Change what pays a pending order. The customer must have agreed to the details.",
        parameters: &[ORDER, METHOD],
        run: modify_pending_order_payment,
    },
    Tool {
        name: "modify_user_address",
        kind: Kind::Write,
        description: "Change a customer's own address. The customer must have agreed to the details.",
        parameters: &[
            USER, ADDRESS[0], ADDRESS[1], ADDRESS[2], ADDRESS[3], ADDRESS[4], ADDRESS[5],
        ],
        run: |world, call| {
            let id = world.user(call.key("user_id")?)?.user_id.clone();
            let address = address(call)?;
            let Some(user) = world.users.get_mut(&id) else {
                return fail("User not found");
            };
            user.address = CachedJson::new(address);
            Ok(python::dumps(user))
        },
    },
    Tool {
        name: "return_delivered_order_items",
        kind: Kind::Write,
        description: "Return items of a delivered order; once for each order. The customer must have agreed to the \
                      details.",
        parameters: &[ORDER, ITEMS, METHOD],
        run: return_delivered_order_items,
    },
    transfer::tool(),
];

const NOT_PENDING: &str = "Non-pending order cannot be modified";

impl Retail {
    fn user(&self, id: Key) -> Result<&CachedJson<User>, ToolError> {
        let user = id.id().and_then(|id| self.users.get(id));
        user.map_or_else(|| fail("User not found"), Ok)
    }

    fn product(&self, id: Key) -> Result<&CachedJson<Product>, ToolError> {
        let product = id.id().and_then(|id| self.products.get(id));
        product.map_or_else(|| fail("Product not found"), Ok)
    }

    fn order(&self, call: &Call) -> Result<&CachedJson<Order>, ToolError> {
        let order = call.key("order_id")?.id().and_then(|id| self.orders.get(id));
        order.map_or_else(|| fail("Order not found"), Ok)
    }

    /// The order of a call, whose status must allow what is to be done.
    fn order_with(
        &self,
        call: &Call,
        allows: fn(&str) -> bool,
        otherwise: &str,
    ) -> Result<&CachedJson<Order>, ToolError> {
        let order = self.order(call)?;
        if allows(&order.status) {
            Ok(order)
        } else {
            fail(otherwise)
        }
    }

    /// A payment method of whom an order belongs to.
    fn method<'a>(&'a self, order: &Order, id: Key<'a>) -> Result<(&'a str, &'a PaymentMethod), ToolError> {
        let user = self.users.get(&order.user_id);
        let method = id.id().and_then(|id| Some((id, user?.payment_methods.get(id)?)));
        method.map_or_else(|| fail("Payment method not found"), Ok)
    }

    /// The variant that is to replace an item.
    fn replacement(&self, item: &Item, id: &Value) -> Result<&Variant, ToolError> {
        let product = self.products.get(&item.product_id);
        let Some(product) = product else {
            return fail("Product not found");
        };
        let variant = Key::new(id)?.id().and_then(|id| product.variants.get(id));
        match variant {
            Some(variant) if variant.available => Ok(variant),
            Some(_) => fail(format!("New item {} not found or available", python::text(id))),
            None => fail("Variant not found"),
        }
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Order)) -> Answer {
        let Some(order) = self.orders.get_mut(id) else {
            return fail("Order not found");
        };
        change(order);
        Ok(python::dumps(order))
    }

    /// Adds to the balance of a gift card; other methods have none.
    fn credit(&mut self, user: &str, method: &str, amount: f64) {
        let user = self.users.get_mut(user);
        if let Some(PaymentMethod::GiftCard { balance, .. }) =
            user.and_then(|user| user.payment_methods.get_mut(method))
        {
            *balance = python::round(*balance + amount);
        }
    }
}

/// `text.lower()`.
fn lower(value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) => Ok(text.to_lowercase()),
        other => fail(format!("{} has no attribute 'lower'", python::repr(other))),
    }
}

fn find_user_id_by_name_zip(world: &mut Retail, call: &Call) -> Answer {
    let first = lower(call.given("first_name"))?;
    let Some(last_names) = world.directory.with_first_name(&first) else {
        return fail("User not found");
    };
    let zip = call.given("zip").as_str();
    let lives_there = |id: &&SmolStr| {
        let user = world.users.get(id);
        user.is_some_and(|user| zip == Some(&user.address.zip))
    };
    let ids = last_names.get(&lower(call.given("last_name"))?);
    let id = ids.and_then(|ids| ids.iter().find(lives_there));
    id.map_or_else(|| fail("User not found"), |id| Ok(id.to_string()))
}

fn address(call: &Call) -> Result<Address, ToolError> {
    let line = |name: &str| call.text(name).map(SmolStr::new);
    Ok(Address {
        address1: line("address1")?,
        address2: line("address2")?,
        city: line("city")?,
        country: line("country")?,
        state: line("state")?,
        zip: line("zip")?,
    })
}

/// What Python goes through: the elements of a list, the characters of a text.
fn elements(call: &Call, name: &str) -> Result<Vec<Value>, ToolError> {
    match call.given(name) {
        Value::Array(values) => Ok(values.clone()),
        Value::String(text) => Ok(text.chars().map(|char| char.to_string().into()).collect()),
        Value::Object(fields) if fields.is_empty() => Ok(Vec::new()),
        other => fail(format!("{name} should be a list, not {}", python::repr(other))),
    }
}

/// The first id that stands more often among `ids` than among the order's items.
fn beyond<'a>(order: &Order, ids: &'a [Value]) -> Option<&'a Value> {
    let there = |id: &Value| {
        order
            .items
            .iter()
            .filter(|item| *id == item.item_id.as_str())
            .count()
    };
    ids.iter()
        .find(|id| ids.iter().filter(|other| other == id).count() > there(id))
}

fn item<'a>(order: &'a Order, id: &Value) -> Result<&'a Item, ToolError> {
    let item = order.items.iter().find(|item| *id == item.item_id.as_str());
    item.map_or_else(|| fail(format!("Item {} not found", python::text(id))), Ok)
}

/// In order, as texts, which ids that were found are.
fn sorted(ids: &[Value]) -> Vec<SmolStr> {
    let mut ids: Vec<SmolStr> = ids.iter().map(|id| python::text(id).into()).collect();
    ids.sort();
    ids
}

fn cancel_pending_order(world: &mut Retail, call: &Call) -> Answer {
    const REASONS: [&str; 2] = ["no longer needed", "ordered by mistake"];
    let order = world.order_with(
        call,
        |status| status == PENDING,
        "Non-pending order cannot be cancelled",
    )?;
    let reason = call.key("reason")?.id().filter(|reason| REASONS.contains(reason));
    let Some(reason) = reason else {
        return fail("Invalid reason");
    };
    let mut refunds = Vec::new();
    for payment in &order.payment_history {
        world.method(order, payment.payment_method_id.as_str().into())?;
        refunds.push(Payment {
            transaction_type: Transaction::Refund,
            ..payment.clone()
        });
    }
    let (id, user) = (order.order_id.clone(), order.user_id.clone());
    for refund in &refunds {
        world.credit(&user, &refund.payment_method_id, refund.amount);
    }
    world.change(&id, |order| {
        order.status = "cancelled".into();
        order.cancel_reason = Some(reason.into());
        order.payment_history.extend(refunds);
    })
}

fn exchange_delivered_order_items(world: &mut Retail, call: &Call) -> Answer {
    let order = world.order_with(
        call,
        |status| status == DELIVERED,
        "Non-delivered order cannot be exchanged",
    )?;
    let old = elements(call, "item_ids")?;
    if let Some(id) = beyond(order, &old) {
        return fail(format!("Number of {} not found.", python::text(id)));
    }
    let new = elements(call, "new_item_ids")?;
    if old.len() != new.len() {
        return fail("The number of items to be exchanged should match.");
    }
    let mut difference = 0.0;
    for (old, new) in old.iter().zip(&new) {
        let item = item(order, old)?;
        difference += world.replacement(item, new)?.price - item.price;
    }
    let difference = python::round(difference);
    let (method, paid_with) = world.method(order, call.key("payment_method_id")?)?;
    if matches!(paid_with, PaymentMethod::GiftCard { balance, .. } if *balance < difference) {
        return fail("Insufficient gift card balance to pay for the price difference");
    }
    let (id, method) = (order.order_id.clone(), SmolStr::new(method));
    world.change(&id, |order| {
        order.status = "exchange requested".into();
        order.exchange_items = Some(sorted(&old));
        order.exchange_new_items = Some(sorted(&new));
        order.exchange_payment_method_id = Some(method);
        // Nothing was added to Python's whole number 0.
        order.exchange_price_difference = if old.is_empty() {
            0.into()
        } else {
            difference.into()
        };
    })
}

fn modify_pending_order_items(world: &mut Retail, call: &Call) -> Answer {
    let order = world.order_with(call, |status| status == PENDING, NOT_PENDING)?;
    let old = elements(call, "item_ids")?;
    if let Some(id) = beyond(order, &old) {
        return fail(format!("{} not found", python::text(id)));
    }
    let new = elements(call, "new_item_ids")?;
    if old.len() != new.len() {
        return fail("The number of items to be exchanged should match");
    }
    let mut difference = 0.0;
    let mut last = None;
    for (old, new) in old.iter().zip(&new) {
        if old == new {
            return fail("The new item id should be different from the old item id");
        }
        let item = item(order, old)?;
        let variant = world.replacement(item, new)?;
        difference += variant.price - item.price;
        last = Some((variant.price, variant.options.clone()));
    }
    let (method, paid_with) = world.method(order, call.key("payment_method_id")?)?;
    if matches!(paid_with, PaymentMethod::GiftCard { balance, .. } if *balance < difference) {
        return fail("Insufficient gift card balance to pay for the new item");
    }
    let (id, user, method) = (
        order.order_id.clone(),
        order.user_id.clone(),
        SmolStr::new(method),
    );
    world.credit(&user, &method, -difference);
    world.change(&id, |order| {
        order.payment_history.push(Payment {
            transaction_type: if difference > 0.0 {
                Transaction::Payment
            } else {
                Transaction::Refund
            },
            amount: difference.abs(),
            payment_method_id: method,
        });
        let items = order.items.to_mut();
        for (old, new) in old.iter().zip(&new) {
            let changed = items.iter_mut().find(|item| *old == item.item_id.as_str());
            // Like the benchmark: every item gets price and options of the last one's variant.
            if let (Some(item), Some((price, options))) = (changed, &last) {
                item.item_id = python::text(new).into();
                item.price = *price;
                item.options.clone_from(options);
            }
        }
        order.status = "pending (item modified)".into();
    })
}

fn modify_pending_order_payment(world: &mut Retail, call: &Call) -> Answer {
    let order = world.order_with(call, |status| status.contains(PENDING), NOT_PENDING)?;
    let (method, paid_with) = world.method(order, call.key("payment_method_id")?)?;
    let [first] = &order.payment_history[..] else {
        return fail("There should be exactly one payment for a pending order");
    };
    if first.transaction_type != Transaction::Payment {
        return fail("There should be exactly one payment for a pending order");
    }
    if first.payment_method_id == method {
        return fail("The new payment method should be different from the current one");
    }
    if matches!(paid_with, PaymentMethod::GiftCard { balance, .. } if *balance < first.amount) {
        return fail("Insufficient gift card balance to pay for the order");
    }
    let payment = Payment {
        payment_method_id: method.into(),
        ..first.clone()
    };
    let refund = Payment {
        transaction_type: Transaction::Refund,
        ..first.clone()
    };
    let (id, user) = (order.order_id.clone(), order.user_id.clone());
    world.credit(&user, &payment.payment_method_id, -payment.amount);
    world.credit(&user, &refund.payment_method_id, refund.amount);
    world.change(&id, |order| order.payment_history.extend([payment, refund]))
}

fn return_delivered_order_items(world: &mut Retail, call: &Call) -> Answer {
    let order = world.order_with(
        call,
        |status| status == DELIVERED,
        "Non-delivered order cannot be returned",
    )?;
    let (method, paid_with) = world.method(order, call.key("payment_method_id")?)?;
    let is_original = order
        .payment_history
        .first()
        .is_some_and(|first| first.payment_method_id == method);
    if !is_original && !matches!(paid_with, PaymentMethod::GiftCard { .. }) {
        return fail("Payment method should be the original payment method");
    }
    let ids = elements(call, "item_ids")?;
    if beyond(order, &ids).is_some() {
        return fail("Some item not found");
    }
    let (id, method) = (order.order_id.clone(), SmolStr::new(method));
    world.change(&id, |order| {
        order.status = "return requested".into();
        order.return_items = Some(sorted(&ids));
        order.return_payment_method_id = Some(method);
    })
}
