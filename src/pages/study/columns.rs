//! Uses of a table's columns.

use capo_core::study::Study;
use capo_workloads::data::template;
use serde_json::Value;

use super::place::Place;

/// What a column can be used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Unused,
    /// Part of the message.
    Message,
    /// What answers are compared with.
    Expected,
    /// The example's id.
    Name,
}

impl Use {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Unused, Self::Message, Self::Expected, Self::Name];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unused => "Not used",
            Self::Message => "Message",
            Self::Expected => "Expected answer",
            Self::Name => "Example id",
        }
    }

    /// What a study uses a column as.
    pub(super) fn of(column: &str, study: &Study) -> Self {
        let template = template(column).unwrap_or_default();
        let names = |text: &str| !template.is_empty() && text.contains(&template);
        if Place::Workload.text(study, "id") == column {
            Self::Name
        } else if names(&Place::Workload.text(study, "user")) {
            Self::Message
        } else if expecting(study).any(|metric| names(metric["expected"].as_str().unwrap_or_default())) {
            Self::Expected
        } else {
            Self::Unused
        }
    }

    /// Uses a column as this.
    pub(super) fn put(self, column: &str, study: &mut Study) {
        let before = Self::of(column, study);
        if before == self {
            return;
        }
        let template = template(column).unwrap_or_default();
        before.clear(&template, study);
        match self {
            Self::Unused => {}
            Self::Message => Place::Workload.set(study, "user", Some(template.into())),
            Self::Expected => expect(study, &template),
            Self::Name => Place::Workload.set(study, "id", Some(column.into())),
        }
    }

    fn clear(self, template: &str, study: &mut Study) {
        match self {
            Self::Unused => {}
            Self::Message => {
                let without = Place::Workload.text(study, "user").replace(template, "");
                Place::Workload.set(study, "user", Some(without.trim().into()));
            }
            Self::Expected => expect(study, ""),
            Self::Name => Place::Workload.set(study, "id", None),
        }
    }
}

/// The metrics that compare with what is expected.
fn expecting(study: &Study) -> impl Iterator<Item = &Value> {
    let metrics = study.workload.get("metric").and_then(Value::as_array);
    metrics
        .into_iter()
        .flatten()
        .filter(|metric| metric.get("expected").is_some())
}

/// Sets what every metric that compares with something expects.
fn expect(study: &mut Study, template: &str) {
    let metrics = study.workload.get_mut("metric").and_then(Value::as_array_mut);
    let metrics = metrics.into_iter().flatten().filter_map(Value::as_object_mut);
    for metric in metrics.filter(|metric| metric.contains_key("expected")) {
        metric.insert("expected".into(), template.into());
    }
}
