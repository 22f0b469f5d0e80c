//! The study while it is being set up: one model that every field reads and edits.
//!
//! It is a whole [`Study`], so that what the form has no field for is kept, and beside it only what
//! a study cannot hold: texts that are no numbers, data files, and what was set up for another kind of
//! workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use capo_core::methods;
use capo_core::study::{Constraint, Format, Objective, Prompt, Study, StudyError, Table};
use capo_workloads::{KINDS, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::Place;
use super::prices;
use super::problem::Problem;
use super::secrets;
use crate::studies;
use crate::worker::protocol::DataFiles;

/// The key of tau2's settings that names a file with other descriptions of the tools.
pub(super) const DESCRIPTIONS: &str = "tool_descriptions";
/// The key of tau2's settings that names a file with vectors of the tasks' texts.
pub(super) const EMBEDDINGS: &str = "embeddings";

/// The key of the dollars that a run may spend.
pub(super) const DOLLARS: &str = "budget.usd";

/// A study being set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    /// As far as it can be written down.
    pub(super) study: Study,
    /// The data files it names, by path.
    #[serde(skip)]
    pub(super) files: DataFiles,
    /// Texts in fields that the study cannot hold, by the key the field is for. Kept nowhere: one of them
    /// may be a key in the wrong place.
    #[serde(skip)]
    pub(super) wrong: BTreeMap<String, Mistyped>,
    /// Names the kept files that it was read without, as long as they are not restored.
    #[serde(skip)]
    pub(super) awaits: Option<String>,
    /// Those of its files that were kept and restored, not taken in here.
    #[serde(skip)]
    restored: DataFiles,
    /// Who took it, or something in it, from a project of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken_by: Option<String>,
    /// Whether nobody has said what it may spend, here or where it was written: see [`prices::usual_limit`].
    #[serde(default)]
    pub(super) has_usual_limit: bool,
    /// What was set up for other kinds of workload, by kind.
    shelf: BTreeMap<String, Shelved>,
}

/// What was typed into a field that takes something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistyped {
    /// As it was typed, so that it can be mended.
    pub(super) text: String,
    /// What is wrong with it.
    pub(super) message: String,
}

/// What belongs to a kind of workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Shelved {
    name: String,
    prompt: Prompt,
    workload: Table,
    objective: Objective,
    constraints: Vec<Constraint>,
}

impl Shelved {
    fn of(study: Study) -> Self {
        Self {
            name: study.study.name,
            prompt: study.prompt,
            workload: study.workload,
            objective: study.objective,
            constraints: study.constraints,
        }
    }
}

impl Draft {
    /// What a person finds who comes to set up a study: the built-in one.
    ///
    /// # Errors
    /// See [`studies::help_desk`].
    pub(super) fn new() -> Result<Self, StudyError> {
        let new = studies::help_desk().map(Self::of)?;
        Ok(Self {
            has_usual_limit: true,
            ..new
        })
    }

    /// A study that was written elsewhere.
    pub(super) fn of(mut study: Study) -> Self {
        let kind = capo_workloads::of(&study.workload);
        for (setting, old, word) in kind.map_or(&[][..], |kind| kind.former_words) {
            if let Some(value) = study.workload.get_mut(*setting).filter(|value| *value == old) {
                *value = (*word).into();
            }
        }
        Self {
            study,
            files: DataFiles::new(),
            wrong: BTreeMap::new(),
            awaits: None,
            restored: DataFiles::new(),
            taken_by: None,
            has_usual_limit: false,
            shelf: BTreeMap::new(),
        }
    }

