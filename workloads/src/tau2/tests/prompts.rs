//! The texts that frame a candidate prompt and play the user.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::super::airline::Airline;
use super::super::folder::Domain;
use super::super::prompts;
use super::super::retail::Retail;
use super::super::settings::Policy;
use super::super::telecom::Telecom;
use super::{from_folder, tasks};
use crate::shared;

fn recorded() -> Option<Value> {
    Some(serde_json::from_str(&shared::text("tau2/parity/prompts.json")?).unwrap())
}

/// Whether a text is the recorded one, by its length in characters and its hash.
fn assert_is(text: &str, recorded: &Value, prefix: &str, what: &str) {
    let field = |name: &str| &recorded[format!("{prefix}{name}")];
    assert_eq!(
        Some(text.chars().count() as u64),
        field("chars").as_u64(),
        "{what}"
    );
    let hash = capo_core::ids::hex(&Sha256::digest(text));
    assert_eq!(Some(hash.as_str()), field("sha256").as_str(), "{what}");
}

fn prompts_agree<W: Domain>() {
    let Some(recorded) = recorded() else { return };
    let frame = recorded["default_agent_system_prompt_frame"].as_str().unwrap();
    let instructions = frame
        .split_once("<instructions>\n")
        .and_then(|(_, rest)| rest.split_once("\n</instructions>"))
        .map(|(instructions, _)| instructions)
        .unwrap();
    let recorded = &recorded[W::NAME];
    let policy = |policy| from_folder::<W, _>(|folder| W::policy(folder, policy)).unwrap();
    let manual = policy(Policy::Manual).unwrap();
    assert_is(&manual, recorded, "policy_", W::NAME);
    assert_is(
        &prompts::agent(instructions, &manual),
        recorded,
        "agent_system_prompt_",
        W::NAME,
    );
    match (policy(Policy::Workflow), recorded.get("workflow_policy")) {
        (Ok(text), Some(recorded)) => assert_is(&text, recorded, "", "workflow"),
        (text, recorded) => assert!(text.is_err() && recorded.is_none()),
    }
    let has_tools = !W::user_tools().is_empty();
    let guidelines = from_folder::<W, _>(|folder| folder.guidelines(has_tools))
        .unwrap()
        .unwrap();
    let tasks = tasks::<W>().unwrap();
    let users: &Map<String, Value> = recorded["user_system_prompt_base_tasks"].as_object().unwrap();
    for (id, hash) in users {
        assert_is(
            &prompts::user(&guidelines, &tasks[id].user_scenario),
            hash,
            "",
            id,
        );
    }
    println!("{}: {} prompts of users", W::NAME, users.len());
}

#[test]
fn tau2_parity_airline_prompts() {
    prompts_agree::<Airline>();
}

#[test]
fn tau2_parity_retail_prompts() {
    prompts_agree::<Retail>();
}

#[test]
fn tau2_parity_telecom_prompts() {
    prompts_agree::<Telecom>();
}

#[test]
fn tau2_parity_scenario_as_the_user_reads_it() {
    let Some(recorded) = recorded() else { return };
    let example = &recorded["example_user_scenario_str"];
    let tasks = tasks::<Telecom>().unwrap();
    let task = &tasks[example["task_id"].as_str().unwrap()];
    assert_eq!(
        Some(prompts::written(&task.user_scenario).as_str()),
        example["text"].as_str()
    );
}
