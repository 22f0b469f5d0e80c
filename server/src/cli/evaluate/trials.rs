//! Trials, each a prompt under a model, and what they measured.

use std::path::{Path, PathBuf};

use capo_core::evaluate::Evaluation;
use capo_core::llm::Role;
use capo_core::problem::Problem;
use capo_core::reading::comparison::PromptOf;
use capo_core::study::read_toml;
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::EvaluateArgs;
use super::bars::Bar;
use super::others::Others;
use crate::cli::failure::Failure;
use crate::files::{read_prompt, read_text};
use crate::recorded::RecordedRun;
use crate::session::{Session, StudyFile};

/// The `--model` that leaves the study's models as they are.
const OWN: &str = "study";

/// A prompt to be measured under some models.
pub(super) struct Trial {
    pub(super) name: Name,
    pub(super) prompt: String,
    pub(super) others: Others,
    pub(super) journal: PathBuf,
    study: StudyFile,
    /// Of the first one, which is built to see whether all is right.
    pub(super) built: Option<Session>,
}

impl Trial {
    /// What measures it.
    pub(super) fn session(&mut self, args: &EvaluateArgs) -> Result<Session, Failure> {
        match self.built.take() {
            Some(session) => Ok(session),
            None => Ok(build(args, &self.study)?.0),
        }
    }
}

/// What measures a study's prompts, and which journals of earlier runs do not fit it.
fn build(args: &EvaluateArgs, study: &StudyFile) -> Result<(Session, IndexMap<PathBuf, Failure>), Failure> {
    let mut session = Session::new(study, &study.keys(), args.output.prices.table()?)?;
    let misfits = args.reuse.take_over(&mut session, study)?;
    Ok((session, misfits))
}

/// What a prompt and its models are called on the command line.
#[derive(Debug, Clone)]
pub(super) struct Name {
    /// The prompt's file.
    pub(super) file: String,
    /// The `--model`, if one was named.
    pub(super) model: Option<String>,
}

impl std::fmt::Display for Name {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.file)?;
        match &self.model {
            Some(model) => write!(formatter, " by {model}"),
            None => Ok(()),
        }
    }
}

/// A prompt that was measured.
pub(super) struct Tried {
    pub(super) name: Name,
    pub(super) others: Others,
    pub(super) journal: PathBuf,
    pub(super) evaluation: Evaluation,
    /// What it has to keep.
    pub(super) bars: Vec<Bar>,
    /// How long that took now.
    pub(super) seconds: f64,
    /// Its journal, where all was measured and more is to be told than of one prompt alone.
    pub(super) run: Option<RecordedRun>,
}

impl Tried {
    /// Whether a threshold of the study is broken, or a demand.
    pub(super) fn is_broken(&self) -> bool {
        self.bars.iter().any(Bar::is_broken)
    }

    /// The prompt in its journal.
    pub(super) fn prompt(&self) -> Option<PromptOf<'_>> {
        Some(PromptOf {
            state: &self.run.as_ref()?.state,
            candidate: self.evaluation.candidate,
        })
    }
}

/// Every prompt under every model that the command line names. Nothing is paid for yet.
///
/// # Errors
/// When a prompt, a model, the study, the split or what a constraint is measured on is not there, one is named twice, or an
/// earlier run fits none of them.
pub(super) fn planned(args: &EvaluateArgs, file: &StudyFile, split: Split) -> Result<Vec<Trial>, Failure> {
    let prompts = prompts(&args.prompt)?;
    let studies = studies(file, &args.model)?;
    if studies.len() > 1 && args.journal.is_some() {
        return Err(Failure::usage(
            "a journal belongs to one study, and other models make another one; leave --journal out",
        ));
    }
    let mut constraints = file.study.constraints.iter();
    let is_relative = constraints.any(|constraint| constraint.relative_to_seed.is_some());
    let (mut trials, mut misfits) = (Vec::new(), None::<IndexMap<PathBuf, Failure>>);
    for (model, study) in &studies {
        let (session, mut unfit) = build(args, study)?;
        check_split(session.problem(), &file.name, split)?;
        if let Some(before) = misfits.take() {
            unfit.retain(|path, _| before.contains_key(path));
        }
        misfits = Some(unfit);
        let others = Others::of(session.problem());
        let mut built = trials.is_empty().then_some(session);
        for (path, prompt) in &prompts {
            // What thresholds are relative to is measured once, for all prompts.
            let is_shared = is_relative && prompts.len() > 1;
            trials.push(Trial {
                name: Name {
                    file: path.display().to_string(),
                    model: model.clone(),
                },
                journal: args.journal(&study.study, if is_shared { "" } else { prompt.as_str() }),
                prompt: prompt.clone(),
                study: study.clone(),
                others: others.clone(),
                built: built.take(),
            });
        }
    }
    match misfits.into_iter().flatten().next() {
        Some((_, failure)) => Err(failure),
        None => Ok(trials),
    }
}

