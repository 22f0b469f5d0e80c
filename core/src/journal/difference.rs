//! Differences: what is written in a line against what follows from the lines above it.

use serde::Serialize;
use serde_json::Value;

use crate::study;

/// The first difference between a recorded and a computed event, in words; `None` where they agree.
/// A number that was not finite, and was therefore written as null, agrees with every number.
pub(crate) fn difference<E: Serialize>(recorded: &E, computed: &E) -> Option<String> {
    let value = |event: &E| serde_json::to_value(event).unwrap_or(Value::Null);
    let (mut recorded, mut computed) = (value(recorded), value(computed));
    fill(&mut recorded, &computed);
    if recorded == computed {
        return None;
    }
    // Long lists are cut at their end where they are shown, and so would long ids be.
    let mut shown = [recorded.clone(), computed.clone()];
    shown.iter_mut().for_each(shorten);
    if shown[0] != shown[1] {
        [recorded, computed] = shown;
    }
    align(&mut recorded, &mut computed);
    let difference = study::differences(&recorded, &computed, 1).into_iter().next()?;
    let (place, values) = difference.split_once(": ").unwrap_or(("", &difference));
    let (then, now) = values.split_once(" → ").unwrap_or((values, ""));
    Some(format!("{place} is {then}, computed {now}"))
}

/// Gives lists the same length, so that the first place at which they differ is told, not the whole of them.
fn align(recorded: &mut Value, computed: &mut Value) {
    match (recorded, computed) {
        (Value::Array(recorded), Value::Array(computed)) => {
            let length = recorded.len().max(computed.len());
            recorded.resize(length, Value::Null);
            computed.resize(length, Value::Null);
            recorded
                .iter_mut()
                .zip(computed)
                .for_each(|(recorded, computed)| align(recorded, computed));
        }
        (Value::Object(recorded), Value::Object(computed)) => {
            for (key, recorded) in recorded {
                if let Some(computed) = computed.get_mut(key) {
                    align(recorded, computed);
                }
            }
        }
        _ => {}
    }
}

/// Writes candidates' ids as screens show them.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = shortened(text),
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => {
            let pairs = std::mem::take(fields).into_iter();
            *fields = pairs
                .map(|(key, mut value)| {
                    shorten(&mut value);
                    (shortened(&key), value)
                })
                .collect();
        }
        _ => {}
    }
}

/// Puts computed numbers where the recorded ones are null.
fn fill(recorded: &mut Value, computed: &Value) {
    match (recorded, computed) {
        (recorded @ Value::Null, Value::Number(_)) => *recorded = computed.clone(),
        (Value::Object(recorded), Value::Object(computed)) => {
            // An unknown price is null as well.
            for (key, value) in recorded.iter_mut().filter(|(key, _)| *key != "usd") {
                if let Some(computed) = computed.get(key) {
                    fill(value, computed);
                }
            }
        }
        _ => {}
    }
}

/// A candidate's id as screens show it; any other text as it is.
fn shortened(text: &str) -> String {
    let is_id = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text[..if is_id { 8 } else { text.len() }].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::difference;

    #[test]
    fn a_difference_names_the_place_and_both_values() {
        let id = "a".repeat(64);
        let then = json!({ "scores": { id.clone(): { "objective": 0.5, "lagrangian": null } } });
        let mut now = json!({ "scores": { id.clone(): { "objective": 0.5, "lagrangian": 0.25 } } });
        assert_eq!(difference(&then, &now), None);
        now["scores"][&id]["objective"] = json!(0.75);
        let told = difference(&then, &now).unwrap();
        assert_eq!(told, "scores.aaaaaaaa.objective is 0.5, computed 0.75");
        let ids = |digits: &str| -> Vec<String> {
            digits.chars().map(|digit| digit.to_string().repeat(64)).collect()
        };
        let pools = |then: &str, now: &str| {
            let (then, now) = (json!({ "best": ids(then) }), json!({ "best": ids(now) }));
            difference(&then, &now).unwrap()
        };
        assert_eq!(
            pools("ab", "ac"),
            "best[1] is \"bbbbbbbb\", computed \"cccccccc\""
        );
        assert_eq!(pools("ab", "a"), "best[1] is \"bbbbbbbb\", computed (absent)");
    }
}
