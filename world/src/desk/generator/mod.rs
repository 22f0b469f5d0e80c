//! Writes the embedded data: the shop and the tasks, always the same from the same seed.
//!
//! The data is committed. `CAPO_WRITE_DATA=1 cargo test -p capo-world embedded_data` writes it
//! anew; without the variable the same test fails when data and generator differ.

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
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draws = Draws::new(seed);
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

/// The shop and the tasks.
fn generate() -> (Shop, Vec<Task>) {
    let mut world = World::new(1);
    let mut tasks = scenarios::all(&mut world);
    for (index, task) in tasks.iter_mut().enumerate() {
        task.id = format!("desk-{:03}", index + 1);
    }
    world.shop.orders.sort_unstable_keys();
    world.shop.shipments.sort_unstable_keys();
    (world.shop, tasks)
}

/// One record a line, so that a change of the data can be read.
fn shop_text(shop: &Shop) -> String {
    let serde_json::Value::Object(tables) = serde_json::to_value(shop).expect("the shop can be written")
    else {
        panic!("the shop is an object")
    };
    let mut parts = Vec::new();
    for (table, records) in &tables {
        match records {
            serde_json::Value::Object(records) => {
                let lines: Vec<_> = records
                    .iter()
                    .map(|(id, record)| format!("\"{id}\":{record}"))
                    .collect();
                parts.push(format!("\"{table}\":{{\n{}\n}}", lines.join(",\n")));
            }
            value => parts.push(format!("\"{table}\":{value}")),
        }
    }
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

/// One task a line.
fn tasks_text(tasks: &[Task]) -> String {
    let lines: Vec<_> = tasks
        .iter()
        .map(|task| serde_json::to_string(task).expect("tasks can be written"))
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[test]
fn embedded_data_is_what_the_generator_writes() {
    let (shop, tasks) = generate();
    let files = [
        ("shop.json", shop_text(&shop), super::SHOP),
        ("tasks.json", tasks_text(&tasks), super::TASKS),
    ];
    for (file, written, embedded) in files {
        if std::env::var_os("CAPO_WRITE_DATA").is_some() {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/desk/data");
            std::fs::write(folder.join(file), written).expect("the data folder is writable");
        } else {
            assert!(
                written == embedded,
                "{file} differs from the generator; run with CAPO_WRITE_DATA=1"
            );
        }
    }
}
