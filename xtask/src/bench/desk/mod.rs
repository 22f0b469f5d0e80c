//! On how many splits and seeds do searches find a help-desk prompt inside every threshold, what do they hand over, and
//! after how much? On the tasks that they searched on, on held-out ones, and on fresh ones.

mod journal;
mod report;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use self::journal::Found;
use super::measure;
use crate::build;
use crate::help_desk::{SEARCH_ENDED, STUDY, optimize};
use crate::install::{Tool, Toolbox};
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// What searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    /// The study without caution.
    Capo,
    /// The same with every multiplier fixed at 1.
    Fixed,
    /// The study with caution, as it is shipped, and the same with fixed multipliers.
    Cautious,
    CautiousFixed,
    /// The study without caution until the budget is spent, and the same with it.
    UntilBudget,
    CautiousUntilBudget,
    /// GEPA with the Lagrangian score at multipliers of 1.
    GepaSigned,
    /// GEPA with success less what exceeds the thresholds.
    GepaHinge,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Capo => "capo",
            Self::Fixed => "fixed",
            Self::Cautious => "cautious",
            Self::CautiousFixed => "cautious-fixed",
            Self::UntilBudget => "until-budget",
            Self::CautiousUntilBudget => "cautious-until",
            Self::GepaSigned => "gepa-signed",
            Self::GepaHinge => "gepa-hinge",
        }
    }
}

/// Caution κ and probability p of a cautious search, chosen on seeds 500 to 529.
const CAUTION: (f64, f64) = (1.64, 0.8);

/// Where prompts are measured.
const WHERE: [&str; 3] = ["search", "held-out", "fresh"];

/// How many tasks a prompt is measured on at last, which no search has seen.
const FRESH_TASKS: i64 = 1000;

/// The rollouts of the study's budget that are left for a search once Capo has measured its prompt and the seed prompt
/// on 40 held-out tasks. GEPA stops after the measurement that reaches them.
const SEARCH_ROLLOUTS: u32 = 3920;

/// The simulated world was set and its truths were tested on seeds below it.
const FIRST_SEED_OF_PEERS: u64 = 1000;

/// The part of `capo optimize --json` that is compared.
#[derive(Deserialize)]
struct Summary {
    best: Best,
}

#[derive(Deserialize)]
struct Best {
    prompt: String,
}

/// What `gepa.py` prints.
#[derive(Deserialize)]
struct GepaOutput {
    prompt: String,
    /// Rollouts made and reflections asked for, after every measurement.
    trail: Vec<(u64, u64)>,
}

/// The part of `capo evaluate --json` that is compared: whether every threshold is met, and success.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Measured {
    feasible: bool,
    objective: f64,
}

/// A prompt by where it was measured, as [`WHERE`] has it.
type Prompt = [Measured; 3];

/// What came of one search.
struct Searched {
    /// Rollouts and model calls until a prompt met every threshold on all tasks of the search.
    first: Option<(u64, u64)>,
    /// The same when it ended.
    ended: (u64, u64),
    /// Prompts that were written.
    prompts: u64,
    /// Of the prompts that met every threshold on all tasks of the search, the one of the highest success there.
    best_feasible: Option<Prompt>,
    /// What it returned.
    returned: Prompt,
    /// Processor time of all processes.
    cpu: Duration,
}

/// Adaptive multipliers against fixed ones.
pub(super) fn run(workspace: &Workspace, scratch: &Scratch, seeds: u64) -> Result<()> {
    let contenders = [
        Contender::Capo,
        Contender::Fixed,
        Contender::Cautious,
        Contender::CautiousFixed,
    ];
    compare(workspace, scratch, 0..seeds, &contenders, Path::new(""))
}

