//! Notes: what an agent knows from the conversation so far, message by message.

use std::cell::OnceCell;
use std::hash::BuildHasher;

use capo_core::llm::{Message, ToolCall};
use foldhash::fast::FixedState;
use serde_json::Value;

use super::records::{Account, Identity, Order, Product, Products, Shipment, Slot, Slots};
use super::when::When;
use super::wish::{self, Intent};
use crate::desk::language::affirms;
use crate::simulated::fingerprint::value_fingerprint;
use crate::simulated::trace_reading::is_write;
use crate::tool_names;

/// Something that makes a conversation harder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setback {
    /// The customer could not be verified.
    IdentityFailed,
    /// The customer does not know what they were asked.
    Unknown,
    /// The customer said no to a proposal.
    Declined,
    /// The customer does not accept a refusal.
    Pushed,
    /// The customer does not follow.
    Lost,
    /// A tool answered with an error.
    ToolError,
    /// The customer asks for a person.
    WantsHuman,
}

/// What a text of the agent was for, read off its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Speech {
    /// Nothing said yet.
    #[default]
    None,
    /// Asked for facts.
    Question,
    /// Asked for a yes.
    Proposal,
    /// Said that something cannot be.
    Refusal,
    /// Said that something is done, or answered.
    Report,
}

/// How often something was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) goal: u32,
    pub(super) identity: u32,
    /// Those of a customer who had been verified, which count in `identity` too.
    pub(super) again: u32,
    pub(super) order: u32,
    pub(super) item: u32,
    pub(super) variant: u32,
    pub(super) address: u32,
    pub(super) date: u32,
    pub(super) service: u32,
}

/// One request of the customer, with everything that happened about it.
#[derive(Debug, Clone, Default)]
pub(super) struct CustomerRequest {
    /// All the customer said about it.
    pub(super) said: String,
    /// The same in lower case.
    pub(super) lower: String,
    pub(super) intent: Option<Intent>,
    /// The days and times named, read when they are first asked for.
    when: OnceCell<When>,
    /// The order last named.
    pub(super) order_id: Option<String>,
    pub(super) asked: Asked,
    pub(super) setbacks: Vec<Setback>,
    pub(super) proposals: u32,
    pub(super) declined: u32,
    /// Whether the customer takes a voucher, once they have said.
    pub(super) voucher: Option<bool>,
    /// The last proposal was agreed to, and nothing was written since.
    pub(super) agreed: bool,
    pub(super) refusals: u32,
    pub(super) written: bool,
    pub(super) write_errors: u32,
    /// Calls made for it that it did not need.
    pub(super) extras: usize,
}

impl CustomerRequest {
    /// The days and times named.
    pub(super) fn when(&self) -> &When {
        self.when.get_or_init(|| When::read(&self.said))
    }
}

/// A call made.
#[derive(Debug, Clone)]
struct Made {
    id: String,
    name: String,
    fingerprint: u64,
    wish: usize,
    answered: bool,
}

#[derive(Debug, Clone, Default)]
pub(in crate::simulated) struct Notes {
    pub(super) email: Option<String>,
    pub(super) postcode: Option<String>,
    pub(super) identity: Option<Identity>,
    pub(super) failed_verifications: u32,
    /// The customer was asked for their data again after the last failure.
    pub(super) identity_asked_again: bool,
    pub(super) account: Option<Account>,
    pub(super) orders: Vec<Order>,
    pub(super) shipments: Vec<(String, Shipment)>,
    pub(super) products: Vec<Product>,
    pub(super) slots: Vec<Slot>,
    pub(super) wishes: Vec<CustomerRequest>,
    pub(super) last_speech: Speech,
    /// The last call that only read something, for an agent that reads it again.
    pub(super) last_read: Option<(String, Value)>,
    made: Vec<Made>,
    /// Hashes of the results taken in.
    read: Vec<u64>,
}

impl Notes {
    /// Takes in one message.
    pub(in crate::simulated) fn take(&mut self, message: &Message) {
        match message {
            Message::System { .. } => {}
            Message::User { content } => self.hear(content),
            Message::Assistant(answer) => {
                if answer.tool_calls.is_empty() {
                    self.said(answer.text());
                }
                for call in &answer.tool_calls {
                    self.called(call);
                }
            }
            Message::Tool { call_id, content } => self.result(call_id, content),
        }
    }

    /// The request at hand.
    pub(super) fn wish(&self) -> Option<&CustomerRequest> {
        self.wishes.last()
    }

