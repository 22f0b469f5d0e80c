//! The verdict: what a finished conversation is worth: measurements, and an account in plain words.

use std::collections::HashSet;
use std::fmt::Write as _;

use capo_core::llm::ToolCall;
use capo_core::metric::{Measurements, MetricSpec, PROMPT_LENGTH, prompt_length};
use serde_json::{Value, json};

use super::changes::Changes;
use super::dialogue::Dialogue;
use super::environment::{Side, World, changes};
use super::grade::{Counts, Grade};
use super::python;
use super::settings::ReferenceActions;
use super::task::{Action, Basis, Task};
use super::trajectory::{Answered, End, Trajectory, Unpaired};

/// Every metric of a domain, the same in all, see [`super`].
pub fn metrics() -> Vec<MetricSpec> {
    vec![
        MetricSpec::objective(
            "success",
            "1 when the conversation earns the task's full reward by the benchmark's rules; else 0.",
        )
        .two_valued(),
        MetricSpec::cost(
            "human_requests",
            "calls per dialogue",
            "Calls of transfer_to_human_agents.",
        ),
        MetricSpec {
            min: None,
            ..MetricSpec::cost(
                "excess_tools",
                "share of reference calls",
                "(Tool calls of the agent − actions of the reference) ÷ mean reference actions of a task of the split; \
                 negative when fewer were made.",
            )
        },
        MetricSpec::prompt_length(),
        MetricSpec::cost(
            "turns",
            "texts per dialogue",
            "Texts the agent sent to the customer after its greeting.",
        ),
        MetricSpec::cost("latency", "seconds", "Seconds of all model calls of the agent."),
        MetricSpec::cost(
            "verbosity",
            "hundred characters",
            "Mean characters of those texts divided by 100; 0 when there is none.",
        ),
        MetricSpec::cost(
            "repeated_calls",
            "calls per dialogue",
            "Calls of the agent with the same tool and arguments as an earlier one and no successful write in \
             between.",
        ),
        MetricSpec::cost(
            "tool_errors",
            "calls per dialogue",
            "Calls of the agent answered by an error.",
        ),
        MetricSpec::cost(
            "policy_violations",
            "writes per dialogue",
            "Successful writes of the agent that are no reference action.",
        ),
    ]
}

/// Everything found in a conversation.
pub(super) struct Verdict<'a> {
    task: &'a Task,
    trajectory: &'a Trajectory,
    end: End,
    seconds: f64,
    counts: Counts,
    mean_reference: f64,
    repeated: Vec<String>,
    errors: usize,
    unasked: Vec<String>,
    /// None where the conversation did not come to its end.
    grade: Option<Grade>,
}

impl<'a> Verdict<'a> {
    /// Judges a conversation by its task and what it earned.
    pub(super) fn new<W: World>(
        task: &'a Task,
        dialogue: &'a Dialogue<W>,
        grade: Option<Grade>,
        counted: ReferenceActions,
        mean_reference: f64,
    ) -> Result<Self, Unpaired> {
        let trajectory = &dialogue.trajectory;
        let of_agent: Vec<Answered<'_>> = trajectory
            .answered()?
            .into_iter()
            .filter(|answered| answered.by == Side::Assistant)
            .collect();
        let is_write = |answered: &&Answered<'_>| !answered.error && changes::<W>(&answered.call.name);
        let is_asked = |call: &ToolCall| {
            let same = |action: &Action| {
                action.name == call.name
                    && python::equal(&Value::Object(action.arguments.clone()), &call.arguments)
            };
            task.reference().iter().any(same)
        };
        let unasked = of_agent.iter().filter(is_write);
        let unasked = unasked.filter(|answered| !is_asked(answered.call));
        Ok(Self {
            task,
            trajectory,
            end: dialogue.end,
            seconds: dialogue.seconds,
            counts: Counts::new(task, trajectory, counted),
            mean_reference,
            repeated: repeated::<W>(&of_agent),
            errors: of_agent.iter().filter(|answered| answered.error).count(),
            unasked: unasked.map(|answered| written(answered.call)).collect(),
            grade,
        })
    }

    fn reward(&self) -> f64 {
        self.grade.as_ref().map_or(0.0, Grade::reward)
    }

    fn is_success(&self) -> bool {
        Grade::is_success(self.reward())
    }

