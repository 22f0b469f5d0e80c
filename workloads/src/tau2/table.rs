//! Records by id, shared until they are changed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use super::cached_json::CachedJson;
use super::changes::Changes;
use super::environment::Side;
use super::python;

/// Records by id, in order. Clones share the records they began with; what is changed or added is the
/// clone's own, so a clone costs as much as the changes made to it.
#[derive(Debug, Clone)]
pub(super) struct Table<T> {
    shared: Arc<Shared<T>>,
    /// Changed and added records.
    own: IndexMap<SmolStr, CachedJson<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    records: IndexMap<SmolStr, CachedJson<T>>,
    /// Each record's id and itself as the state hash writes them, in order of ids.
    written: OnceLock<BTreeMap<SmolStr, String>>,
}

impl<T: Clone + Serialize> Table<T> {
    /// The record of an id.
    pub(super) fn get(&self, id: &str) -> Option<&CachedJson<T>> {
        self.own.get(id).or_else(|| self.shared.records.get(id))
    }

    /// The record of an id, to be changed.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        if !self.own.contains_key(id) {
            let (id, record) = self.shared.records.get_key_value(id)?;
            self.own.insert(id.clone(), record.clone());
        }
        self.own.get_mut(id).map(CachedJson::to_mut)
    }

    /// Adds a record after the others, or puts it in the place of the one with this id.
    pub(super) fn insert(&mut self, id: SmolStr, record: T) {
        self.own.insert(id, CachedJson::new(record));
    }

    /// All records, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SmolStr, &CachedJson<T>)> {
        let shared = self.shared.records.iter();
        let shared = shared.map(|(id, record)| (id, self.own.get(id).unwrap_or(record)));
        let added = self
            .own
            .iter()
            .filter(|(id, _)| !self.shared.records.contains_key(*id));
        shared.chain(added)
    }

    /// Whether two tables that began as one hold the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let is_same = |id: &SmolStr| match (self.get(id), other.get(id)) {
            (Some(one), Some(other)) => one.equals(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.own.keys().chain(other.own.keys()).all(is_same)
    }

    /// Tells what differs from the table that this one was cloned from; no record is ever removed.
    pub(super) fn changes_since(&self, began: &Self, name: &str, changes: &mut Changes) {
        for (id, now) in &self.own {
            let before = began.get(id);
            if before.is_none_or(|before| !before.equals(now)) {
                changes.compare(Side::Assistant, &format!("{name}.{id}"), before, Some(now));
            }
        }
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

fn entry<T: Serialize>(id: &str, record: &CachedJson<T>) -> String {
    format!("{}: {}", python::dumps(&id), python::dumps_sorted(&**record))
}

impl<T: Clone + Serialize> Serialize for Table<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(id, record)| (id, &**record)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shared = Shared {
            records: IndexMap::deserialize(deserializer)?,
            written: OnceLock::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            own: IndexMap::new(),
        })
    }
}
