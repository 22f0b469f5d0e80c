//! Values in columns, as this program reads and writes them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::StoreError;

/// As it is written in the database, which is as documents say it.
pub(super) fn written(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(value) => value.to_string(),
        Err(error) => unreachable!("documents are plain: {error}"),
    }
}

/// A document that was written so.
pub(super) fn document<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| StoreError::Unreadable(format!("{column}: {error}")))
}

/// A word that was written so, where there is one.
pub(super) fn written_word<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<Option<T>, StoreError> {
    let word: Option<String> = row.try_get(column)?;
    let word = word.map(|word| {
        serde_json::from_value(serde_json::Value::String(word))
            .map_err(|error| StoreError::Unreadable(format!("{column}: {error}")))
    });
    word.transpose()
}

/// Rows that one statement inserts, and that one transaction does: others write in between.
pub(super) const ROWS: usize = 64;
pub(super) const ROWS_AT_ONCE: usize = 2048;

/// So many rows of an `INSERT`: each begins with `$1`, and has so many parameters of its own.
pub(super) fn rows(count: usize, own: usize) -> String {
    let row = |row: usize| {
        let own: Vec<String> = (0..own)
            .map(|place| format!("${}", own * row + place + 2))
            .collect();
        format!("($1, {})", own.join(", "))
    };
    (0..count).map(row).collect::<Vec<String>>().join(", ")
}

/// A count as both databases have numbers; counts are far below 2⁶³.
pub(super) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