    /// A value for each of [`metrics`].
    pub(super) fn measurements(&self, prompt: &str) -> Measurements {
        // The first is the greeting, the same in all conversations.
        let texts: Vec<&str> = self.trajectory.said_by(Side::Assistant).skip(1).collect();
        let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
        let verbosity = characters as f64 / texts.len().max(1) as f64 / 100.0;
        [
            ("success", f64::from(u8::from(self.is_success()))),
            ("human_requests", self.counts.transfers as f64),
            ("excess_tools", self.counts.excess(self.mean_reference)),
            (PROMPT_LENGTH, prompt_length(prompt)),
            ("turns", texts.len() as f64),
            ("latency", self.seconds),
            ("verbosity", verbosity),
            ("repeated_calls", self.repeated.len() as f64),
            ("tool_errors", self.errors as f64),
            ("policy_violations", self.unasked.len() as f64),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// What was expected and what is wrong, in plain words, one finding a line.
    pub(super) fn outcome<W: World>(&self) -> String {
        let mut text = String::from(if self.is_success() {
            "The task was solved.\n"
        } else {
            "The task was not solved.\n"
        });
        // Writing to a string cannot fail.
        match (&self.grade, self.end) {
            (None, End::TooManyErrors) => {
                text.push_str("The conversation ended after too many failed calls.\n");
            }
            (None, _) => text.push_str("The conversation was cut off before the customer was done.\n"),
            (Some(grade), _) => self.find::<W>(grade, &mut text),
        }
        for call in &self.unasked {
            let _ = writeln!(text, "Not what the task needs: {call}.");
        }
        for call in &self.repeated {
            let _ = writeln!(text, "Repeated call: {call}.");
        }
        if self.counts.agent_calls > self.counts.reference {
            let _ = writeln!(
                text,
                "Tool calls of the agent: {}; actions of the reference: {}.",
                self.counts.agent_calls, self.counts.reference
            );
        }
        if self.errors > 0 {
            let _ = writeln!(text, "Tool calls answered by an error: {}.", self.errors);
        }
        let is_transferred = |action: &Action| action.name == super::transfer::NAME;
        match (
            self.counts.transfers > 0,
            self.task.reference().iter().any(is_transferred),
        ) {
            (true, false) => text.push_str("The customer was handed to a human without need.\n"),
            (false, true) => text.push_str("The customer should have been handed to a human.\n"),
            _ => {}
        }
        text
    }

    /// What the grade found missing.
    fn find<W: World>(&self, grade: &Grade, text: &mut String) {
        let counts = |basis: Basis| {
            let criteria = self.task.evaluation_criteria.as_ref();
            criteria.is_some_and(|criteria| criteria.reward_basis.contains(&basis))
        };
        if counts(Basis::Db) && !grade.db {
            text.push_str("The records are not as they should be.\n");
        }
        // A reference is one way to the goal: what it looks up need not be looked up, and what it changes
        // was missed only if something is wrong.
        let is_wrong = |action: &Action| {
            let is_write = changes::<W>(&action.name);
            counts(Basis::Action) || (is_write && counts(Basis::Db) && !grade.db)
        };
        let missing = self.task.reference().iter().zip(&grade.actions);
        for (action, _) in missing.filter(|(action, (_, is_made))| !is_made && is_wrong(action)) {
            let by = match action.requestor {
                Side::Assistant => "agent",
                Side::User => "customer",
            };
            let arguments = Value::Object(action.arguments.clone());
            let _ = writeln!(text, "The {by} did not call {} with {arguments}.", action.name);
        }
        for (name, _) in grade.assertions.iter().filter(|(_, is_met)| !is_met) {
            let _ = writeln!(text, "Does not hold at the end: {name}.");
        }
        if counts(Basis::Communicate) {
            for (info, _) in grade.communicate.iter().filter(|(_, is_told)| !is_told) {
                let _ = writeln!(text, "The customer was not told {info:?}.");
            }
        }
        for judged in grade.natural.iter().filter(|judged| !judged.met) {
            let _ = writeln!(text, "Not so: {} ({})", judged.assertion, judged.reason);
        }
    }

    /// The findings for screens: the reward and its parts, checks, counts, what both sides did, and what that
    /// changed.
    pub(super) fn details(&self, changes: &Changes) -> Value {
        json!({
            "termination_reason": self.end.name(),
            "reward": self.reward(),
            "reward_breakdown": self.grade.as_ref().map(Grade::breakdown),
            "checks": self.grade,
            "agent_calls": self.counts.agent_calls,
            "user_calls": self.counts.user_calls,
            "reference_actions": self.counts.reference,
            "repeated_calls": self.repeated,
            "unasked_writes": self.unasked,
            "changes": changes,
            // The agent's own part is in the messages; what the customer does is not.
            "customer": (self.counts.user_calls > 0).then(|| self.trajectory.seen_by(Side::User)),
        })
    }
}

fn written(call: &ToolCall) -> String {
    format!("{}({})", call.name, call.arguments)
}

/// Calls made before, with no successful write since.
fn repeated<W: World>(calls: &[Answered<'_>]) -> Vec<String> {
    let mut made = HashSet::new();
    let mut repeated = Vec::new();
    for answered in calls {
        let call = format!(
            "{}({})",
            answered.call.name,
            python::dumps_sorted(&answered.call.arguments)
        );
        if !made.insert(call) {
            repeated.push(written(answered.call));
        }
        if !answered.error && changes::<W>(&answered.call.name) {
            made.clear();
        }
    }
    repeated
}
