//! Calls nobody needs.

use serde_json::{Value, json};

use super::items::product_of;
use super::{Act, HelpDeskAgent};
use crate::simulated::agent::behaviour::Behaviour;
use crate::simulated::agent::notes::CustomerRequest;
use crate::simulated::agent::records::Order;
use crate::simulated::random::Draw;
use crate::tool_names;

/// The most redundant calls the agent makes at one point of a request.
const REDUNDANT_AT_ONCE: usize = 4;

impl HelpDeskAgent<'_> {
    /// The redundant calls due by now and not made yet, if any: at each of four points of a request
    /// a few, and some more after each setback.
    pub(super) fn redundant(
        &self,
        wish: &CustomerRequest,
        point: usize,
        order: Option<&Order>,
    ) -> Option<Act> {
        let runs = |behaviour, draw: Draw| {
            (0..REDUNDANT_AT_ONCE)
                .take_while(|&index| self.behaviours.does(behaviour, draw.at(index), 0.0))
                .count()
        };
        let at_point = |point: usize| {
            let drawn = || runs(Behaviour::Redundant, self.occasion("redundant").at(point));
            *self.redundant_at[point].get_or_init(drawn)
        };
        let planned: usize = (0..=point).map(at_point).sum();
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
            tool_names::VERIFY_IDENTITY,
            tool_names::GET_ACCOUNT,
            tool_names::GET_ORDER,
            tool_names::GET_SHIPMENT,
            tool_names::SEARCH_PRODUCTS,
            tool_names::FIND_SLOTS,
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
            reads.push((
                tool_names::GET_ACCOUNT,
                json!({ "customer_id": identity.customer_id }),
            ));
        }
        if let Some(order) = order {
            if let Some(id) = &order.shipment_id
                && !self
                    .notes
                    .shipments
                    .iter()
                    .any(|(known, _)| *known == order.order_id)
            {
                reads.push((tool_names::GET_SHIPMENT, json!({ "shipment_id": id })));
            }
            if let Some(item) = order.items.first()
                && !self
                    .notes
                    .products
                    .iter()
                    .any(|known| known.product_id == product_of(&item.sku))
            {
                reads.push((tool_names::SEARCH_PRODUCTS, json!({ "query": item.name })));
            }
        }
        reads.retain(|(name, _)| self.offers(name));
        reads
    }
}
