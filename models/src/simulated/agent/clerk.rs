//! What a help-desk agent does next.
//!
//! Every decision is made from the conversation's notes, the policy and the tools on offer. The
//! occasion of each decision is named, so that the same example under another prompt meets the
//! same luck.

use capo_core::llm::ToolSpec;
use serde_json::{Value, json};

use super::handbook::Handbook;
use super::notes::{Notes, Setback, Wish};
use super::records::{Item, Order, Slot};
use super::speech::Voice;
use super::temper::{Behaviour, Temper};
use super::wish::{self, Intent};
use crate::simulated::luck::Luck;

/// What the agent does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Says this to the customer.
    Say(String),
    /// Makes these calls, in order.
    Call(Vec<(&'static str, Value)>),
}

/// The most redundant calls the agent makes at one point of a request.
const REDUNDANT_AT_ONCE: usize = 4;

/// An agent at one moment of a conversation.
pub(super) struct Clerk<'a> {
    pub(super) notes: &'a Notes,
    pub(super) temper: &'a Temper,
    pub(super) handbook: &'a Handbook,
    pub(super) tools: &'a [ToolSpec],
    pub(super) luck: Luck,
}

/// Why a request cannot be met.
struct Obstacle {
    /// For the customer, after "because".
    reason: String,
    /// Money can be given as a voucher instead.
    voucher_instead: bool,
}

/// What is to be changed, ready to be called.
struct Change {
    tool: &'static str,
    arguments: Value,
    /// For a proposal: "cancel order O-1042 …".
    deed: String,
}

