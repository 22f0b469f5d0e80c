//! A shop's orders.

mod model;
mod tools;

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::Deserialize;

use self::model::{Order, Product, User};
use super::environment::World;
use super::python;
use super::table::Table;
use super::tool::Tool;

/// The shop's records.
#[derive(Debug, Clone)]
pub struct Retail {
    products: Table<Product>,
    users: Table<User>,
    orders: Table<Order>,
}

impl Retail {
    /// Reads `db.json`.
    ///
    /// # Errors
    /// What does not read.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Records {
            products: IndexMap<String, Product>,
            users: IndexMap<String, User>,
            orders: IndexMap<String, Order>,
        }
        let records: Records = serde_json::from_slice(json)?;
        Ok(Self {
            products: Table::new(records.products),
            users: Table::new(records.users),
            orders: Table::new(records.orders),
        })
    }
}

impl World for Retail {
    const NAME: &'static str = "retail";

    fn agent_tools() -> &'static [Tool<Self>] {
        tools::ALL
    }

    fn agent_hash(&self) -> String {
        let mut pieces: Vec<Cow<str>> = vec!["{\"orders\": ".into()];
        self.orders.write(&mut pieces);
        pieces.push(", \"products\": ".into());
        self.products.write(&mut pieces);
        pieces.push(", \"users\": ".into());
        self.users.write(&mut pieces);
        pieces.push("}".into());
        python::sha256(pieces.iter().map(Cow::as_ref))
    }

    fn equals(&self, other: &Self) -> bool {
        self.products.equals(&other.products)
            && self.users.equals(&other.users)
            && self.orders.equals(&other.orders)
    }
}
