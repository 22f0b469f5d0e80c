//! Requests about an order: which one, what is known of it, where its parcel is.

use serde_json::json;

use super::items::{items, names, names_kind, product_of};
use super::obstacles::Obstacle;
use super::wording::spoken_date;
use super::{Act, HelpDeskAgent};
use crate::simulated::agent::behaviour::Behaviour;
use crate::simulated::agent::notes::{CustomerRequest, Setback};
use crate::simulated::agent::records::Order;
use crate::simulated::agent::speech::Voice;
use crate::simulated::agent::wish::{self, Intent};
use crate::tool_names;

impl HelpDeskAgent<'_> {
    pub(super) fn with_order(&self, wish: &CustomerRequest, intent: Intent) -> Act {
        let order_id = match self.find_order(wish, intent) {
            Ok(order_id) => order_id,
            Err(act) => return act,
        };
        if let Some(extras) = self.redundant(wish, 0, None) {
            return extras;
        }
        // Items and shipments can only be told from the record; cancelling and changing an address
        // can be done blindly.
        let blind =
            matches!(intent, Intent::Cancel | Intent::Address) && !self.does(Behaviour::OpenRecord, "open");
        let Some(order) = self.notes.order(&order_id) else {
            let looked = wish
                .setbacks
                .iter()
                .filter(|setback| **setback == Setback::ToolError)
                .count();
            if !blind
                && looked < 2
                && let Some(act) = self.look_up(tool_names::GET_ORDER, json!({ "order_id": order_id }))
            {
                return act;
            }
            if blind {
                if let Some(act) = self.ask_address(wish, intent) {
                    return act;
                }
                return self.carry_out(wish, self.change(wish, intent, &order_id, None), None);
            }
            return self.say(
                "no record",
                "I'm sorry, I cannot find this order, so I cannot do anything about it.",
            );
        };
        if order.payment == "invoice"
            && let Some(act) = self.hand_over_due("invoice")
        {
            return act;
        }
        if intent == Intent::Track {
            return self.track(wish, order);
        }
        if intent == Intent::Exchange
            && let Some(act) = self.read_stock(wish, order)
        {
            return act;
        }
        let obstacle = self.order_obstacle(wish, intent, order);
        if let Some(extras) = self.redundant(wish, 1, Some(order)) {
            return extras;
        }
        if obstacle.is_none() && self.misreads_rule(wish) {
            return self.refuse(wish, intent, &order.order_id, "our rules do not provide for it");
        }
        let obstacle = obstacle.filter(|_| self.sees_obstacle(wish));
        match obstacle {
            Some(Obstacle {
                voucher_instead: false,
                reason,
            }) => self.refuse(wish, intent, &order.order_id, &reason),
            Some(Obstacle { reason, .. }) if wish.voucher == Some(false) => {
                self.refuse(wish, intent, &order.order_id, &reason)
            }
            other => {
                if let Some(act) = self.ask_details(wish, intent, order) {
                    return act;
                }
                let mut change = self.change(wish, intent, &order.order_id, Some(order));
                if (other.is_some() || (wish.voucher == Some(true) && intent == Intent::Return))
                    && let Some(change) = &mut change
                {
                    change.arguments["refund_to"] = json!("voucher");
                    change.operation.push_str(" for a voucher");
                }
                self.carry_out(wish, change, Some(order))
            }
        }
    }

    /// The order that is meant, or what to do to find out.
    fn find_order(&self, wish: &CustomerRequest, intent: Intent) -> Result<String, Act> {
        if let Some(id) = &wish.order_id {
            return Ok(id.clone());
        }
        let looks_up = self.does(Behaviour::LookUpFirst, "look up");
        let verified = self.notes.identity.as_ref();
        if (!looks_up || verified.is_none()) && wish.asked.order == 0 {
            return Err(self.say("order", "Could you give me the order number?"));
        }
        let Some(identity) = verified else {
            return Err(self.say(
                "no order",
                "I'm sorry, without the order number I cannot find the order.",
            ));
        };
        let Some(account) = self
            .notes
            .account
            .as_ref()
            .filter(|account| account.customer_id == identity.customer_id)
        else {
            return Err(self
                .look_up(
                    tool_names::GET_ACCOUNT,
                    json!({ "customer_id": identity.customer_id }),
                )
                .unwrap_or_else(|| {
                    self.say(
                        "no order",
                        "I'm sorry, without the order number I cannot find the order.",
                    )
                }));
        };
        let fits = |state: &str| match intent {
            Intent::Cancel | Intent::Address => matches!(state, "placed" | "packed" | "shipped"),
            Intent::Return | Intent::Exchange => state == "delivered",
            Intent::Track => matches!(state, "placed" | "packed" | "shipped"),
            _ => true,
        };
        let mut candidates: Vec<&str> = account
            .orders
            .iter()
            .filter(|line| fits(&line.state))
            .map(|line| line.order_id.as_str())
            .collect();
        if candidates.is_empty() {
            candidates = account.orders.iter().map(|line| line.order_id.as_str()).collect();
        }
        if let Some(line) = account
            .orders
            .iter()
            .find(|line| wish.when().dates.contains(&line.placed))
        {
            return Ok(line.order_id.clone());
        }
        match candidates[..] {
            [] => return Err(self.say("no orders", "I'm sorry, I cannot find any order in your account.")),
            [only] => return Ok(only.to_owned()),
            _ => {}
        }
        // Several orders that may be meant: a hard case.
        if self.offers(tool_names::TRANSFER_TO_HUMAN)
            && self
                .behaviours
                .does(Behaviour::GiveUp, self.occasion("several orders"), -1.2)
        {
            return Err(self.transfer("it is unclear which order is meant"));
        }
        // Most recent first: the likely one.
        candidates.reverse();
        if !self.does(Behaviour::TellApart, "tell apart") {
            let skipped = (wish.declined as usize).min(candidates.len() - 1);
            return Ok(candidates[skipped].to_owned());
        }
        for id in &candidates {
            match self.notes.order(id) {
                Some(order) if order.items.iter().any(|item| names(&wish.lower, item)) => {
                    return Ok((*id).to_owned());
                }
                Some(_) => {}
                None => {
                    return Err(self
                        .look_up(tool_names::GET_ORDER, json!({ "order_id": id }))
                        .unwrap_or_else(|| self.say("order", "Could you give me the order number?")));
                }
            }
        }
        let of_kind = |id: &&str| {
            self.notes
                .order(id)
                .is_some_and(|order| order.items.iter().any(|item| names_kind(&wish.lower, item)))
        };
        Ok(candidates
            .iter()
            .copied()
            .find(of_kind)
            .unwrap_or(candidates[0])
            .to_owned())
    }

    fn read_stock(&self, wish: &CustomerRequest, order: &Order) -> Option<Act> {
        let item = items(wish, order).first().copied()?;
        let product = product_of(&item.sku);
        if self
            .notes
            .products
            .iter()
            .any(|known| known.product_id == product)
            || !self.does(Behaviour::ReadFurther, "stock")
        {
            return None;
        }
        // The search may have found nothing: one attempt.
        if self.notes.made_for_wish(tool_names::SEARCH_PRODUCTS) > 0 {
            return None;
        }
        self.call(tool_names::SEARCH_PRODUCTS, json!({ "query": item.name }))
    }

    /// What the customer still has to say before the change can be made.
    fn ask_details(&self, wish: &CustomerRequest, intent: Intent, order: &Order) -> Option<Act> {
        match intent {
            Intent::Return | Intent::Exchange if items(wish, order).is_empty() && wish.asked.item == 0 => {
                let asks = self.does(Behaviour::TellApart, "items");
                asks.then(|| self.say("item", "Could you tell me which item of the order you mean?"))
            }
            Intent::Exchange if self.wanted_variant(wish, order).is_none() && wish.asked.variant == 0 => {
                Some(self.say("variant", "Could you tell me the size or colour you want?"))
            }
            _ => self.ask_address(wish, intent),
        }
    }

    fn ask_address(&self, wish: &CustomerRequest, intent: Intent) -> Option<Act> {
        let missing = intent == Intent::Address && wish::address(&wish.said).is_none();
        (missing && wish.asked.address < 2).then(|| {
            self.say(
                "address",
                "Could you give me the new address with street, postcode and town?",
            )
        })
    }

    fn track(&self, wish: &CustomerRequest, order: &Order) -> Act {
        let shipment = order
            .shipment_id
            .as_ref()
            .and_then(|_| self.notes.shipments.iter().find(|(id, _)| *id == order.order_id));
        if shipment.is_none()
            && let Some(id) = &order.shipment_id
            && (self.does(Behaviour::ReadFurther, "shipment") || wish.setbacks.contains(&Setback::Lost))
            && let Some(act) = self.look_up(tool_names::GET_SHIPMENT, json!({ "shipment_id": id }))
        {
            return act;
        }
        if shipment.is_some_and(|(_, shipment)| shipment.state == "lost")
            && let Some(act) = self.hand_over_due("lost")
        {
            return act;
        }
        if let Some(extras) = self.redundant(wish, 1, Some(order)) {
            return extras;
        }
        let lost_before = wish
            .setbacks
            .iter()
            .filter(|setback| **setback == Setback::Lost)
            .count();
        let tells = self
            .behaviours
            .does(Behaviour::Tell, self.occasion("tell").at(lost_before), 1.0);
        let matter = match shipment {
            Some((_, shipment)) if tells => {
                let expected = shipment.expected.as_deref().unwrap_or("an unknown date");
                format!(
                    "Your parcel for order {} is {}; it is expected on {} ({expected}).",
                    order.order_id,
                    shipment.state.replace('_', " "),
                    spoken_date(expected)
                )
            }
            _ if order.shipment_id.is_some() => format!(
                "Your order {} is {} and on its way to you.",
                order.order_id, order.state
            ),
            _ => format!(
                "Your order {} is {} and has not left us yet.",
                order.order_id, order.state
            ),
        };
        Act::Say(Voice::new(self.behaviours, self.occasion("answer")).report(&matter, &matter))
    }
}
