//! A task while it is put together.

use indexmap::IndexMap;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::super::language::Topic;
use super::super::shop::{OrderState, Payment, ShipmentState};
use super::super::state::Changes;
use super::super::task::{Action, Expected, Request, RequiredStatement, Script, Task};
use super::{Progress, World};
use crate::tool_names;

/// What the customer knows about an order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// Its number.
    Number,
    /// The day it was placed.
    Placed,
    /// What is in it.
    Content,
}

impl Knowledge {
    pub(super) fn nth(index: usize) -> Self {
        [Self::Number, Self::Content, Self::Placed, Self::Content][index % 4]
    }
}

/// An order the customer speaks of.
pub(super) struct Subject {
    pub(super) order: String,
    /// `order O-1042`, `the order I placed on Wednesday 4 March`, `the order with the Alder helmet`.
    pub(super) mention: String,
    /// The same where the item is named beside it, so that it is not named twice.
    pub(super) beside_item: String,
    /// What the customer answers when asked which order.
    pub(super) fact: String,
    /// Ids the customer would recognise.
    pub(super) recognises: Vec<String>,
}

pub(super) struct Draft {
    scenario: &'static str,
    index: usize,
    pub(super) customer: String,
    facts: IndexMap<Topic, Vec<String>>,
    requests: Vec<Request>,
    expected: Expected,
    reference: Vec<Action>,
    pub(super) wants_human: bool,
    pub(super) introduces_nobody: bool,
    account_seen: bool,
}

impl Draft {
    /// A new customer who will be verified.
    pub(super) fn new(
        world: &mut World,
        scenario: &'static str,
        index: usize,
        club: bool,
        locked: bool,
    ) -> Self {
        let customer = world.customer(club, locked);
        let record = world.shop.customers[&customer].clone();
        // Of another batch, who speaks so has other orders beside the one that is meant.
        let index = index + world.batch;
        let mut draft = Self {
            scenario,
            index,
            customer,
            facts: IndexMap::new(),
            requests: Vec::new(),
            expected: Expected::default(),
            reference: Vec::new(),
            wants_human: false,
            introduces_nobody: false,
            account_seen: false,
        };
        let email = [
            "It's",
            "My e-mail address is",
            "The e-mail address is",
            "Of course:",
        ][index % 4];
        let postcode = ["The postcode is", "My postcode is", "Postcode", "It's postcode"][(index / 2) % 4];
        draft.fact(Topic::Email, format!("{email} {}.", record.email));
        draft.fact(
            Topic::Postcode,
            format!("{postcode} {}.", record.address.postcode),
        );
        draft.fact(Topic::Name, format!("My name is {}.", record.name));
        draft.call(
            tool_names::VERIFY_IDENTITY,
            json!({"email": record.email, "postcode": record.address.postcode}),
        );
        draft
    }

    pub(super) fn fact(&mut self, topic: Topic, answer: String) {
        self.facts.insert(topic, vec![answer]);
    }

    pub(super) fn facts(&mut self, topic: Topic, answers: &[String]) {
        self.facts.insert(topic, answers.to_vec());
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) {
        self.reference.push(Action {
            tool: tool.to_owned(),
            arguments,
        });
    }

    /// Keeps the first calls of the reference only.
    pub(super) fn forget_calls_after(&mut self, kept: usize) {
        self.reference.truncate(kept);
    }

    /// Takes the last write out of the reference and expects no change.
    pub(super) fn refuse_last(&mut self) {
        self.reference.pop();
        self.expected.changes.clear();
    }

    pub(super) fn change(&mut self, path: String, value: Value) {
        self.expected.changes.insert(path, value);
    }

    pub(super) fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    pub(super) fn told(&mut self, what: &str, any_of: &[&str]) {
        let any_of = any_of.iter().map(|&text| text.to_owned()).collect();
        self.expected.told.push(RequiredStatement {
            what: what.to_owned(),
            any_of,
        });
    }

    pub(super) fn transfer(&mut self, reason: &str) {
        self.call(tool_names::TRANSFER_TO_HUMAN, json!({"reason": reason}));
        self.expected.transfer = true;
    }

    pub(super) fn see_account(&mut self) {
        if !self.account_seen {
            self.account_seen = true;
            self.call(tool_names::GET_ACCOUNT, json!({"customer_id": self.customer}));
        }
    }

    /// An order the customer knows more or less well, with others that it can be confused with,
    /// and the look-ups that find it.
    pub(super) fn order(
        &mut self,
        world: &mut World,
        knowledge: Knowledge,
        progress: Progress,
        payment: Payment,
        skus: &[&str],
    ) -> Subject {
        let order = world.order(&self.customer, progress, payment, skus);
        let placed = world.shop.orders[&order].placed;
        let (name, option) = (world.product_name(skus[0]), world.option(skus[0]));
        let mut subject = match knowledge {
            Knowledge::Number => Subject {
                mention: format!("order {order}"),
                beside_item: format!("order {order}"),
                fact: format!("The order number is {order}."),
                recognises: vec![order.clone()],
                order,
            },
            Knowledge::Placed => Subject {
                mention: format!("the order I placed on {}", spoken(placed)),
                beside_item: format!("the order I placed on {}", spoken(placed)),
                fact: format!(
                    "I don't have the number at hand. I placed the order on {}.",
                    spoken(placed)
                ),
                recognises: Vec::new(),
                order,
            },
            Knowledge::Content => Subject {
                mention: format!("the order with the {name}"),
                beside_item: "one of my orders".to_owned(),
                fact: format!("I don't have the number at hand. It is the order with the {name} ({option})."),
                recognises: Vec::new(),
                order,
            },
        };
        self.decoys(world, knowledge, progress, skus[0]);
        if knowledge != Knowledge::Number {
            self.see_account();
        }
        let opened: Vec<String> = if knowledge == Knowledge::Content {
            let state = world.shop.orders[&subject.order].state;
            let mut candidates: Vec<String> = world
                .shop
                .orders
                .iter()
                .filter(|(_, other)| other.customer == self.customer && other.state == state)
                .map(|(id, _)| id.clone())
                .collect();
            candidates.sort_unstable();
            let upto = candidates
                .iter()
                .position(|id| *id == subject.order)
                .expect("the order is there");
            candidates.truncate(upto + 1);
            candidates
        } else {
            vec![subject.order.clone()]
        };
        for id in opened {
            let call = Action {
                tool: tool_names::GET_ORDER.to_owned(),
                arguments: json!({"order_id": id}),
            };
            if !self.reference.contains(&call) {
                self.reference.push(call);
            }
        }
        if skus.len() > 1 && knowledge == Knowledge::Content {
            subject.fact.push_str(" There was more in it.");
        }
        subject
    }

