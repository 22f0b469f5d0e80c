//! On how many splits and seeds do searches find a prompt inside every threshold, what do they hand over, and
//! after how much? On the tasks that they searched on, on held-out ones, and on fresh ones.

mod contender;
mod journal;
mod report;
pub(super) mod studies;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use self::contender::Contender;
use self::journal::Found;
use self::studies::{
    END_OF_SEEDS, edited, fresh, is_help_desk, move_thresholds, on_split, play_on, read, table,
};
use super::measure;
use crate::build;
use crate::help_desk::{SEARCH_ENDED, STUDY, optimize};
use crate::install::{Tool, Toolbox};
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// Where prompts are measured.
const WHERE: [&str; 3] = ["search", "held-out", "fresh"];

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
    /// Rollouts and model calls before the first prompt was measured that meets every threshold on fresh tasks.
    first: Option<(u64, u64)>,
    /// The same after which one had met them on all tasks of the search.
    first_feasible: Option<(u64, u64)>,
    /// The same when it ended.
    ended: (u64, u64),
    /// Prompts that were measured, beside the seed prompt.
    prompts: u64,
    /// Of the prompts that met every threshold on all tasks of the search, the one of the highest success there.
    best_feasible: Option<Prompt>,
    /// What it returned.
    returned: Prompt,
    /// Processor time of all processes.
    cpu: Duration,
}

/// What contenders compete on.
#[derive(Args)]
pub(super) struct Contest {
    /// The study of `desk` or `peers`, whose models are simulated
    #[arg(long, default_value = STUDY)]
    study: PathBuf,
    /// The agent of `desk` or `peers` instead of the study's
    #[arg(long)]
    agent: Option<String>,
    /// What a search of `peers` may spend of rollouts, with two for each held-out task
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..))]
    rollouts: u32,
    /// A threshold of `desk` or `peers` in place of the study's, such as human_requests=0.3; may be given several times
    #[arg(long = "threshold", value_name = "METRIC=NUMBER", value_parser = threshold)]
    thresholds: Vec<(String, f64)>,
    /// The first seed of `desk` [default: 0] or `peers` [default: 1000]
    #[arg(long)]
    first_seed: Option<u64>,
}

fn threshold(written: &str) -> Result<(String, f64), String> {
    let (metric, number) = written.split_once('=').ok_or("write it as METRIC=NUMBER")?;
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is no number"))?;
    Ok((metric.to_owned(), number))
}

impl Contest {
    /// The study with the agent and the thresholds. `data` is where one of tau2 finds its tasks.
    fn study(&self, workspace: &Workspace, data: Option<&Path>) -> Result<toml::Table> {
        let mut study = read(&workspace.root.join(&self.study))?;
        if let Some(agent) = &self.agent {
            let models = table(&mut study, "models")?;
            table(models, "agent")?.insert("model".to_owned(), agent.as_str().into());
        }
        if !is_help_desk(&study) {
            let data = data.context("name the folder that the study's `data` stands for with --data")?;
            play_on(&mut study, data)?;
        }
        move_thresholds(&mut study, &self.thresholds)?;
        Ok(study)
    }

    /// So many seeds for a study, from a usual one on unless another is stated.
    fn seeds(&self, study: &toml::Table, usual: u64, count: u64) -> Result<Range<u64>> {
        let first = self.first_seed.unwrap_or(usual);
        let end = first.saturating_add(count);
        ensure!(
            end <= END_OF_SEEDS || !is_help_desk(study),
            "seeds from {END_OF_SEEDS} on would search on tasks that are fresh for others"
        );
        Ok(first..end)
    }

    fn describe(&self) -> String {
        let agent = self.agent.as_deref().unwrap_or("its own agent");
        let moved = self.thresholds.iter();
        let moved: Vec<String> = moved
            .map(|(metric, threshold)| format!(", {metric} at most {threshold}"))
            .collect();
        format!("{}, {agent}{}", self.study.display(), moved.concat())
    }
}

