//! Servers that a study calls, by origin: scheme, host and port, as browsers tell servers apart.

use capo_core::address::Address;
use capo_core::study::Study;
use capo_models::ProviderName;
use serde_json::Value;

/// The origin of an address, such as `https://api.openai.com`; none of what is no address of a server.
pub fn origin(address: &str) -> Option<String> {
    Address::parse(address).ok().map(|address| address.origin())
}

/// The origin that a model's table calls; none for a model in this process, or without an address.
pub fn of_model(table: &Value) -> Option<String> {
    let provider = ProviderName::find(table["provider"].as_str()?)?.get();
    if provider.in_process {
        return None;
    }
    origin(table["base_url"].as_str().or(provider.base_url)?)
}

/// Every origin that a run of the study may call, its workload's included.
pub fn of_study(study: &Study) -> Vec<String> {
    let of_workload = capo_workloads::endpoints(&study.workload);
    let of_workload = of_workload.into_iter().filter_map(origin);
    let mut servers: Vec<String> = study.asked_models().filter_map(of_model).collect();
    servers.extend(of_workload);
    servers.sort();
    servers.dedup();
    servers
}

/// Whether a server is on this very machine, so that it is reached without a network and nobody is on
/// the way to it.
pub fn is_here(origin: &str) -> bool {
    Address::parse(origin).is_ok_and(|address| address.is_here())
}

/// Whether somebody on the way to a server could read what is sent there.
pub fn is_unencrypted(origin: &str) -> bool {
    Address::parse(origin).is_ok_and(|address| address.is_unencrypted() && !address.is_here())
}

/// A server as people read it: its host, with the scheme where that matters.
pub fn shown(origin: &str) -> &str {
    if is_unencrypted(origin) {
        return origin;
    }
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use capo_core::llm::Role;
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_here_are_told_from_others() {
        assert!(is_here("http://localhost:1") && !is_here("http://192.168.0.2:8000"));
        assert!(is_unencrypted("http://192.168.0.2:8000") && !is_unencrypted("http://localhost:1"));
        assert_eq!(shown("https://api.openai.com"), "api.openai.com");
        assert_eq!(shown("http://localhost:8000"), "localhost:8000");
        assert_eq!(shown("http://api.openai.com"), "http://api.openai.com");
    }

    #[test]
    fn the_workload_is_called_too() {
        let mut study = crate::studies::help_desk().unwrap();
        assert!(of_study(&study).is_empty());
        let scorer = json!({ "type": "http", "name": "tone", "endpoint": "https://scorer.example/run" });
        study.workload.insert("kind".into(), "table".into());
        study.workload.insert("metric".into(), json!([scorer]));
        study
            .models
            .insert(Role::Judge, json!({ "provider": "openai", "model": "m" }));
        assert_eq!(
            of_study(&study),
            ["https://api.openai.com", "https://scorer.example"]
        );
    }
}