impl Clerk<'_> {
    /// The next act.
    pub(super) fn act(&self) -> Act {
        let Some(wish) = self.notes.wish() else {
            return self.say("greeting", "Hello! What would you like me to do for you?");
        };
        if self.gives_up(wish) {
            return self.transfer("the request could not be settled in this conversation");
        }
        let Some(intent) = wish.intent else {
            return if wish.asked.goal < 2 {
                self.say(
                    "goal",
                    "Could you tell me in a few words: what would you like me to do for you?",
                )
            } else {
                self.say("goal refused", "I'm sorry, I cannot help with that.")
            };
        };
        if let Some(act) = self.verify(wish, intent) {
            return act;
        }
        if wish.written {
            return self.finish(wish);
        }
        match intent {
            Intent::Book | Intent::Move => self.appointment(wish, intent),
            Intent::Injury => self.injury(),
            _ => self.with_order(wish, intent),
        }
    }

    // -- occasions ---------------------------------------------------------------------------

    fn occasion(&self, name: &str) -> Luck {
        self.luck.named("wish").at(self.notes.wish_index()).named(name)
    }

    fn does(&self, behaviour: Behaviour, occasion: &str) -> bool {
        self.temper.does(behaviour, self.occasion(occasion), 0.0)
    }

    fn say(&self, occasion: &str, matter: &str) -> Act {
        Act::Say(Voice::new(self.temper, self.occasion(occasion)).say(matter))
    }

    fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    /// A call, if the tool is on offer.
    fn call(&self, tool: &'static str, arguments: Value) -> Option<Act> {
        self.offers(tool).then(|| Act::Call(vec![(tool, arguments)]))
    }

    // -- handing over ------------------------------------------------------------------------

    /// Whether one of the setbacks so far was too much.
    fn gives_up(&self, wish: &Wish) -> bool {
        self.offers("transfer_to_human")
            && wish.setbacks.iter().enumerate().any(|(index, setback)| {
                let difficulty = match setback {
                    Setback::Pushed => 0.6,
                    Setback::IdentityFailed => 0.1,
                    Setback::Unknown => -2.2,
                    Setback::Lost | Setback::WantsHuman => 0.3,
                    Setback::ToolError => 0.2,
                    Setback::Declined => -0.8,
                };
                self.temper
                    .does(Behaviour::GiveUp, self.occasion("give up").at(index), difficulty)
            })
    }

    fn transfer(&self, reason: &str) -> Act {
        self.call("transfer_to_human", json!({ "reason": reason }))
            .unwrap_or_else(|| self.say("no transfer", "I'm sorry, I cannot settle this here."))
    }

    /// Hands over if the policy wants a cause handed over and the agent does as it says.
    fn hand_over_due(&self, cause: &str) -> Option<Act> {
        (self.handbook.hands_over(cause) && self.does(Behaviour::HandOverWhenDue, "due"))
            .then(|| self.transfer(cause))
    }

    // -- identity ----------------------------------------------------------------------------

    fn verify(&self, wish: &Wish, intent: Intent) -> Option<Act> {
        if let Some(identity) = &self.notes.identity {
            return (identity.account == "locked")
                .then(|| self.hand_over_due("locked"))
                .flatten();
        }
        // Without an order number there is no way round the account.
        let unavoidable = matches!(intent, Intent::Book | Intent::Move)
            || (wish.order_id.is_none() && wish.asked.order > 0);
        let wants = self.handbook.verify && self.does(Behaviour::Verify, "verify");
        let looks_up = wish.order_id.is_none() && self.does(Behaviour::LookUpFirst, "look up");
        if !(wants || unavoidable || looks_up) || !self.offers("verify_identity") {
            return None;
        }
        if self.notes.failed_verifications >= 2 {
            return Some(self.say("unverified", "I'm sorry, I could not verify the account with this e-mail address and postcode, so I cannot change or show anything."));
        }
        match (&self.notes.email, &self.notes.postcode) {
            (Some(email), Some(postcode)) if self.notes.failed_verifications == 0 || self.notes.identity_asked_again => {
                self.call("verify_identity", json!({ "email": email, "postcode": postcode }))
            }
            (Some(_), Some(_)) => Some(self.say("identity again", "These details do not match an account. Could you give me the e-mail address and the postcode once more?")),
            _ if wish.asked.identity >= 3 => Some(self.say("unverified", "I'm sorry, I could not verify the account, so I cannot change or show anything.")),
            (None, Some(_)) => Some(self.say("email", "Could you give me the e-mail address of your account?")),
            (Some(_), None) => Some(self.say("postcode", "Could you give me the postcode that belongs to the e-mail address of your account?")),
            (None, None) => Some(self.say("identity", "Could you give me the e-mail address and the postcode of your account?")),
        }
    }

    fn injury(&self) -> Act {
        for cause in ["injury", "failed"] {
            if let Some(act) = self.hand_over_due(cause) {
                return act;
            }
        }
        self.say("injury", "I'm sorry to hear that. I have noted what happened and our workshop is informed, so that is done.")
    }

    // -- orders ------------------------------------------------------------------------------

    fn with_order(&self, wish: &Wish, intent: Intent) -> Act {
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
                && let Some(act) = self.call("get_order", json!({ "order_id": order_id }))
            {
                return act;
            }
            if blind {
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
                    change.deed.push_str(" for a voucher");
                }
                self.carry_out(wish, change, Some(order))
            }
        }
    }

    /// The order that is meant, or what to do to find out.
    fn find_order(&self, wish: &Wish, intent: Intent) -> Result<String, Act> {
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
                .call("get_account", json!({ "customer_id": identity.customer_id }))
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
            .find(|line| wish.when.dates.contains(&line.placed))
        {
            return Ok(line.order_id.clone());
        }
        match candidates[..] {
            [] => return Err(self.say("no orders", "I'm sorry, I cannot find any order in your account.")),
            [only] => return Ok(only.to_owned()),
            _ => {}
        }
        // Several orders that may be meant: a hard case.
        if self.offers("transfer_to_human")
            && self
                .temper
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
                        .call("get_order", json!({ "order_id": id }))
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

    fn read_stock(&self, wish: &Wish, order: &Order) -> Option<Act> {
        let item = Self::items(wish, order).first().copied()?;
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
        if self.notes.made_for_wish("search_products") {
            return None;
        }
        self.call("search_products", json!({ "query": item.name }))
    }

    /// What the customer still has to say before the change can be made.
    fn ask_details(&self, wish: &Wish, intent: Intent, order: &Order) -> Option<Act> {
        match intent {
            Intent::Return | Intent::Exchange
                if Self::items(wish, order).is_empty() && wish.asked.item == 0 =>
            {
                let asks = self.does(Behaviour::TellApart, "items");
                asks.then(|| self.say("item", "Could you tell me which item of the order you mean?"))
            }
            Intent::Exchange if self.wanted_variant(wish, order).is_none() && wish.asked.variant == 0 => {
                Some(self.say("variant", "Could you tell me the size or colour you want?"))
            }
            Intent::Address if wish::address(&wish.said).is_none() && wish.asked.address < 2 => {
                Some(self.say(
                    "address",
                    "Could you give me the new address with street, postcode and town?",
                ))
            }
            _ => None,
        }
    }

    /// The items the customer speaks of; none when that cannot be told.
    fn items<'o>(wish: &Wish, order: &'o Order) -> Vec<&'o Item> {
        let open: Vec<&Item> = order
            .items
            .iter()
            .filter(|item| item.state == "ordered")
            .collect();
        let named: Vec<&Item> = open
            .iter()
            .copied()
            .filter(|item| names(&wish.lower, item))
            .collect();
        if !named.is_empty() {
            return named;
        }
        let kind: Vec<&Item> = open
            .iter()
            .copied()
            .filter(|item| names_kind(&wish.lower, item))
            .collect();
        if !kind.is_empty() {
            return kind;
        }
        let all = [
            "everything",
            "all of it",
            "whole order",
            "all items",
            "both",
            "entire order",
            "complete order",
        ];
        if open.len() == 1 || all.iter().any(|cue| wish.lower.contains(cue)) {
            open
        } else {
            Vec::new()
        }
    }

    /// The variant the customer wants instead, with whether it is in stock (unknown when the agent
    /// has not looked).
    fn wanted_variant(&self, wish: &Wish, order: &Order) -> Option<(String, Option<bool>)> {
        let items = Self::items(wish, order);
        let item = items.first().copied().or_else(|| order.items.first())?;
        let product = product_of(&item.sku);
        let Some(known) = self
            .notes
            .products
            .iter()
            .find(|known| known.product_id == product)
        else {
            // Not looked up: a guess at how the shop names it.
            let option = wish
                .lower
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| is_size(word))
                .find(|word| !word.eq_ignore_ascii_case(&item.option))?;
            return Some((format!("{product}-{}", option.to_uppercase()), None));
        };
        let wanted = known
            .variants
            .iter()
            .filter(|variant| variant.sku != item.sku)
            .filter_map(|variant| {
                position_of(&wish.lower, &variant.option.to_lowercase()).map(|at| (at, variant))
            })
            .max_by_key(|(at, _)| *at)?
            .1;
        Some((wanted.sku.clone(), Some(wanted.in_stock > 0)))
    }

    fn order_obstacle(&self, wish: &Wish, intent: Intent, order: &Order) -> Option<Obstacle> {
        let book = self.handbook;
        let obstacle = |reason: &str| {
            Some(Obstacle {
                reason: reason.to_owned(),
                voucher_instead: false,
            })
        };
        if let Some(identity) = &self.notes.identity
            && !order.customer_id.is_empty()
            && order.customer_id != identity.customer_id
        {
            return obstacle("I could not verify that the order is yours: it does not match your account");
        }
        let club = self
            .notes
            .identity
            .as_ref()
            .is_some_and(|identity| identity.club_member)
            || self
                .notes
                .account
                .as_ref()
                .is_some_and(|account| account.customer_id == order.customer_id && account.club_member);
        let holds = |states: &[String]| states.contains(&order.state);
        let days = order.days_since_delivery;
        let items = Self::items(wish, order);
        let clearance = book.clearance_is_final && items.iter().any(|item| item.clearance);
        match intent {
            Intent::Cancel if !book.cancellable.is_empty() && !holds(&book.cancellable) => {
                if holds(&book.cancellable_by_members) {
                    if club {
                        None
                    } else {
                        obstacle("it is already packed, and then only club members may do so")
                    }
                } else {
                    obstacle(&format!("it is already {}", order.state))
                }
            }
            Intent::Return | Intent::Exchange if order.state != "delivered" => {
                obstacle("it is not with you yet")
            }
            Intent::Return | Intent::Exchange if clearance => obstacle("clearance items are final sales"),
            Intent::Return => match (days, book.refund_days, book.voucher_days) {
                (Some(days), _, Some(limit)) if days > limit => {
                    obstacle(&format!("it was delivered more than {limit} days ago"))
                }
                (Some(days), Some(limit), _) if days > limit => Some(Obstacle {
                    reason: format!("after {limit} days we give a voucher only"),
                    voucher_instead: true,
                }),
                _ => None,
            },
            Intent::Exchange => match (days, book.exchange_days) {
                (Some(days), Some(limit)) if days > limit => {
                    obstacle(&format!("it was delivered more than {limit} days ago"))
                }
                _ => match self.wanted_variant(wish, order) {
                    Some((_, Some(false))) => obstacle("it is not in stock"),
                    _ => None,
                },
            },
            Intent::Address if !book.address_states.is_empty() && !holds(&book.address_states) => {
                obstacle(&format!("it is already {}", order.state))
            }
            Intent::Address => match (order.total.parse::<f64>(), book.address_limit) {
                (Ok(total), Some(limit)) if total >= limit => obstacle(&format!(
                    "the address is fixed for orders of {limit:.0} euros or more"
                )),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the agent sees what stands in the way, and stands by it when pushed.
    fn sees_obstacle(&self, wish: &Wish) -> bool {
        let pushes = wish
            .setbacks
            .iter()
            .filter(|setback| **setback == Setback::Pushed)
            .count();
        self.does(Behaviour::SeeObstacle, "obstacle")
            && (0..pushes).all(|push| {
                self.temper
                    .does(Behaviour::SeeObstacle, self.occasion("firm").at(push), 1.8)
            })
    }

    /// Says no with the reason, or leaves that to a person.
    fn refuse(&self, wish: &Wish, intent: Intent, record: &str, reason: &str) -> Act {
        if wish.refusals == 0
            && self.offers("transfer_to_human")
            && self
                .temper
                .does(Behaviour::GiveUp, self.occasion("leave the no to others"), -0.4)
        {
            return self.transfer("the request is not possible");
        }
        let deed = match intent {
            Intent::Cancel => "cancel",
            Intent::Return => "take back",
            Intent::Exchange => "exchange",
            Intent::Address => "change the address of",
            Intent::Book => "book",
            Intent::Move => "move",
            Intent::Track | Intent::Injury => "do this for",
        };
        // Asked again, the reason comes out more readily.
        let tells = self.temper.does(
            Behaviour::Tell,
            self.occasion("tell").at(wish.refusals as usize),
            0.0,
        );
        let matter = if tells {
            format!("I'm sorry, I cannot {deed} {record} because {reason}.")
        } else {
            format!("I'm sorry, I cannot {deed} {record}.")
        };
        Act::Say(Voice::new(self.temper, self.occasion("refusal").at(wish.refusals as usize)).say(&matter))
    }

    fn track(&self, wish: &Wish, order: &Order) -> Act {
        let shipment = order
            .shipment_id
            .as_ref()
            .and_then(|_| self.notes.shipments.iter().find(|(id, _)| *id == order.order_id));
        if shipment.is_none()
            && let Some(id) = &order.shipment_id
            && (self.does(Behaviour::ReadFurther, "shipment") || wish.setbacks.contains(&Setback::Lost))
            && let Some(act) = self.call("get_shipment", json!({ "shipment_id": id }))
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
            .temper
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
        Act::Say(Voice::new(self.temper, self.occasion("answer")).report(&matter, &matter))
    }

    /// The change a request about an order comes to.
    fn change(&self, wish: &Wish, intent: Intent, order_id: &str, order: Option<&Order>) -> Option<Change> {
        let slips = wish.declined == 0 && wish.write_errors == 0 && self.does(Behaviour::Slip, "slip");
        match intent {
            Intent::Cancel => {
                let total = order
                    .map(|order| format!(" of {} euros", order.total))
                    .unwrap_or_default();
                Some(Change {
                    tool: "cancel_order",
                    arguments: json!({ "order_id": order_id }),
                    deed: format!("cancel order {order_id}{total}"),
                })
            }
            Intent::Return => {
                let order = order?;
                let mut items = Self::items(wish, order);
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
                    tool: "return_items",
                    arguments: json!({ "order_id": order_id, "skus": skus, "refund_to": "original" }),
                    deed: format!(
                        "return {} from order {order_id} and refund it",
                        list.join(" and ")
                    ),
                })
            }
            Intent::Exchange => {
                let order = order?;
                let items = Self::items(wish, order);
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
                    tool: "exchange_item",
                    deed: format!(
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
                    tool: "change_address",
                    deed: format!(
                        "change the delivery address of order {order_id} to {}, {} {}",
                        address.street, address.postcode, address.city
                    ),
                    arguments: json!({ "order_id": order_id, "street": address.street, "city": address.city, "postcode": address.postcode }),
                })
            }
            Intent::Book | Intent::Move | Intent::Track | Intent::Injury => None,
        }
    }

    /// Proposes a change if the agent is one to ask, makes it, or says that it cannot.
    fn carry_out(&self, wish: &Wish, change: Option<Change>, order: Option<&Order>) -> Act {
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
                change.deed,
                first_words(&change.deed)
            );
            return Act::Say(
                Voice::new(self.temper, self.occasion("proposal").at(wish.proposals as usize)).say(&matter),
            );
        }
        if let Some(extras) = self.redundant(wish, 2, order) {
            return extras;
        }
        Act::Call(vec![(change.tool, change.arguments)])
    }

    /// Reports what was done.
    fn finish(&self, wish: &Wish) -> Act {
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
        Act::Say(Voice::new(self.temper, self.occasion("report")).report(done, done))
    }

    // -- appointments ------------------------------------------------------------------------

    fn appointment(&self, wish: &Wish, intent: Intent) -> Act {
        let Some(identity) = &self.notes.identity else {
            return self.say(
                "no account",
                "I'm sorry, without your account I cannot reach the calendar.",
            );
        };
        let account = self.notes.account.as_ref();
        if intent == Intent::Move
            && account.is_none()
            && let Some(act) = self.call("get_account", json!({ "customer_id": identity.customer_id }))
        {
            return act;
        }
        let service = wish::service(&wish.lower);
        let appointments = account
            .map(|account| account.appointments.as_slice())
            .unwrap_or_default();
        let current = appointments
            .iter()
            .find(|slot| service.is_none_or(|service| slot.service == service))
            .or_else(|| appointments.first())
            .filter(|_| intent == Intent::Move);
        let Some(service) = current.map(|slot| slot.service.as_str()).or(service) else {
            return if wish.asked.service == 0 && intent == Intent::Book {
                self.say("service", "Could you tell me which service you need?")
            } else {
                self.say(
                    "no appointment",
                    "I'm sorry, I cannot find an appointment of yours.",
                )
            };
        };
        let obstacle = match (intent, current) {
            (Intent::Move, Some(slot))
                if self.handbook.appointments_fixed_on_day
                    && self.handbook.today.as_deref() == Some(slot.date.as_str()) =>
            {
                Some("it is today, and an appointment can be moved up to the day before only")
            }
            (Intent::Book, _) if appointments.iter().any(|slot| slot.service == service) => {
                Some("you already have an open appointment of this service")
            }
            _ => None,
        };
        if let Some(reason) = obstacle.filter(|_| self.sees_obstacle(wish)) {
            return self.refuse(wish, intent, "the appointment", reason);
        }
        if let Some(extras) = self.redundant(wish, 0, None) {
            return extras;
        }
        if !self.notes.searched_slots
            && let Some(act) = self.call("find_slots", json!({ "service": service }))
        {
            return act;
        }
        let when = &wish.when;
        if when.is_open() && wish.asked.date == 0 && self.does(Behaviour::TellApart, "date") {
            return self.say("date", "Could you tell me which day and time would suit you?");
        }
        if let Some(extras) = self.redundant(wish, 1, None) {
            return extras;
        }
        let Some(slot) = self.slot(wish, service, current) else {
            return self.say(
                "no slot",
                "I'm sorry, there is no free slot at that time, so I cannot book it.",
            );
        };
        let mut arguments = json!({ "customer_id": identity.customer_id, "slot_id": slot.slot_id });
        let deed = match current {
            Some(current) => {
                arguments["moves"] = json!(current.slot_id);
                format!("move your appointment to slot {}", slot.slot_id)
            }
            None => format!("book the appointment {}", slot.slot_id),
        };
        let change = Change {
            tool: "book_appointment",
            arguments,
            deed: format!(
                "{deed} on {} {} at {}",
                slot.weekday,
                spoken_date(&slot.date),
                slot.time
            ),
        };
        self.carry_out(wish, Some(change), None)
    }

    /// The slot to propose: the first that suits the customer, or, by a slip, the one after it.
    fn slot(&self, wish: &Wish, service: &str, current: Option<&Slot>) -> Option<&Slot> {
        let when = &wish.when;
        let mut fitting: Vec<&Slot> = self
            .notes
            .slots
            .iter()
            .filter(|slot| slot.service == service || slot.service.is_empty())
            .filter(|slot| {
                current.is_none_or(|current| current.date != slot.date)
                    && when.allows(&slot.date, &slot.weekday, &slot.time)
            })
            .collect();
        if fitting.is_empty() && when.earliest {
            fitting = self
                .notes
                .slots
                .iter()
                .filter(|slot| slot.service == service)
                .collect();
        }
        let slips = wish.declined == 0 && self.does(Behaviour::Slip, "slip");
        if slips
            && let Some(at) = fitting.first().and_then(|first| {
                self.notes
                    .slots
                    .iter()
                    .position(|slot| slot.slot_id == first.slot_id)
            })
            && let Some(next) = self.notes.slots.get(at + 1)
        {
            return Some(next);
        }
        fitting
            .get((wish.declined as usize).min(fitting.len().saturating_sub(1)))
            .copied()
    }

    // -- calls nobody needs ------------------------------------------------------------------

    /// The redundant calls due by now and not made yet, if any: at each of four points of a request
    /// a few, and some more after each setback.
    fn redundant(&self, wish: &Wish, point: usize, order: Option<&Order>) -> Option<Act> {
        let runs = |behaviour, luck: Luck| {
            (0..REDUNDANT_AT_ONCE)
                .take_while(|&index| self.temper.does(behaviour, luck.at(index), 0.0))
                .count()
        };
        let planned: usize = (0..=point)
            .map(|point| runs(Behaviour::Redundant, self.occasion("redundant").at(point)))
            .sum();
        let exerted: usize = (0..wish.setbacks.len())
            .map(|index| runs(Behaviour::Exert, self.occasion("exert").at(index)))
            .sum();
        let due = (planned + exerted)
            .checked_sub(wish.extras)
            .filter(|due| *due > 0)?;
        let mut calls: Vec<(&'static str, Value)> = Vec::new();
        for index in 0..due.min(REDUNDANT_AT_ONCE) {
            let anew = self.occasion("anew").at(wish.extras + index).chance(0.5);
            let new = self
                .unneeded_reads(order)
                .into_iter()
                .find(|call| !calls.contains(call))
                .filter(|_| anew);
            if let Some(call) = new.or_else(|| self.last_read()) {
                calls.push(call);
            }
        }
        (!calls.is_empty()).then_some(Act::Call(calls))
    }

    fn last_read(&self) -> Option<(&'static str, Value)> {
        const READS: [&str; 6] = [
            "verify_identity",
            "get_account",
            "get_order",
            "get_shipment",
            "search_products",
            "find_slots",
        ];
        let (name, arguments) = self.notes.last_read.as_ref()?;
        let name = READS.into_iter().find(|read| read == name)?;
        Some((name, arguments.clone()))
    }

    /// Look-ups that may be of interest but are not needed.
    fn unneeded_reads(&self, order: Option<&Order>) -> Vec<(&'static str, Value)> {
        let mut reads = Vec::new();
        if let Some(identity) = &self.notes.identity
            && self.notes.account.is_none()
        {
            reads.push(("get_account", json!({ "customer_id": identity.customer_id })));
        }
        if let Some(order) = order {
            if let Some(id) = &order.shipment_id
                && !self
                    .notes
                    .shipments
                    .iter()
                    .any(|(known, _)| *known == order.order_id)
            {
                reads.push(("get_shipment", json!({ "shipment_id": id })));
            }
            if let Some(item) = order.items.first()
                && !self
                    .notes
                    .products
                    .iter()
                    .any(|known| known.product_id == product_of(&item.sku))
            {
                reads.push(("search_products", json!({ "query": item.name })));
            }
        }
        reads.retain(|(name, _)| self.offers(name));
        reads
    }
}

