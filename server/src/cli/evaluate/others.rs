//! Models that take part in rollouts beside the agent: under others a metric measures something else.

use std::iter;

use capo_core::llm::Role;
use capo_core::metric::PROMPT_LENGTH;
use capo_core::problem::Problem;
use serde_json::{Value, json};

/// Who plays the user and who judges, where a rollout asks them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Others {
    user: Option<Value>,
    judge: Option<Value>,
    /// The metrics that the judge has a say in.
    judged: Vec<String>,
}

impl Others {
    pub(super) fn of(problem: &Problem) -> Self {
        let models = problem.study().identity()["models"].take();
        let workloads = problem.workloads().iter();
        let asking = |role: Role| {
            let asks = move |calls: &(Role, u64)| calls.0 == role && calls.1 > 0;
            workloads
                .clone()
                .filter(move |workload| workload.max_calls().iter().any(asks))
        };
        let serving = |role: Role| {
            asking(role).next()?;
            iter::successors(Some(role), |role| role.fallback())
                .find_map(|role| models.get(role.name()).cloned())
        };
        let workload = json!(problem.study().workload);
        let metrics = asking(Role::Judge).flat_map(|workload| workload.metrics());
        let names = metrics.map(|metric| metric.name.clone());
        Self {
            user: serving(Role::User),
            judge: serving(Role::Judge),
            judged: names
                .filter(|name| name != PROMPT_LENGTH && !is_measured_alone(&workload, name))
                .collect(),
        }
    }

    /// Whether a metric measures the same under these as under `first`.
    pub(super) fn measure_alike(&self, first: &Self, metric: &str) -> bool {
        let is_judged = self.judged.iter().any(|judged| judged == metric);
        self.user == first.user && (self.judge == first.judge || !is_judged)
    }

    /// Of what there is no difference to `first`, and why.
    pub(super) fn differ_from(&self, first: &Self) -> Option<String> {
        if self.user != first.user {
            Some("no difference is told, since another model plays the user".to_owned())
        } else if self.judge != first.judge {
            let judged = self.judged.join(", ");
            Some(format!(
                "no difference of {judged} is told, since another model judges"
            ))
        } else {
            None
        }
    }
}

/// Whether the study defines a metric that no judge is asked for.
fn is_measured_alone(workload: &Value, name: &str) -> bool {
    let sets = workload["set"].as_array().into_iter().flatten();
    let mut defined = iter::once(workload)
        .chain(sets)
        .flat_map(|table| table["metric"].as_array().into_iter().flatten());
    defined.any(|metric| metric["name"] == name && metric["type"] != "judge")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn under_another_judge_or_user_no_difference_is_told() {
        let workload = json!({
            "metric": [{ "type": "judge", "name": "polite" }, { "type": "length", "name": "long" }],
            "set": [{ "metric": [{ "type": "regex", "name": "numbers" }] }],
        });
        let alone = ["polite", "long", "numbers", "reward"].map(|name| is_measured_alone(&workload, name));
        assert_eq!(alone, [false, true, true, false]);
        let first = Others {
            user: Some(json!({ "model": "one" })),
            judge: Some(json!({ "model": "one" })),
            judged: vec!["polite".to_owned()],
        };
        let alike = |others: &Others| ["polite", "long"].map(|metric| others.measure_alike(&first, metric));
        assert_eq!((alike(&first), first.differ_from(&first)), ([true, true], None));
        let mut other = first.clone();
        other.judge = Some(json!({ "model": "two" }));
        assert_eq!(alike(&other), [false, true]);
        assert!(other.differ_from(&first).unwrap().contains("of polite is told"));
        other.user = None;
        assert_eq!(alike(&other), [false, false]);
        assert!(other.differ_from(&first).unwrap().contains("plays the user"));
    }
}
