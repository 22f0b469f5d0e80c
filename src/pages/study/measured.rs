//! Metrics that the workload of a draft measures, and its examples.

use capo_core::llm::Role;
use capo_core::methods;
use capo_core::metric::{Direction, MetricSpec};
use capo_core::study::{Study, Table};

use super::problem::Problem;
use crate::worker::ADVICE;
use crate::worker::protocol::{DataFiles, Looked};

/// What a workload measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measured {
    /// Whether a worker has looked at it.
    pub(super) is_known: bool,
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
    /// What a worker saw of the workload, `None` before it has answered.
    pub(super) fn new(looked: Option<Looked>, workload: &Table, files: &DataFiles) -> Self {
        let Some(looked) = looked else {
            return Self::default();
        };
        let problem = looked
            .wrong
            .map(|wrong| missing(workload, files).unwrap_or_else(|| duplicate(&wrong)));
        Self {
            is_known: true,
            metrics: looked.metrics,
            optimize: looked.optimize,
            evaluate: looked.evaluate,
            roles: looked.roles,
            problem,
        }
    }

    /// What a worker would see of the workload.
    #[cfg(test)]
    pub(super) fn of(workload: &Table, files: &DataFiles, seed: u64) -> Self {
        let looked = crate::worker::look(workload, files, seed);
        Self::new(Some(looked), workload, files)
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
        let mut asked = self.roles.clone();
        if let Ok(method) = methods::build(&study.study.method, &study.method) {
            for role in methods::asked(&*method, &study.study.rounds) {
                if !asked.contains(&role) {
                    asked.push(role);
                }
            }
        }
        asked
    }
}

/// What is wrong, an example in both splits at the field that leaves examples out.
fn duplicate(wrong: &str) -> Problem {
    match wrong.split_once(ADVICE) {
        Some((what, _)) => Problem {
            key: DUPLICATE.into(),
            message: format!("{what}. Leave one of them out."),
        },
        None => Problem::of_text(wrong),
    }
}

/// The key whose problem is an example in both splits.
pub(super) const DUPLICATE: &str = "workload.exclude";

/// The file that is not there, in words that fit a page without a disk.
fn missing(workload: &Table, files: &DataFiles) -> Option<Problem> {
    let kind = capo_workloads::of(workload)?;
    let mut named = kind
        .files
        .iter()
        .filter_map(|key| Some((key, workload.get(*key)?.as_str()?)));
    let (key, path) = named.find(|(_, path)| !files.contains_key(*path))?;
    Some(Problem {
        key: format!("workload.{key}"),
        message: match path {
            path if !kind.takes_rows() => {
                format!("{path} is not here yet. Drop or choose it, or leave it out.")
            }
            "" => "The rows are not here yet. Drop, choose or paste them.".to_owned(),
            path => format!("The rows of {path} are not here yet. Drop, choose or paste them."),
        },
    })
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
    fn descriptions_that_are_not_here_are_asked_for() {
        let workload = serde_json::json!({
            "kind": "tau2", "domain": "airline", "data": "data/tau2", "tool_descriptions": "mine/tools.json",
        });
        let workload = workload.as_object().unwrap();
        let looked = || Looked {
            wrong: Some("workload.tool_descriptions: no file".into()),
            ..Looked::default()
        };
        let problem = |files: &DataFiles| {
            let problem = Measured::new(Some(looked()), workload, files).problem.unwrap();
            (problem.key, problem.message)
        };
        let (key, message) = problem(&DataFiles::new());
        assert_eq!(key, "workload.tool_descriptions");
        assert!(
            message.starts_with("mine/tools.json is not here yet."),
            "{message}"
        );
        let here = DataFiles::from([("mine/tools.json".to_owned(), "{}".into())]);
        assert_eq!(problem(&here).1, "No file.");
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
