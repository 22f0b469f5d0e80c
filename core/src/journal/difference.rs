//! What is written in a line against what follows from the lines above it.

use serde::Serialize;
use serde_json::Value;

use crate::study;

/// The first difference between a recorded and a computed event, in words; `None` where they agree.
/// A number that was not finite, and was therefore written as null, agrees with every number.
pub(crate) fn difference<E: Serialize>(recorded: &E, computed: &E) -> Option<String> {
    let value = |event: &E| serde_json::to_value(event).unwrap_or(Value::Null);
    let (mut recorded, computed) = (value(recorded), value(computed));
    fill(&mut recorded, &computed);
    let difference = study::differences(&recorded, &computed, 1).into_iter().next()?;
    let (place, values) = difference.split_once(": ").unwrap_or(("", &difference));
    let (then, now) = values.split_once(" → ").unwrap_or((values, ""));
    let [place, then, now] = [place, then, now].map(shortened);
    Some(format!("{place} is {then}, computed {now}"))
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

/// A text with candidates' ids as screens show them.
fn shortened(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut digits = String::new();
    for character in text.chars().chain(['\0']) {
        if character.is_ascii_hexdigit() {
            digits.push(character);
            continue;
        }
        short.push_str(if digits.len() == 64 { &digits[..8] } else { &digits });
        digits.clear();
        if character != '\0' {
            short.push(character);
        }
    }
    short
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
    }
}
