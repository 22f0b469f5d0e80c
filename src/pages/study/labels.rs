//! Labels of a study's keys where the form shows them.

use capo_core::methods;
use capo_workloads::{KINDS, Kind};

use super::models::{ROLES, role_name};
use super::place::Place;
use super::prices;
use crate::format;
use crate::schemas;

/// What the field of a key is called. A constraint's is `constraint.METRIC`.
pub(super) fn label(key: &str) -> String {
    let known = match key {
        "study.repeats" => "Repeats per example",
        "study.batch" => "Examples per round",
        "study.batch_growth" => "Growth of the examples per round",
        "prompt.text" => "System prompt",
        "workload.data" => "Data",
        "workload.evaluate_data" => "Held-out data",
        "workload.user" => "Message about each example",
        "workload.optimize" => "Examples to search on",
        "workload.evaluate" => "Held out",
        "confirm.examples" => "Held-out examples kept for it",
        "confirm.confidence" => "Confidence",
        "workload.exclude" => "Examples to leave out",
        "workload.endpoint" => "Address",
        "workload.description" => "What the agent does",
        _ => return of_a_kind(key),
    };
    known.to_owned()
}

/// What keys are called of which there may be several.
fn of_a_kind(key: &str) -> String {
    if let Some(constraint) = key.strip_prefix("constraint.") {
        return match constraint.rsplit_once('.') {
            Some((metric, of)) => format!("{} of {}", format::setting(of), format::phrase(metric)),
            None => format!("Threshold for {}", format::phrase(constraint)),
        };
    }
    if let Some(metric) = key.strip_prefix("confirm.bounds.") {
        return format!("Largest value of {}", format::phrase(metric));
    }
    let name = key.rsplit('.').next().unwrap_or_default();
    if key.starts_with("workload.metric[") {
        return Place::Metric(0).label(name);
    }
    let Some((role, of_role)) = model(key) else {
        return format::setting(name);
    };
    match of_role {
        "" => role.to_owned(),
        price if price.starts_with("price.") => prices::name(name).to_owned(),
        _ => format::setting(name),
    }
}

/// The role of a model's key, and the key within its table.
fn model(key: &str) -> Option<(&'static str, &str)> {
    let rest = key.strip_prefix("models.")?;
    let (role, key) = rest.split_once('.').unwrap_or((rest, ""));
    let role = ROLES.into_iter().find(|known| known.name() == role)?;
    Some((role_name(role), key))
}

/// What a key is called within a sentence, with whose it is.
pub(super) fn placed(key: &str) -> String {
    let name = begun_small(&label(key));
    match model(key) {
        Some((_, "")) => format!("all of the {name}"),
        Some((role, _)) => format!("{name} of the {}", role.to_lowercase()),
        None => name,
    }
}

fn begun_small(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Whether a word is the key of a setting, and not a name that somebody gave.
pub(super) fn is_setting(word: &str) -> bool {
    const OF_STUDIES: [&str; 3] = ["relative_to_seed", "from_round", "max_characters"];
    let has = |schema: &serde_json::Value| !schema["properties"][word].is_null();
    let of_workload = |kind: &Kind| {
        let schema = schemas::workload(kind.name);
        let metrics = &schema["properties"]["metric"]["items"]["oneOf"];
        has(schema) || metrics.as_array().into_iter().flatten().any(has)
    };
    OF_STUDIES.contains(&word)
        || has(schemas::model())
        || methods::ALL
            .iter()
            .any(|method| has(schemas::method(method.name)))
        || KINDS.iter().any(of_workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_called_as_their_fields_are() {
        for (key, called) in [
            ("workload.exclude", "Examples to leave out"),
            ("workload.metric[2].best", "Best grade"),
            ("method.best", "Leading candidates"),
            ("constraint.human_requests", "Threshold for human requests"),
            ("constraint.human_requests.scale", "Scale of human requests"),
            ("models.agent", "Task agent"),
            ("models.agent.price.output", "Tokens written"),
            ("models.agent.base_url", "Base URL"),
            ("budget.usd", "Dollars"),
            ("study.rounds", "Rounds"),
        ] {
            assert_eq!(label(key), called, "{key}");
        }
        assert_eq!(placed("models.agent.base_url"), "base URL of the task agent");
        assert_eq!(placed("workload.endpoint"), "address");
    }

    #[test]
    fn settings_are_told_from_names_that_somebody_gave() {
        for setting in ["base_url", "lambda_max", "evaluate_data", "ignore_case"] {
            assert!(is_setting(setting), "{setting}");
        }
        assert!(!is_setting("my_metric"));
    }
}