/// Adaptive multipliers against fixed ones.
pub(super) fn run(
    workspace: &Workspace,
    scratch: &Scratch,
    seeds: u64,
    contest: &Contest,
    data: Option<&Path>,
) -> Result<()> {
    let contenders = [
        Contender::Capo,
        Contender::Fixed,
        Contender::Cautious,
        Contender::CautiousFixed,
    ];
    let mut study = contest.study(workspace, data)?;
    let seeds = contest.seeds(&study, 0, seeds)?;
    // The rounds end these searches.
    study.remove("budget");
    let setting = Setting {
        workspace,
        scratch,
        capo: &build::capo(workspace)?,
        python: Path::new(""),
        study: &toml::to_string(&study)?,
        rollouts: 0,
    };
    println!("{}", contest.describe());
    setting.compare(seeds, &contenders)
}

/// Capo against GEPA, which is installed for it.
pub(super) fn run_peers(
    workspace: &Workspace,
    scratch: &Scratch,
    seeds: u64,
    contest: &Contest,
    data: Option<&Path>,
) -> Result<()> {
    let mut study = contest.study(workspace, data)?;
    let seeds = contest.seeds(&study, FIRST_SEED_OF_PEERS, seeds)?;
    let mut toolbox = Toolbox::open()?;
    toolbox.ensure(&Tool::Optimisers)?;
    table(&mut study, "budget")?.insert("rollouts".to_owned(), contest.rollouts.into());
    let contenders = [
        Contender::GrowingSmallPool,
        Contender::Growing,
        Contender::SmallPool,
        Contender::Incautious,
        Contender::CautiousUntilBudget,
        Contender::Capo,
        Contender::GepaSigned,
        Contender::GepaHinge,
    ];
    let setting = Setting {
        workspace,
        scratch,
        capo: &build::capo(workspace)?,
        python: &toolbox.optimisers_python(),
        study: &toml::to_string(&study)?,
        rollouts: contest.rollouts,
    };
    println!("{}, {} rollouts", contest.describe(), contest.rollouts);
    setting.compare(seeds, &contenders)
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
    /// What GEPA may spend of rollouts, as if it measured held-out tasks, too.
    rollouts: u32,
}

