//! Obstacles to a request, and how the agent says no.

use super::items::items;
use super::{Act, HelpDeskAgent};
use crate::simulated::agent::behaviour::Behaviour;
use crate::simulated::agent::notes::{CustomerRequest, Setback};
use crate::simulated::agent::records::Order;
use crate::simulated::agent::speech::Voice;
use crate::simulated::agent::wish::Intent;
use crate::tool_names;

/// What is added to the logit of a view that a customer does not accept: who has said no stands by it.
const FIRMNESS: f64 = 1.8;

/// Why a request cannot be met.
pub(super) struct Obstacle {
    /// For the customer, after "because".
    pub(super) reason: String,
    /// Money can be given as a voucher instead.
    pub(super) voucher_instead: bool,
}

impl HelpDeskAgent<'_> {
    pub(super) fn order_obstacle(
        &self,
        wish: &CustomerRequest,
        intent: Intent,
        order: &Order,
    ) -> Option<Obstacle> {
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
        let items = items(wish, order);
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
    pub(super) fn sees_obstacle(&self, wish: &CustomerRequest) -> bool {
        self.does(Behaviour::SeeObstacle, "obstacle") && self.stands_firm(wish, Behaviour::SeeObstacle)
    }

    /// Whether the agent takes what is allowed for forbidden, and stands by it when pushed.
    pub(super) fn misreads_rule(&self, wish: &CustomerRequest) -> bool {
        self.does(Behaviour::MisreadRule, "no obstacle") && self.stands_firm(wish, Behaviour::MisreadRule)
    }

    fn stands_firm(&self, wish: &CustomerRequest, view: Behaviour) -> bool {
        let pushes = wish
            .setbacks
            .iter()
            .filter(|setback| **setback == Setback::Pushed)
            .count();
        (0..pushes).all(|push| {
            self.behaviours
                .does(view, self.occasion("firm").at(push), FIRMNESS)
        })
    }

    /// Says no with the reason, or leaves that to a person.
    pub(super) fn refuse(&self, wish: &CustomerRequest, intent: Intent, record: &str, reason: &str) -> Act {
        if wish.refusals == 0
            && self.offers(tool_names::TRANSFER_TO_HUMAN)
            && self
                .behaviours
                .does(Behaviour::GiveUp, self.occasion("leave the no to others"), -0.4)
        {
            return self.transfer("the request is not possible");
        }
        let operation = match intent {
            Intent::Cancel => "cancel",
            Intent::Return => "take back",
            Intent::Exchange => "exchange",
            Intent::Address => "change the address of",
            Intent::Book => "book",
            Intent::Move => "move",
            Intent::Track | Intent::Injury => "do this for",
        };
        // Asked again, the reason comes out more readily.
        let tells = self.behaviours.does(
            Behaviour::Tell,
            self.occasion("tell").at(wish.refusals as usize),
            0.0,
        );
        let matter = if tells {
            format!("I'm sorry, I cannot {operation} {record} because {reason}.")
        } else {
            format!("I'm sorry, I cannot {operation} {record}.")
        };
        Act::Say(
            Voice::new(
                self.behaviours,
                self.occasion("refusal").at(wish.refusals as usize),
            )
            .say(&matter),
        )
    }
}
