//! Requests about workshop appointments.

use serde_json::json;

use super::changes::Change;
use super::wording::spoken_date;
use super::{Act, HelpDeskAgent};
use crate::simulated::agent::behaviour::Behaviour;
use crate::simulated::agent::notes::CustomerRequest;
use crate::simulated::agent::records::Slot;
use crate::simulated::agent::wish::{self, Intent};
use crate::tool_names;

impl HelpDeskAgent<'_> {
    pub(super) fn appointment(&self, wish: &CustomerRequest, intent: Intent) -> Act {
        let Some(identity) = &self.notes.identity else {
            return self.say(
                "no account",
                "I'm sorry, without your account I cannot reach the calendar.",
            );
        };
        let account = self.notes.account.as_ref();
        if intent == Intent::Move
            && account.is_none()
            && let Some(act) = self.look_up(
                tool_names::GET_ACCOUNT,
                json!({ "customer_id": identity.customer_id }),
            )
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
        if self.notes.made_for_wish(tool_names::FIND_SLOTS) == 0
            && !self.notes.slots.iter().any(|slot| slot.service == service)
            && let Some(act) = self.look_up(tool_names::FIND_SLOTS, json!({ "service": service }))
        {
            return act;
        }
        let when = wish.when();
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
        let operation = match current {
            Some(current) => {
                arguments["moves"] = json!(current.slot_id);
                format!("move your appointment to slot {}", slot.slot_id)
            }
            None => format!("book the appointment {}", slot.slot_id),
        };
        let change = Change {
            tool: tool_names::BOOK_APPOINTMENT,
            arguments,
            operation: format!(
                "{operation} on {} {} at {}",
                slot.weekday,
                spoken_date(&slot.date),
                slot.time
            ),
        };
        self.carry_out(wish, Some(change), None)
    }

    /// The slot to propose: the first that suits the customer, or, by a slip, the one after it.
    fn slot(&self, wish: &CustomerRequest, service: &str, current: Option<&Slot>) -> Option<&Slot> {
        let when = wish.when();
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
        if self.slips(wish)
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
}
