//! What parsers say, in words for people.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::Table;

/// A parser's message without the names of types in this program: what was expected and what was
/// found, as a person would say it. Other messages stay as they are.
///
/// ```
/// use capo_core::study::plain;
///
/// let told = plain("invalid type: string \"six\", expected u32");
/// assert_eq!(told, "expected a whole number of at least 0, found the text \"six\"");
/// assert_eq!(plain("missing field `name`"), "missing field `name`");
/// ```
pub fn plain(message: &str) -> String {
    let split = |beginning| message.split_once(beginning);
    let Some((before, rest)) = split("invalid type: ").or_else(|| split("invalid value: ")) else {
        return too_large(message).unwrap_or_else(|| message.to_owned());
    };
    let Some((found, expected)) = rest.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    // JSON's reader says where at the end.
    let (expected, place) = match expected.split_once(" at line ") {
        Some((expected, place)) => (expected, format!(" at line {place}")),
        None => (expected, String::new()),
    };
    format!(
        "{before}expected {}, found {}{place}",
        wanted(expected),
        given(found)
    )
}

/// A whole number beyond 64 bits, which no key takes.
fn too_large(message: &str) -> Option<String> {
    let found = message.split_once("integer `")?.1.split_once("` as i128")?.0;
    Some(format!("expected a number of at most 19 digits, found {found}"))
}

/// What was expected.
fn wanted(expected: &str) -> &str {
    let expected = expected.trim();
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "a text",
        "a sequence" => "a list",
        "a map" => "a table",
        "any value" => "a number of at most 19 digits",
        _ if expected.starts_with("a nonzero") => "a whole number of at least 1",
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged") => "a table",
        _ => expected,
    }
}

/// What was found.
fn given(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind)?.strip_prefix('`')?.split('`').next();
    let number = ["integer ", "floating point ", "boolean "]
        .into_iter()
        .find_map(quoted);
    match (number, found) {
        (Some(value), _) => value.to_owned(),
        (None, "map") => "a table".into(),
        (None, "sequence") => "a list".into(),
        (None, "null" | "unit" | "unit value") => "nothing".into(),
        (None, found) => match found.strip_prefix("string ") {
            Some(text) => format!("the text {text}"),
            None => found.to_owned(),
        },
    }
}

/// Reads a table whose keys belong to a kind, and names the key that holds what it cannot hold.
///
/// # Errors
/// In words for people, see [`plain`].
pub fn read_table<T: DeserializeOwned>(table: &Table) -> Result<T, String> {
    let read =
        |table: Table| serde_json::from_value::<T>(Value::Object(table)).map_err(|error| error.to_string());
    read(table.clone()).map_err(|message| {
        let told = plain(&message);
        // Without the key at fault something else is wrong, or nothing.
        let is_at_fault = |at_fault: &&String| {
            let others = table.iter().filter(|(key, _)| key != at_fault);
            let others = others.map(|(key, value)| (key.clone(), value.clone()));
            read(others.collect()).err().as_ref() != Some(&message)
        };
        match table.keys().find(is_at_fault) {
            Some(key) if told != message => format!("`{key}`: {told}"),
            _ => told,
        }
    })
}

/// The dotted path of the key of a TOML document that holds the value at a place in the text.
pub(super) fn key_at(text: &str, place: &Range<usize>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    within("", &DeValue::Table(document.into_inner()), place)
}

/// The deepest key below `value` at that place.
fn within(key: &str, value: &DeValue<'_>, place: &Range<usize>) -> Option<String> {
    let below = |key: String, value: &DeValue<'_>, span: Range<usize>| {
        let is_here = || (span.start <= place.start && place.end <= span.end).then(|| key.clone());
        within(&key, value, place).or_else(is_here)
    };
    match value {
        DeValue::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| below(format!("{key}[{index}]"), value.get_ref(), value.span())),
        DeValue::Table(table) => table.iter().find_map(|(name, value)| {
            let separator = if key.is_empty() { "" } else { "." };
            below(
                format!("{key}{separator}{}", name.get_ref()),
                value.get_ref(),
                value.span(),
            )
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Settings {
        rounds: u32,
        share: Option<f64>,
        tries: Option<std::num::NonZeroU32>,
        on: Option<bool>,
        names: Option<Vec<String>>,
    }

    #[test]
    fn no_type_of_this_program_is_named() {
        for (table, expected) in [
            (
                json!({ "rounds": "six" }),
                "`rounds`: expected a whole number of at least 0, found the text \"six\"",
            ),
            (
                json!({ "on": true, "rounds": -1 }),
                "`rounds`: expected a whole number of at least 0, found -1",
            ),
            (
                json!({ "rounds": 1, "share": "half, expected more" }),
                "`share`: expected a number, found the text \"half, expected more\"",
            ),
            (
                json!({ "rounds": 1, "tries": 0 }),
                "`tries`: expected a whole number of at least 1, found 0",
            ),
            (
                json!({ "rounds": 1, "on": 1 }),
                "`on`: expected true or false, found 1",
            ),
            (
                json!({ "rounds": 1, "names": { "a": 1 } }),
                "`names`: expected a list, found a table",
            ),
            (
                json!({ "rounds": 1.5 }),
                "`rounds`: expected a whole number of at least 0, found 1.5",
            ),
            (
                json!({ "rounds": null }),
                "`rounds`: expected a whole number of at least 0, found nothing",
            ),
            (json!({ "share": 1 }), "missing field `rounds`"),
        ] {
            let Value::Object(table) = table else {
                unreachable!()
            };
            assert_eq!(read_table::<Settings>(&table).unwrap_err(), expected);
        }
        assert_eq!(
            plain("integer `99999999999999999999` as i128, expected any value"),
            "expected a number of at most 19 digits, found 99999999999999999999"
        );
    }

    #[test]
    fn keys_are_found_by_their_place() {
        let text = "[study]\nname = \"a\"\nrounds = \"six\"\n[[constraint]]\nmetric = \"m\"\n\n[[constraint]]\nscale = [1, \"x\"]\n";
        for (value, key) in [
            ("\"six\"", "study.rounds"),
            ("\"m\"", "constraint[0].metric"),
            ("\"x\"", "constraint[1].scale[1]"),
        ] {
            let start = text.find(value).unwrap();
            assert_eq!(key_at(text, &(start..start + value.len())).as_deref(), Some(key));
        }
        assert_eq!(key_at("a = 1", &(4..5)).as_deref(), Some("a"));
        assert_eq!(key_at("a = [", &(4..5)), None);
    }
}
