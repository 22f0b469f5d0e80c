//! The help desk of the simulated world as a kind of workload.

use std::rc::Rc;

use capo_world::desk::{Desk, DeskSettings};
use schemars::Schema;

use crate::files::Files;
use crate::kind::{Kind, Making};
use crate::settings::{BuildError, Settings, Workloads, names, schema};

pub(crate) const KIND: Kind = Kind {
    summary: "A bicycle shop’s customers want orders, returns, exchanges and repairs; the agent talks to them and \
              acts through tools. Every task knows the right outcome.",
    failed: Some("{\"error\":"),
    // A dialogue ends with the person who takes over.
    at_most_once: &[("human_requests", "calls per dialogue")],
    ..Kind::new(
        "desk",
        "Help desk",
        include_str!("../../studies/help-desk.toml"),
        || names::<DeskSettings>().to_vec(),
    )
};

pub(crate) const MAKING: Making = Making::by(build);

pub(crate) fn settings_schema() -> Schema {
    schema::<DeskSettings>()
}

fn build(mut settings: Settings, _: &dyn Files, _: u64) -> Result<Workloads, BuildError> {
    let own: DeskSettings = settings.take()?;
    settings.finish()?;
    let desk = Desk::new(own).map_err(|error| BuildError::Kind(error.to_string()))?;
    Ok(vec![Rc::new(desk)])
}
