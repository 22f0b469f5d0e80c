//! The kind of workload of the tau2 benchmark, and what the details of its rollouts say.

use capo_core::llm::{Message, Role};
use schemars::Schema;
use serde::Deserialize as _;
use serde_json::Value;

use super::environment::FAILED;
use super::settings::{KIND as NAME, Tau2Settings};
use super::{build, metrics, texts_to_embed};
use crate::kind::{Change, Changes, Declared, Fact, Kind, Making, Side, TraceView, reseeded};
use crate::settings::{names, schema};

pub(crate) const KIND: Kind = Kind {
    files: &["tool_descriptions", "embeddings"],
    // They know the help desk and questions, not the benchmark's domains.
    simulated: false,
    shares_files: true,
    about: |settings| {
        let domain = settings.get("domain").and_then(Value::as_str);
        Some(format!("tau2 {}", domain.unwrap_or_default()))
    },
    failed: Some(FAILED),
    shown_as_share: &[("human_requests", "calls per dialogue")],
    former_words: &[("split", "paper", "drawn")],
    drawn: |settings, number| {
        let split = settings.get("split").and_then(Value::as_str);
        let is_drawn = split.is_some_and(|split| split != "benchmark");
        is_drawn.then(|| reseeded(settings, number))
    },
    view,
    ..Kind::new(NAME, "tau2 benchmark", include_str!("beginning.toml"), || {
        names::<Tau2Settings>().to_vec()
    })
};

pub(crate) const MAKING: Making = Making {
    declared: |_| {
        Some(Declared {
            metrics: metrics(),
            roles: vec![Role::Agent, Role::User],
        })
    },
    texts_to_embed: Some(texts_to_embed),
    ..Making::by(build)
};

pub(crate) fn settings_schema() -> Schema {
    schema::<Tau2Settings>()
}

/// The parts of a reward: as the benchmark calls them, as they are called here, and where their checks stand.
const PARTS: [(&str, &str, &str); 5] = [
    ("DB", "Records", "db"),
    ("ENV_ASSERTION", "Assertions", "assertions"),
    ("ACTION", "Reference calls", "actions"),
    ("COMMUNICATE", "Texts to say", "communicate"),
    ("NL_ASSERTION", "Judged", "natural"),
];

/// What the reward is made of, what was changed, and the conversation as the user saw it.
fn view(details: &Value) -> TraceView {
    let changes = &details["changes"];
    TraceView {
        facts: reward(details),
        changes: changes["made"].as_array().map(|made| Changes {
            made: made.iter().map(change).collect(),
            left_out: changes["left_out"].as_u64().unwrap_or_default(),
        }),
        user: Vec::<Message>::deserialize(&details["customer"]).unwrap_or_default(),
    }
}

fn reward(details: &Value) -> Vec<Fact> {
    let Some(reward) = details["reward"].as_f64() else {
        return Vec::new();
    };
    let ended = match details["termination_reason"].as_str() {
        Some("user_stop") => "the user ended the conversation",
        Some("max_steps") => "cut off after the most steps",
        Some("too_many_errors") => "cut off after too many failed calls",
        _ => "",
    };
    let whole = Fact {
        name: "Reward".to_owned(),
        value: Some(reward.to_string()),
        note: ended.to_owned(),
    };
    let parts = PARTS.iter().filter_map(|part| part_of(details, *part));
    std::iter::once(whole).chain(parts).collect()
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
    let met = |value| if value == 1.0 { "met" } else { "not met" };
    Some(Fact {
        name: name.to_owned(),
        value: value.map(|value| met(value).to_owned()),
        note: notes.join(", "),
    })
}

fn change(change: &Value) -> Change {
    // What is empty is seen by its quotes.
    let text = |value: &Value| match value.as_str() {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => value.to_string(),
    };
    Change {
        side: match change["side"].as_str() {
            Some("user") => Side::User,
            _ => Side::Agent,
        },
        path: text(&change["path"]),
        before: change.get("before").map(text),
        after: change.get("after").map(text),
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
            .map(|Fact { name, value, note }| format!("{name}: {}; {note}", value.unwrap_or("–".to_owned())))
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
        let text = |value: Value| change(&json!({ "path": "a", "before": value })).before;
        assert_eq!(text(json!("Paid")).unwrap(), "Paid");
        assert_eq!(text(json!("")).unwrap(), "\"\"");
        assert_eq!(text(json!({ "a": [1, null] })).unwrap(), "{\"a\":[1,null]}");
        assert_eq!(change(&json!({ "path": "a", "before": null })).after, None);
    }

    #[test]
    fn details_of_others_say_nothing() {
        assert_eq!(view(&Value::Null), TraceView::default());
        let others = json!({ "customer": { "email": "a@example.com" } });
        assert_eq!(view(&others), TraceView::default());
    }
}
