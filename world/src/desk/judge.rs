//! The judge: what a finished dialogue is worth: measurements, and an account in plain words.

use std::collections::HashMap;
use std::fmt::Write as _;

use capo_core::metric::{Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use serde_json::{Value, json};

use super::episode::{Call, Dialogue, End};
use super::language::mentions;
use super::state::Changes;
use super::task::Task;
use super::tools::Effect;

/// Every metric of the help desk, see [`super`].
pub(super) fn metrics() -> Vec<MetricSpec> {
    vec![
        MetricSpec::objective(
            "success",
            "1 when the shop's records changed exactly as the task expects, the dialogue was handed to a human \
             exactly if it should be, and the customer was told what they must be told; else 0.",
        )
        .two_valued(),
        MetricSpec::event(
            "human_requests",
            "calls per dialogue",
            "Calls of transfer_to_human.",
        ),
        MetricSpec {
            min: None,
            ..MetricSpec::cost(
                "excess_tools",
                "share of reference calls",
                "(Tool calls − reference calls) ÷ mean reference calls of a task of the split; negative when fewer were made.",
            )
        },
        MetricSpec::prompt_length(),
        MetricSpec::cost(
            "turns",
            "texts per dialogue",
            "Texts the agent sent to the customer.",
        ),
        MetricSpec::cost("latency", "seconds", "Seconds of all model calls of the agent."),
        MetricSpec::cost(
            "verbosity",
            "hundred characters",
            "Mean characters of the agent's texts divided by 100; 0 when it sent none.",
        ),
        MetricSpec::cost(
            "repeated_calls",
            "calls per dialogue",
            "Calls with the same tool and arguments as an earlier one and no successful write in between.",
        ),
        MetricSpec::cost("tool_errors", "calls per dialogue", "Calls answered by an error."),
        MetricSpec::cost(
            "policy_violations",
            "violations per dialogue",
            "Writes to an unverified account, without the customer's yes or against a rule, each counted; and \
             transfers without reason or before verification.",
        ),
    ]
}

/// Everything found in a dialogue.
#[derive(Debug)]
pub(super) struct Verdict {
    changes: Changes,
    missing: Changes,
    unexpected: Changes,
    untold: Vec<String>,
    transfers: usize,
    transfer_expected: bool,
    violations: Vec<String>,
    repeated: Vec<String>,
    errors: usize,
    calls: usize,
    reference: usize,
    /// Mean reference calls of the tasks of the split.
    mean_reference: f64,
    end: End,
    texts: usize,
    characters: usize,
    seconds: f64,
}

impl Verdict {
    /// Judges a dialogue by its task, whose split has so many reference calls a task.
    pub(super) fn new(task: &Task, dialogue: &Dialogue, mean_reference: f64) -> Self {
        let changes = dialogue.state.changes();
        let absent = |from: &Changes, other: &Changes| -> Changes {
            from.iter()
                .filter(|(path, value)| other.get(*path) != Some(value))
                .map(|(path, value)| (path.clone(), value.clone()))
                .collect()
        };
        let mut said = String::new();
        let (mut texts, mut characters) = (0, 0);
        for text in dialogue.agent_texts() {
            texts += 1;
            characters += text.chars().count();
            said.push_str(text);
            said.push('\n');
        }
        let said = said.to_lowercase();
        let untold = task
            .expected
            .told
            .iter()
            .filter(|told| !told.any_of.iter().any(|phrase| mentions(&said, phrase)));
        Self {
            missing: absent(&task.expected.changes, &changes),
            unexpected: changes
                .iter()
                .filter(|(path, _)| !task.expected.changes.contains_key(*path))
                .map(|(path, value)| (path.clone(), value.clone()))
                .collect(),
            changes,
            untold: untold.map(|told| told.what.clone()).collect(),
            transfers: dialogue
                .calls
                .iter()
                .filter(|call| call.effect == Some(Effect::Transferred))
                .count(),
            transfer_expected: task.expected.transfer,
            violations: violations(task, &dialogue.calls),
            repeated: repeated(&dialogue.calls),
            errors: dialogue.calls.iter().filter(|call| call.effect.is_none()).count(),
            calls: dialogue.calls.len(),
            reference: task.reference.len(),
            mean_reference,
            end: dialogue.end,
            texts,
            characters,
            seconds: dialogue.seconds,
        }
    }

    /// Whether the task was done.
    pub(super) fn is_success(&self) -> bool {
        self.missing.is_empty()
            && self.unexpected.is_empty()
            && self.untold.is_empty()
            && (self.transfers > 0) == self.transfer_expected
    }

    /// A value for each of [`metrics`].
    pub(super) fn measurements(&self, prompt: &str) -> Measurements {
        let excess = (self.calls as f64 - self.reference as f64) / self.mean_reference;
        let verbosity = if self.texts == 0 {
            0.0
        } else {
            self.characters as f64 / self.texts as f64 / 100.0
        };
        [
            ("success", f64::from(u8::from(self.is_success()))),
            ("human_requests", self.transfers as f64),
            ("excess_tools", excess),
            (PROMPT_LENGTH, prompt_length(prompt)),
            ("turns", self.texts as f64),
            ("latency", self.seconds),
            ("verbosity", verbosity),
            ("repeated_calls", self.repeated.len() as f64),
            ("tool_errors", self.errors as f64),
            ("policy_violations", self.violations.len() as f64),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// What was expected and what is wrong, in plain words, one finding a line.
    pub(super) fn outcome(&self) -> String {
        let mut text = String::from(if self.is_success() {
            "The task was solved.\n"
        } else {
            "The task was not solved.\n"
        });
        // Writing to a string cannot fail.
        for (path, value) in &self.missing {
            let _ = writeln!(text, "Missing: {} should have become {value}.", record(path));
        }
        for (path, value) in &self.unexpected {
            let _ = writeln!(
                text,
                "Wrong: {} became {value}, which nobody needed.",
                record(path)
            );
        }
        for what in &self.untold {
            let _ = writeln!(text, "The customer was not told {what}.");
        }
        match (self.transfer_expected, self.transfers) {
            (true, 0) => text.push_str("The dialogue should have been handed to a human and was not.\n"),
            (true, _) => text.push_str("Handing the dialogue to a human was right.\n"),
            (false, 0) => {}
            (false, _) => text.push_str("The dialogue was handed to a human without need.\n"),
        }
        for violation in &self.violations {
            let _ = writeln!(text, "Policy: {violation}.");
        }
        if self.calls > self.reference {
            let _ = writeln!(
                text,
                "Tool calls: {} where {} would do.",
                self.calls, self.reference
            );
        }
        for call in &self.repeated {
            let _ = writeln!(text, "Repeated call: {call}.");
        }
        if self.errors > 0 {
            let _ = writeln!(text, "Tool calls answered by an error: {}.", self.errors);
        }
        if self.end == End::Steps {
            text.push_str("The agent used up its steps before the customer was done.\n");
        }
        text
    }

    /// The findings for screens.
    pub(super) fn details(&self, task: &Task) -> Value {
        json!({
            "scenario": task.scenario,
            "difficulty": task.difficulty(),
            "changes": self.changes,
            "missing": self.missing,
            "unexpected": self.unexpected,
            "untold": self.untold,
            "transfer_expected": self.transfer_expected,
            "violations": self.violations,
            "repeated_calls": self.repeated,
            "calls": self.calls,
            "reference_calls": self.reference,
        })
    }
}

fn violations(task: &Task, calls: &[Call]) -> Vec<String> {
    let mut found = Vec::new();
    for call in calls {
        match &call.effect {
            Some(Effect::Wrote(write)) => {
                let what = format!("{} on {}", call.tool, write.record);
                if !write.verified {
                    found.push(format!("{what} before its owner was verified"));
                }
                if !call.cleared {
                    found.push(format!("{what} without the customer's yes to it"));
                }
                if let Some(rule) = write.broken_rule {
                    found.push(format!("{what} although {rule}"));
                }
            }
            Some(Effect::Transferred) if !task.expected.transfer => {
                found.push("transfer_to_human although the policy gives no reason for it".to_owned());
            }
            Some(Effect::Transferred) if !call.cleared => {
                found.push("transfer_to_human before the customer was verified".to_owned());
            }
            _ => {}
        }
    }
    found
}

fn repeated(calls: &[Call]) -> Vec<String> {
    let mut seen: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut found = Vec::new();
    for call in calls {
        let before = seen.entry(&call.tool).or_default();
        if before.contains(&&call.arguments) {
            found.push(format!("{} with {}", call.tool, call.arguments));
        }
        before.push(&call.arguments);
        if matches!(call.effect, Some(Effect::Wrote(_))) {
            seen.clear();
        }
    }
    found
}

/// A path in words: `orders/O-1042/items/P-104-M/state` → `order O-1042, items P-104-M state`.
fn record(path: &str) -> String {
    let mut parts = path.splitn(3, '/');
    let table = parts.next().unwrap_or_default().trim_end_matches('s');
    let id = parts.next().unwrap_or_default();
    let field = parts.next().unwrap_or_default().replace('/', " ");
    format!("{table} {id}, {field},")
}