    /// The number of the request at hand, from 0.
    pub(super) fn wish_index(&self) -> usize {
        self.wishes.len().saturating_sub(1)
    }

    /// Calls made so far.
    pub(super) fn calls(&self) -> usize {
        self.made.len()
    }

    /// How often a tool was called for the request at hand.
    pub(super) fn made_for_wish(&self, tool: &str) -> usize {
        let for_wish = |made: &&Made| made.wish == self.wish_index() && made.name == tool;
        self.made.iter().filter(for_wish).count()
    }

    /// An order that was opened.
    pub(super) fn order(&self, id: &str) -> Option<&Order> {
        self.orders.iter().find(|order| order.order_id == id)
    }

    fn hear(&mut self, text: &str) {
        let lower = text.to_lowercase();
        let fresh = self.wishes.is_empty()
            || (matches!(self.last_speech, Speech::Report | Speech::Refusal) && begins_anew(&lower));
        if fresh {
            self.wishes.push(CustomerRequest::default());
        }
        if let Some(email) = wish::email(text) {
            self.email = Some(email.to_owned());
        }
        if let Some(postcode) = wish::postcode(text) {
            self.postcode = Some(postcode.to_owned());
        }
        let speech = self.last_speech;
        let wish = self.wishes.last_mut().expect("a wish was pushed above");
        if let Some(id) = wish::ids(text, 'O').last() {
            wish.order_id = Some(id.to_owned());
        }
        if !fresh {
            match speech {
                Speech::Proposal if affirms(text) => wish.agreed = true,
                Speech::Proposal => {
                    wish.declined += 1;
                    if lower.contains("voucher") {
                        wish.voucher = Some(false);
                    }
                    wish.setbacks.push(Setback::Declined);
                }
                // A customer who wants something else instead does not insist.
                Speech::Refusal if lower.contains("rather return") => wish.intent = Some(Intent::Return),
                Speech::Refusal if takes_voucher(&lower) => wish.voucher = Some(true),
                Speech::Refusal => wish.setbacks.push(Setback::Pushed),
                _ if lower.contains("don't follow") || lower.contains("do not understand") => {
                    wish.setbacks.push(Setback::Lost);
                }
                Speech::Question if unknowing(&lower) => wish.setbacks.push(Setback::Unknown),
                _ => {}
            }
        }
        if [
            "speak to a human",
            "talk to a human",
            "get me a human",
            "speak to a person",
            "put me through",
        ]
        .iter()
        .any(|cue| lower.contains(cue))
        {
            wish.setbacks.push(Setback::WantsHuman);
        }
        wish.said.push_str(text);
        wish.said.push('\n');
        wish.when.take();
        wish.lower.push_str(&lower);
        wish.lower.push('\n');
        if wish.intent.is_none() {
            wish.intent = wish::intent(&lower);
        }
    }

    fn said(&mut self, text: &str) {
        let lower = text.to_lowercase();
        let has = |cues: &[&str]| cues.iter().any(|cue| lower.contains(cue));
        self.last_speech = if has(&["shall i", "should i go ahead"]) {
            Speech::Proposal
        } else if has(&["cannot", "could not verify", "not possible"]) {
            Speech::Refusal
        } else if has(&["could you", "what would you like", "which "]) {
            Speech::Question
        } else {
            Speech::Report
        };
        let Some(wish) = self.wishes.last_mut() else {
            return;
        };
        match self.last_speech {
            Speech::Proposal => wish.proposals += 1,
            Speech::Refusal => wish.refusals += 1,
            Speech::Question => {
                let asked = &mut wish.asked;
                asked.goal += u32::from(has(&["what would you like me to do"]));
                asked.identity += u32::from(has(&["e-mail"]));
                asked.again += u32::from(has(&["to be certain with whom"]));
                self.identity_asked_again |= has(&["e-mail"]);
                asked.order += u32::from(has(&["order number"]));
                asked.item += u32::from(has(&["which item"]));
                asked.variant += u32::from(has(&["size or colour"]));
                asked.address += u32::from(has(&["new address"]));
                asked.date += u32::from(has(&["which day", "day and time"]));
                asked.service += u32::from(has(&["which service"]));
            }
            Speech::Report | Speech::None => {}
        }
    }

