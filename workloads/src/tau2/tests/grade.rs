//! Recordings of what the benchmark's own evaluator gave.

use std::collections::BTreeMap;

use capo_core::llm::ToolCall;
use capo_core::workload::{Split, Workload as _};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::airline::Airline;
use super::super::environment::{Side, World};
use super::super::folder::Domain;
use super::super::grade::{Counts, Grade};
use super::super::replay::replay;
use super::super::retail::Retail;
use super::super::settings::{ReferenceActions, Tau2Settings};
use super::super::task::{Basis, Task};
use super::super::telecom::Telecom;
use super::super::trajectory::{Event, Trajectory};
use super::super::workload::Tau2;
use super::{SharedFiles, fresh, from_folder, recordings, tasks};

#[derive(Deserialize)]
struct Recording {
    task_id: String,
    variant: String,
    termination_reason: String,
    messages: Vec<Said>,
    #[serde(default)]
    exception: Option<Value>,
    #[serde(default)]
    components: Option<BTreeMap<String, f64>>,
    #[serde(default)]
    action_checks: Option<Vec<Value>>,
    #[serde(default)]
    communicate_checks: Option<Vec<Value>>,
    #[serde(default)]
    env_assertions: Option<Vec<Value>>,
    #[serde(default)]
    reward_basis_used: Vec<Basis>,
    #[serde(default)]
    reward: f64,
    #[serde(default)]
    reward_breakdown: Option<BTreeMap<String, f64>>,
    #[serde(default)]
    counts: Option<BTreeMap<String, usize>>,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    requestor: Option<Side>,
    #[serde(default)]
    error: bool,
}

impl Said {
    fn event(self) -> Event {
        let by = match self.role.as_str() {
            "tool" => {
                return Event::Answered {
                    to: self.requestor.unwrap(),
                    call_id: self.id,
                    content: self.content.unwrap(),
                    error: self.error,
                };
            }
            "user" => Side::User,
            _ => Side::Assistant,
        };
        if self.tool_calls.is_empty() {
            Event::Said {
                by,
                text: self.content.unwrap(),
            }
        } else {
            Event::Called {
                by,
                text: self.content,
                calls: self.tool_calls,
            }
        }
    }
}

fn checks(recorded: Option<&Vec<Value>>, name: &str, verdict: &str) -> Vec<(String, bool)> {
    let check = |check: &Value| {
        let name = check[name].as_str().unwrap().to_owned();
        (name, check[verdict].as_bool().unwrap())
    };
    recorded.into_iter().flatten().map(check).collect()
}

/// What differs between a recording and what is computed here.
fn differences<W: World>(task: &Task, fresh: &W, recording: Recording) -> Vec<String> {
    let trajectory = Trajectory(recording.messages.into_iter().map(Said::event).collect());
    let mut different = Vec::new();
    let mut compare = |what: &str, is_same: bool, ours: String| {
        if !is_same {
            different.push(format!(
                "{} {}: {what} is {ours}",
                recording.task_id, recording.variant
            ));
        }
    };
    let counts = Counts::new(task, &trajectory, ReferenceActions::All);
    let ours: BTreeMap<String, usize> = [
        ("n_actual_agent_tool_calls", counts.agent_calls),
        ("n_actual_user_tool_calls", counts.user_calls),
        ("n_reference_all", counts.reference),
        (
            "n_reference_assistant",
            task.reference_actions(ReferenceActions::Agent),
        ),
        ("n_transfer_calls", counts.transfers),
    ]
    .into_iter()
    .map(|(name, count)| (name.to_owned(), count))
    .collect();
    let is_recorded = recording.counts.is_some() || recording.exception.is_some();
    let is_same = recording.counts.as_ref().is_none_or(|counts| *counts == ours);
    compare("counts", is_recorded && is_same, format!("{ours:?}"));
    if !matches!(recording.termination_reason.as_str(), "user_stop" | "agent_stop") {
        let nothing = (
            recording.reward,
            &recording.components,
            &recording.reward_breakdown,
        );
        compare(
            "reward",
            nothing == (0.0, &None, &None),
            "0 and no parts".to_owned(),
        );
        return different;
    }
    let mut left = task.set_up(fresh).unwrap();
    let grade = replay(&mut left, &trajectory)
        .map_err(|error| error.to_string())
        .and_then(|()| Grade::new(task, fresh, &left, &trajectory).map_err(|error| error.to_string()));
    let grade = match grade {
        Ok(grade) => grade,
        Err(error) => {
            compare("grade", recording.exception.is_some(), error);
            return different;
        }
    };
    compare("exception", recording.exception.is_none(), "none".to_owned());
    let all = [Basis::Db, Basis::EnvAssertion, Basis::Action, Basis::Communicate];
    let value = |basis: &Basis| (basis.name().to_owned(), grade.component(*basis));
    let components: BTreeMap<String, f64> = all.iter().map(value).collect();
    compare(
        "components",
        Some(&components) == recording.components.as_ref(),
        format!("{components:?}, not {:?}", recording.components),
    );
    let used: BTreeMap<String, f64> = recording.reward_basis_used.iter().map(value).collect();
    compare(
        "breakdown",
        Some(&used) == recording.reward_breakdown.as_ref(),
        format!("{used:?}"),
    );
    // The product of the parts that need no judge.
    let reward: f64 = used.values().product();
    compare("reward", reward == recording.reward, reward.to_string());
    for (what, ours, recorded) in [
        (
            "actions",
            &grade.actions,
            checks(recording.action_checks.as_ref(), "action_id", "match"),
        ),
        (
            "texts",
            &grade.communicate,
            checks(recording.communicate_checks.as_ref(), "info", "met"),
        ),
        (
            "assertions",
            &grade.assertions,
            checks(recording.env_assertions.as_ref(), "func_name", "met"),
        ),
    ] {
        compare(what, *ours == recorded, format!("{ours:?}, not {recorded:?}"));
    }
    different
}

