//! An index of names, e-mail addresses and products, which no tool changes.

use std::collections::{BTreeMap, HashMap};

use smol_str::SmolStr;

use super::super::python;
use super::super::table::Table;
use super::model::{Product, User};

/// Ids by what is looked for; texts are in lower case.
#[derive(Debug)]
pub(super) struct Directory {
    /// Customers by first name and last name, in order.
    names: HashMap<String, HashMap<String, Vec<SmolStr>>>,
    /// The first customer with an e-mail address.
    emails: HashMap<String, SmolStr>,
    /// The first product with an item among its variants.
    products: HashMap<SmolStr, SmolStr>,
    /// The id of each product by its name, as it is shown.
    product_types: String,
}

impl Directory {
    pub(super) fn new(products: &Table<Product>, users: &Table<User>) -> Self {
        let mut directory = Self {
            names: HashMap::new(),
            emails: HashMap::new(),
            products: HashMap::new(),
            product_types: String::new(),
        };
        for (id, user) in users.iter() {
            let last_names = directory
                .names
                .entry(user.name.first_name.to_lowercase())
                .or_default();
            let ids = last_names.entry(user.name.last_name.to_lowercase()).or_default();
            ids.push(id.clone());
            let email = user.email.to_lowercase();
            directory.emails.entry(email).or_insert_with(|| id.clone());
        }
        let mut product_types: BTreeMap<&str, &str> = BTreeMap::new();
        for (id, product) in products.iter() {
            product_types.insert(&product.name, &product.product_id);
            for item in product.variants.keys() {
                directory
                    .products
                    .entry(item.clone())
                    .or_insert_with(|| id.clone());
            }
        }
        directory.product_types = python::dumps(&product_types);
        directory
    }

    /// Customers with a first name, by their last names.
    pub(super) fn with_first_name(&self, name: &str) -> Option<&HashMap<String, Vec<SmolStr>>> {
        self.names.get(name)
    }

    /// The customer with an e-mail address.
    pub(super) fn with_email(&self, email: &str) -> Option<&str> {
        self.emails.get(email).map(SmolStr::as_str)
    }

    /// The product that an item is a variant of.
    pub(super) fn product_of(&self, item: &str) -> Option<&str> {
        self.products.get(item).map(SmolStr::as_str)
    }

    /// The id of each product by its name.
    pub(super) fn product_types(&self) -> &str {
        &self.product_types
    }
}
