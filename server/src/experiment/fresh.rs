//! The truth beside the sample: what a prompt measures where neither the search nor its held-out evaluation has been.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use capo_core::arena::Halt;
use capo_core::budget::Budget;
use capo_core::estimate::Estimate;
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::llm::Role;
use capo_core::study::Study;
use capo_core::workload::Split;
use capo_models::prices::PriceTable;
use capo_models::providers::SIMULATED;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record::{Outcome, Prompts, RunRecord, outcome};
use super::run::{TrialError, lock};
use crate::files::write_whole;
use crate::interrupt::Interrupts;
use crate::session::{Session, StudyFile, block_on};

/// Rollouts of a prompt, at least, unless said otherwise.
pub const ROLLOUTS: u32 = 1000;

/// Which of the prompts that a search measured, for this objective, to measure on fresh examples next: one of which that is
/// not known yet; `None` once enough is.
pub type Next = fn(&RunRecord, &str) -> Option<usize>;

/// What prompts measured on fresh examples, so that runs of one seed share it: all start from the same prompt.
#[derive(Debug, Default)]
pub struct Truths(Mutex<HashMap<String, IndexMap<String, Estimate>>>);

impl Truths {
    /// A prompt on the held-out examples of a study, by metric; `None` when it was interrupted.
    fn of(
        &self,
        file: &StudyFile,
        prompt: &str,
        interrupts: Option<&Interrupts>,
    ) -> Result<Option<IndexMap<String, Estimate>>, TrialError> {
        let Study {
            study,
            workload,
            models,
            failures,
            ..
        } = &file.study;
        // Where paths in the study lead.
        let folder = file.folder.resolve("").display().to_string();
        let key = json!([
            folder,
            workload,
            models,
            failures,
            study.seed,
            study.repeats,
            prompt
        ])
        .to_string();
        let known = lock(&self.0).get(&key).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = on(file, prompt, Split::Evaluate, interrupts)?;
        lock(&self.0).extend(found.clone().map(|found| (key, found)));
        Ok(found)
    }
}

/// What was measured, so that it is not measured again.
#[derive(Serialize, Deserialize)]
struct Cached {
    /// [`Problem::id`](capo_core::problem::Problem::id) of the study with fresh examples.
    study: String,
    prompts: Prompts,
    returned: Outcome,
    seed: Outcome,
    /// What the prompts that the search measured do, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    visited: Vec<Truth>,
}

/// What a prompt does that the search measured.
#[derive(Serialize, Deserialize)]
struct Truth {
    fresh: Option<Outcome>,
    repeated: Option<IndexMap<String, Estimate>>,
}

/// Adds to the record what the returned prompt and the seed prompt measure in so many fresh rollouts: on new examples where
/// the workload makes as many as are asked for, else on the held-out ones under another seed; with `next` also what prompts
/// that the search measured do there, and all that are near a threshold on the search's own examples once more.
/// Nothing unless every model of the study but rewriter and critic is simulated, since elsewhere it would be paid for.
/// What is found is kept in a file, if one is named. `false` when it was interrupted.
///
/// # Errors
/// When the study cannot be set up, its models fail, or the file cannot be written.
pub fn measure(
    file: &StudyFile,
    record: &mut RunRecord,
    rollouts: u32,
    next: Option<Next>,
    kept: Option<&Path>,
    truths: &Truths,
    interrupts: Option<&Interrupts>,
) -> Result<bool, TrialError> {
    let mut file = file.clone();
    // Nobody is asked for a rewrite or a critique.
    file.study
        .models
        .retain(|role, _| !matches!(role, Role::Rewriter | Role::Critic));
    let (Some(prompts), true) = (record.prompts.clone(), is_simulated(&file.study)) else {
        return Ok(true);
    };
    let again = twice(&file);
    let Some(file) = fresh(file, &record.thresholds, rollouts)? else {
        return Ok(true);
    };
    let study = file.setup()?.problem.id();
    let count = next.map_or(0, |_| record.searched.visited.len());
    let known = kept.and_then(|path| std::fs::read(path).ok());
    let known = known.and_then(|text| serde_json::from_slice::<Cached>(&text).ok());
    let known = known
        .filter(|known| known.study == study && known.prompts == prompts && known.visited.len() >= count);
    let found = if let Some(known) = known {
        known
    } else {
        let (objective, thresholds) = (&file.study.objective.metric, record.thresholds.clone());
        let of = |prompt: &str| -> Result<Option<Outcome>, TrialError> {
            let Some(estimates) = truths.of(&file, prompt, interrupts)? else {
                return Ok(None);
            };
            let missing = || TrialError::NotMeasured("no example was left".into());
            let found = outcome(&estimates, objective, &thresholds);
            found.ok_or_else(missing).map(Some)
        };
        let (Some(returned), Some(seed)) = (of(&prompts.returned)?, of(&prompts.seed)?) else {
            return Ok(false);
        };
        for prompt in &mut record.searched.visited[..count] {
            if prompt.is_near(&thresholds) {
                let Some(repeated) = on(&again, &prompt.prompt, Split::Optimize, interrupts)? else {
                    return Ok(false);
                };
                prompt.repeated = Some(repeated);
            }
        }
        while let Some(place) = next.and_then(|next| next(record, objective)) {
            let Some(fresh) = of(&record.searched.visited[place].prompt)? else {
                return Ok(false);
            };
            record.searched.visited[place].fresh = Some(fresh);
        }
        let measured = record.searched.visited[..count].iter().map(|prompt| Truth {
            fresh: prompt.fresh.clone(),
            repeated: prompt.repeated.clone(),
        });
        let found = Cached {
            study,
            prompts,
            returned,
            seed,
            visited: measured.collect(),
        };
        if let Some(path) = kept {
            keep(path, &found).map_err(|source| TrialError::Fresh {
                path: path.to_owned(),
                source,
            })?;
        }
        found
    };
    for (prompt, truth) in record.searched.visited.iter_mut().zip(found.visited) {
        (prompt.fresh, prompt.repeated) = (truth.fresh, truth.repeated);
    }
    record.fresh = Some(found.returned);
    record.seed_prompt_fresh = Some(found.seed);
    Ok(true)
}

