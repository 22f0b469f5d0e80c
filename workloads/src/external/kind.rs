//! The kind of workload of an agent of the user's own.

use capo_core::study::Table;
use schemars::Schema;
use serde_json::json;

use super::{ExternalSettings, build};
use crate::data::{DataSettings, declared_by};
use crate::kind::{Declared, Kind, Making, drawn_rows};
use crate::outside::{Party, Written};
use crate::settings::{merged, names, schema};

pub(crate) const KIND: Kind = Kind {
    files: &["data", "evaluate_data"],
    own_agent: true,
    about: |_| Some("external agent".to_owned()),
    outside,
    drawn: drawn_rows,
    ..Kind::new(
        "external",
        "HTTP endpoint",
        include_str!("beginning.toml"),
        || [names::<DataSettings>(), names::<ExternalSettings>()].concat(),
    )
};

pub(crate) const MAKING: Making = Making {
    declared,
    ..Making::by(build)
};

fn outside(settings: &Table) -> Vec<Written<'_>> {
    vec![Written {
        party: Party::Agent,
        key: "workload".to_owned(),
        settings,
    }]
}

/// What its metrics are does not depend on where the agent is.
fn declared(settings: &Table) -> Option<Declared> {
    let mut settings = settings.clone();
    settings.insert("endpoint".to_owned(), json!("http://localhost"));
    declared_by(build, &settings, &["endpoint", "metric"])
}

pub(crate) fn settings_schema() -> Schema {
    merged(&[schema::<DataSettings>(), schema::<ExternalSettings>()])
}
