//! Numbers as JSON has them: those that are not finite are written as null, and null reads as no number.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};

/// A number, NaN where null was written for one that was not finite.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Numbers by name, as [`number`] reads them.
pub(crate) fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, f64>, D::Error> {
    let read: IndexMap<String, Option<f64>> = IndexMap::deserialize(deserializer)?;
    Ok(read
        .into_iter()
        .map(|(name, number)| (name, number.unwrap_or(f64::NAN)))
        .collect())
}
