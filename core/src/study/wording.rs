//! Messages of parsers in words for people, with suggestions.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::Table;
use super::suggest::nearest;
use super::text_checks::{check_depth, placed};

/// A parser's message without the names of types in this program and its own words for what it reads.
fn plain(message: &str) -> String {
    let split = |beginning| message.split_once(beginning);
    let wrong = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((before, rest)) = wrong.into_iter().find_map(split) else {
        let told = too_large(message).or_else(|| of_reader(message));
        return told.unwrap_or_else(|| message.to_owned());
    };
    let Some((found, expected)) = rest.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    // JSON's reader says where at the end.
    let (expected, place) = match expected.split_once(" at line ") {
        Some((expected, place)) => (expected, format!(" at line {place}")),
        None => (expected, String::new()),
    };
    let above_0 = found
        .strip_prefix("integer `")
        .is_some_and(|digits| !digits.starts_with(['-', '0']));
    let wanted = match wanted(expected) {
        whole if above_0 && whole.starts_with("a whole number") => "a smaller whole number".into(),
        other => other,
    };
    format!("{before}expected {wanted}, found {}{place}", given(found))
}

/// What a parser of JSON or TOML says, without the names of types in this program: what was expected and what was found,
/// as a person would say it, with the nearest valid name where it lists the valid ones between back-ticks after an unknown
/// one. Other messages stay as they are.
///
/// ```
/// use capo_core::study::suggest;
///
/// let told = suggest("invalid type: string \"six\", expected u32");
/// assert_eq!(told, "expected a whole number of at least 0, found the text \"six\"");
/// let told = suggest("unknown variant `hgh`, expected one of `low`, `high`");
/// assert_eq!(told, "unknown value `hgh`, expected one of `low`, `high`; did you mean `high`?");
/// assert_eq!(suggest("missing field `name`"), "missing field `name`");
/// ```
pub fn suggest(message: &str) -> String {
    let message = message.replacen("unknown variant `", "unknown value `", 1);
    let unknown = message.contains("unknown field `") || message.contains("unknown value `");
    let mut names = message.split('`').skip(1).step_by(2);
    match (unknown, names.next()) {
        (true, Some(written)) => match nearest(written, names) {
            Some(candidate) => format!("{message}; did you mean `{candidate}`?"),
            None => message,
        },
        _ => plain(&message),
    }
}

/// A whole number beyond 64 bits, which no key takes.
fn too_large(message: &str) -> Option<String> {
    let found = message.split_once("integer `")?.1.split_once("` as i128")?.0;
    Some(format!("expected a number of at most 19 digits, found {found}"))
}

/// What the readers of JSON and TOML say of a text that is none.
fn of_reader(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("EOF while parsing ") {
        let rest = rest.replacen("a string", "a text", 1);
        return Some(format!("the text ends in the middle of {rest}"));
    }
    // JSON's says where at the end, TOML's what it expected, which may be nothing.
    let (said, place) = message.split_at(message.find(" at line ").unwrap_or(message.len()));
    let told = match said.split(", expected ").next()? {
        "recursion limit exceeded" => "it is nested too deeply",
        "number out of range" => "the number is too large to reckon with",
        "expected value" => "expected a value",
        "expected ident" => "expected a value; without quotes the only words are true, false and null",
        "invalid unicode code point" => "this is not UTF-8",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "half of a pair of \\u escapes stands alone"
        }
        "invalid escape" => {
            "after a backslash a text goes on with one of \" \\ / b f n r t, or with u and four hexadecimal digits"
        }
        "key must be a string" => "a key must be a text in quotes",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a text holds a line break or another control character, which JSON writes as \\n or \\u001f"
        }
        "string values must be quoted" | "invalid boolean" | "missing value" | "missing value for key" => {
            "expected a value; without quotes the only words are true and false"
        }
        "invalid mantissa"
        | "invalid fraction"
        | "invalid exponent"
        | "invalid float"
        | "invalid integer number"
        | "integer number overflowed"
        | "floating-point number overflowed" => {
            "this is no number; write one of at most 19 digits such as 5, 0.5 or 1e6, or a text in quotes"
        }
        said if said.starts_with("wanted ") => "expected a name in quotes",
        said if said.starts_with("invalid ") && said.ends_with(" string") => {
            "a text in quotes does not end, or holds what cannot stand in it; a backslash is written twice"
        }
        _ => return Some(message.strip_suffix(", expected nothing")?.to_owned()),
    };
    Some(format!("{told}{place}"))
}

