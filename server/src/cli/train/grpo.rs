//! `capo train grpo`: learn from the rounds of a search.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use capo_core::journal::{Event, Fsync, RoundEvent, Status};
use capo_core::methods;
use capo_core::run_state::RunState;
use capo_core::summary::Summary;
use capo_models::providers::LOCAL;
use capo_rewriter::engine::OnlineContext;
use capo_rewriter::folder::{GRPO, JOURNAL};
use capo_team::shared_keys;
use serde_json::json;

use super::{TrainingArguments, checkpoints, deciding, shown};
use crate::cli::Prices;
use crate::cli::command_line::CommandLine;
use crate::cli::failure::{Ending, Failure, print, print_json};
use crate::cli::layout::counted;
use crate::cli::outcome::ending;
use crate::cli::report;
use crate::cli::watch::Watched;
use crate::dotenv::Variables;
use crate::interrupt::Interrupts;
use crate::progress::{LogFormat, Progress};
use crate::session::{Session, SessionError, StudyFile, Wires, open_journal};
use crate::stderr::warn;
use crate::train::local::take_over;
use crate::train::tensorboard::{TensorBoard, TensorBoardError};
use crate::train::vllm_sampler::VllmSampler;
use crate::train::{TrainError, told_cuts};

/// Train the rewriter on the rewards of its own rewrites while it searches (Algorithm 2 of the paper).
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GrpoArgs {
    #[command(flatten)]
    pub(super) training: TrainingArguments,
    /// Policy to start from: the folder of a fine-tuning, a checkpoint, an adapter or a model, or a repository of
    /// the hub as owner/name@revision.
    #[arg(long, value_name = "NAME")]
    init: String,
    /// Learning rate, instead of what the settings say.
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
    /// How progress is written to standard error; the fields of JSON: docs/log.md.
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    #[command(flatten)]
    prices: Prices,
}

/// Runs the command.
pub(crate) fn run(args: &GrpoArgs) -> Result<Ending, Failure> {
    args.log.take_effect();
    let mut file = args.training.study.read()?;
    check_method(&file)?;
    let seed = file.study.study.seed;
    take_over(&mut file.study, table(&args.init));
    let mut settings = args.training.settings()?;
    settings.grpo.seed = seed;
    settings.grpo.learning_rate = args.learning_rate.unwrap_or(settings.grpo.learning_rate);
    file.setup()?;
    args.training.check_hosted(&file)?;

    settings.grpo.check().map_err(TrainError::from)?;
    let engine = args.training.device.open_all().map_err(TrainError::from)?;
    let start = args.training.start(&args.init, &settings, seed)?;
    let folder = args.training.folder(&file, GRPO);
    let wires = Wires::by(shared_keys::of_environment().map_err(Failure::usage)?);
    // Beside a study that a team server trains on lies what others sent.
    let keys = if args.training.supervised {
        Variables::default()
    } else {
        file.keys()
    };
    let sampler = settings.sampler.open(&folder, &keys, &wires);
    let sampler = sampler.map_err(TrainError::from)?;
    let mut how = json!({ "grpo": deciding(&settings.grpo), "drawing": deciding(&settings.drawing) });
    if sampler.is_some() {
        // Another server draws the same; this process would draw others.
        how["sampler"] = json!("vllm");
    }
    let data = file.study.identity();
    let checkpoints = checkpoints(&folder, GRPO, (&start, &*engine), data, how, &settings)?;
    let around = OnlineContext {
        checkpoints,
        samples: folder.join("samples.jsonl"),
        elsewhere: sampler.as_ref().map(VllmSampler::elsewhere),
        told_cuts: told_cuts(),
        stop: wires.stop(),
    };
    let name = format!("local/{}", args.init);
    let online = engine
        .online(&name, &start, settings.drawing, settings.grpo, around)
        .map_err(TrainError::from)?;

    let path = folder.join(JOURNAL);
    let session = Session::with_rewriter(
        &file,
        &keys,
        args.prices.table()?,
        wires,
        online.rewriter,
        Some(online.learner),
    )?;
    let journal = open_journal(&path, Fsync::default(), "--out")?;
    check_progress(&folder, online.rounds, journal.state())?;
    let curves = Rc::new(RefCell::new(Curves::new(&folder, journal.state())?));
    let drawn = Rc::clone(&curves);
    let progress = Progress::of_search(args.log);
    session.tell(progress.of_waits());
    let interrupts = Interrupts::of_run(again(args).to_string())?;
    let watched = Watched {
        path: &path,
        interrupts: &interrupts,
        way_out: "Choose another folder with --out",
        progress: &progress,
    };
    let outcome = watched.carry_out(
        journal,
        &session.wires(),
        move |event, _| drawn.borrow_mut().follow(event),
        async |journal| {
            let outcome = session.optimize(journal).await?;
            let status = outcome.finished.status;
            if let (Some(sampler), true) = (&sampler, status != Status::Failed)
                && let Err(error) = sampler.release(status == Status::Stopped).await
            {
                warn(&format!("warning: the server keeps the last adapter: {error}"));
            }
            Ok(outcome)
        },
    )?;
    if let Some(error) = curves.borrow_mut().failed.take() {
        warn(&format!("warning: {error}"));
    }
    let Some(outcome) = outcome else {
        warn(&format!("stopped at once. To go on, run: {}", again(args)));
        return Ok(Ending::Stopped);
    };
    let state = outcome.journal.state();
    if args.training.json {
        print_json(&Summary::new(
            state,
            &outcome.finished,
            path.display().to_string(),
        ))?;
    } else {
        print(&report::result(state, &outcome.finished, &path.display()))?;
        if state.learned(0).is_some() {
            print(&learned(state, engine.device(), &folder))?;
        }
    }
    Ok(ending(state, &outcome.finished, &again(args)))
}

