//! A domain as a workload.

use std::rc::Rc;

use capo_core::ids::hex;
use capo_core::llm::{AgentScript, FailureKind, Role};
use capo_core::metric::MetricSpec;
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use capo_world::simulated::{KnownBehaviours, SolutionScript};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::{IndexMap, IndexSet};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::airline::Airline;
use super::changes::Changes;
use super::dialogue::{Setting, converse};
use super::folder::{Domain, Folder};
use super::grade::Grade;
use super::nl_assertions;
use super::prompts;
use super::retail::Retail;
use super::settings::{DomainName, ReferenceActions, Tau2Settings};
use super::shift;
use super::split::{self, Splits};
use super::task::{Action, Task};
use super::telecom::Telecom;
use super::tool_schemas::Offered;
use super::trajectory::End;
use super::verdict::{Verdict, metrics};
use crate::embeddings::{Embeddings, Wanted};
use crate::files::{FileError, Files, Sources};
use crate::metrics::judging;
use crate::settings::Workloads;
use crate::settings::{BuildError, Settings};
use crate::unknown_example;

/// Steps and errors a conversation may have at most.
const MOST: u32 = 1000;

/// A domain of the benchmark as a workload.
pub struct Tau2<W> {
    fresh: W,
    policy: String,
    guidelines: String,
    offered: Offered,
    tasks: IndexMap<String, Task>,
    splits: Splits,
    reference: ReferenceActions,
    metrics: Vec<MetricSpec>,
    max_steps: u32,
    max_errors: u32,
    /// A hash of all files and of the tools, however the splits came about.
    surroundings: String,
    fingerprint: String,
    behaviours: KnownBehaviours,
}

/// Builds the domain that the settings name.
pub(crate) fn build(mut settings: Settings, files: &dyn Files, _seed: u64) -> Result<Workloads, BuildError> {
    let own: Tau2Settings = settings.take()?;
    settings.finish()?;
    Ok(vec![match own.domain {
        DomainName::Airline => Rc::new(Tau2::<Airline>::new(&own, files)?),
        DomainName::Retail => Rc::new(Tau2::<Retail>::new(&own, files)?),
        DomainName::Telecom => Rc::new(Tau2::<Telecom>::new(&own, files)?),
    }])
}

/// The texts whose vectors make the clusters of the settings' tasks.
pub(crate) fn texts_to_embed(mut settings: Settings, files: &dyn Files) -> Result<Wanted, BuildError> {
    let own: Tau2Settings = settings.take()?;
    settings.finish()?;
    let key = "workload.embeddings";
    let file = own.embeddings.clone().ok_or_else(|| {
        let missing =
            "is missing; it names the file that keeps the vectors, such as \"airline.embeddings.jsonl\"";
        BuildError::setting(key, missing)
    })?;
    if file.is_empty() {
        return Err(BuildError::setting(key, "must name a file"));
    }
    let mut sources = Sources::new(files);
    let mut folder = Folder::new(&mut sources, &own.data, own.domain.name());
    let lists = folder.splits()?;
    let tasks = by_id(folder.tasks()?);
    split::check_settings(&own, &lists)?;
    let Splits { optimize, evaluate } = split::by_share(&own, &lists)?;
    shift::count(&own, optimize.len())?;
    let mut texts = IndexSet::new();
    for id in optimize.iter().chain(&evaluate) {
        let text = task(&tasks, id, own.domain)?.user_scenario.wish();
        if text.trim().is_empty() {
            let empty = format!(
                "task `{id}` of {} says nothing of what its user wants",
                own.domain.name()
            );
            return Err(BuildError::setting("workload.data", empty));
        }
        texts.insert(text);
    }
    Ok(Wanted {
        file,
        texts: texts.into_iter().collect(),
    })
}

fn by_id(tasks: Vec<Task>) -> IndexMap<String, Task> {
    tasks.into_iter().map(|task| (task.id.clone(), task)).collect()
}

/// A task that a list of the benchmark names.
fn task<'a>(tasks: &'a IndexMap<String, Task>, id: &str, domain: DomainName) -> Result<&'a Task, BuildError> {
    tasks.get(id).ok_or_else(|| {
        BuildError::setting(
            "workload.data",
            format!("tasks.json of {} has no task `{id}`", domain.name()),
        )
    })
}