/// What was expected.
fn wanted(expected: &str) -> Cow<'_, str> {
    let expected = expected.trim();
    let of_length = |kind: &str| expected.strip_prefix(kind);
    if let Some(length) = ["a tuple of size ", "an array of length "]
        .into_iter()
        .find_map(of_length)
    {
        return format!("a list of {length}").into();
    }
    Cow::Borrowed(match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "a text",
        "a sequence" => "a list",
        "a map" => "a table",
        "any value" => "a number of at most 19 digits",
        "variant identifier" | "string or map" | "string or table" => "a name in quotes",
        _ if expected.starts_with("a nonzero") => "a whole number of at least 1",
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged") => "a table",
        _ if expected.starts_with("enum ") => "a name in quotes",
        _ => expected,
    })
}

/// What was found.
fn given(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind)?.strip_prefix('`')?.split('`').next();
    let number = ["integer ", "boolean "].into_iter().find_map(quoted);
    // Large ones would be written out.
    let float = quoted("floating point ").and_then(|number| number.parse::<f64>().ok());
    if let Some(number) = float {
        return format!("{number:?}");
    }
    match (number, found) {
        (Some(value), _) => value.to_owned(),
        (None, found) if found.parse::<usize>().is_ok() => format!("a list of {found}"),
        (None, "map") => "a table".into(),
        (None, "sequence") => "a list".into(),
        (None, "null" | "unit" | "unit value") => "nothing".into(),
        (None, found) => match found.strip_prefix("string ") {
            Some(text) => format!("the text {text}"),
            None => found.to_owned(),
        },
    }
}

/// Reads a text in TOML.
///
/// # Errors
/// On one line in words for people, see [`suggest`], with the line, the column and the key that it is about.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    check_depth(text).map_err(|error| error.to_string())?;
    toml::from_str(text).map_err(|error| told_of_toml(text, &error))
}

/// What is wrong with a text in TOML, as [`read_toml`] says it.
pub fn told_of_toml(text: &str, error: &toml::de::Error) -> String {
    let mut told = suggest(error.message());
    let written = error.span().and_then(|span| text.get(span));
    if written.is_some_and(|written| written.parse::<toml::value::Datetime>().is_ok()) {
        told = told.replacen("found a table", "found a date or a time", 1);
        if told.starts_with("expected a text") {
            told += "; put it in quotes";
        }
    }
    let is_of_value = ["expected ", "unknown value ", "this is no "];
    let is_of_value = is_of_value.iter().any(|start| told.starts_with(start));
    let key = error.span().filter(|_| is_of_value);
    let told = match key.and_then(|span| key_at(text, &span)) {
        Some(key) => {
            let (key, told) = of_table(key, told);
            format!("`{key}`: {told}")
        }
        None => told,
    };
    placed(text, error.span(), &told)
}

/// Keys that hold lists of tables.
const LISTS: [&str; 2] = ["constraint", "price"];

/// A list in place of a table is read as the values of the table's keys; what is told then is of the first one.
pub(super) fn of_table(key: String, told: String) -> (String, String) {
    let is_of_first = told.contains("found a table")
        || ["unknown value ", "expected a table, found a list"]
            .iter()
            .any(|start| told.starts_with(start));
    match key.strip_suffix("[0]") {
        Some(table) if is_of_first && !table.contains(['.', '[']) && !LISTS.contains(&table) => {
            (table.to_owned(), "expected a table, found a list".to_owned())
        }
        _ => (key, told),
    }
}

/// Of how many keys or items side by side the one at fault is looked for: each is left out of a copy of the whole.
const MOST_SIDE_BY_SIDE: usize = 256;

/// Reads a table whose keys belong to a kind, and names the key that holds what it cannot hold.
///
/// # Errors
/// In words for people, see [`suggest`].
pub fn read_table<T: DeserializeOwned>(table: &Table) -> Result<T, String> {
    serde_json::from_value::<T>(Value::Object(table.clone())).map_err(|error| {
        let message = error.to_string();
        let told = suggest(&message);
        match at_fault::<T>(table, &message) {
            Some(key) => format!("`{key}`: {told}"),
            None => told,
        }
    })
}

