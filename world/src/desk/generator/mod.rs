//! The generator of tasks: batch after batch, each with a shop of its own, always the same from the same number.
//!
//! A batch holds the scenarios in the same proportions. Other batches have other customers, orders, prices in stock,
//! calendars, voices and records that can be confused with each other.

#![expect(
    clippy::cast_possible_wrap,
    reason = "the numbers of tasks and records are small"
)]

mod catalogue;
mod draft;
mod scenarios;

use std::collections::BTreeSet;

use capo_core::random::Streams;
use indexmap::IndexMap;
use jiff::ToSpan;
use jiff::civil::{Date, date};

use super::shop::{
    Address, Customer, Item, ItemState, Order, OrderState, Payment, Service, Shipment, ShipmentState, Shop,
};
use super::task::Task;
use catalogue::{CARRIERS, FAMILY_NAMES, FLEET, GIVEN_NAMES, STREETS, TODAY, TOWNS};

/// Tasks of a batch, and those drawn from where a study needs no more.
pub const BATCH: usize = 114;

/// What the tasks of every number are. Another value of it tells runs apart whose tasks were other ones.
pub(super) const VERSION: &str = "desk tasks 2";

/// Numbers drawn one after the other from one named stream.
pub(super) struct Draws {
    streams: Streams,
    drawn: u64,
}

impl Draws {
    fn new(seed: u64) -> Self {
        Self {
            streams: Streams::new(seed),
            drawn: 0,
        }
    }

    /// Uniform on 0..bound.
    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        (self.streams.number("desk data", 0, self.drawn) % bound as u64) as usize
    }

    fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        &choices[self.below(choices.len())]
    }
}

/// The shop while tasks are added to it.
pub(super) struct World {
    draws: Draws,
    shop: Shop,
    names: BTreeSet<String>,
    batch: usize,
}

impl World {
    fn new(batch: usize) -> Self {
        let mut draws = Draws::new(1 + batch as u64);
        let products = catalogue::products(&mut draws);
        let slots = catalogue::slots(&mut draws);
        let fleet = Customer {
            name: "Aldport Riders Association".to_owned(),
            email: "rides@aldport-riders.example".to_owned(),
            address: Address {
                street: "1 Canal Walk".to_owned(),
                city: "Aldport".to_owned(),
                postcode: "4810".to_owned(),
            },
            club_member: true,
            locked: false,
        };
        let shop = Shop {
            today: TODAY,
            customers: IndexMap::from([(FLEET.to_owned(), fleet)]),
            products,
            orders: IndexMap::new(),
            shipments: IndexMap::new(),
            slots,
        };
        Self {
            draws,
            shop,
            names: BTreeSet::new(),
            batch,
        }
    }

    fn address(&mut self) -> Address {
        let (city, postcode) = *self.draws.pick(&TOWNS);
        let street = format!("{} {}", 1 + self.draws.below(89), self.draws.pick(&STREETS));
        Address {
            street,
            city: city.to_owned(),
            postcode: postcode.to_owned(),
        }
    }

    /// A new account; its id.
    fn customer(&mut self, club_member: bool, locked: bool) -> String {
        let name = loop {
            let name = format!(
                "{} {}",
                self.draws.pick(&GIVEN_NAMES),
                self.draws.pick(&FAMILY_NAMES)
            );
            if self.names.insert(name.clone()) {
                break name;
            }
        };
        let host = *self
            .draws
            .pick(&["post.example", "mail.example", "inbox.example"]);
        let email = format!("{}@{host}", name.to_lowercase().replace(' ', "."));
        let address = self.address();
        let id = format!("C-{}", 2000 + self.shop.customers.len());
        self.shop.customers.insert(
            id.clone(),
            Customer {
                name,
                email,
                address,
                club_member,
                locked,
            },
        );
        id
    }

