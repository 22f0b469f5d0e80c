//! A shop's orders.

mod directory;
mod model;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use self::directory::Directory;
use self::model::{Order, Product, User};
use super::changes::Changes;
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
    directory: Arc<Directory>,
}

impl Retail {
    /// Reads `db.json`.
    ///
    /// # Errors
    /// What does not read.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Records {
            products: Table<Product>,
            users: Table<User>,
            orders: Table<Order>,
        }
        let Records {
            products,
            users,
            orders,
        } = serde_json::from_slice(json)?;
        Ok(Self {
            directory: Arc::new(Directory::new(&products, &users)),
            products,
            users,
            orders,
        })
    }

    /// The records as `db.json` holds them.
    #[cfg(test)]
    pub(super) fn records(&self) -> serde_json::Value {
        serde_json::json!({
            "products": self.products,
            "users": self.users,
            "orders": self.orders,
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

    fn changes_since(&self, began: &Self, changes: &mut Changes) {
        self.orders.changes_since(&began.orders, "orders", changes);
        self.products.changes_since(&began.products, "products", changes);
        self.users.changes_since(&began.users, "users", changes);
    }
}