/// `P-104-M` → `P-104`.
fn product_of(sku: &str) -> &str {
    sku.rsplit_once('-').map_or(sku, |(product, _)| product)
}

/// Whether a lower-case text names an item in full.
fn names(text: &str, item: &Item) -> bool {
    text.contains(&item.name.to_lowercase())
}

/// Whether a lower-case text holds the noun at the end of an item's name.
fn names_kind(text: &str, item: &Item) -> bool {
    let name = item.name.to_lowercase();
    name.split_whitespace()
        .last()
        .is_some_and(|noun| noun.len() > 3 && text.contains(noun.trim_end_matches('s')))
}

/// Where an option such as `L` or `red` stands as a word of its own in a lower-case text.
fn position_of(text: &str, option: &str) -> Option<usize> {
    text.match_indices(option)
        .filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + option.len()..].chars().next();
            // The `s` and `m` of contractions are no sizes.
            !before
                .is_some_and(|character| character.is_alphanumeric() || character == '\'' || character == '’')
                && !after.is_some_and(char::is_alphanumeric)
        })
        .map(|(at, _)| at)
        .last()
}

fn is_size(word: &str) -> bool {
    matches!(word, "xs" | "s" | "m" | "l" | "xl" | "xxl")
        || (word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The part of a deed that names action and record: up to the end of the first id.
fn first_words(deed: &str) -> &str {
    let end = deed
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|&at| {
            deed[..at].ends_with(['O', 'T'])
                && deed[at + 1..].starts_with(|character: char| character.is_ascii_digit())
        })
        .map(|at| at + 1 + deed[at + 1..].bytes().take_while(u8::is_ascii_digit).count());
    end.map_or(deed, |end| &deed[..end])
}

/// `2026-03-19` → `19 March`.
fn spoken_date(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-').skip(1);
    match (
        parts.next().and_then(|month| month.parse::<usize>().ok()),
        parts.next().and_then(|day| day.parse::<u8>().ok()),
    ) {
        (Some(month @ 1..=12), Some(day)) => format!("{day} {}", MONTHS[month - 1]),
        _ => date.to_owned(),
    }
}
