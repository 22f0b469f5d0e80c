//! The tools as the benchmark offers them to a model.

use serde_json::{Value, json};

use super::super::airline::Airline;
use super::super::environment::World;
use super::super::retail::Retail;
use super::super::telecom::Telecom;
use super::super::tool::Tool;
use super::super::tool_schemas::{Offered, without_words};
use crate::files::MemoryFiles;
use crate::shared;

fn side_agrees<W>(tools: &[Tool<W>], recorded: &Value) -> usize {
    let recorded = recorded.as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let recorded_names: Vec<&str> = recorded
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, recorded_names);
    for (tool, recorded) in tools.iter().zip(recorded) {
        assert_eq!(
            without_words(&tool.spec().parameters),
            without_words(&recorded["function"]["parameters"]),
            "{}",
            tool.name
        );
        assert_eq!(tool.kind.name(), recorded["tool_type"], "{}", tool.name);
        assert!(!tool.description.is_empty(), "{}", tool.name);
        assert_ne!(
            tool.description, recorded["function"]["description"],
            "{}",
            tool.name
        );
    }
    tools.len()
}

fn tools_agree<W: World>() {
    let Some(text) = shared::text(&format!("tau2/parity/{}.tools.json", W::NAME)) else {
        return;
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let agent = side_agrees(W::agent_tools(), &recorded["assistant"]);
    let user = side_agrees(W::user_tools(), &recorded["user"]);
    let described = Offered::described::<W>(text.as_bytes()).unwrap();
    for (tools, side) in [(&described.agent, "assistant"), (&described.user, "user")] {
        let sent: Vec<Value> = tools
            .iter()
            .map(|tool| serde_json::to_value(tool).unwrap())
            .collect();
        let recorded = recorded[side].as_array().into_iter().flatten();
        assert_eq!(
            sent,
            recorded.map(|tool| tool["function"].clone()).collect::<Vec<_>>()
        );
    }
    println!("{}: {agent} tools of the agent, {user} of the user", W::NAME);
}

#[test]
fn a_list_that_describes_no_tools_is_named_with_its_key() {
    let files = MemoryFiles::new().with("tools.json", "[]");
    let build = |path: &str| {
        let settings = json!({
            "kind": "tau2", "domain": "airline", "data": "data/tau2", "tool_descriptions": path,
        });
        let built = crate::build(settings.as_object().unwrap(), &files, 0);
        built.map(|_| ()).unwrap_err().to_string()
    };
    for (path, begins) in [
        ("tools.json", "workload.tool_descriptions: in tools.json, "),
        ("other.json", "workload.tool_descriptions: no file `other.json`"),
    ] {
        let error = build(path);
        assert!(error.starts_with(begins), "{error}");
    }
}

#[test]
fn tau2_parity_airline_tools() {
    tools_agree::<Airline>();
}

#[test]
fn tau2_parity_retail_tools() {
    tools_agree::<Retail>();
}

#[test]
fn tau2_parity_telecom_tools() {
    tools_agree::<Telecom>();
}