/// Reads the vectors that a study names. They are not part of the fingerprint, the split that they make is:
/// more vectors in the file change nothing.
fn embeddings(files: &dyn Files, file: &str) -> Result<Embeddings, BuildError> {
    let key = "workload.embeddings";
    let content = files.read(file).map_err(|error| match error {
        FileError::NotFound(file) => BuildError::setting(
            key,
            format!(
                "no file `{file}`; `capo embed STUDY` makes it, and without `embeddings` words are counted"
            ),
        ),
        other => BuildError::file(key, other),
    })?;
    Embeddings::parse(file, &content)
}

impl<W: Domain> Tau2<W> {
    /// Reads a domain of the data folder.
    ///
    /// # Errors
    /// What is missing, does not read or cannot be set up, by file and task.
    pub fn new(settings: &Tau2Settings, files: &dyn Files) -> Result<Self, BuildError> {
        for (key, value) in [
            ("max_steps", settings.max_steps),
            ("max_errors", settings.max_errors),
        ] {
            if !(1..=MOST).contains(&value) {
                return Err(BuildError::setting(
                    format!("workload.{key}"),
                    format!("must be 1 to {MOST}, not {value}"),
                ));
            }
        }
        let mut sources = Sources::new(files);
        let offered = match &settings.tool_descriptions {
            None => Offered::of::<W>(),
            Some(path) => {
                let list = sources.read(path);
                let list = list.map_err(|error| BuildError::file("workload.tool_descriptions", error))?;
                Offered::described::<W>(&list).map_err(|problem| {
                    BuildError::setting("workload.tool_descriptions", format!("in {path}, {problem}"))
                })?
            }
        };
        let embeddings = match &settings.embeddings {
            None => None,
            Some(file) => Some(embeddings(files, file)?),
        };
        let mut folder = Folder::new(&mut sources, &settings.data, W::NAME);
        let fresh = <W as Domain>::read(&mut folder)?;
        let policy = W::policy(&mut folder, settings.policy)?;
        let guidelines = folder.guidelines(!W::user_tools().is_empty())?;
        let lists = folder.splits()?;
        let all = by_id(folder.tasks()?);
        let splits = split::draw(settings, &lists, embeddings.as_ref(), |id| {
            Ok(task(&all, id, settings.domain)?.user_scenario.wish())
        })?;
        let mut tasks = IndexMap::new();
        for id in splits.optimize.iter().chain(&splits.evaluate) {
            let task = task(&all, id, settings.domain)?;
            task.set_up(&fresh)
                .map_err(|error| BuildError::setting("workload.data", error))?;
            tasks.insert(id.clone(), task.clone());
        }
        let of_vectors = embeddings.is_some().then_some(&splits);
        let files = sources.fingerprint();
        let surroundings = fingerprint(&files, &offered, None);
        let fingerprint = fingerprint(&files, &offered, of_vectors);
        Ok(Self {
            fresh,
            policy,
            guidelines,
            offered,
            tasks,
            splits,
            reference: settings.reference,
            metrics: metrics(),
            max_steps: settings.max_steps,
            max_errors: settings.max_errors,
            surroundings,
            fingerprint,
            behaviours: KnownBehaviours::default(),
        })
    }

    /// Who takes part in a task's conversation, and how long.
    fn setting(&self, task: &Task, prompt: &str) -> Setting {
        let user_tools = match &task.user_tools {
            None => Rc::clone(&self.offered.user),
            Some(names) => {
                let offered = self.offered.user.iter();
                offered
                    .filter(|tool| names.contains(&tool.name))
                    .cloned()
                    .collect()
            }
        };
        Setting {
            agent: prompts::agent(prompt, &self.policy),
            user: prompts::user(&self.guidelines, &task.user_scenario),
            agent_tools: Rc::clone(&self.offered.agent),
            user_tools,
            max_steps: self.max_steps,
            max_errors: self.max_errors,
        }
    }

