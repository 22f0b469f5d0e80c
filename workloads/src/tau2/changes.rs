//! Changes that a conversation made in the records of both sides.

use serde::Serialize;
use serde_json::{Map, Value};

use super::python;
use super::side::Side;

/// Changes listed of one conversation; the others are counted.
const MOST: usize = 60;
/// Characters kept of a value.
const LONGEST: usize = 300;

/// What differs between two states of a world.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Changes {
    /// The first of them, in the order of the records.
    pub made: Vec<Change>,
    /// How many more there are.
    pub left_out: usize,
}

/// One value that is not what it was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// In whose records.
    pub side: Side,
    /// Where in them, such as `reservations.ZFA04Y.flights[0].date`.
    pub path: String,
    /// What it was; none where there was nothing. A long value is cut and then a text, whatever it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; none where there is nothing any more. Cut like the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl Changes {
    /// Compares a record, or nothing, with what became of it.
    pub(super) fn compare<T: Serialize>(
        &mut self,
        side: Side,
        path: &str,
        before: Option<&T>,
        after: Option<&T>,
    ) {
        let value = |record: &T| serde_json::to_value(record).expect("records are JSON");
        self.values(side, path, before.map(value).as_ref(), after.map(value).as_ref());
    }

    /// Goes down as far as both have the same shape, and into what is added or removed.
    fn values(&mut self, side: Side, path: &str, before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        // Where there is nothing, nothing of the same shape.
        let empty = match before.or(after) {
            Some(Value::Object(_)) => Value::Object(Map::new()),
            Some(Value::Array(_)) => Value::Array(Vec::new()),
            _ => Value::Null,
        };
        match (before.unwrap_or(&empty), after.unwrap_or(&empty)) {
            (Value::Object(old), Value::Object(new)) if old.len() + new.len() > 0 => {
                let added = new.keys().filter(|key| !old.contains_key(*key));
                for key in old.keys().chain(added) {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.values(side, &format!("{path}{dot}{key}"), old.get(key), new.get(key));
                }
            }
            // Entries come and go at the end; where others do, the rest would seem changed.
            (Value::Array(old), Value::Array(new)) if old.len() + new.len() > 0 && is_continued(old, new) => {
                for place in 0..old.len().max(new.len()) {
                    self.values(side, &format!("{path}[{place}]"), old.get(place), new.get(place));
                }
            }
            _ => self.push(side, path, before, after),
        }
    }

    fn push(&mut self, side: Side, path: &str, before: Option<&Value>, after: Option<&Value>) {
        if self.made.len() == MOST {
            self.left_out += 1;
            return;
        }
        self.made.push(Change {
            side,
            path: path.to_owned(),
            before: before.map(shortened),
            after: after.map(shortened),
        });
    }
}

/// Whether one list has the entries of the other at its beginning, or as many.
fn is_continued(old: &[Value], new: &[Value]) -> bool {
    old.len() == new.len() || new.starts_with(old) || old.starts_with(new)
}

fn shortened(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => python::dumps(other),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(before: &Value, after: &Value) -> Changes {
        let mut changes = Changes::default();
        changes.compare(Side::User, "device", Some(before), Some(after));
        changes
    }

    fn written(before: &Value, after: &Value) -> Vec<String> {
        let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "–".to_owned(), Value::to_string);
        let changes = changes(before, after);
        let line = |change: &Change| {
            format!(
                "{}: {} to {}",
                change.path,
                value(&change.before),
                value(&change.after)
            )
        };
        changes.made.iter().map(line).collect()
    }

    #[test]
    fn only_what_differs_is_listed_and_by_its_path() {
        assert_eq!(
            written(
                &json!({ "apn": { "name": "broken", "mms": null }, "on": true, "old": 1 }),
                &json!({ "apn": { "name": "internet", "mms": null }, "on": true, "new": null }),
            ),
            [
                r#"device.apn.name: "broken" to "internet""#,
                "device.old: 1 to –",
                "device.new: – to null",
            ]
        );
        assert_eq!(changes(&json!([1]), &json!([1])), Changes::default());
    }

    #[test]
    fn lists_gain_and_lose_entries_at_their_end_and_others_are_shown_whole() {
        assert_eq!(written(&json!([1]), &json!([1, 2])), ["device[1]: – to 2"]);
        assert_eq!(written(&json!([1, 2]), &json!([1])), ["device[1]: 2 to –"]);
        assert_eq!(written(&json!([1, 2]), &json!([1, 3])), ["device[1]: 2 to 3"]);
        assert_eq!(written(&json!([1, 2]), &json!([2])), ["device: [1,2] to [2]"]);
        assert_eq!(written(&json!([1]), &json!([2, 1])), ["device: [1] to [2,1]"]);
    }

    #[test]
    fn what_is_added_or_removed_is_listed_value_by_value() {
        let record = json!({ "R": { "flights": [{ "date": "May 1" }], "bags": [], "seat": null } });
        assert_eq!(
            written(&json!({}), &record),
            [
                r#"device.R.flights[0].date: – to "May 1""#,
                "device.R.bags: – to []",
                "device.R.seat: – to null",
            ]
        );
        assert_eq!(
            written(&record, &json!({ "R": {} })),
            [
                r#"device.R.flights[0].date: "May 1" to –"#,
                "device.R.bags: [] to –",
                "device.R.seat: null to –",
            ]
        );
    }

    #[test]
    fn a_trace_stays_small() {
        let changes = changes(&json!([]), &(0..100).map(|_| "ä".repeat(1000)).collect());
        assert_eq!((changes.made.len(), changes.left_out), (MOST, 100 - MOST));
        let after = changes.made[0].after.as_ref().unwrap().as_str().unwrap();
        assert_eq!(after.chars().count(), LONGEST + 1);
        assert!(after.ends_with('…'));
    }
}