    /// Other orders of the customer in the same state, placed before or after. Where the customer goes
    /// by content, half of the tasks have one with the same product in another variant.
    fn decoys(&self, world: &mut World, knowledge: Knowledge, progress: Progress, sku: &str) {
        let count = match knowledge {
            Knowledge::Number => usize::from(self.index % 2 == 1),
            Knowledge::Placed => 1,
            Knowledge::Content => 1 + usize::from(self.index % 4 == 3),
        };
        for rank in 0..count {
            let other = if knowledge == Knowledge::Content && rank == 0 && (self.index / 2) % 2 == 1 {
                let product = &world.shop.products[super::product_of(sku)];
                product
                    .variants
                    .keys()
                    .find(|variant| *variant != sku)
                    .cloned()
                    .expect("every product has two variants")
            } else {
                const OTHERS: [&str; 5] = [
                    "P-301-SILVER",
                    "P-401-DISC",
                    "P-310-ORANGE",
                    "P-402-12SPEED",
                    "P-321-GREY",
                ];
                let mut choice = world.draws.below(OTHERS.len());
                if super::product_of(OTHERS[choice]) == super::product_of(sku) {
                    choice = (choice + 1) % OTHERS.len();
                }
                OTHERS[choice].to_owned()
            };
            let older = (self.index / 4 + rank).is_multiple_of(2);
            let shift = if older { 1 + rank as i32 } else { -1 - rank as i32 };
            let progress = match progress {
                Progress::Placed(age) => Progress::Placed((age + shift).max(0)),
                Progress::Packed(age) => Progress::Packed((age + shift).max(0)),
                Progress::Shipped(age, _, due) => {
                    Progress::Shipped((age + shift).max(1), ShipmentState::InTransit, due.max(1) + 1)
                }
                Progress::Delivered(age) => Progress::Delivered((age + 5 * shift).max(2)),
            };
            world.order(&self.customer, progress, Payment::Card, &[&other]);
        }
    }

    pub(super) fn finish(mut self, world: &World) -> Task {
        let introduction = self.introduction(world);
        if let Some(first) = self.requests.first_mut() {
            first.text.insert_str(0, &introduction);
        }
        Task {
            id: String::new(),
            scenario: self.scenario.to_owned(),
            script: Script {
                facts: self.facts,
                requests: self.requests,
                wants_human: self.wants_human,
                voice: self.index,
            },
            expected: self.expected,
            reference: self.reference,
        }
    }

    /// A greeting, with what the customer tells about themselves unasked.
    fn introduction(&self, world: &World) -> String {
        let customer = &world.shop.customers[&self.customer];
        let greeting = ["Hi!", "Hello.", "Good day.", "Hey there!", "Hi."][self.index % 5];
        let known = match (self.index + self.index / 3) % 3 {
            _ if self.introduces_nobody => String::new(),
            0 => String::new(),
            1 => format!(" You'll find me under {}.", customer.email),
            _ => format!(
                " {} here, {}, postcode {}.",
                customer.name, customer.email, customer.address.postcode
            ),
        };
        let impatient = if self.wants_human && self.index.is_multiple_of(2) {
            " I'd much rather speak to a human, but let's see."
        } else {
            ""
        };
        format!("{greeting}{impatient}{known} ")
    }
}

/// `Wednesday 4 March`.
pub(super) fn spoken(date: Date) -> String {
    date.strftime("%A %-d %B").to_string()
}

/// The ways in which an agent may write a date.
pub(super) fn written(date: Date) -> Vec<String> {
    let day = date.day();
    let ordinal = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    let mut ways = vec![date.to_string()];
    for month in [date.strftime("%B").to_string(), date.strftime("%b").to_string()] {
        ways.push(format!("{day} {month}"));
        ways.push(format!("{month} {day}"));
        ways.push(format!("{day}{ordinal} {month}"));
        ways.push(format!("{day}{ordinal} of {month}"));
        ways.push(format!("{month} {day}{ordinal}"));
    }
    ways
}

/// Changes of a whole cancellation, for a scenario's expectation.
pub(super) fn cancelled(world: &World, order: &str) -> Changes {
    let total = world.shop.orders[order].total();
    Changes::from([
        (format!("orders/{order}/state"), json!(OrderState::Cancelled)),
        (
            format!("orders/{order}/refunds"),
            json!([{"amount": total, "to": "original"}]),
        ),
    ])
}