    /// Mean reference actions of the tasks of the split that an example belongs to; 1 where they have none at all.
    pub(super) fn mean_reference(&self, example: &str) -> f64 {
        let Splits { optimize, evaluate } = &self.splits;
        let is_searched_on = optimize.iter().any(|id| id == example);
        let split = if is_searched_on { optimize } else { evaluate };
        let actions: usize = split
            .iter()
            .map(|id| self.tasks[id].reference_actions(self.reference))
            .sum();
        if actions == 0 {
            1.0
        } else {
            actions as f64 / split.len() as f64
        }
    }

    async fn play(&self, context: RolloutContext<'_>) -> Result<Rollout, RolloutError> {
        let task = self
            .tasks
            .get(context.example)
            .ok_or_else(|| unknown_example(W::NAME, context.example))?;
        let began = task.set_up(&self.fresh).map_err(failed)?;
        let dialogue = converse(context, began.clone(), self.setting(task, context.prompt)).await?;
        let grade = match dialogue.end {
            End::UserStop => {
                let graded = Grade::new(task, &self.fresh, &dialogue.world, &dialogue.trajectory);
                let mut grade = graded.map_err(failed)?;
                if let Some(asked) = task.judged() {
                    grade.natural = nl_assertions::judge(context, &dialogue.trajectory, asked).await?;
                }
                Some(grade)
            }
            End::MaxSteps | End::TooManyErrors => None,
        };
        let mean = self.mean_reference(context.example);
        let verdict = Verdict::new(task, &dialogue, grade, self.reference, mean).map_err(failed)?;
        Ok(Rollout {
            measurements: verdict.measurements(context.prompt),
            trace: Trace {
                outcome: verdict.outcome::<W>(),
                details: verdict.details(&Changes::between(&began, &dialogue.world)),
                messages: dialogue.trajectory.seen_by(super::environment::Side::Assistant),
            },
            external_usage: Usage::default(),
        })
    }
}

/// What is wrong lies in the task, so that another try would not help.
fn failed(error: impl std::fmt::Display) -> RolloutError {
    RolloutError::failed(FailureKind::Tool, false, error.to_string())
}

/// Of the files that were read and the tools as they are offered.
/// `splits` are those that vectors made; others follow from the settings and the files.
fn fingerprint(files: &str, offered: &Offered, splits: Option<&Splits>) -> String {
    let mut hash = Sha256::new();
    hash.update(files);
    for id in splits
        .iter()
        .flat_map(|splits| splits.optimize.iter().chain(&splits.evaluate))
    {
        hash.update(id);
        hash.update([0]);
    }
    // Not as in runs whose `excess_tools` was a ratio of each task's own.
    hash.update([2]);
    for tool in offered.agent.iter().chain(offered.user.iter()) {
        hash.update(serde_json::to_string(tool).unwrap_or_default());
    }
    hex(&hash.finalize())
}

impl<W: Domain> Workload for Tau2<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.splits.optimize,
            Split::Evaluate => &self.splits.evaluate,
        }
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn contents(&self, split: Split) -> Option<Vec<String>> {
        let examples = self.examples(split);
        let mean_reference = self.mean_reference(examples.first()?);
        let (surroundings, reference, steps, errors) = (
            &self.surroundings,
            self.reference,
            self.max_steps,
            self.max_errors,
        );
        let content = json!([surroundings, reference, steps, errors, mean_reference]).to_string();
        Some(vec![content; examples.len()])
    }

    fn description(&self) -> String {
        format!(
            "{} The policy and the tools' descriptions are always put beside the prompt, so the prompt should say how \
             to work, not repeat them. In each turn the agent either writes to the customer or calls tools. \
             Customers may be vague, insist, or want what the policy forbids.",
            W::ABOUT
        )
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        // Each side speaks at most every other step.
        let turns = u64::from(self.max_steps).div_ceil(2) + 1;
        let mut calls = vec![(Role::Agent, turns), (Role::User, turns)];
        if self.tasks.values().any(|task| task.judged().is_some()) {
            calls.push((Role::Judge, judging::ATTEMPTS));
        }
        calls
    }

    fn agent_script(&self, example: &str) -> Option<Rc<dyn AgentScript>> {
        let solution = self.tasks.get(example)?.reference().iter().map(Action::to_call);
        Some(Rc::new(SolutionScript::new(
            solution.collect(),
            self.behaviours.clone(),
        )))
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        self.play(context).boxed_local()
    }
}