fn grades_agree<W: World>(fresh: &W) {
    let (Some(lines), Some(tasks)) = (recordings::<Value>(W::NAME), tasks::<W>()) else {
        return;
    };
    let mut variants: BTreeMap<String, u64> = BTreeMap::new();
    let mut different = Vec::new();
    for line in lines.into_iter().filter(|line| line["kind"] == "eval") {
        let recording: Recording = serde_json::from_value(line).unwrap();
        *variants.entry(recording.variant.clone()).or_default() += 1;
        different.extend(differences(&tasks[&recording.task_id], fresh, recording));
    }
    let all: u64 = variants.values().sum();
    println!("{} eval: {all} conversations: {variants:?}", W::NAME);
    assert!(all > 0);
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn tau2_parity_airline_grades() {
    if let Some(fresh) = fresh::<Airline>() {
        grades_agree(&fresh);
    }
}

#[test]
fn tau2_parity_retail_grades() {
    if let Some(fresh) = fresh::<Retail>() {
        grades_agree(&fresh);
    }
}

#[test]
fn tau2_parity_telecom_grades() {
    if let Some(fresh) = fresh::<Telecom>() {
        grades_agree(&fresh);
    }
}

/// Reference actions of the tasks that the benchmark holds out, all and the agent's, as counted in its data.
fn expect_reference<W: Domain>(all: usize, agent: usize) {
    let Some((tasks, lists)) = tasks::<W>().zip(from_folder::<W, _>(|folder| folder.splits().unwrap()))
    else {
        return;
    };
    let sum = |counted| -> usize {
        let test = lists["test"].iter();
        test.map(|id| tasks[id].reference_actions(counted)).sum()
    };
    let sums = [ReferenceActions::All, ReferenceActions::Agent].map(sum);
    assert_eq!(sums, [all, agent], "{}", W::NAME);
}

#[test]
fn the_paper_s_denominators_are_the_actions_of_the_held_out_references() {
    expect_reference::<Airline>(58, 58);
    expect_reference::<Retail>(185, 185);
    expect_reference::<Telecom>(162, 41);
}

#[test]
fn the_mean_excess_over_a_split_is_the_pooled_ratio() {
    // Calls made and reference actions of five conversations, one without a reference.
    let conversations = [(3, 2), (0, 4), (7, 0), (5, 5), (9, 1)];
    let reference: usize = conversations.iter().map(|(_, reference)| reference).sum();
    let calls: usize = conversations.iter().map(|(calls, _)| calls).sum();
    let mean = reference as f64 / conversations.len() as f64;
    let excess = conversations.map(|(agent_calls, reference)| {
        let counts = Counts {
            agent_calls,
            user_calls: 0,
            transfers: 0,
            reference,
        };
        counts.excess(mean)
    });
    let pooled = (calls as f64 - reference as f64) / reference as f64;
    assert!(
        (excess.iter().sum::<f64>() / 5.0 - pooled).abs() < 1e-12,
        "{excess:?}"
    );
}

/// Of every task of both splits, the mean of the split that it is in.
fn expect_mean_reference<W: Domain>() {
    let Some(tasks) = tasks::<W>() else {
        return;
    };
    for (written, counted) in [("all", ReferenceActions::All), ("agent", ReferenceActions::Agent)] {
        let settings = json!({ "domain": W::NAME, "data": "tau2/data", "reference": written, "evaluate": 7 });
        let settings: Tau2Settings = serde_json::from_value(settings).unwrap();
        let workload = Tau2::<W>::new(&settings, &SharedFiles).unwrap();
        for split in [Split::Optimize, Split::Evaluate] {
            let ids = workload.examples(split);
            let actions: usize = ids.iter().map(|id| tasks[id].reference_actions(counted)).sum();
            let mean = actions as f64 / ids.len() as f64;
            assert!(
                ids.iter().all(|id| workload.mean_reference(id) == mean),
                "{} {written}",
                W::NAME
            );
        }
    }
}

#[test]
fn excess_calls_are_measured_against_the_mean_of_the_task_s_own_split() {
    expect_mean_reference::<Airline>();
    expect_mean_reference::<Telecom>();
}
