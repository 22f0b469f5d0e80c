//! The simulated help-desk agent: what it does next.
//!
//! Every decision is made from the conversation's notes, the policy and the tools on offer. The
//! occasion of each decision is named, so that the same example under another prompt meets the
//! same draw.

mod appointments;
mod changes;
mod items;
mod obstacles;
mod orders;
mod redundancy;
mod wording;

use std::cell::OnceCell;

use capo_core::llm::ToolSpec;
use serde_json::{Value, json};

use super::behaviour::{Behaviour, BehaviourModel};
use super::handbook::Handbook;
use super::notes::{CustomerRequest, Notes, Setback};
use super::speech::Voice;
use super::wish::Intent;
use crate::simulated::random::Draw;
use crate::tool_names;
use wording::plan;

/// Calls of one tool for one request after which the agent no longer looks records up with it.
/// Opening every order that may be meant takes a few; redundant calls count too.
const MOST_LOOK_UPS: usize = 16;

/// How often it asks for a customer's data again in one request.
const MOST_ASKED_AGAIN: u32 = 4;

/// What the agent does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Says this to the customer.
    Say(String),
    /// Makes these calls, in order.
    Call(Vec<(&'static str, Value)>),
}

/// An agent at one moment of a conversation.
pub(super) struct HelpDeskAgent<'a> {
    pub(super) notes: &'a Notes,
    pub(super) behaviours: &'a BehaviourModel,
    pub(super) handbook: &'a Handbook,
    pub(super) tools: &'a [ToolSpec],
    pub(super) draw: Draw,
    /// The redundant calls drawn for each point of the request at hand.
    pub(super) redundant_at: [OnceCell<usize>; 4],
}

impl HelpDeskAgent<'_> {
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

    /// What an agent that plans writes down before it makes calls: tokens and time that planning
    /// takes.
    pub(super) fn thinks_aloud(&self, calls: &[(&'static str, Value)]) -> Option<String> {
        let (first, _) = calls.first()?;
        let draw = self.occasion("plan").at(self.notes.calls());
        self.behaviours
            .thinks_aloud(draw)
            .then(|| plan(first, calls.len(), draw))
    }

    // -- occasions ---------------------------------------------------------------------------

    fn occasion(&self, name: &str) -> Draw {
        self.draw.named("wish").at(self.notes.wish_index()).named(name)
    }

    fn does(&self, behaviour: Behaviour, occasion: &str) -> bool {
        self.behaviours.does(behaviour, self.occasion(occasion), 0.0)
    }

    fn say(&self, occasion: &str, matter: &str) -> Act {
        Act::Say(Voice::new(self.behaviours, self.occasion(occasion)).say(matter))
    }

    fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    /// A call, if the tool is on offer.
    fn call(&self, tool: &'static str, arguments: Value) -> Option<Act> {
        self.offers(tool).then(|| Act::Call(vec![(tool, arguments)]))
    }

    /// A call for a record the agent lacks, unless it was asked for often already: a tool that does
    /// not give the record will not give it now.
    fn look_up(&self, tool: &'static str, arguments: Value) -> Option<Act> {
        (self.notes.made_for_wish(tool) < MOST_LOOK_UPS)
            .then(|| self.call(tool, arguments))
            .flatten()
    }

    // -- handing over ------------------------------------------------------------------------

    /// Whether one of the setbacks so far was too much.
    fn gives_up(&self, wish: &CustomerRequest) -> bool {
        self.offers(tool_names::TRANSFER_TO_HUMAN)
            && wish.setbacks.iter().enumerate().any(|(index, setback)| {
                let difficulty = match setback {
                    Setback::Pushed => 0.6,
                    Setback::IdentityFailed => 0.1,
                    Setback::Unknown => -2.2,
                    Setback::Lost | Setback::WantsHuman => 0.3,
                    Setback::ToolError => 0.2,
                    Setback::Declined => -0.8,
                };
                self.behaviours
                    .does(Behaviour::GiveUp, self.occasion("give up").at(index), difficulty)
            })
    }

    fn transfer(&self, reason: &str) -> Act {
        self.call(tool_names::TRANSFER_TO_HUMAN, json!({ "reason": reason }))
            .unwrap_or_else(|| self.say("no transfer", "I'm sorry, I cannot settle this here."))
    }

    /// Hands over if the policy wants a cause handed over and the agent does as it says.
    fn hand_over_due(&self, cause: &str) -> Option<Act> {
        (self.handbook.hands_over(cause) && self.does(Behaviour::HandOverWhenDue, "due"))
            .then(|| self.transfer(cause))
    }

    // -- identity ----------------------------------------------------------------------------

    fn verify(&self, wish: &CustomerRequest, intent: Intent) -> Option<Act> {
        if let Some(identity) = &self.notes.identity {
            let due = (identity.account == "locked")
                .then(|| self.hand_over_due("locked"))
                .flatten();
            return due.or_else(|| self.asks_again(wish));
        }
        // Without an order number there is no way round the account.
        let unavoidable = matches!(intent, Intent::Book | Intent::Move)
            || (wish.order_id.is_none() && wish.asked.order > 0);
        let wants = self.handbook.verify && self.does(Behaviour::Verify, "verify");
        let looks_up = wish.order_id.is_none() && self.does(Behaviour::LookUpFirst, "look up");
        if !(wants || unavoidable || looks_up) || !self.offers(tool_names::VERIFY_IDENTITY) {
            return None;
        }
        if self.notes.failed_verifications >= 2 {
            return Some(self.say("unverified", "I'm sorry, I could not verify the account with this e-mail address and postcode, so I cannot change or show anything."));
        }
        match (&self.notes.email, &self.notes.postcode) {
            (Some(email), Some(postcode)) if self.notes.failed_verifications == 0 || self.notes.identity_asked_again => {
                self.call(tool_names::VERIFY_IDENTITY, json!({ "email": email, "postcode": postcode }))
            }
            (Some(_), Some(_)) => Some(self.say("identity again", "These details do not match an account. Could you give me the e-mail address and the postcode once more?")),
            _ if wish.asked.identity >= 3 => Some(self.say("unverified", "I'm sorry, I could not verify the account, so I cannot change or show anything.")),
            (None, Some(_)) => Some(self.say("email", "Could you give me the e-mail address of your account?")),
            (Some(_), None) => Some(self.say("postcode", "Could you give me the postcode that belongs to the e-mail address of your account?")),
            (None, None) => Some(self.say("identity", "Could you give me the e-mail address and the postcode of your account?")),
        }
    }

    /// Asks a known customer for their data again, if it is one to do so and has not done so often enough.
    fn asks_again(&self, wish: &CustomerRequest) -> Option<Act> {
        let occasion = self.occasion("ask again").at(wish.asked.again as usize);
        (wish.asked.again < MOST_ASKED_AGAIN && self.behaviours.does(Behaviour::AskAgain, occasion, 0.0)).then(|| {
            self.say("identity once more", "To be certain with whom I speak: could you give me the e-mail address and the postcode of your account?")
        })
    }

    fn injury(&self) -> Act {
        for cause in ["injury", "failed"] {
            if let Some(act) = self.hand_over_due(cause) {
                return act;
            }
        }
        self.say("injury", "I'm sorry to hear that. I have noted what happened and our workshop is informed, so that is done.")
    }
}
