//! Changes: what a request comes to, proposing it, making it, reporting it.

use serde_json::{Value, json};

use super::items::{items, product_of};
use super::wording::first_words;
use super::{Act, HelpDeskAgent};
use crate::simulated::agent::behaviour::Behaviour;
use crate::simulated::agent::notes::CustomerRequest;
use crate::simulated::agent::records::Order;
use crate::simulated::agent::speech::Voice;
use crate::simulated::agent::wish::{self, Intent};
use crate::tool_names;

/// What is to be changed, ready to be called.
pub(super) struct Change {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    /// For a proposal: "cancel order O-1042 …".
    pub(super) operation: String,
}

impl HelpDeskAgent<'_> {
    /// The change a request about an order comes to.
    pub(super) fn change(
        &self,
        wish: &CustomerRequest,
        intent: Intent,
        order_id: &str,
        order: Option<&Order>,
    ) -> Option<Change> {
        let slips = self.slips(wish);
        match intent {
            Intent::Cancel => {
                let total = order
                    .map(|order| format!(" of {} euros", order.total))
                    .unwrap_or_default();
                Some(Change {
                    tool: tool_names::CANCEL_ORDER,
                    arguments: json!({ "order_id": order_id }),
                    operation: format!("cancel order {order_id}{total}"),
                })
            }
            Intent::Return => {
                let order = order?;
                let mut items = items(wish, order);
                if items.is_empty() || (slips && order.items.len() > 1) {
                    // Taken for granted that all of it, or another part of it, is meant.
                    items = if slips {
                        order.items.iter().take(1).collect()
                    } else {
                        order.items.iter().collect()
                    };
                }
                let skus: Vec<&str> = items.iter().map(|item| item.sku.as_str()).collect();
                let list: Vec<String> = items
                    .iter()
                    .map(|item| format!("{} ({}, {} euros)", item.name, item.option, item.price))
                    .collect();
                Some(Change {
                    tool: tool_names::RETURN_ITEMS,
                    arguments: json!({ "order_id": order_id, "skus": skus, "refund_to": "original" }),
                    operation: format!(
                        "return {} from order {order_id} and refund it",
                        list.join(" and ")
                    ),
                })
            }
            Intent::Exchange => {
                let order = order?;
                let items = items(wish, order);
                let item = items.first().copied().or_else(|| order.items.first())?;
                let (mut new_sku, _) = self.wanted_variant(wish, order)?;
                if slips
                    && let Some(known) = self
                        .notes
                        .products
                        .iter()
                        .find(|known| known.product_id == product_of(&item.sku))
                    && let Some(other) = known
                        .variants
                        .iter()
                        .find(|variant| variant.sku != item.sku && variant.sku != new_sku)
                {
                    new_sku.clone_from(&other.sku);
                }
                Some(Change {
                    tool: tool_names::EXCHANGE_ITEM,
                    operation: format!(
                        "exchange the {} ({}) of order {order_id} for {new_sku}",
                        item.name, item.sku
                    ),
                    arguments: json!({ "order_id": order_id, "sku": item.sku, "new_sku": new_sku }),
                })
            }
            Intent::Address => {
                let mut address = wish::address(&wish.said)?;
                if slips {
                    // The postcode of the account in the place of the new one.
                    address.postcode = self.notes.postcode.clone().unwrap_or(address.postcode);
                }
                Some(Change {
                    tool: tool_names::CHANGE_ADDRESS,
                    operation: format!(
                        "change the delivery address of order {order_id} to {}, {} {}",
                        address.street, address.postcode, address.city
                    ),
                    arguments: json!({ "order_id": order_id, "street": address.street, "city": address.city, "postcode": address.postcode }),
                })
            }
            Intent::Book | Intent::Move | Intent::Track | Intent::Injury => None,
        }
    }

    /// Whether the agent gets an argument wrong: likelier the longer the conversation has been on and
    /// the less smoothly it went. Put right once, it stays right.
    pub(super) fn slips(&self, wish: &CustomerRequest) -> bool {
        let hardness = 0.5 * self.notes.wish_index() as f64 + 0.4 * wish.setbacks.len() as f64;
        wish.declined == 0
            && wish.write_errors == 0
            && self
                .behaviours
                .does(Behaviour::Slip, self.occasion("slip"), hardness)
    }

    /// Proposes a change if the agent is one to ask, makes it, or says that it cannot.
    pub(super) fn carry_out(
        &self,
        wish: &CustomerRequest,
        change: Option<Change>,
        order: Option<&Order>,
    ) -> Act {
        let Some(change) = change.filter(|change| self.offers(change.tool)) else {
            return self.say("impossible", "I'm sorry, I cannot do this for you.");
        };
        if wish.write_errors >= 2 {
            return self.say(
                "failed",
                "I'm sorry, our system does not accept this, so I cannot do it.",
            );
        }
        let proposes = self.does(Behaviour::Propose, "propose");
        if proposes && !wish.agreed {
            if wish.proposals >= 4 {
                return self.say(
                    "no agreement",
                    "I'm sorry, I cannot settle this without your agreement.",
                );
            }
            let matter = format!(
                "I would {}. Shall I go ahead and {}?",
                change.operation,
                first_words(&change.operation)
            );
            return Act::Say(
                Voice::new(
                    self.behaviours,
                    self.occasion("proposal").at(wish.proposals as usize),
                )
                .say(&matter),
            );
        }
        if let Some(extras) = self.redundant(wish, 2, order) {
            return extras;
        }
        Act::Call(vec![(change.tool, change.arguments)])
    }

    /// Reports what was done.
    pub(super) fn finish(&self, wish: &CustomerRequest) -> Act {
        let order = wish.order_id.as_ref().and_then(|id| self.notes.order(id));
        if let Some(extras) = self.redundant(wish, 3, order) {
            return extras;
        }
        let done = match wish.intent {
            Some(Intent::Cancel) => "Your order has been cancelled.",
            Some(Intent::Return) => "Your return has been registered and the refund is on its way.",
            Some(Intent::Exchange) => "Your item has been exchanged; the new one is being packed.",
            Some(Intent::Address) => "The delivery address has been changed.",
            Some(Intent::Move) => "Your appointment has been moved.",
            _ => "Your appointment has been booked.",
        };
        Act::Say(Voice::new(self.behaviours, self.occasion("report")).report(done, done))
    }
}