/// Refuses a split that measures nothing, or not all constraints.
fn check_split(problem: &Problem, study: &str, split: Split) -> Result<(), Failure> {
    let places = problem.places(split);
    let of_what = if places.iter().all(Vec::is_empty) {
        String::new()
    } else {
        let mut metrics = problem.constraints().iter().map(|constraint| &constraint.source);
        match metrics.find(|metric| places[usize::from(metric.workload)].is_empty()) {
            Some(metric) => format!(" for the constraint `{}`", metric.name()),
            None => return Ok(()),
        }
    };
    Err(Failure::usage(format!(
        "{study} has no held-out examples{of_what}; use --split optimize"
    )))
}

fn prompts(paths: &[PathBuf]) -> Result<Vec<(&Path, String)>, Failure> {
    let mut prompts: Vec<(&Path, String)> = Vec::new();
    for path in paths {
        let prompt = read_prompt(path)?;
        if prompt.trim().is_empty() {
            return Err(Failure::usage(format!("{}: the prompt is empty", path.display())));
        }
        if let Some((same, _)) = prompts.iter().find(|(_, other)| *other == prompt) {
            return Err(Failure::usage(format!(
                "{} and {} hold the same prompt; name it once",
                same.display(),
                path.display()
            )));
        }
        prompts.push((path.as_path(), prompt));
    }
    Ok(prompts)
}

/// The study with each of the models.
fn studies(file: &StudyFile, models: &[String]) -> Result<Vec<(Option<String>, StudyFile)>, Failure> {
    if models.is_empty() {
        return Ok(vec![(None, file.clone())]);
    }
    let setup = file.setup()?;
    let calls = setup
        .problem
        .workloads()
        .iter()
        .flat_map(|workload| workload.max_calls());
    let asked: Vec<Role> = calls
        .filter(|(_, calls)| *calls > 0)
        .map(|(role, _)| role)
        .collect();
    let mut studies: Vec<(Option<String>, StudyFile)> = Vec::new();
    for model in models {
        let study = with_model(file, model, &asked)?;
        let identity = study.study.identity();
        let same = studies
            .iter()
            .find(|(_, other)| other.study.identity() == identity);
        if let Some((Some(same), _)) = same {
            return Err(Failure::usage(format!(
                "--model {same} and --model {model} are the same models; name them once"
            )));
        }
        studies.push((Some(model.clone()), study));
    }
    Ok(studies)
}

/// The study with other models, of which a rollout asks those of `asked`.
fn with_model(file: &StudyFile, model: &str, asked: &[Role]) -> Result<StudyFile, Failure> {
    let mut study = file.clone();
    if model == OWN {
        return Ok(study);
    }
    let tables = tables(model)?;
    if !tables.keys().any(|role| asked.contains(role)) {
        return Err(Failure::usage(format!(
            "--model {model}: no rollout of {} asks it",
            file.name
        )));
    }
    // Whoever plays the user or judges stays who it was: another judge would measure something else.
    if let Some(agent) = file.study.models.get(&Role::Agent) {
        for role in [Role::User, Role::Judge] {
            if asked.contains(&role) {
                let own = study.study.models.entry(role);
                own.or_insert_with(|| agent.clone());
            }
        }
    }
    study.study.models.extend(tables);
    study.name = format!("{} with --model {model}", file.name);
    Ok(study)
}

/// The file of a `--model`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    models: IndexMap<Role, Value>,
}

/// The tables that a `--model` stands for.
fn tables(model: &str) -> Result<IndexMap<Role, Value>, Failure> {
    let path = Path::new(model);
    if path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
    {
        let text = read_text("model file", path)?;
        let file: ModelFile = read_toml(&text)
            .map_err(|why| Failure::usage(format!("{model}: {why}; it is to hold [models.agent]")))?;
        return Ok(file.models);
    }
    match model.split_once('/') {
        Some((provider, name)) => {
            // In the order of TOML's tables, so that a file that says the same has the same journal.
            let agent = json!({ "model": name, "provider": provider });
            Ok(IndexMap::from([(Role::Agent, agent)]))
        }
        None => Err(Failure::usage(format!(
            "--model {model}: write it as PROVIDER/MODEL, such as openai/gpt-5-mini, as a .toml file with [models.agent], \
             or `{OWN}` for the study's own"
        ))),
    }
}
