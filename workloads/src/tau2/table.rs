//! Records by id, shared until they are changed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::Serialize;

use super::python;

/// Records by id, in order. Clones share the records they began with; what is changed or added is the
/// clone's own, so a clone costs as much as the changes made to it.
#[derive(Debug, Clone)]
pub(super) struct Table<T> {
    shared: Arc<Shared<T>>,
    /// Changed and added records.
    own: IndexMap<String, T>,
}

#[derive(Debug)]
struct Shared<T> {
    records: IndexMap<String, T>,
    /// Each record's id and itself as the state hash writes them, in order of ids.
    written: OnceLock<BTreeMap<String, String>>,
}

impl<T: Clone + Serialize> Table<T> {
    /// A table of these records.
    pub(super) fn new(records: IndexMap<String, T>) -> Self {
        Self {
            shared: Arc::new(Shared {
                records,
                written: OnceLock::new(),
            }),
            own: IndexMap::new(),
        }
    }

    /// The record of an id.
    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.own.get(id).or_else(|| self.shared.records.get(id))
    }

    /// The record of an id, to be changed.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        if !self.own.contains_key(id) {
            let record = self.shared.records.get(id)?.clone();
            self.own.insert(id.to_owned(), record);
        }
        self.own.get_mut(id)
    }

    /// Adds a record after the others, or puts it in the place of the one with this id.
    pub(super) fn insert(&mut self, id: String, record: T) {
        self.own.insert(id, record);
    }

    /// All records, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let shared = self.shared.records.iter();
        let shared = shared.map(|(id, record)| (id, self.own.get(id).unwrap_or(record)));
        let added = self
            .own
            .iter()
            .filter(|(id, _)| !self.shared.records.contains_key(*id));
        shared.chain(added).map(|(id, record)| (id.as_str(), record))
    }

    /// Whether two tables that began as one hold the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let differs = |id: &String| {
            let written = |table: &Self| table.get(id).map(python::dumps_sorted);
            written(self) != written(other)
        };
        !self.own.keys().chain(other.own.keys()).any(differs)
    }

    /// Writes an object of all records, in order of ids, as the state hash does.
    pub(super) fn write<'a>(&'a self, pieces: &mut Vec<Cow<'a, str>>) {
        let written = self.shared.written.get_or_init(|| {
            let records = self.shared.records.iter();
            records
                .map(|(id, record)| (id.clone(), entry(id, record)))
                .collect()
        });
        let mut all: BTreeMap<&str, Cow<str>> = written
            .iter()
            .map(|(id, entry)| (id.as_str(), Cow::Borrowed(entry.as_str())))
            .collect();
        for (id, record) in &self.own {
            all.insert(id, Cow::Owned(entry(id, record)));
        }
        pieces.push("{".into());
        for (place, entry) in all.into_values().enumerate() {
            if place > 0 {
                pieces.push(", ".into());
            }
            pieces.push(entry);
        }
        pieces.push("}".into());
    }
}

fn entry(id: &str, record: &impl Serialize) -> String {
    format!("{}: {}", python::dumps(&id), python::dumps_sorted(record))
}