    /// The study, if it is one.
    ///
    /// # Errors
    /// What is wrong, field by field.
    pub(super) fn checked(&self) -> Result<Study, Vec<Problem>> {
        let mut problems: Vec<Problem> = self
            .wrong
            .iter()
            .map(|(key, mistyped)| Problem {
                key: key.clone(),
                message: mistyped.message.clone(),
            })
            .collect();
        problems.extend(self.empty_budgets());
        problems.extend(self.prompt_elsewhere());
        let half = prices::half_stated(&self.study);
        // What the models' own check says of these is less plain.
        problems.extend(if half.is_empty() {
            self.written_keys()
        } else {
            half
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        self.study
            .seed_prompt()
            .map(|_| ())
            .and_then(|()| self.study.clone().checked())
            .map_err(|error| vec![Problem::of(error)])
    }

    /// A study file may name another file with the prompt, which this page cannot look for.
    fn prompt_elsewhere(&self) -> Option<Problem> {
        let prompt = &self.study.prompt;
        let file = prompt.file.as_ref().filter(|_| prompt.text.is_none())?;
        Some(Problem {
            key: "prompt.text".into(),
            message: format!("The study reads its prompt from {file}. Put the text of that file here."),
        })
    }

    /// What must not be written into models and workload whatever keys and data there are: people share
    /// studies, and journals keep them, so this is said before there is a link, a file or a run.
    pub(super) fn written_keys(&self) -> Vec<Problem> {
        let models = capo_models::check_tables(&self.study.models).map_err(|error| error.to_string());
        let workload = capo_workloads::check_written(&self.study.workload).map_err(|error| error.to_string());
        let refused = [models.err(), workload.err()].into_iter().flatten();
        refused.map(|message| Problem::of_text(&message)).collect()
    }

    fn empty_budgets(&self) -> Vec<Problem> {
        let budget = &self.study.budget;
        let zero = |name: &str, thing: &str, empty: bool| {
            empty.then(|| Problem {
                key: format!("budget.{name}"),
                message: format!("A budget of 0 {thing} runs nothing. Clear the field for no limit."),
            })
        };
        [
            zero("rollouts", "rollouts", budget.rollouts == Some(0)),
            zero("calls", "calls", budget.calls == Some(0)),
            zero("tokens", "tokens", budget.tokens == Some(0)),
            zero("usd", "dollars", budget.usd == Some(0.0)),
            zero("seconds", "minutes", budget.seconds == Some(0.0)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The dollars that a run of it may spend.
    pub(super) fn limit(&self) -> Option<f64> {
        if self.has_usual_limit {
            prices::usual_limit(&self.study)
        } else {
            self.study.budget.usd
        }
    }

    /// The kind of workload.
    pub(super) fn kind(&self) -> &str {
        self.study
            .workload
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether its workload reads rows, as files that it names.
    pub(super) fn takes_rows(&self) -> bool {
        capo_workloads::of(&self.study.workload).is_some_and(Kind::takes_rows)
    }

    /// The paths of the data files that its workload names.
    pub(super) fn named_paths(&self) -> Vec<String> {
        paths_in(&self.study.workload)
    }

    /// Those of them that are here.
    pub(super) fn named_files(&self) -> DataFiles {
        self.files_at(self.named_paths())
    }

    /// The files to be kept with it: those that are named by its workload, or by one that was set up before.
    pub(super) fn kept_files(&self) -> DataFiles {
        let shelved = self
            .shelf
            .values()
            .flat_map(|shelved| paths_in(&shelved.workload));
        self.files_at(self.named_paths().into_iter().chain(shelved))
    }

    fn files_at(&self, paths: impl IntoIterator<Item = String>) -> DataFiles {
        let here = |path: String| self.files.get(&path).cloned().map(|text| (path, text));
        paths.into_iter().filter_map(here).collect()
    }

    /// Takes in the files that were kept with it; what was taken in since stays.
    pub(super) fn restore(&mut self, kept: DataFiles) {
        self.awaits = None;
        for (path, text) in kept {
            self.restored.insert(path.clone(), Arc::clone(&text));
            self.files.entry(path).or_insert(text);
        }
    }

    /// The files that were taken in here. Those that were kept belong to the draft they were kept with alone.
    pub(super) fn taken_in(&self) -> DataFiles {
        let was_kept = |(path, text): &(&String, &Arc<str>)| {
            let kept = self.restored.get(*path);
            kept.is_some_and(|kept| Arc::ptr_eq(kept, text))
        };
        let here = self.files.iter().filter(|file| !was_kept(file));
        here.map(|(path, text)| (path.clone(), Arc::clone(text)))
            .collect()
    }

    /// Goes on with the files that were taken into a `former` draft: a study may come after the data it names. Those of a
    /// project come along only if it names them, and make it that project's, too.
    pub(super) fn succeed(&mut self, former: &Self) {
        self.files = former.taken_in();
        if former.taken_by.is_some() {
            self.files = self.named_files();
            self.taken_by = former.taken_by.clone().filter(|_| !self.files.is_empty());
        }
    }

    /// Whether nobody has changed anything of the built-in study.
    pub(super) fn is_untouched(&self) -> bool {
        self.shelf.is_empty() && Self::new().is_ok_and(|new| new.study == self.study)
    }

    /// Takes in the file of a key of tau2's settings: as the one that the study names, or in place of it.
    pub(super) fn take_own(&mut self, key: &str, name: &str, text: String) {
        self.take_kind("tau2");
        let named = Place::Workload.text(&self.study, key);
        let path = if named.rsplit('/').next() == Some(name) {
            named
        } else {
            self.leave_out(key);
            Place::Workload.set(&mut self.study, key, Some(name.into()));
            name.to_owned()
        };
        self.files.insert(path, text.into());
    }

    /// Leaves the file of a key of tau2's settings out.
    pub(super) fn leave_out(&mut self, key: &str) {
        self.files.remove(&Place::Workload.text(&self.study, key));
        Place::Workload.set(&mut self.study, key, None);
    }

    /// Goes over to another kind of workload, and keeps what was set up for this one.
    pub(super) fn take_kind(&mut self, kind: &str) {
        if self.kind() == kind {
            return;
        }
        let now = Shelved::of(self.study.clone());
        let (before, next) = (beginning(self.kind()), beginning(kind));
        let begin = || {
            // A name and a prompt of somebody's own go along, those of the other kind do not.
            let mut next = next?;
            if before.as_ref().is_none_or(|before| now.name != before.name) {
                next.name.clone_from(&now.name);
            }
            if before.is_none_or(|before| now.prompt != before.prompt) {
                next.prompt.clone_from(&now.prompt);
            }
            Some(next)
        };
        let Some(next) = self.shelf.remove(kind).or_else(begin) else {
            return;
        };
        self.shelf.insert(self.kind().to_owned(), now);
        self.study.study.name = next.name;
        self.study.prompt = next.prompt;
        self.study.workload = next.workload;
        self.study.objective = next.objective;
        self.study.constraints = next.constraints;
        self.forget_bounds();
        self.forget_wrong("workload.");
        self.forget_wrong("constraint.");
    }

    /// Goes over to another method; keys that it shares with this one keep their values.
    pub(super) fn take_method(&mut self, method: &str) {
        let Ok(defaults) = methods::complete(method, &Table::new()) else {
            return;
        };
        method.clone_into(&mut self.study.study.method);
        let kept = self
            .study
            .method
            .iter()
            .filter(|(key, _)| defaults.contains_key(*key));
        let kept: Table = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.study.method = methods::complete(method, &kept).unwrap_or(defaults);
        if methods::build(method, &self.study.method).is_ok_and(|method| !method.takes_batches()) {
            (self.study.study.batch, self.study.study.batch_growth) = (None, None);
            self.forget_wrong("study.batch");
        }
        self.forget_wrong("method.");
    }

    /// Whether its prompt is the one that its kind of workload starts with.
    pub(super) fn has_usual_prompt(&self) -> bool {
        beginning(self.kind()).is_some_and(|begun| begun.prompt == self.study.prompt)
    }

    /// Names the study after a file of rows, unless it has a name of its own.
    pub(super) fn name_after(&mut self, file: &str) {
        let stem = file.rsplit('/').next().unwrap_or(file);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let is_unnamed = beginning(self.kind()).is_some_and(|begun| begun.name == self.study.study.name);
        if is_unnamed && !stem.is_empty() && stem != "rows" {
            self.study.study.name = stem.replace(['_', '-'], " ");
        }
    }

    /// The same without whatever a key may have been written into, and the keys in the study of what was left out.
    pub(super) fn without_secrets(&self) -> (Self, Vec<String>) {
        let mut draft = self.clone();
        let of_models = draft.study.models.iter_mut();
        let mut left_out: Vec<String> = of_models
            .flat_map(|(role, table)| secrets::leave_out_of_model(*role, table))
            .collect();
        left_out.extend(secrets::leave_out_of_workload(&mut draft.study.workload));
        for shelved in draft.shelf.values_mut() {
            secrets::leave_out_of_workload(&mut shelved.workload);
        }
        (draft, left_out)
    }

    /// Drops texts of fields that are no longer there.
    pub(super) fn forget_wrong(&mut self, prefix: &str) {
        self.wrong.retain(|key, _| !key.starts_with(prefix));
    }

    /// The same study on simulated models, at a pace that can be watched.
    pub(super) fn simulated(&self) -> Self {
        let mut simulated = self.clone();
        if let Ok(built_in) = studies::help_desk() {
            simulated.study.models = built_in.models;
            simulated.study.budget.usd = simulated.limit();
        }
        simulated
    }

    /// Sets a constraint's threshold as a number or, with `relative`, as a multiple of the seed's cost.
    pub(super) fn set_threshold(&mut self, metric: &str, relative: bool, value: f64) {
        let found = self
            .study
            .constraints
            .iter_mut()
            .find(|constraint| constraint.metric == metric);
        if let Some(constraint) = found {
            (constraint.threshold, constraint.relative_to_seed) = if relative {
                (None, Some(value))
            } else {
                (Some(value), None)
            };
        }
    }

    /// Constrains one more metric.
    pub(super) fn constrain(&mut self, metric: &str, threshold: f64) {
        self.study.constraints.push(Constraint {
            metric: metric.to_owned(),
            threshold: Some(threshold),
            relative_to_seed: None,
            scale: None,
            from_round: 0,
        });
    }

    /// Constrains a metric no longer.
    pub(super) fn release(&mut self, metric: &str) {
        self.study
            .constraints
            .retain(|constraint| constraint.metric != metric);
        self.wrong.remove(&format!("constraint.{metric}"));
        self.forget_wrong(&format!("constraint.{metric}."));
        self.forget_bounds();
    }

    /// Takes the largest values out that are stated of what is no constraint any more.
    fn forget_bounds(&mut self) {
        let Some(confirm) = &mut self.study.confirm else {
            return;
        };
        let constraints = &self.study.constraints;
        let is_constrained = |metric: &str| constraints.iter().any(|constraint| constraint.metric == metric);
        confirm.bounds.retain(|metric, _| is_constrained(metric));
        self.wrong
            .retain(|key, _| key.strip_prefix("confirm.bounds.").is_none_or(is_constrained));
    }

    /// A constraint's key in the study file, which [`Problem::key`] names by its metric.
    pub(super) fn constraint(&self, metric: &str) -> Option<&Constraint> {
        self.study
            .constraints
            .iter()
            .find(|constraint| constraint.metric == metric)
    }
}

/// The paths of the data files that a workload's table names, those of its sets among them.
fn paths_in(workload: &Table) -> Vec<String> {
    let keys = capo_workloads::of(workload).map_or(&[][..], |kind| kind.files);
    let of = |table: &Table| {
        keys.iter()
            .filter_map(|key| table.get(*key)?.as_str().map(str::to_owned))
            .filter(|path| !path.is_empty())
            .collect::<Vec<_>>()
    };
    let sets = workload.get("set").and_then(Value::as_array);
    let sets = sets.into_iter().flatten().filter_map(Value::as_object);
    of(workload).into_iter().chain(sets.flat_map(of)).collect()
}

/// What a kind of workload starts with; none for a kind that there is not.
fn beginning(kind: &str) -> Option<Shelved> {
    let kind = KINDS.iter().find(|of| of.name == kind)?;
    Study::parse(kind.beginning, Format::Toml).ok().map(Shelved::of)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft() -> Draft {
        Draft::new().unwrap()
    }

    #[test]
    fn a_word_of_older_studies_is_read_as_the_one_of_today() {
        let text = "[study]\nname = \"a\"\nmethod = \"capo\"\n[workload]\nkind = \"tau2\"\nsplit = \"paper\"\n\
                    [prompt]\ntext = \"Help.\"\n[objective]\nmetric = \"success\"\n[models.agent]\nprovider = \"simulated\"\n";
        let study = Study::parse(text, capo_core::study::Format::Toml).unwrap();
        assert_eq!(Draft::of(study).study.workload["split"], "drawn");
    }

    #[test]
    fn a_draft_is_the_study_it_was_made_of() {
        let study = studies::help_desk().unwrap();
        assert_eq!(Draft::of(study.clone()).checked().unwrap(), study);
    }

    #[test]
    fn what_has_no_field_is_kept() {
        let text = studies::help_desk().unwrap().to_toml().unwrap().replace(
            "metric = \"excess_tools\"",
            "metric = \"excess_tools\"\nscale = 0.5",
        );
        let study = Study::parse(&text, capo_core::study::Format::Toml).unwrap();
        let mut draft = Draft::of(study);
        draft.set_threshold("excess_tools", true, 0.8);
        let written = draft.checked().unwrap().to_toml().unwrap();
        assert!(written.contains("scale = 0.5"), "{written}");
        assert!(written.contains("relative_to_seed = 0.8"), "{written}");
    }

    #[test]
    fn a_budget_of_nothing_is_said_at_its_field() {
        let mut draft = draft();
        draft.study.budget.rollouts = Some(0);
        assert_eq!(
            draft.checked().unwrap_err(),
            [Problem {
                key: "budget.rollouts".into(),
                message: "A budget of 0 rollouts runs nothing. Clear the field for no limit.".into(),
            }]
        );
    }

    #[test]
    fn a_prompt_in_another_file_is_asked_for() {
        let mut draft = draft();
        (draft.study.prompt.text, draft.study.prompt.file) = (None, Some("prompt.md".into()));
        let problem = draft.checked().unwrap_err().remove(0);
        assert_eq!(problem.key, "prompt.text");
        assert!(problem.message.contains("prompt.md"));
    }

    #[test]
    fn text_that_is_no_number_keeps_the_study_from_running() {
        let mut draft = draft();
        let mistyped = Mistyped {
            text: "x".into(),
            message: "“x” is not a number.".into(),
        };
        draft.wrong.insert("study.rounds".into(), mistyped);
        assert_eq!(draft.checked().unwrap_err()[0].key, "study.rounds");
    }

    #[test]
    fn a_key_written_into_a_study_keeps_it_from_being_a_link_a_file_or_a_run() {
        let openai = |more: Value| {
            let mut table = json!({ "provider": "openai", "model": "m" });
            if let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) {
                table.extend(more);
            }
            table
        };
        for more in [
            json!({ "headers": { "Authorization": "Bearer sk-secret" } }),
            json!({ "base_url": "https://proxy.example/v1?key=sk-secret" }),
            json!({ "base_url": "https://me:sk-secret@proxy.example/v1" }),
            json!({ "api_key_env": "sk-secret" }),
            json!({ "api_key": "sk-secret" }),
        ] {
            let mut draft = draft();
            draft
                .study
                .models
                .insert(capo_core::llm::Role::Agent, openai(more.clone()));
            let problems = draft.checked().unwrap_err();
            assert_eq!(problems[0].key, "models.agent", "{more}");
            assert!(!problems[0].message.contains("sk-secret"), "{problems:?}");
        }
        let mut draft = draft();
        draft.take_kind("external");
        let endpoint = "https://agent.example/?key=sk-secret";
        draft.study.workload.insert("endpoint".into(), endpoint.into());
        assert_eq!(draft.checked().unwrap_err()[0].key, "workload.endpoint");
        draft
            .study
            .workload
            .insert("endpoint".into(), "https://agent.example/".into());
        draft.checked().unwrap();
    }

    #[test]
    fn a_constraint_s_problem_stands_at_its_metric() {
        let mut draft = draft();
        draft.study.study.rounds = capo_core::study::Rounds::Count(6);
        draft.study.constraints[1].from_round = 9;
        let problem = draft.checked().unwrap_err().remove(0);
        assert_eq!(problem.key, "constraint.excess_tools");
        assert!(problem.message.ends_with("numbered from 0."), "{problem:?}");
    }

    #[test]
    fn own_rows_belong_to_the_kinds_that_read_them() {
        let mut draft = draft();
        for (kind, takes) in [
            ("desk", false),
            ("table", true),
            ("external", true),
            ("tau2", false),
        ] {
            draft.take_kind(kind);
            assert_eq!(draft.takes_rows(), takes, "{kind}");
        }
    }

    #[test]
    fn descriptions_of_tools_are_a_file_of_the_benchmark_s_study() {
        let mut draft = draft();
        draft.take_own(DESCRIPTIONS, "tools.json", "{}".into());
        assert_eq!(draft.kind(), "tau2");
        assert_eq!(draft.study.workload[DESCRIPTIONS], "tools.json");
        let toml = draft.checked().unwrap().to_toml().unwrap();
        assert!(toml.contains("tool_descriptions = \"tools.json\""), "{toml}");
        // One of the name that a study gives takes its path, another its place.
        Place::Workload.set(&mut draft.study, DESCRIPTIONS, Some("data/tools.json".into()));
        assert!(draft.named_files().is_empty());
        draft.take_own(DESCRIPTIONS, "tools.json", "[]".into());
        assert_eq!(&*draft.named_files()["data/tools.json"], "[]");
        draft.take_own(DESCRIPTIONS, "mine.json", "{}".into());
        assert_eq!(draft.study.workload[DESCRIPTIONS], "mine.json");
        assert!(draft.named_files().into_keys().eq(["mine.json"]));
        draft.leave_out(DESCRIPTIONS);
        assert!(!draft.study.workload.contains_key(DESCRIPTIONS));
        assert!(draft.named_files().is_empty());
    }

    #[test]
    fn another_workload_and_back_loses_nothing() {
        let mut draft = draft();
        let before = draft.study.clone();
        draft.take_kind("table");
        assert_eq!(draft.kind(), "table");
        assert!(draft.study.constraints.is_empty());
        draft.take_kind("desk");
        assert_eq!(draft.study, before);
    }

    #[test]
    fn every_workload_begins_with_a_name_and_a_prompt_of_its_own() {
        let mut draft = draft();
        let mut seen = vec![(draft.study.study.name.clone(), draft.study.prompt.clone())];
        for kind in ["table", "external", "tau2"] {
            draft.take_kind(kind);
            let begun = (draft.study.study.name.clone(), draft.study.prompt.clone());
            assert!(!seen.contains(&begun), "{begun:?}");
            seen.push(begun);
        }
        let mut named = Draft::new().unwrap();
        named.study.study.name = "mine".into();
        named.take_kind("table");
        assert_eq!(named.study.study.name, "mine");
        assert!(!named.study.prompt.text.unwrap().contains("customer"));
        let mut filed = Draft::new().unwrap();
        filed.take_kind("table");
        filed.name_after("data/capital_cities.csv");
        assert_eq!(filed.study.study.name, "capital cities");
    }

    #[test]
    fn what_is_kept_of_a_draft_holds_no_key() {
        let mut draft = draft();
        let mistyped = Mistyped {
            text: "Authorization: Bearer sk-secret".into(),
            message: String::new(),
        };
        draft.wrong.insert("models.agent.headers".into(), mistyped);
        draft.take_kind("external");
        let endpoint = "https://agent.example/?key=sk-secret";
        draft.study.workload.insert("endpoint".into(), endpoint.into());
        draft.study.study.name = "mine".into();
        let agent = json!({
            "provider": "openai", "model": "m", "api_key_env": "sk-secret", "price": { "input": 1.0 },
        });
        draft.study.models.insert(capo_core::llm::Role::Agent, agent);
        let (kept, left_out) = draft.without_secrets();
        assert_eq!(left_out, ["models.agent.api_key_env", "workload.endpoint"]);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("sk-secret"), "{text}");
        let read: Draft = serde_json::from_str(&text).unwrap();
        assert_eq!(read.study.study.name, "mine");
        // What is not finished yet is kept.
        let agent = &read.study.models[&capo_core::llm::Role::Agent];
        assert_eq!(agent["price"], json!({ "input": 1.0 }));
        draft.take_kind("table");
        let shelved = serde_json::to_string(&draft.without_secrets().0).unwrap();
        assert!(!shelved.contains("sk-secret"), "{shelved}");
    }

    #[test]
    fn rows_of_a_workload_that_was_set_up_before_are_kept() {
        let mut draft = draft();
        draft.take_kind("table");
        Place::Workload.set(&mut draft.study, "data", Some("rows.csv".into()));
        draft.files.insert("rows.csv".into(), "question\na\n".into());
        draft.take_kind("desk");
        assert!(draft.named_files().is_empty());
        assert!(draft.kept_files().into_keys().eq(["rows.csv"]));
    }

    #[test]
    fn kept_files_go_along_into_no_other_study() {
        let mut draft = draft();
        draft.files.insert("new.csv".into(), "a".into());
        draft.restore([("rows.csv".to_owned(), "b".into())].into());
        assert_eq!(draft.files.len(), 2);
        assert!(draft.taken_in().into_keys().eq(["new.csv"]));
        draft.files.insert("rows.csv".into(), "b".into());
        assert_eq!(draft.taken_in().len(), 2);
    }

    #[test]
    fn files_of_a_project_make_a_study_that_names_them_the_project_s() {
        let mut former = draft();
        former.files.insert("rows.csv".into(), "question\na\n".into());
        let mut own = draft();
        own.succeed(&former);
        assert_eq!((own.files.len(), &own.taken_by), (1, &None));
        former.taken_by = Some("ada".into());
        own.succeed(&former);
        assert!(
            own.files.is_empty() && own.taken_by.is_none(),
            "it does not name them"
        );
        own.take_kind("table");
        Place::Workload.set(&mut own.study, "data", Some("rows.csv".into()));
        own.succeed(&former);
        assert_eq!((own.files.len(), own.taken_by.as_deref()), (1, Some("ada")));
        let kept = serde_json::to_string(&own.without_secrets().0).unwrap();
        assert_eq!(
            serde_json::from_str::<Draft>(&kept).unwrap().taken_by,
            own.taken_by
        );
    }

    #[test]
    fn the_built_in_study_is_told_from_one_that_was_changed() {
        let mut draft = draft();
        assert!(draft.is_untouched());
        draft.take_kind("table");
        assert!(!draft.is_untouched());
    }

    #[test]
    fn another_method_keeps_the_keys_it_shares() {
        let mut draft = draft();
        draft.study.method.insert("beta".into(), 2.5.into());
        draft.take_method("capo-ea");
        assert_eq!(draft.study.method["beta"], 2.5);
        assert!(!draft.study.method.contains_key("gamma"));
        draft.take_method("sampling");
        assert_eq!(draft.study.method["k"], 8);
        draft.checked().unwrap();
        draft.study.study.batch = Some(8);
        draft.take_method("gepa");
        assert!(draft.study.study.batch.is_none(), "it takes no batches");
        draft.checked().unwrap();
    }

    #[test]
    fn simulated_models_serve_any_study() {
        let mut draft = draft();
        draft.study.models.clear();
        assert!(studies::is_simulated(&draft.simulated().checked().unwrap()));
    }
}
