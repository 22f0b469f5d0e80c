//! What Python makes of a value: `str`, `json.dumps` and `round`. The benchmark's results, error texts
//! and state hashes are written this way.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// `json.dumps(value)`: a blank after separators, ASCII only, keys in their own order.
pub(super) fn dumps(value: &impl Serialize) -> String {
    // Most records fit.
    let mut bytes = Vec::with_capacity(1 << 10);
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Python));
    written.expect("memory takes everything, and records are what JSON has");
    String::from_utf8(bytes).expect("the formatter writes ASCII")
}

/// `json.dumps(value, sort_keys=True)`.
pub(super) fn dumps_sorted(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("records are what JSON has");
    dumps(&sorted(value))
}

/// Whether both are written alike, in whatever order of keys.
pub(super) fn are_alike<T: Serialize>(one: &T, other: &T) -> bool {
    dumps(one) == dumps(other) || dumps_sorted(one) == dumps_sorted(other)
}

/// SHA-256 of texts one after the other, as hexadecimal digits.
pub(super) fn sha256<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
    }
    hasher.finalize().iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The same value with the keys of every object in order of their code points.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            let fields = fields.into_iter().map(|(key, value)| (key, sorted(value)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        other => other,
    }
}

/// `str(value)`.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
pub(super) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => float(number),
            None => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(repr).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), repr(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// In single quotes, or in double ones where the text has single ones only.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for char in text.chars() {
        match char {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            char if char == quote => quoted.extend(['\\', char]),
            char if char.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push(quote);
    quoted
}

/// `==`: numbers and booleans by value, the order of keys left out.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b || number(a).is_some_and(|a| number(b) == Some(a)),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        other => other.as_f64(),
    }
}

/// `repr` of a float: the shortest digits that read as the same number.
pub(super) fn float(number: f64) -> String {
    if is_positional(number) {
        return serde_json::to_string(&number).expect("memory takes everything");
    }
    let mut digits = format!("{number:?}");
    let Some((mantissa, exponent)) = digits.split_once('e') else {
        digits.make_ascii_lowercase();
        return digits;
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// Whether Python and JSON print a number alike: without an exponent, and with a point.
fn is_positional(number: f64) -> bool {
    number == 0.0 || (1e-4..1e16).contains(&number.abs())
}

/// `round(number, 2)`: to the nearest, and of two equally near ones to the even.
pub(super) fn round(number: f64) -> f64 {
    let hundredths = number * 100.0;
    let nearest = hundredths.round();
    // What the product is off by is far below a thousandth then.
    if nearest.abs() < 1e9 && (hundredths - nearest).abs() < 0.499 {
        return nearest / 100.0;
    }
    if !number.is_finite() {
        return number;
    }
    format!("{number:.2}").parse().unwrap_or(number)
}

/// How `json.dumps` writes.
struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if is_positional(value) {
            CompactFormatter.write_f64(writer, value)
        } else {
            writer.write_all(float(value).as_bytes())
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
        if fragment.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut plain = fragment;
        while let Some(at) = plain.find(|char| !matches!(char, ' '..='~')) {
            let (before, rest) = plain.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut chars = rest.chars();
            let mut units = [0; 2];
            for unit in chars.next().unwrap_or_default().encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain = chars.as_str();
        }
        writer.write_all(plain.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04x}"),
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // What CPython 3.12 prints.
    #[test]
    fn floats_print_as_in_python() {
        for (number, printed) in [
            (98.0, "98.0"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e16, "1e+16"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float(number), printed);
        }
    }

    #[test]
    fn rounding_is_to_even_on_the_binary_value() {
        for (number, rounded) in [
            (2.675, 2.67),
            (1.125, 1.12),
            (1.135, 1.14),
            (0.375, 0.38),
            (-1.125, -1.12),
            (0.005, 0.01),
            (1.005, 1.0),
            (33.329_999_999, 33.33),
            (12_345_678.915, 12_345_678.91),
            (1e300, 1e300),
        ] {
            assert_eq!(round(number), rounded, "{number}");
        }
    }

    #[test]
    fn json_is_written_as_by_dumps() {
        let value = json!({ "b": [1, 2.0, null, true], "a": "é😀\u{7f}\u{1}\n\"\\/", "c": {}, "d": [] });
        assert_eq!(
            dumps(&value),
            r#"{"b": [1, 2.0, null, true], "a": "\u00e9\ud83d\ude00\u007f\u0001\n\"\\/", "c": {}, "d": []}"#
        );
        assert!(dumps_sorted(&value).starts_with(r#"{"a": "\u00e9"#));
    }

    #[test]
    fn values_are_equal_as_in_python() {
        for (a, b, are_equal) in [
            (json!(1), json!(1.0), true),
            (json!(1), json!(true), true),
            (json!(0.0), json!(false), true),
            (json!(2), json!(true), false),
            (json!("1"), json!(1), false),
            (json!(null), json!(0), false),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": true}), true),
            (json!({"a": 1}), json!({"a": 1, "b": null}), false),
            (json!([1, 2]), json!([2, 1]), false),
        ] {
            assert_eq!(equal(&a, &b), are_equal, "{a} {b}");
            assert_eq!(equal(&b, &a), are_equal, "{b} {a}");
        }
    }

    #[test]
    fn values_print_as_by_str() {
        for (value, printed) in [
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(2.0), "2.0"),
            (json!("it's"), "it's"),
            (json!(["it's", 'a', {"k": 1}]), r#"["it's", 'a', {'k': 1}]"#),
        ] {
            assert_eq!(text(&value), printed);
        }
    }
}
