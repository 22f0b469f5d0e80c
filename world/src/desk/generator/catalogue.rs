//! The catalogue: what the shop sells, who lives where, and the workshop's calendar.

use indexmap::IndexMap;
use jiff::ToSpan;
use jiff::civil::{Date, Weekday, date};

use super::super::shop::{Money, Product, Service, Slot, Variant};
use super::Draws;

pub(super) const TODAY: Date = date(2026, 3, 16);

/// Id, name, category, clearance, price in cents, options. An option with `!` is out of stock.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    bool,
    u64,
    &'static [&'static str],
);

/// Rows a line each.
macro_rules! rows {
    ($($id:literal: $name:literal, $category:literal, $clearance:literal, $cents:literal, $options:expr;)*) => {
        [$(($id, $name, $category, $clearance, $cents, &$options)),*]
    };
}

const PRODUCTS: [Row; 23] = rows! {
    "P-101": "Alder helmet", "helmets", false, 5990, ["S", "M", "L"];
    "P-102": "Bracken helmet", "helmets", false, 8450, ["S", "M", "L!"];
    "P-110": "Curlew rain jacket", "jackets", false, 11900, ["S", "M", "L", "XL"];
    "P-111": "Dunlin wind vest", "jackets", false, 6400, ["S!", "M", "L"];
    "P-120": "Fern gloves", "gloves", false, 2990, ["S", "M", "L"];
    "P-121": "Gorse winter gloves", "gloves", true, 2490, ["S", "M", "L"];
    "P-130": "Heron cycling shoes", "shoes", false, 13900, ["41", "42", "43", "44!"];
    "P-201": "Kestrel city bike", "bikes", false, 89900, ["52 cm", "56 cm"];
    "P-202": "Merlin gravel bike", "bikes", false, 189_000, ["54 cm", "56 cm", "58 cm"];
    "P-203": "Osprey e-bike", "bikes", false, 265_000, ["M", "L"];
    "P-204": "Wren children's bike", "bikes", false, 34900, ["16 inch", "20 inch"];
    "P-301": "Lumen front light", "lights", false, 4500, ["black", "silver"];
    "P-302": "Ember rear light", "lights", false, 2750, ["black", "red!"];
    "P-310": "Anchor folding lock", "locks", false, 7900, ["black", "orange"];
    "P-320": "Tern pannier", "bags", false, 9400, ["green", "grey", "black"];
    "P-321": "Sandpiper saddle bag", "bags", false, 3800, ["grey", "black"];
    "P-322": "Plover backpack", "bags", true, 7200, ["blue", "grey"];
    "P-401": "Flint brake pads", "parts", false, 1890, ["disc", "rim"];
    "P-402": "Slate chain", "parts", false, 4200, ["11-speed", "12-speed"];
    "P-403": "Quartz tyre", "parts", false, 3950, ["32 mm", "40 mm", "47 mm!"];
    "P-404": "Basalt pedals", "parts", false, 6800, ["black", "blue"];
    "P-405": "Pumice saddle", "parts", true, 4900, ["narrow", "wide"];
    "P-406": "Granite stem", "parts", false, 5500, ["80 mm", "100 mm"];
};

pub(super) fn products(draws: &mut Draws) -> IndexMap<String, Product> {
    PRODUCTS
        .iter()
        .map(|&(id, name, category, clearance, cents, options)| {
            let variants = options.iter().map(|option| {
                let sold_out = option.ends_with('!');
                let option = option.trim_end_matches('!');
                let suffix: String = option.chars().filter(char::is_ascii_alphanumeric).collect();
                let stock = if sold_out { 0 } else { 2 + draws.below(14) as u32 };
                let variant = Variant {
                    option: option.to_owned(),
                    price: Money::from_cents(cents),
                    stock,
                };
                (format!("{id}-{}", suffix.to_uppercase()), variant)
            });
            let product = Product {
                name: name.to_owned(),
                category: category.to_owned(),
                clearance,
                variants: variants.collect(),
            };
            (id.to_owned(), product)
        })
        .collect()
}

pub(super) const GIVEN_NAMES: [&str; 38] = [
    "Ada", "Bruno", "Celia", "Dario", "Edith", "Farid", "Greta", "Hugo", "Irene", "Jonas", "Kaya", "Lionel",
    "Mira", "Nils", "Olive", "Pavel", "Quinn", "Rosa", "Stefan", "Tilda", "Umar", "Vera", "Wim", "Xenia",
    "Yusuf", "Zoe", "Anton", "Bea", "Carlos", "Dina", "Emil", "Flora", "Georg", "Hana", "Ivo", "Jana",
    "Kofi", "Lena",
];

pub(super) const FAMILY_NAMES: [&str; 36] = [
    "Krol",
    "Baumann",
    "Castell",
    "Dahl",
    "Eriksen",
    "Fontaine",
    "Gruber",
    "Halloran",
    "Ivanov",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Quist",
    "Rossi",
    "Sandoval",
    "Tanaka",
    "Urban",
    "Vogel",
    "Weiss",
    "Yilmaz",
    "Zeman",
    "Abbott",
    "Brandt",
    "Conti",
    "Duarte",
    "Engel",
    "Farkas",
    "Greer",
    "Hoffman",
    "Iversen",
    "Jovic",
    "Kaminski",
];

/// Towns with their postcodes.
pub(super) const TOWNS: [(&str, &str); 8] = [
    ("Aldport", "4810"),
    ("Brackwater", "4821"),
    ("Carrow", "4834"),
    ("Denholm", "4845"),
    ("Eastmere", "4857"),
    ("Fallow", "4862"),
    ("Greyhaven", "4876"),
    ("Hollin", "4889"),
];

pub(super) const STREETS: [&str; 16] = [
    "Mill Lane",
    "Harbour Road",
    "Chapel Street",
    "Orchard Way",
    "Station Road",
    "Quarry Hill",
    "Weaver Street",
    "Meadow Close",
    "Bridge Street",
    "Lime Avenue",
    "Foundry Lane",
    "Canal Walk",
    "Park Terrace",
    "Abbey Row",
    "Tanner Street",
    "Windmill Road",
];

pub(super) const CARRIERS: [&str; 3] = ["Swift Parcel", "Redline Post", "Coast Couriers"];

pub(super) const SERVICES: [(Service, &str); 4] = [
    (Service::TuneUp, "tune-up"),
    (Service::BrakeService, "brake service"),
    (Service::SuspensionService, "suspension service"),
    (Service::Fitting, "bike fitting"),
];

const TIMES: [&str; 4] = ["09:00", "11:00", "14:00", "16:00"];

/// The account in whose name the slots are taken that no task needs.
pub(super) const FLEET: &str = "C-1999";

/// Today's slots (all taken) and those of the next nine working days, a third of them taken.
pub(super) fn slots(draws: &mut Draws) -> IndexMap<String, Slot> {
    let mut slots = IndexMap::new();
    for (service, _) in SERVICES {
        let days = TODAY.series(1.day()).take(12);
        for day in days.filter(|day| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)) {
            for time in TIMES {
                let taken = day == TODAY || draws.below(3) == 0;
                let slot = Slot {
                    service,
                    date: day,
                    time: time.to_owned(),
                    booked_by: taken.then(|| FLEET.to_owned()),
                };
                slots.insert(format!("T-{:03}", slots.len() + 1), slot);
            }
        }
    }
    slots
}