impl Setting<'_> {
    /// Every contender on splits that each seed draws for itself.
    fn compare(&self, seeds: Range<u64>, contenders: &[Contender]) -> Result<()> {
        let count = contenders.len() as u64;
        let first_seed = seeds.start;
        println!("seeds from {first_seed} on");
        let results = in_parallel((seeds.end - first_seed) * count, |run| {
            let contender = contenders[(run % count) as usize];
            self.search(contender, first_seed + run / count)
        })?;
        let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
        print!("{}", report::report(&names, &results));
        Ok(())
    }

    fn search(&self, contender: Contender, seed: u64) -> Result<Searched> {
        let name = format!("desk-{}-{seed}", contender.name());
        let journal = self.scratch.file(&format!("{name}.jsonl"));
        let text = edited(self.study, contender)?;
        let study = self.write(&format!("{name}.toml"), &on_split(&text, seed)?)?;
        let (returned, reflections, cpu) = match contender {
            Contender::Capo
            | Contender::Fixed
            | Contender::Cautious
            | Contender::CautiousFixed
            | Contender::CautiousUntilBudget
            | Contender::Growing
            | Contender::GrowingSmallPool
            | Contender::SmallPool
            | Contender::Incautious => {
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
            let mut after = reflections.iter().skip_while(|(made, _)| *made <= rollouts);
            let last = || reflections.last();
            (
                rollouts,
                calls + after.next().or_else(last).map_or(0, |(_, asked)| *asked),
            )
        };
        let measured = |prompt: &str| self.measure(&text, seed, &name, found.held_out, prompt, WHERE);
        let returned_measured = measured(&returned)?;
        let best_feasible = match &found.best_feasible {
            Some(best) if *best == returned => Some(returned_measured),
            Some(best) => Some(measured(best)?),
            None => None,
        };
        // Only to the first of them: measuring all would take hours.
        let mut first = None;
        for (prompt, at) in &found.measured {
            let [fresh] = self.measure(&text, seed, &name, found.held_out, prompt, ["fresh"])?;
            if fresh.feasible {
                first = Some(with_reflections(*at));
                break;
            }
        }
        Ok(Searched {
            first,
            // Its own last rollout is in it.
            first_feasible: found
                .first_feasible
                .map(|(rollouts, calls)| (rollouts, with_reflections((rollouts - 1, calls)).1)),
            ended: with_reflections(found.ended),
            prompts: found.measured.len().saturating_sub(1) as u64,
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
            .arg(self.rollouts.to_string());
        Ok(command)
    }

    /// A prompt where it is asked for: on the tasks of the search, on the `held_out` ones of the split, on fresh ones.
    fn measure<const N: usize>(
        &self,
        study: &str,
        seed: u64,
        name: &str,
        held_out: usize,
        prompt: &str,
        places: [&str; N],
    ) -> Result<[Measured; N]> {
        let prompt = self.write(&format!("{name}.md"), prompt)?;
        let journal = self.scratch.file(&format!("{name}-prompt.jsonl"));
        let mut measured = Vec::new();
        for place in places {
            let (study, split, seed) = match place {
                "search" => (on_split(study, seed)?, "optimize", seed),
                "held-out" => (on_split(study, seed)?, "evaluate", seed),
                _ => fresh(study, seed, held_out)?,
            };
            let study = self.write(&format!("{name}-{place}.toml"), &study)?;
            let mut evaluate = Command::new(self.capo);
            evaluate
                .current_dir(&self.workspace.root)
                .args(["evaluate", "--allow-outside"])
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
        let measured = <[Measured; N]>::try_from(measured);
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
    fn the_study_and_its_agent_are_those_that_were_named() {
        let contest = |study: &str, agent: Option<&str>| Contest {
            study: study.into(),
            agent: agent.map(str::to_owned),
            rollouts: 1,
            thresholds: vec![threshold("human_requests=0.3").unwrap()],
            first_seed: None,
        };
        let of_people = |study: &toml::Table| {
            let mut constraints = study["constraint"].as_array().unwrap().iter();
            let named = constraints.find(|one| one["metric"].as_str() == Some("human_requests"));
            named.and_then(|one| one["threshold"].as_float())
        };
        let workspace = Workspace::load().unwrap();
        let named = contest("studies/nine-constraints.toml", Some("sim-small"));
        let study = named.study(&workspace, None).unwrap();
        assert_eq!(study["models"]["agent"]["model"].as_str(), Some("sim-small"));
        assert!(study["constraint"].as_array().unwrap().len() > 3);
        assert_eq!(of_people(&study), Some(0.3));
        let mut own = contest(STUDY, None);
        own.thresholds.clear();
        let shipped = read(&workspace.root.join(STUDY)).unwrap();
        assert_eq!(own.study(&workspace, None).unwrap(), shipped);
        own.thresholds.push(("turns".to_owned(), 1.0));
        assert!(own.study(&workspace, None).is_err(), "it constrains no turns");
        assert!(threshold("turns").is_err() && threshold("turns=few").is_err());
        assert_eq!(own.seeds(&shipped, 1000, 40).unwrap(), 1000..1040);
        own.first_seed = Some(1200);
        assert_eq!(own.seeds(&shipped, 1000, 50).unwrap(), 1200..1250);
        assert!(own.seeds(&shipped, 1000, 51).is_err());
        let elsewhere = read(&workspace.root.join("studies/airline-simulated.toml")).unwrap();
        assert!(own.seeds(&elsewhere, 1000, 51).is_ok());
        let tau2 = contest("studies/airline-simulated.toml", None);
        assert!(tau2.study(&workspace, None).is_err(), "it needs its data");
    }

    #[test]
    fn parallel_results_come_in_order_and_errors_stop_the_rest() {
        let squares = in_parallel(50, |number| Ok(number * number)).unwrap();
        assert_eq!(squares, (0..50).map(|number| number * number).collect::<Vec<_>>());

        let calls = AtomicU64::new(0);
        let outcome: Result<Vec<()>> = in_parallel(1_000_000, |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            anyhow::bail!("no")
        });
        assert!(outcome.is_err());
        assert!(calls.into_inner() < 1_000);
    }
}
