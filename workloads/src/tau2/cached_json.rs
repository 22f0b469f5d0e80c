//! Records whose JSON is cached: shared until they are changed, with what they are shown as.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::python;

/// A value whose clones share it, and share what `json.dumps` makes of it once one of them was asked.
#[derive(Debug)]
pub(super) struct CachedJson<T>(Arc<Content<T>>);

#[derive(Debug)]
struct Content<T> {
    value: T,
    written: OnceLock<Box<RawValue>>,
}

impl<T> CachedJson<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Content {
            value,
            written: OnceLock::new(),
        }))
    }
}

impl<T: Clone> CachedJson<T> {
    /// The value, to be changed: a copy of its own where it is shared.
    pub(super) fn to_mut(&mut self) -> &mut T {
        let content = Arc::make_mut(&mut self.0);
        content.written = OnceLock::new();
        &mut content.value
    }
}

impl<T: Serialize> CachedJson<T> {
    /// `json.dumps` of the value.
    pub(super) fn dumps(&self) -> String {
        self.written().get().to_owned()
    }

    /// Whether both are written alike, in whatever order of keys.
    pub(super) fn equals(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || python::are_alike(&**self, &**other)
    }

    fn written(&self) -> &RawValue {
        self.0.written.get_or_init(|| {
            RawValue::from_string(python::dumps(&self.0.value)).expect("what was written is JSON")
        })
    }
}

impl<T> Clone for CachedJson<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Clone for Content<T> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            written: OnceLock::new(),
        }
    }
}

impl<T> Deref for CachedJson<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Serialize> Serialize for CachedJson<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // What is not shared is new, or part of a whole whose text is kept.
        if Arc::strong_count(&self.0) == 1 && self.0.written.get().is_none() {
            self.0.value.serialize(serializer)
        } else {
            self.written().serialize(serializer)
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CachedJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
