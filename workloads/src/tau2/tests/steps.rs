//! Recordings of the benchmark's own environment, step by step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::airline::Airline;
use super::super::changes::Changes;
use super::super::environment::{FAILED, Side, World, call};
use super::super::retail::Retail;
use super::super::telecom::Telecom;
use super::{fresh, recordings};

/// A recording of either kind, as far as both have it.
#[derive(Deserialize)]
struct Recording {
    kind: String,
    #[serde(default)]
    task_id: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    initialization_actions: Option<Vec<Action>>,
    #[serde(default)]
    env_assertions_after_live_replay: Option<Vec<Action>>,
    #[serde(default)]
    h0: Option<Hashes>,
    #[serde(default)]
    steps: Vec<Step>,
}

/// A setting before the conversation, or an assertion after it.
#[derive(Deserialize)]
struct Action {
    env_type: Side,
    func_name: String,
    arguments: Map<String, Value>,
    #[serde(default)]
    assert_value: bool,
    #[serde(default)]
    met: bool,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Hashes {
    agent: String,
    #[serde(default)]
    user: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    requestor: Side,
    name: String,
    arguments: Map<String, Value>,
    content: String,
    error: bool,
    h: Hashes,
    /// The class of the exception.
    #[serde(default)]
    exc: Option<String>,
}

impl Step {
    /// Whether the words of the result are part of the contract.
    fn says_the_same(&self) -> bool {
        !self.error || self.exc.as_deref() == Some("ValueError")
    }
}

fn hashes(world: &impl World) -> Hashes {
    Hashes {
        agent: world.agent_hash(),
        user: world.user_hash(),
    }
}

/// Calls every step of the gold and fuzz recordings and compares result and state after each.
fn steps_agree<W: World>(fresh: &W) {
    let Some(recordings) = recordings::<Recording>(W::NAME) else {
        return;
    };
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut different = Vec::new();
    let fresh_hashes = Some(hashes(fresh));
    for recording in recordings.iter().filter(|recording| recording.kind != "eval") {
        let name = if recording.id.is_null() {
            &recording.task_id
        } else {
            &recording.id
        };
        let mut world = fresh.clone();
        for action in recording.initialization_actions.iter().flatten() {
            let done = world.act(action.env_type, &action.func_name, &action.arguments);
            done.unwrap_or_else(|error| panic!("{name}: {}: {error}", action.func_name));
            world.sync().unwrap();
        }
        let count = counts.entry(recording.kind.clone()).or_default();
        count.0 += 1;
        assert_eq!(
            Some(&hashes(&world)),
            recording.h0.as_ref(),
            "{name} at the start"
        );
        let began = world.clone();
        for (place, step) in recording.steps.iter().enumerate() {
            count.1 += 1;
            let result = call(&mut world, step.requestor, &step.name, &step.arguments);
            if recording.kind == "fuzz" {
                // As the orchestrator does.
                world.sync().unwrap();
            }
            let agrees = result.error == step.error
                && (!step.says_the_same() || result.content == step.content)
                && hashes(&world) == step.h;
            // Grading compares worlds without their hashes.
            let is_fresh = Some(&step.h) == fresh_hashes.as_ref();
            assert_eq!(world.equals(fresh), is_fresh, "{name} step {place}");
            let is_unchanged = Changes::between(&began, &world) == Changes::default();
            assert_eq!(world.equals(&began), is_unchanged, "{name} step {place}");
            let is_marked = result.content.starts_with(FAILED);
            assert_eq!(result.error, is_marked, "{name} step {place}");
            if !agrees {
                different.push(format!(
                    "{name} step {place}: {}({}) gave\n  {} {:?}, recorded is\n  {} {:?}",
                    step.name,
                    Value::Object(step.arguments.clone()),
                    result.error,
                    result.content,
                    step.error,
                    step.content
                ));
                break;
            }
        }
        for assertion in recording.env_assertions_after_live_replay.iter().flatten() {
            let held = world.holds(assertion.env_type, &assertion.func_name, &assertion.arguments);
            if held.clone().map(|held| held == assertion.assert_value) != Ok(assertion.met) {
                different.push(format!("{name}: {} gave {held:?}", assertion.func_name));
            }
        }
    }
    for (kind, (recordings, steps)) in counts {
        println!("{} {kind}: {recordings} recordings, {steps} steps", W::NAME);
    }
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn tau2_parity_airline_steps() {
    if let Some(fresh) = fresh::<Airline>() {
        steps_agree(&fresh);
    }
}

#[test]
fn tau2_parity_retail_steps() {
    if let Some(fresh) = fresh::<Retail>() {
        steps_agree(&fresh);
    }
}

#[test]
fn tau2_parity_telecom_steps() {
    if let Some(fresh) = fresh::<Telecom>() {
        steps_agree(&fresh);
    }
}