    /// A new order of today's prices, with its parcel where there must be one; its number.
    fn order(&mut self, customer: &str, progress: Progress, payment: Payment, skus: &[&str]) -> String {
        let (state, placed) = match progress {
            Progress::Placed(age) => (OrderState::Placed, age),
            Progress::Packed(age) => (OrderState::Packed, age),
            Progress::Shipped(age, ..) => (OrderState::Shipped, age),
            Progress::Delivered(age) => (OrderState::Delivered, age + 3 + self.draws.below(4) as i32),
        };
        let placed = TODAY.saturating_sub(placed.days());
        let number = (0..40)
            .map(|rank| order_number(placed, rank))
            .find(|id| !self.shop.orders.contains_key(id));
        let id = number.expect("a day has at most 40 orders");
        let shipment = format!("S-{}", &id[2..]);
        let (parcel, delivered) = match progress {
            Progress::Placed(_) | Progress::Packed(_) => (None, None),
            Progress::Shipped(_, parcel, expected_in) => {
                (Some((parcel, TODAY.saturating_add(expected_in.days()))), None)
            }
            Progress::Delivered(age) => {
                let day = TODAY.saturating_sub(age.days());
                (Some((ShipmentState::Delivered, day)), Some(day))
            }
        };
        if let Some((state, expected)) = parcel {
            let town = self.draws.pick(&TOWNS).0;
            let last_event = match state {
                ShipmentState::InTransit => format!("left the depot in {town}"),
                ShipmentState::Delayed => format!("held up in {town}"),
                ShipmentState::Delivered => "handed over".to_owned(),
                ShipmentState::Lost => format!("missing since the depot in {town}; search ended"),
            };
            let carrier = (*self.draws.pick(&CARRIERS)).to_owned();
            self.shop.shipments.insert(
                shipment.clone(),
                Shipment {
                    order: id.clone(),
                    carrier,
                    state,
                    expected,
                    last_event,
                },
            );
        }
        let price = |sku: &str| self.shop.products[product_of(sku)].variants[sku].price;
        let items = skus.iter().map(|&sku| {
            (
                sku.to_owned(),
                Item {
                    price: price(sku),
                    state: ItemState::default(),
                    exchanged_for: None,
                },
            )
        });
        let order = Order {
            customer: customer.to_owned(),
            placed,
            state,
            payment,
            items: items.collect(),
            address: self.shop.customers[customer].address.clone(),
            shipment: parcel.map(|_| shipment),
            delivered,
            refunds: Vec::new(),
        };
        self.shop.orders.insert(id.clone(), order);
        id
    }

    /// Gives a taken slot of the service on one of these days to the customer; its id.
    fn appointment(&mut self, customer: &str, service: Service, days: impl Fn(Date) -> bool) -> String {
        let found = self.shop.slots.iter_mut().find(|(_, slot)| {
            slot.service == service && slot.booked_by.as_deref() == Some(FLEET) && days(slot.date)
        });
        let (id, slot) = found.expect("the calendar has enough taken slots");
        slot.booked_by = Some(customer.to_owned());
        id.clone()
    }

    /// `Alder helmet` for `P-101-M`.
    fn product_name(&self, sku: &str) -> String {
        self.shop.products[product_of(sku)].name.clone()
    }

    /// `M` for `P-101-M`.
    fn option(&self, sku: &str) -> String {
        self.shop.products[product_of(sku)].variants[sku].option.clone()
    }
}

/// How far an order is, with days since it was placed (for delivered ones: since delivery).
#[derive(Clone, Copy)]
pub(super) enum Progress {
    Placed(i32),
    Packed(i32),
    /// With the parcel's state and the days until it is expected.
    Shipped(i32, ShipmentState, i32),
    Delivered(i32),
}

/// Numbers rise with the date; up to 40 orders a day.
fn order_number(placed: Date, rank: i32) -> String {
    let days = (placed - date(2025, 11, 1)).get_days();
    format!("O-{}", 1000 + 40 * days + rank)
}

fn product_of(sku: &str) -> &str {
    sku.rsplit_once('-').expect("a sku ends with its option").0
}

/// A batch of [`BATCH`] tasks, and the shop that they are about. Batch 0 has the tasks `desk-001` to `desk-114`.
pub(super) fn batch(batch: usize) -> (Shop, Vec<Task>) {
    let mut world = World::new(batch);
    let mut tasks = scenarios::all(&mut world);
    for (index, task) in tasks.iter_mut().enumerate() {
        task.id = format!("desk-{:03}", batch * BATCH + index + 1);
    }
    world.shop.orders.sort_unstable_keys();
    world.shop.shipments.sort_unstable_keys();
    (world.shop, tasks)
}

#[cfg(test)]
mod tests {
    use capo_core::ids::hex;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Of a batch as JSON.
    fn hash(number: usize) -> String {
        let data = serde_json::to_string(&batch(number)).expect("shop and tasks can be written");
        hex(&Sha256::digest(data))[..16].to_owned()
    }

    #[test]
    fn tasks_stay_what_they_are() {
        let hashes = [0, 1, 2499].map(hash);
        assert_eq!(
            hashes,
            ["aaf59c836d8fe481", "428324b2b0790914", "d5cc3d968205a3b8"],
            "raise VERSION if the tasks are meant to change"
        );
    }

    #[test]
    fn every_batch_holds_the_same_scenarios_about_other_people() {
        let scenarios = |tasks: &[Task]| tasks.iter().map(|task| task.scenario.clone()).collect::<Vec<_>>();
        let openings = |tasks: &[Task]| {
            tasks
                .iter()
                .map(|task| task.script.requests[0].text.clone())
                .collect::<BTreeSet<_>>()
        };
        let (_, first) = batch(0);
        assert_eq!(first.len(), BATCH);
        for number in 1..2500 {
            let (_, tasks) = batch(number);
            assert_eq!(scenarios(&tasks), scenarios(&first));
            let same = openings(&tasks).intersection(&openings(&first)).count();
            assert!(same < BATCH / 4, "batch {number} repeats {same} openings");
        }
    }
}
