//! What the details of a rollout of the tau2 benchmark say: what its reward is made of, what it changed in the
//! records of both sides, and what the user did beside talking. Other details say none of it.

use capo_core::llm::Message;
use leptos::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::facts::{Fact, facts_table};
use crate::format::{NOTHING, count};

/// The parts of a reward: as the benchmark calls them, as they are called here, and where their checks stand.
const PARTS: [(&str, &str, &str); 5] = [
    ("DB", "Records", "db"),
    ("ENV_ASSERTION", "Assertions", "assertions"),
    ("ACTION", "Reference calls", "actions"),
    ("COMMUNICATE", "Texts to say", "communicate"),
    ("NL_ASSERTION", "Judged", "natural"),
];

/// The conversation as the user saw it, with the calls of its own tools; empty where it made none.
pub(super) fn seen_by_user(details: &Value) -> Vec<Message> {
    Vec::deserialize(&details["customer"]).unwrap_or_default()
}

/// What the reward is made of, and what was changed.
pub(super) fn account(details: &Value) -> AnyView {
    let reward = details["reward"]
        .is_number()
        .then(|| facts_table("What the reward is made of", reward(details)));
    let changes = details["changes"]["made"].as_array();
    (
        reward,
        changes.map(|made| changes_view(made, &details["changes"])),
    )
        .into_any()
}

fn reward(details: &Value) -> Vec<Fact> {
    let ended = match details["termination_reason"].as_str() {
        Some("user_stop") => "the user ended the conversation",
        Some("max_steps") => "cut off after the most steps",
        Some("too_many_errors") => "cut off after too many failed calls",
        _ => "",
    };
    let mut facts = vec![Fact {
        name: "Reward".to_owned(),
        value: details["reward"].as_f64().unwrap_or_default().to_string(),
        note: ended.to_owned(),
    }];
    facts.extend(PARTS.iter().filter_map(|part| part_of(details, *part)));
    facts
}

/// A part that counts or was checked.
fn part_of(details: &Value, (key, name, checks): (&str, &str, &str)) -> Option<Fact> {
    let value = details["reward_breakdown"][key].as_f64();
    let checks = details["checks"][checks]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if value.is_none() && checks.is_empty() {
        return None;
    }
    let is_met = |check: &&Value| check[1] == true || check["met"] == true;
    let mut notes = Vec::new();
    if !checks.is_empty() {
        let met = checks.iter().filter(is_met).count();
        notes.push(format!("{met} of {}", checks.len()));
    }
    if value.is_none() {
        notes.push("does not count".to_owned());
    }
    let value = match value {
        None => NOTHING,
        Some(1.0) => "met",
        Some(_) => "not met",
    };
    Some(Fact {
        name: name.to_owned(),
        value: value.to_owned(),
        note: notes.join(", "),
    })
}

fn changes_view(made: &[Value], changes: &Value) -> AnyView {
    if made.is_empty() {
        return view! { <p class="note">"No state was changed."</p> }.into_any();
    }
    let of = |side: &str| {
        let made = made.iter().filter(|change| change["side"] == side);
        made.map(Change::of).collect::<Vec<_>>()
    };
    let sides = [("agent", of("assistant")), ("user", of("user"))];
    let counted = sides
        .iter()
        .filter(|(_, changes)| !changes.is_empty())
        .map(|(side, changes)| format!("{} on the {side}’s side", count(changes.len() as u64)));
    let mut counted = counted.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = changes["left_out"].as_u64() {
        counted = format!("{counted}, {} more not recorded", count(more));
    }
    let lists = sides
        .into_iter()
        .filter(|(_, changes)| !changes.is_empty())
        .map(|(side, changes)| {
            view! {
                <h3>{format!("On the {side}’s side")}</h3>
                <dl>{changes.into_iter().map(Change::view).collect_view()}</dl>
            }
        })
        .collect_view();
    view! {
        <details class="fold changes" open>
            <summary>{format!("State changes: {counted}")}</summary>
            {lists}
        </details>
    }
    .into_any()
}

/// A value that was changed; none where there was or is nothing.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl Change {
    fn of(change: &Value) -> Self {
        // What is empty is seen by its quotes.
        let text = |value: &Value| match value.as_str() {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => value.to_string(),
        };
        Self {
            path: text(&change["path"]),
            before: change.get("before").map(text),
            after: change.get("after").map(text),
        }
    }

    fn view(self) -> AnyView {
        let del = |text: String| view! { <span class="sr">"was "</span><del>{text}</del> };
        let became = match (self.before, self.after) {
            (Some(before), Some(after)) => view! {
                {del(before)}
                <span aria-hidden="true">" → "</span>
                <span class="sr">"is "</span>
                <ins>{after}</ins>
            }
            .into_any(),
            (None, after) => view! { "added " {after} }.into_any(),
            (Some(before), None) => view! { {del(before)} " removed" }.into_any(),
        };
        view! {
            <div>
                <dt>{self.path}</dt>
                <dd>{became}</dd>
            </div>
        }
        .into_any()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reward_is_told_part_by_part() {
        let details = json!({
            "termination_reason": "user_stop",
            "reward": 0.0,
            "reward_breakdown": { "DB": 0.0, "NL_ASSERTION": 1.0 },
            "checks": {
                "db": false,
                "assertions": [],
                "actions": [["0", true], ["1", false]],
                "communicate": [],
                "natural": [{ "assertion": "It is kind.", "met": true, "reason": "seen" }],
            },
        });
        let told: Vec<String> = reward(&details)
            .into_iter()
            .map(|Fact { name, value, note }| format!("{name}: {value}; {note}"))
            .collect();
        assert_eq!(
            told,
            [
                "Reward: 0; the user ended the conversation",
                "Records: not met; ",
                "Reference calls: –; 1 of 2, does not count",
                "Judged: met; 1 of 1",
            ]
        );
        let cut = json!({ "termination_reason": "max_steps", "reward": 0.0, "reward_breakdown": null, "checks": null });
        assert_eq!(reward(&cut).len(), 1);
    }

    #[test]
    fn values_are_shown_as_they_are_and_empty_ones_in_quotes() {
        let text = |value: Value| Change::of(&json!({ "path": "a", "before": value })).before;
        assert_eq!(text(json!("Paid")).unwrap(), "Paid");
        assert_eq!(text(json!("")).unwrap(), "\"\"");
        assert_eq!(text(json!({ "a": [1, null] })).unwrap(), "{\"a\":[1,null]}");
        assert_eq!(Change::of(&json!({ "path": "a", "before": null })).after, None);
    }

    #[test]
    fn details_of_others_say_nothing_of_a_user() {
        assert!(seen_by_user(&Value::Null).is_empty());
        assert!(seen_by_user(&json!({ "customer": { "email": "a@example.com" } })).is_empty());
    }
}
