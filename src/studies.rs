//! Studies as this page handles them: the built-in one, TOML in and out, links.

use capo_core::llm::Role;
use capo_core::methods;
use capo_core::study::{Format, Rounds, Study, StudyError};
use capo_models::prices::{Price, PriceTable};
use capo_models::providers::SIMULATED;
use capo_models::{ModelSpec, ProviderName, serving};
use serde_json::Value;

use crate::servers;

thread_local! {
    static LISTED: PriceTable = PriceTable::shipped();
}

/// The built-in study, the same file the command line runs.
const HELP_DESK: &str = include_str!("../studies/help-desk.toml");

/// Part of a simulated model's own seconds that it takes here, so that a person can watch.
pub const WATCHABLE: f64 = 0.03;

/// The help-desk study on simulated models, at a pace that can be watched.
///
/// # Errors
/// Never: a test reads it.
pub fn help_desk() -> Result<Study, StudyError> {
    let mut study = Study::parse(HELP_DESK, Format::Toml)?;
    for model in study
        .models
        .values_mut()
        .filter_map(serde_json::Value::as_object_mut)
    {
        model.insert("latency".into(), WATCHABLE.into());
        // The dollars that simulated models state would be nobody's.
        model.insert("price".into(), serde_json::json!({ "input": 0.0, "output": 0.0 }));
    }
    Ok(study)
}

/// One line about who answers, what is measured and the seed.
pub fn about(study: &Study) -> String {
    let text = |table: &serde_json::Map<String, serde_json::Value>, key: &str| {
        table
            .get(key)
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned)
    };
    let agent = study
        .models
        .get(&capo_core::llm::Role::Agent)
        .and_then(serde_json::Value::as_object)
        .and_then(|table| text(table, "model").or_else(|| text(table, "provider")));
    let kind = capo_workloads::of(&study.workload);
    let measured = kind.and_then(|kind| (kind.about)(&study.workload));
    let seed = Some(format!("seed {}", study.study.seed));
    let parts: Vec<String> = agent.into_iter().chain(measured).chain(seed).collect();
    parts.join(", ")
}

/// What tokens of the model that a table names cost, as far as that is known beforehand.
pub fn price(table: &Value) -> Option<Price> {
    let spec = ModelSpec::read(table).ok()?;
    let provider = spec.provider.get();
    let free = provider.in_process.then_some(Price::FREE);
    let listed =
        || LISTED.with(|listed| listed.get(provider.name, spec.model.as_deref().or(provider.model)?));
    spec.price.or_else(listed).or(free)
}

/// The model that a table names, if nobody can know what its calls cost: a budget of dollars would end with the
/// first of them.
pub fn unpriced(table: &Value) -> Option<String> {
    let provider = ProviderName::find(table["provider"].as_str()?)?.get();
    if provider.in_process || table.get("price").is_some() {
        return None;
    }
    let model = table["model"].as_str().or(provider.model)?;
    let known = LISTED.with(|listed| capo_models::is_priced(provider, model, listed));
    (!known).then(|| model.to_owned())
}

/// The first model without a known price among those that every run of the study asks: of whoever does the
/// examples, and of those that its method asks. What else a rollout asks shows in what was spent.
pub fn first_unpriced(study: &Study) -> Option<String> {
    let mut asked = if has_own_agent(study) {
        Vec::new()
    } else {
        vec![Role::Agent]
    };
    if let Ok(method) = methods::build(&study.study.method, &study.method) {
        asked.extend(methods::asked(&*method, &study.study.rounds));
    }
    let mut tables = asked
        .into_iter()
        .filter_map(|role| Some(serving(role, &study.models)?.1));
    tables.find_map(unpriced)
}

/// Whether an agent of somebody's own does the examples.
pub fn has_own_agent(study: &Study) -> bool {
    capo_workloads::of(&study.workload).is_some_and(|kind| kind.own_agent)
}

/// Whether everybody who answers is simulated: every model, and no agent or scorer of somebody's own.
pub fn is_simulated(study: &Study) -> bool {
    let simulated = |model: &serde_json::Value| model.get("provider").is_some_and(|name| name == SIMULATED);
    !capo_workloads::asks_outside(&study.workload)
        && study.asked_models().next().is_some()
        && study.asked_models().all(simulated)
}

/// Those of `asked` whom a role's own model serves that is simulated, where simulated models do not know what is asked.
pub fn simulated_beyond_their_world(study: &Study, role: Role, asked: &[Role]) -> Vec<Role> {
    let is_beyond =
        capo_workloads::of(&study.workload).is_some_and(|kind| kind.takes_rows() || !kind.simulated);
    let serves = |other: &&Role| {
        serving(**other, &study.models)
            .is_some_and(|(of, table)| of == role && table["provider"] == SIMULATED)
    };
    asked
        .iter()
        .filter(|_| is_beyond)
        .filter(serves)
        .copied()
        .collect()
}

/// Whether a run of the study stands still without a network: one of its servers is elsewhere.
pub fn needs_network(study: &Study) -> bool {
    servers::of_study(study)
        .iter()
        .any(|server| !servers::is_here(server))
}

/// A method's name as people write it.
pub fn method_name(method: &str) -> String {
    let known = methods::ALL.iter().find(|entry| entry.name == method);
    known.map_or(method, |entry| entry.title).to_owned()
}

/// Rounds the search is to go through; `None` until the budget is spent.
pub fn rounds(study: &Study) -> Option<u32> {
    match study.study.rounds {
        Rounds::Count(rounds) => Some(rounds),
        Rounds::Open(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_study_is_one() {
        let study = help_desk().unwrap();
        assert!(is_simulated(&study));
        assert_eq!(about(&study), "sim-medium, seed 0");
    }

    #[test]
    fn who_answers_decides_what_is_simulated_and_what_needs_a_network() {
        let simulated = help_desk().unwrap();
        assert!(!needs_network(&simulated));
        let behind = |endpoint: &str| {
            let mut study = simulated.clone();
            study.workload.insert("kind".into(), "external".into());
            study.workload.insert("endpoint".into(), endpoint.into());
            study
        };
        assert!(!is_simulated(&behind("https://agent.example")));
        assert!(needs_network(&behind("https://agent.example")));
        assert!(!needs_network(&behind("http://127.0.0.1:9000/run")));
        let with = |model: serde_json::Value| {
            let mut study = simulated.clone();
            study.models.insert(capo_core::llm::Role::Agent, model);
            study
        };
        let local = with(serde_json::json!({ "provider": "ollama", "model": "m" }));
        assert!(!needs_network(&local) && !is_simulated(&local));
        assert!(needs_network(&with(
            serde_json::json!({ "provider": "openai", "model": "m" })
        )));
    }

    #[test]
    fn a_study_written_here_reads_the_same() {
        let study = help_desk().unwrap();
        let again = Study::parse(&study.to_toml().unwrap(), Format::Toml).unwrap();
        assert_eq!(again, study);
    }
}
