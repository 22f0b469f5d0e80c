//! What the workload of a draft measures, and on how many examples.

use capo_core::llm::Role;
use capo_core::methods;
use capo_core::metric::{Direction, MetricSpec};
use capo_core::study::{Rounds, Study, Table};
use capo_core::workload::Split;
use capo_workloads::files::MemoryFiles;
use serde_json::{Value, json};

use super::problem::Problem;
use crate::worker::protocol::DataFiles;

/// What a workload measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measured {
    /// Every metric, of all its sets.
    pub(super) metrics: Vec<MetricSpec>,
    /// Examples the search sees.
    pub(super) optimize: usize,
    /// Held-out examples.
    pub(super) evaluate: usize,
    /// The roles its rollouts need.
    pub(super) roles: Vec<Role>,
    /// Why it cannot be built yet; the metrics are then those its settings declare.
    pub(super) problem: Option<Problem>,
}

impl Measured {
    /// Builds the workload and looks at it.
    pub(super) fn of(workload: &Table, files: &DataFiles, seed: u64) -> Self {
        let problem = match built(workload, files, seed) {
            Ok(measured) => return measured,
            Err(message) => missing(workload, files).unwrap_or_else(|| Problem::of_text(&message)),
        };
        let (declared, example) = stand_in(workload);
        let measured = built(&declared, &example, seed).unwrap_or_default();
        Self {
            optimize: 0,
            evaluate: 0,
            problem: Some(problem),
            ..measured
        }
    }

    /// A metric by name.
    pub(super) fn metric(&self, name: &str) -> Option<&MetricSpec> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// The metrics of one direction.
    pub(super) fn towards(&self, direction: Direction) -> impl Iterator<Item = &MetricSpec> {
        self.metrics
            .iter()
            .filter(move |metric| metric.direction == direction)
    }

    /// Everybody a run of the study asks.
    pub(super) fn asked(&self, study: &Study) -> Vec<Role> {
        let rounds = match study.study.rounds {
            Rounds::Count(rounds) => rounds,
            Rounds::Open(_) => 1,
        };
        let mut asked = self.roles.clone();
        if let Ok(method) = methods::build(&study.study.method, &study.method) {
            let effort = method.at_most(rounds);
            for (role, calls) in [
                (Role::Critic, effort.critiques),
                (Role::Rewriter, effort.rewrites),
            ] {
                if calls > 0 && !asked.contains(&role) {
                    asked.push(role);
                }
            }
        }
        asked
    }
}

/// The rows that are not there, in words that fit a page without a disk.
fn missing(workload: &Table, files: &DataFiles) -> Option<Problem> {
    let keys = ["data", "evaluate_data"].into_iter();
    let mut named = keys.filter_map(|key| Some((key, workload.get(key)?.as_str()?)));
    let (key, path) = named.find(|(_, path)| !files.contains_key(*path))?;
    let rows = match path {
        "" => "The rows".to_owned(),
        path => format!("The rows of {path}"),
    };
    Some(Problem {
        key: format!("workload.{key}"),
        message: format!("{rows} are not here yet. Drop, choose or paste them."),
    })
}

fn built(workload: &Table, files: &DataFiles, seed: u64) -> Result<Measured, String> {
    let files = files.iter().fold(MemoryFiles::new(), |files, (path, text)| {
        files.with(path.as_str(), text.as_bytes())
    });
    let workloads = capo_workloads::build(workload, &files, seed).map_err(|error| error.to_string())?;
    let mut measured = Measured::default();
    for workload in workloads {
        let fresh: Vec<MetricSpec> = workload
            .metrics()
            .iter()
            .filter(|metric| measured.metric(&metric.name).is_none())
            .cloned()
            .collect();
        measured.metrics.extend(fresh);
        measured.optimize += workload.examples(Split::Optimize).len();
        measured.evaluate += workload.examples(Split::Evaluate).len();
        for (role, _) in workload.max_calls() {
            if !measured.roles.contains(&role) {
                measured.roles.push(role);
            }
        }
    }
    Ok(measured)
}

/// The same metrics on a single made-up example, so that they can be chosen before there are data.
fn stand_in(workload: &Table) -> (Table, DataFiles) {
    let mut table = Table::new();
    for key in ["kind", "metric"] {
        if let Some(value) = workload.get(key) {
            table.insert(key.to_owned(), value.clone());
        }
    }
    table.insert("data".into(), json!("example.jsonl"));
    table.insert("evaluate".into(), json!(0));
    match workload.get("kind").and_then(Value::as_str) {
        Some("external") => table.insert("endpoint".into(), json!("http://localhost")),
        _ => table.insert("user".into(), json!("1")),
    };
    let metrics = table.get_mut("metric").and_then(Value::as_array_mut);
    for metric in metrics.into_iter().flatten().filter_map(Value::as_object_mut) {
        for template in ["expected", "rubric"] {
            if metric.contains_key(template) {
                metric.insert(template.into(), json!("1"));
            }
        }
    }
    let example = DataFiles::from([("example.jsonl".to_owned(), "{\"example\": 1}".into())]);
    (table, example)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::study::draft::Draft;

    #[test]
    fn the_help_desk_measures_its_metrics() {
        let draft = Draft::new().unwrap();
        let measured = Measured::of(&draft.study.workload, &draft.files, 0);
        assert_eq!((measured.optimize, measured.evaluate), (74, 40));
        assert!(measured.metric("excess_tools").is_some());
        assert_eq!(measured.towards(Direction::Objective).count(), 1);
        assert_eq!(measured.problem, None);
        assert_eq!(
            measured.asked(&draft.study),
            [Role::Agent, Role::Critic, Role::Rewriter]
        );
    }

    #[test]
    fn metrics_can_be_chosen_before_there_are_data() {
        let mut draft = Draft::new().unwrap();
        for kind in ["table", "external"] {
            draft.take_kind(kind);
            let measured = Measured::of(&draft.study.workload, &draft.files, 0);
            assert!(measured.problem.is_some(), "{kind}");
            assert!(measured.metric(&draft.study.objective.metric).is_some(), "{kind}");
            assert!(measured.metric("prompt_length").is_some(), "{kind}");
        }
    }
}
