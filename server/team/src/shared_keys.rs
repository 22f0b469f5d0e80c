//! The shared keys of a project, as runs and the processes of trainings get them.

use capo_gateway::SharedKey;
use capo_hosted::SharedKeys;
use serde_json::json;

use crate::store::{Store, StoreError};

/// The variable by which the process of a training learns how it asks models.
pub(crate) const GATE: &str = "CAPO_GATE";

/// Those of a project, by its id.
///
/// # Errors
/// When the database fails.
pub(crate) async fn of_project(
    store: &Store,
    project: &str,
    origin: &str,
    pass: &str,
) -> Result<SharedKeys, StoreError> {
    let keys = store.keys().await?.into_iter().map(|kept| kept.key);
    Ok(SharedKeys {
        keys: keys.filter(|key| key.is_shared_with(project)).collect(),
        origin: origin.to_owned(),
        pass: pass.to_owned(),
    })
}

/// As a process reads them from the variable [`GATE`].
pub(crate) fn to_variable(keys: &SharedKeys) -> String {
    let records: Vec<_> = keys.keys.iter().map(SharedKey::record).collect();
    json!({ "keys": records, "origin": keys.origin, "pass": keys.pass }).to_string()
}

/// What a server has put into the variable `CAPO_GATE`, if one has.
///
/// # Errors
/// When it does not read; what it holds is not told.
pub fn of_environment() -> Result<Option<SharedKeys>, String> {
    let Ok(text) = std::env::var(GATE) else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text);
    read.map(Some)
        .map_err(|_| format!("{GATE} is what a team server tells its own processes, and does not read"))
}