/// The file for what a run with this journal measures on fresh examples.
pub fn kept_beside(journal: &Path) -> PathBuf {
    let name = journal.file_name().unwrap_or_default();
    let folder = journal.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    folder.join("fresh").join(name).with_extension("json")
}

fn keep(path: &Path, found: &Cached) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write_whole(path, &serde_json::to_vec(found)?)
}

/// Whether all models that a study asks run in this process and cost nothing.
pub fn is_simulated(study: &Study) -> bool {
    let mut models = study.asked_models();
    !capo_workloads::asks_outside(&study.workload)
        && models.all(|model| model.get("provider").is_some_and(|name| name == SIMULATED))
}

/// Whether the workload of a study makes so many new examples.
pub(super) fn makes_examples(study: &Study, examples: u32) -> bool {
    let kind = capo_workloads::of(&study.workload);
    kind.is_some_and(|kind| (kind.fresh)(&study.workload, examples, 0).is_some())
}

/// The study without what limits it or lets it wait.
fn at_once(study: &mut Study) {
    (study.budget, study.confirm) = (Budget::default(), None);
    for model in study.models.values_mut() {
        if let Some(table) = model.as_object_mut() {
            table.shift_remove("latency");
        }
    }
}

/// The study with one more repeat of every example.
fn twice(file: &StudyFile) -> StudyFile {
    let mut file = file.clone();
    at_once(&mut file.study);
    file.study.study.repeats += 1;
    file
}

/// The study whose held-out examples are fresh ones; `None` for one that holds out none.
fn fresh(
    mut file: StudyFile,
    thresholds: &IndexMap<String, f64>,
    rollouts: u32,
) -> Result<Option<StudyFile>, TrialError> {
    let study = &mut file.study;
    at_once(study);
    for constraint in &mut study.constraints {
        if let Some(threshold) = thresholds.get(&constraint.metric) {
            (constraint.threshold, constraint.relative_to_seed) = (Some(*threshold), None);
        }
    }
    let kind = capo_workloads::of(&study.workload);
    if let Some(settings) = kind.and_then(|kind| (kind.fresh)(&study.workload, rollouts, study.study.seed)) {
        study.workload = settings;
        return Ok(Some(file));
    }
    // Far from the seeds of other runs.
    study.study.seed = study.study.seed.wrapping_add(1_000_000);
    let problem = file.setup()?.problem;
    let workloads = problem.workloads().iter();
    let examples: usize = workloads
        .map(|workload| workload.examples(Split::Evaluate).len())
        .sum();
    if examples == 0 {
        return Ok(None);
    }
    file.study.study.repeats = rollouts.div_ceil(u32::try_from(examples).unwrap_or(u32::MAX));
    Ok(Some(file))
}

/// A prompt on the examples of a study, by metric; `None` when it was interrupted.
fn on(
    file: &StudyFile,
    prompt: &str,
    split: Split,
    interrupts: Option<&Interrupts>,
) -> Result<Option<IndexMap<String, Estimate>>, TrialError> {
    if interrupts.is_some_and(Interrupts::is_asked) {
        return Ok(None);
    }
    let session = Session::new(file, &file.keys(), PriceTable::shipped())?;
    let mut journal = Journal::create(Box::new(MemoryJournal::new()));
    if let Some(interrupts) = interrupts {
        let (asked, control) = (interrupts.clone(), session.wires().control());
        journal.observe(Box::new(move |_, _| {
            // While models in this process answer at once, nothing else gets its turn.
            if asked.is_asked() {
                control.interrupt();
            }
        }));
    }
    let measured = block_on(session.evaluate(journal, prompt, split));
    let measured = measured.map_err(TrialError::Runtime)??;
    match measured.halt {
        None => Ok(Some(measured.estimates)),
        Some(Halt::Interrupted) => Ok(None),
        Some(halt) => Err(TrialError::NotMeasured(halt.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::HELP_DESK;

    #[test]
    fn runs_of_a_seed_share_what_a_prompt_does_and_no_others_do() {
        let truths = Truths::default();
        let file = |method: &str, seed: u64| {
            let mut file = HELP_DESK.read().unwrap();
            file.study.study.seed = seed;
            method.clone_into(&mut file.study.study.method);
            // What it says of its own method is nothing that others know.
            file.study.method.clear();
            fresh(file, &IndexMap::new(), 4).unwrap().unwrap()
        };
        let of = |file: &StudyFile, prompt: &str| truths.of(file, prompt, None).unwrap().unwrap();
        let first = of(&file("capo", 0), "Help.");
        assert_eq!(of(&file("count", 0), "Help."), first);
        assert_eq!(lock(&truths.0).len(), 1);
        let anew = on(&file("count", 0), "Help.", Split::Evaluate, None);
        assert_eq!(anew.unwrap().unwrap(), first, "the method does not matter");
        of(&file("capo", 0), "Help briefly.");
        of(&file("capo", 1), "Help.");
        assert_eq!(lock(&truths.0).len(), 3);
    }
}