/// The dotted path of the key that a parser's message on a table is about: without what it holds something else is wrong,
/// or nothing. Of more than 256 keys or items side by side none is named, only what holds them. None where a key is missing
/// or unknown, which the message names.
pub fn at_fault<T: DeserializeOwned>(table: &Table, message: &str) -> Option<String> {
    if message.starts_with("missing field") || message.starts_with("unknown field") {
        return None;
    }
    let whole = Value::Object(table.clone());
    let (mut place, mut path) = (String::new(), String::new());
    loop {
        let (names, is_list): (Vec<String>, bool) = match whole.pointer(&place) {
            Some(Value::Object(fields)) => (fields.keys().cloned().collect(), false),
            Some(Value::Array(items)) => ((0..items.len()).map(|index| index.to_string()).collect(), true),
            _ => break,
        };
        if names.len() > MOST_SIDE_BY_SIDE {
            break;
        }
        // That it is missing then says little of a key, and nothing of one that tells kinds of tables apart.
        let changes = |name: &str, may_be_missing: bool| {
            let Err(error) = serde_json::from_value::<T>(without(&whole, &place, name)) else {
                return true;
            };
            let error = error.to_string();
            error != message && (may_be_missing || error != format!("missing field `{name}`"))
        };
        let found = [false, true].into_iter().find_map(|may_be_missing| {
            let mut names = names.iter();
            names.find(|name| changes(name.as_str(), may_be_missing))
        });
        let Some(name) = found else { break };
        path = match (is_list, path.as_str()) {
            (true, path) => format!("{path}[{name}]"),
            (false, "") => name.clone(),
            (false, path) => format!("{path}.{name}"),
        };
        place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    }
    (!path.is_empty()).then_some(path)
}

/// A value without what one of those in it holds by a name or number.
fn without(whole: &Value, place: &str, name: &str) -> Value {
    let mut whole = whole.clone();
    match (whole.pointer_mut(place), name.parse::<usize>()) {
        (Some(Value::Object(fields)), _) => drop(fields.shift_remove(name)),
        (Some(Value::Array(items)), Ok(index)) => drop(items.remove(index)),
        _ => {}
    }
    whole
}

/// The dotted path of the key of a TOML document that holds the value at a place in the text.
fn key_at(text: &str, place: &Range<usize>) -> Option<String> {
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
            (
                json!({ "rounds": u64::MAX }),
                "`rounds`: expected a smaller whole number, found 18446744073709551615",
            ),
            (
                json!({ "rounds": 1e308 }),
                "`rounds`: expected a whole number of at least 0, found 1e308",
            ),
            (json!({ "share": 1 }), "missing field `rounds`"),
        ] {
            let Value::Object(table) = table else {
                unreachable!()
            };
            assert_eq!(read_table::<Settings>(&table).unwrap_err(), expected);
        }
        for (names, expected) in [
            (MOST_SIDE_BY_SIDE, "`names[255]`: "),
            (MOST_SIDE_BY_SIDE + 1, "`names`: "),
        ] {
            let mut names = vec![json!("a"); names];
            names[255] = json!(1);
            let table = Table::from_iter([
                ("rounds".to_owned(), json!(1)),
                ("names".to_owned(), json!(names)),
            ]);
            let told = read_table::<Settings>(&table).unwrap_err();
            assert!(told.starts_with(expected), "{told}");
        }
        assert_eq!(
            suggest("integer `99999999999999999999` as i128, expected any value"),
            "expected a number of at most 19 digits, found 99999999999999999999"
        );
        for (message, told) in [
            (
                "invalid length 0, expected struct Study with 12 elements at line 1 column 2",
                "expected a table, found a list of 0 at line 1 column 2",
            ),
            (
                "EOF while parsing a value at line 1 column 9",
                "the text ends in the middle of a value at line 1 column 9",
            ),
            (
                "recursion limit exceeded at line 1 column 128",
                "it is nested too deeply at line 1 column 128",
            ),
            (
                "invalid unicode code point at line 2 column 7",
                "this is not UTF-8 at line 2 column 7",
            ),
            (
                "unexpected end of hex escape at line 1 column 8",
                "half of a pair of \\u escapes stands alone at line 1 column 8",
            ),
            (
                "unknown field `metrc`, expected one of `metric`, `scale`",
                "unknown field `metrc`, expected one of `metric`, `scale`; did you mean `metric`?",
            ),
        ] {
            assert_eq!(suggest(message), told);
        }
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
        for (key, of) in [("study[0]", "study"), ("constraint[0]", "constraint[0]")] {
            let told = "expected a table, found a list of 0".to_owned();
            assert_eq!(of_table(key.to_owned(), told).0, of);
        }
        assert_eq!(key_at("a = [", &(4..5)), None);
    }
}