    fn called(&mut self, call: &ToolCall) {
        let fingerprint = value_fingerprint(&call.arguments);
        // Whatever was changed in between, an agent that knows the record has no need of it again.
        let repeated = self
            .made
            .iter()
            .any(|made| made.name == call.name && made.fingerprint == fingerprint);
        if !is_write(&call.name) {
            self.last_read = Some((call.name.clone(), call.arguments.clone()));
        }
        let index = self.wish_index();
        if let Some(wish) = self.wishes.last_mut() {
            let needed = match (call.name.as_str(), wish.intent) {
                (tool_names::GET_ACCOUNT, Some(Intent::Move))
                | (tool_names::GET_SHIPMENT, Some(Intent::Track))
                | (tool_names::SEARCH_PRODUCTS, Some(Intent::Exchange)) => true,
                (tool_names::GET_ACCOUNT, _) => wish.order_id.is_none(),
                (tool_names::GET_SHIPMENT | tool_names::SEARCH_PRODUCTS, _) => false,
                (tool_names::FIND_SLOTS, intent) => matches!(intent, Some(Intent::Book | Intent::Move)),
                _ => true,
            };
            if repeated || !needed {
                wish.extras += 1;
            }
        }
        self.made.push(Made {
            id: call.id.clone(),
            name: call.name.clone(),
            fingerprint,
            wish: index,
            answered: false,
        });
    }

    fn result(&mut self, call_id: &str, content: &str) {
        let Some(position) = self
            .made
            .iter()
            .rposition(|made| made.id == call_id && !made.answered)
        else {
            return;
        };
        self.made[position].answered = true;
        let name = self.made[position].name.clone();
        let wish_index = self.made[position].wish;
        let failed = content.starts_with("{\"error\"");
        let writes = is_write(&name);
        if let Some(wish) = self.wishes.get_mut(wish_index) {
            if failed {
                wish.setbacks.push(Setback::ToolError);
                wish.write_errors += u32::from(writes);
            } else if writes {
                wish.written = true;
            }
            if writes {
                wish.agreed = false;
            }
        }
        if failed {
            return;
        }
        if writes {
            return;
        }
        // What was read before in the same words needs no second reading.
        let seen = FixedState::default().hash_one((&name, content));
        if name == tool_names::VERIFY_IDENTITY || !self.read.contains(&seen) {
            self.read.push(seen);
            self.learn(&name, content, wish_index);
        }
    }

    fn learn(&mut self, name: &str, content: &str, wish_index: usize) {
        match name {
            tool_names::VERIFY_IDENTITY => {
                if let Ok(identity) = serde_json::from_str::<Identity>(content) {
                    if identity.verified {
                        self.identity = Some(identity);
                    } else {
                        self.failed_verifications += 1;
                        self.identity_asked_again = false;
                        if let Some(wish) = self.wishes.get_mut(wish_index) {
                            wish.setbacks.push(Setback::IdentityFailed);
                        }
                    }
                }
            }
            tool_names::GET_ACCOUNT => {
                self.account = serde_json::from_str(content).ok().or_else(|| self.account.take());
            }
            tool_names::GET_ORDER => {
                if let Ok(order) = serde_json::from_str::<Order>(content) {
                    match self
                        .orders
                        .iter_mut()
                        .find(|known| known.order_id == order.order_id)
                    {
                        Some(known) => *known = order,
                        None => self.orders.push(order),
                    }
                }
            }
            tool_names::GET_SHIPMENT => {
                if let Ok(shipment) = serde_json::from_str::<Shipment>(content) {
                    self.shipments.push((shipment.order_id.clone(), shipment));
                }
            }
            tool_names::SEARCH_PRODUCTS => {
                if let Ok(found) = serde_json::from_str::<Products>(content) {
                    self.products.extend(found.products);
                }
            }
            tool_names::FIND_SLOTS => {
                if let Ok(found) = serde_json::from_str::<Slots>(content) {
                    let other = |known: &Slot| found.slots.iter().all(|slot| slot.service != known.service);
                    self.slots.retain(other);
                    self.slots.extend(found.slots);
                }
            }
            _ => {}
        }
    }
}

/// Whether the customer turns to another request: says so, or begins a sentence with a word for it.
fn begins_anew(lower: &str) -> bool {
    const CUES: [&str; 5] = [
        "one more thing",
        "something else",
        "another matter",
        "another thing",
        "while i'm here",
    ];
    CUES.iter().any(|cue| lower.contains(cue))
        || lower.split(['.', '!', '?', '\n']).any(|sentence| {
            sentence.trim_start().starts_with("also") || sentence.trim_start().starts_with("next")
        })
}