/// Capo against GEPA, which is installed for it.
pub(super) fn run_peers(workspace: &Workspace, scratch: &Scratch, seeds: u64) -> Result<()> {
    let mut toolbox = Toolbox::open()?;
    toolbox.ensure(&Tool::Optimisers)?;
    let contenders = [
        Contender::UntilBudget,
        Contender::CautiousUntilBudget,
        Contender::Capo,
        Contender::GepaSigned,
        Contender::GepaHinge,
    ];
    let seeds = FIRST_SEED_OF_PEERS..FIRST_SEED_OF_PEERS + seeds;
    compare(
        workspace,
        scratch,
        seeds,
        &contenders,
        &toolbox.optimisers_python(),
    )
}

/// Every contender on splits that each seed draws for itself.
fn compare(
    workspace: &Workspace,
    scratch: &Scratch,
    seeds: Range<u64>,
    contenders: &[Contender],
    python: &Path,
) -> Result<()> {
    let capo = build::capo(workspace)?;
    let path = workspace.root.join(STUDY);
    let study = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let setting = Setting {
        workspace,
        scratch,
        capo: &capo,
        python,
        study: &study,
    };
    let count = contenders.len() as u64;
    let first_seed = seeds.start;
    let results = in_parallel((seeds.end - first_seed) * count, |run| {
        let contender = contenders[(run % count) as usize];
        setting.search(contender, first_seed + run / count)
    })?;
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
    print!("{}", report::report(&names, &results));
    Ok(())
}

/// What all searches have in common.
struct Setting<'a> {
    workspace: &'a Workspace,
    scratch: &'a Scratch,
    capo: &'a Path,
    /// With GEPA, where it takes part.
    python: &'a Path,
    /// The text of the study.
    study: &'a str,
}