/// Refuses a journal and checkpoints that are of different moments. A checkpoint is written before its line of the
/// journal.
fn check_progress(folder: &Path, checkpointed: usize, state: &RunState) -> Result<(), Failure> {
    let rounds = state.rounds().len();
    let told = (0..rounds as u32)
        .filter(|round| state.learned(*round).is_some())
        .count();
    if checkpointed == told || (checkpointed == told + 1 && checkpointed <= rounds) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: the last checkpoint learned from {}, the journal tells of {told}\n\
         Put back what belongs together, or choose another folder with --out",
        folder.display(),
        counted(checkpointed as u64, "round"),
    )))
}

/// The table of a study's rewriter that stands for the policy.
fn table(init: &str) -> serde_json::Value {
    let place = Path::new(init);
    let init = if place.exists() {
        shown(place)
    } else {
        init.to_owned()
    };
    json!({ "provider": LOCAL, "model": init })
}

/// Refuses a study whose method learns nothing.
fn check_method(file: &StudyFile) -> Result<(), Failure> {
    let study = &file.study;
    let method = methods::build(&study.study.method, &study.method).map_err(|error| SessionError::Study {
        study: file.name.clone(),
        error,
    })?;
    if method.learns() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: `study.method` is \"{}\", whose rewriter does not learn; write method = \"dcapo\"",
        file.name, study.study.method
    )))
}

/// The curves of a run for TensorBoard.
struct Curves {
    board: TensorBoard,
    /// Rounds whose points are there already.
    rounds: u64,
    failed: Option<TensorBoardError>,
}

impl Curves {
    fn new(folder: &Path, state: &RunState) -> Result<Self, TrainError> {
        let rounds = state.rounds();
        // The last one may be closed and not learned from: its points are drawn again.
        let is_learned = |round: &RoundEvent| state.learned(round.round).is_some();
        let last = rounds.last().filter(|last| !is_learned(last));
        let first_step = (rounds.len() - usize::from(last.is_some())) as u64;
        let mut board = TensorBoard::create(&folder.join("tensorboard"), first_step)?;
        if let Some(last) = last {
            board.scalars(first_step, standing(last))?;
        }
        Ok(Self {
            board,
            rounds: rounds.len() as u64,
            failed: None,
        })
    }

    fn follow(&mut self, event: &Event) {
        if self.failed.is_some() {
            return;
        }
        let drawn = match event {
            Event::Round(round) if u64::from(round.round) >= self.rounds => {
                self.board.scalars(u64::from(round.round), standing(round))
            }
            Event::Learned(learned) => {
                let figures = learned
                    .figures
                    .iter()
                    .map(|(name, figure)| (format!("learning/{name}"), *figure));
                self.board.scalars(u64::from(learned.round), figures)
            }
            _ => Ok(()),
        };
        self.failed = drawn.err();
    }
}

/// The best candidate's measurements and the multipliers.
fn standing(round: &RoundEvent) -> Vec<(String, f64)> {
    let multipliers = round.next_multipliers.iter();
    let mut points: Vec<(String, f64)> = multipliers
        .map(|(metric, value)| (format!("multiplier/{metric}"), *value))
        .collect();
    if let Some(best) = round.best.first().and_then(|id| round.scores.get(id)) {
        points.push(("best/objective".to_owned(), best.objective));
        points.push(("best/lagrangian".to_owned(), best.lagrangian));
        let costs = best.costs.iter();
        points.extend(costs.map(|(metric, cost)| (format!("best/cost/{metric}"), *cost)));
    }
    points
}

/// What the rewriter learned, first and last.
fn learned(state: &RunState, device: &str, folder: &Path) -> String {
    let rounds = state.rounds().len() as u32;
    let figures: Vec<_> = (0..rounds).filter_map(|round| state.learned(round)).collect();
    let reward = |of: Option<&&capo_core::journal::LearnedEvent>| {
        of.and_then(|learned| learned.figures.get("reward"))
            .map_or_else(|| "none".to_owned(), |reward| format!("{reward:.3}"))
    };
    format!(
        "The rewriter learned from {} on {device}; mean reward of its children {} in the first, {} in the last.\n\
         To search with it, name the folder in a study:\n\n[models.rewriter]\nprovider = \"local\"\nmodel = \"{}\"\n",
        counted(figures.len() as u64, "round"),
        reward(figures.first()),
        reward(figures.last()),
        shown(folder)
    )
}

/// The command that goes on.
fn again(args: &GrpoArgs) -> CommandLine {
    let training = &args.training;
    training
        .study
        .typed("train grpo")
        .option("init", Some(&args.init))
        .path("out", training.out.as_deref())
        .path("settings", training.settings.as_deref())
        .option("learning-rate", args.learning_rate)
        .path("prices", args.prices.prices.as_deref())
        .options(training.device.named())
        .flag("full", training.full)
        .flag("json", training.json)
        .option("log", (args.log == LogFormat::Json).then_some("json"))
}