/// Whether a customer who was refused their money would have a voucher.
fn takes_voucher(lower: &str) -> bool {
    lower.contains("voucher")
        && ["take", "fine", "okay", "all right", "then a"]
            .iter()
            .any(|cue| lower.contains(cue))
        && !["don't", "do not", "no voucher", "not a voucher"]
            .iter()
            .any(|cue| lower.contains(cue))
}

fn unknowing(lower: &str) -> bool {
    [
        "don't have the number",
        "don't know",
        "not sure",
        "no idea",
        "as i said",
        "can't remember",
        "cannot remember",
    ]
    .iter()
    .any(|cue| lower.contains(cue))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notes(messages: &[Message]) -> Notes {
        let mut notes = Notes::default();
        for message in messages {
            notes.take(message);
        }
        notes
    }

    fn call(id: &str, name: &str, arguments: Value) -> Message {
        Message::Assistant(capo_core::llm::AssistantMessage {
            content: None,
            tool_calls: vec![ToolCall {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments,
            }],
        })
    }

    const REFUSED: &str =
        "I'm sorry, I cannot take back O-1042 because after 30 days we give a voucher only.";

    #[test]
    fn a_customer_who_takes_the_voucher_does_not_insist() {
        let opening = Message::user("I want to return the gloves of O-1042.");
        for (reply, takes) in [
            ("Then a voucher is fine for the return.", true),
            ("All right, I'll take a voucher.", true),
            ("No, I don't want a voucher.", false),
            ("Come on, surely you can make an exception just this once.", false),
        ] {
            let notes = notes(&[opening.clone(), Message::assistant(REFUSED), Message::user(reply)]);
            let wish = notes.wish().expect("a request was made");
            assert_eq!(wish.voucher == Some(true), takes, "{reply}");
            assert_eq!(wish.setbacks.contains(&Setback::Pushed), !takes, "{reply}");
        }
    }

    #[test]
    fn insisting_on_the_next_free_slot_is_no_new_request() {
        let opening = Message::user("I want to move my brake service to Thursday 19 March at 09:00.");
        let refusal = Message::assistant("I'm sorry, I cannot move the appointment.");
        let insists =
            "Then please look again, I'd like Thursday 19 March at 09:00, or the next free slot after that.";
        let insisted = notes(&[opening.clone(), refusal.clone(), Message::user(insists)]);
        assert_eq!(
            (insisted.wishes.len(), insisted.wish().unwrap().intent),
            (1, Some(Intent::Move))
        );
        let another = "All right. Also, where is order O-1042?";
        assert_eq!(notes(&[opening, refusal, Message::user(another)]).wishes.len(), 2);
    }

    #[test]
    fn a_call_made_before_is_one_too_many_whatever_was_changed_since() {
        let order = || json!({ "order_id": "O-1042" });
        let mut notes = notes(&[
            Message::user("Please cancel order O-1042."),
            call("1", "get_order", order()),
            Message::tool("1", "{\"order_id\":\"O-1042\"}"),
            call("2", "cancel_order", order()),
            Message::tool("2", "{\"order_id\":\"O-1042\",\"state\":\"cancelled\"}"),
        ]);
        assert_eq!(notes.wish().unwrap().extras, 0);
        notes.take(&call("3", "get_order", order()));
        assert_eq!(notes.wish().unwrap().extras, 1);
    }

    #[test]
    fn slots_of_one_service_do_not_displace_those_of_another() {
        let slot = |id: &str, service: &str| {
            json!({ "slots": [{ "slot_id": id, "service": service, "date": "2026-03-19", "time": "09:00" }] })
                .to_string()
        };
        let notes = notes(&[
            Message::user("I'd like to book a tune-up."),
            call("1", "find_slots", json!({ "service": "tune_up" })),
            Message::tool("1", slot("T-001", "tune_up")),
            call("2", "find_slots", json!({ "service": "fitting" })),
            Message::tool("2", slot("T-101", "fitting")),
            call("3", "find_slots", json!({ "service": "tune_up" })),
            Message::tool("3", slot("T-001", "tune_up")),
        ]);
        let mut known: Vec<&str> = notes.slots.iter().map(|slot| slot.slot_id.as_str()).collect();
        known.sort_unstable();
        assert_eq!(known, ["T-001", "T-101"]);
    }
}