impl Setting<'_> {
    fn search(&self, contender: Contender, seed: u64) -> Result<Searched> {
        let name = format!("desk-{}-{seed}", contender.name());
        let journal = self.scratch.file(&format!("{name}.jsonl"));
        let text = edited(self.study, contender)?;
        let tasks = [("seed", seed.cast_signed()), ("skip", 114 * seed.cast_signed())];
        let study = self.write(&format!("{name}.toml"), &with_workload(&text, &tasks)?)?;
        let (returned, reflections, cpu) = match contender {
            Contender::Capo
            | Contender::Fixed
            | Contender::Cautious
            | Contender::CautiousFixed
            | Contender::UntilBudget
            | Contender::CautiousUntilBudget => {
                let mut command = optimize(self.workspace, self.capo, &study, seed, &journal);
                // 3 is a budget that was spent, which is what was asked for.
                let measured = measure::run(&mut command, &[&SEARCH_ENDED[..], &[3]].concat())?;
                let summary: Summary = serde_json::from_str(&measured.output)
                    .context("`capo optimize --json` printed unexpected JSON")?;
                (summary.best.prompt, Vec::new(), measured.cpu)
            }
            Contender::GepaSigned | Contender::GepaHinge => {
                let score = contender.name().trim_start_matches("gepa-");
                let measured = measure::run(&mut self.gepa(&study, seed, &journal, score)?, &[0])?;
                let said = measured.output.lines().last().unwrap_or_default();
                let found: GepaOutput =
                    serde_json::from_str(said).context("GEPA's program printed unexpected JSON")?;
                (found.prompt, found.trail, measured.cpu)
            }
        };
        let found = Found::read(&journal, &returned)?;
        // Some 25 MB each: hundreds of them would fill a disk.
        remove(&journal)?;
        let with_reflections = |(rollouts, calls): (u64, u64)| {
            let mut after = reflections.iter().skip_while(|(made, _)| *made < rollouts);
            let last = || reflections.last();
            (
                rollouts,
                calls + after.next().or_else(last).map_or(0, |(_, asked)| *asked),
            )
        };
        let measured = |prompt: &str| self.measure(&text, seed, &name, prompt);
        let returned_measured = measured(&returned)?;
        let best_feasible = match found.best_feasible {
            Some(best) if best == returned => Some(returned_measured),
            Some(best) => Some(measured(&best)?),
            None => None,
        };
        Ok(Searched {
            first: found.first.map(with_reflections),
            ended: with_reflections(found.ended),
            prompts: found.prompts,
            best_feasible,
            returned: returned_measured,
            cpu,
        })
    }

    /// The program of docs/simulate.md on a study.
    fn gepa(&self, study: &Path, seed: u64, journal: &Path, score: &str) -> Result<Command> {
        let guide = self.workspace.root.join("docs/simulate.md");
        let guide =
            std::fs::read_to_string(&guide).with_context(|| format!("cannot read {}", guide.display()))?;
        let program = guide
            .split("```python\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let program = program.filter(|program| program.contains("gepa.optimize"));
        let program = program.context("docs/simulate.md does not begin its Python with GEPA's program")?;
        // One for each, since they are written at once.
        let program = self.write(&format!("gepa-{score}-{seed}.py"), program)?;
        let mut command = Command::new(self.python);
        command
            .current_dir(&self.workspace.root)
            .args(["-c", include_str!("gepa.py")])
            .arg(program)
            .arg(self.capo)
            .arg(study)
            .arg(seed.to_string())
            .arg(journal)
            .arg(score)
            .arg(SEARCH_ROLLOUTS.to_string());
        Ok(command)
    }

    /// A prompt on the tasks of the search, on the held-out ones of the split, and on fresh ones.
    fn measure(&self, study: &str, seed: u64, name: &str, prompt: &str) -> Result<Prompt> {
        let prompt = self.write(&format!("{name}.md"), prompt)?;
        let journal = self.scratch.file(&format!("{name}-prompt.jsonl"));
        let own = [("seed", seed.cast_signed()), ("skip", 114 * seed.cast_signed())];
        // Splits are drawn from 114 tasks each; half of the 285,000 are far from them.
        let stretch = 142_500 + (seed.cast_signed() % 142) * (FRESH_TASKS + 1);
        let fresh = [
            own[0],
            ("skip", stretch),
            ("optimize", 1),
            ("evaluate", FRESH_TASKS),
        ];
        let places: [(&[(&str, i64)], &str); 3] =
            [(&own, "optimize"), (&own, "evaluate"), (&fresh, "evaluate")];
        let mut measured = Vec::new();
        for (tasks, split) in places {
            let study = self.write(&format!("{name}-{split}.toml"), &with_workload(study, tasks)?)?;
            let mut evaluate = Command::new(self.capo);
            evaluate
                .current_dir(&self.workspace.root)
                .arg("evaluate")
                .arg(study);
            evaluate
                .args([
                    "--json",
                    "--split",
                    split,
                    "--seed",
                    &seed.to_string(),
                    "--prompt",
                ])
                .arg(&prompt)
                .arg("--journal")
                .arg(&journal);
            let output = measure::run(&mut evaluate, &SEARCH_ENDED)?.output;
            remove(&journal)?;
            measured.push(
                serde_json::from_str(&output).context("`capo evaluate --json` printed unexpected JSON")?,
            );
        }
        let measured = <[Measured; 3]>::try_from(measured);
        measured.map_err(|_| anyhow::anyhow!("a prompt was not measured everywhere"))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.scratch.file(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// The study as a contender runs it.
///
/// # Errors
/// The text is no study, or names files relative to its own place, which a copy elsewhere would not find.
fn edited(study: &str, contender: Contender) -> Result<String> {
    use Contender::{
        Capo, Cautious, CautiousFixed, CautiousUntilBudget, Fixed, GepaHinge, GepaSigned, UntilBudget,
    };
    let mut study: toml::Table = toml::from_str(study)?;
    if table(&mut study, "prompt")?.contains_key("file") {
        bail!("its prompt must be in the study, not in a file beside it");
    }
    let (caution, probability) = match contender {
        Cautious | CautiousFixed | CautiousUntilBudget => CAUTION,
        _ => (0.0, 0.0),
    };
    let settings = table(&mut study, "study")?;
    settings.insert("caution".to_owned(), caution.into());
    settings.insert("choice_probability".to_owned(), probability.into());
    match contender {
        Capo | Cautious => {}
        Fixed | CautiousFixed => {
            let method = table(&mut study, "method")?;
            method.insert("dual_step".to_owned(), "fixed".into());
            method.insert("lambda_init".to_owned(), 1.0.into());
        }
        UntilBudget | CautiousUntilBudget => {
            table(&mut study, "study")?.insert("rounds".to_owned(), "until-budget".into());
        }
        // Its program counts for itself, and may go over it in its last step.
        GepaSigned | GepaHinge => {
            study.remove("budget");
        }
    }
    Ok(toml::to_string(&study)?)
}

/// The study with these numbers in its workload.
fn with_workload(study: &str, numbers: &[(&str, i64)]) -> Result<String> {
    let mut study: toml::Table = toml::from_str(study)?;
    let workload = table(&mut study, "workload")?;
    for (key, number) in numbers {
        workload.insert((*key).to_owned(), (*number).into());
    }
    Ok(toml::to_string(&study)?)
}

/// A table of the study, which is made where there is none.
fn table<'a>(study: &'a mut toml::Table, name: &str) -> Result<&'a mut toml::Table> {
    let entry = study.entry(name).or_insert_with(|| toml::Table::new().into());
    entry
        .as_table_mut()
        .with_context(|| format!("`{name}` is not a table"))
}

/// Calls `work` with 0, 1, … `count - 1` on as many threads as there are cores
/// and returns the results in that order; after an error no further call starts.
fn in_parallel<T: Send>(count: u64, work: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    if result.is_err() {
                        next.store(count, Ordering::Relaxed);
                    }
                    done.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_differ_from_the_study_in_one_thing() {
        let study = "
            [study]
            name = 'desk'
            caution = 0.0
            choice_probability = 0.0
            [prompt]
            text = 'Be kind.'
            [method]
            beta = 4.0
            [budget]
            rollouts = 4000
        ";
        let original: toml::Table = toml::from_str(study).unwrap();
        let of = |contender| toml::from_str::<toml::Table>(&edited(study, contender).unwrap()).unwrap();
        assert_eq!(of(Contender::Capo), original);

        let mut fixed = of(Contender::Fixed);
        let method = fixed["method"].as_table_mut().unwrap();
        assert_eq!(method.remove("dual_step"), Some("fixed".into()));
        assert_eq!(method.remove("lambda_init"), Some(1.0.into()));
        assert_eq!(fixed, original);

        let mut cautious = of(Contender::CautiousFixed);
        let settings = cautious["study"].as_table_mut().unwrap();
        assert_eq!(
            settings.insert("caution".to_owned(), 0.0.into()),
            Some(1.64.into())
        );
        let probability = settings.insert("choice_probability".to_owned(), 0.0.into());
        assert_eq!(probability, Some(0.8.into()));
        assert_eq!(cautious, of(Contender::Fixed));

        let mut until = of(Contender::UntilBudget);
        let rounds = until["study"].as_table_mut().unwrap().remove("rounds");
        assert_eq!(rounds, Some("until-budget".into()));
        assert_eq!(until, original);

        let mut gepa = of(Contender::GepaHinge);
        gepa.insert("budget".to_owned(), original["budget"].clone());
        assert_eq!(gepa, original);
    }

    #[test]
    fn a_prompt_beside_the_study_is_refused() {
        assert!(edited("[prompt]\nfile = 'seed.md'", Contender::Capo).is_err());
        assert!(edited("prompt = 3", Contender::Capo).is_err());
    }

    #[test]
    fn parallel_results_come_in_order_and_errors_stop_the_rest() {
        let squares = in_parallel(50, |number| Ok(number * number)).unwrap();
        assert_eq!(squares, (0..50).map(|number| number * number).collect::<Vec<_>>());

        let calls = AtomicU64::new(0);
        let outcome: Result<Vec<()>> = in_parallel(1_000_000, |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            bail!("no")
        });
        assert!(outcome.is_err());
        assert!(calls.into_inner() < 1_000);
    }
}
