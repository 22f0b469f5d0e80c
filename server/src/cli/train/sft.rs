//! `capo train sft`: learn from the successful rewrites of runs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capo_core::ids::sha256_hex;
use capo_rewriter::checkpoint::{Checkpoint, Checkpoints};
use capo_rewriter::engine::Examples;
use capo_rewriter::fine_tuning::{SftEvent, SftExample, SftStep};
use capo_rewriter::folder::SFT;
use capo_rewriter::memory::peak_bytes;
use capo_rewriter::pairs::{Pair, Pairs, Tally};
use capo_rewriter::template::{RewriteTemplate, TemplateError};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::json;

use super::{TrainingArguments, checkpoints, deciding, shown};
use crate::cli::command_line::CommandLine;
use crate::cli::failure::{Ending, Failure, print, print_json};
use crate::cli::layout::{count, counted};
use crate::interrupt::Interrupts;
use crate::progress::style;
use crate::stderr::{SCREEN, warn};
use crate::terminal::writable;
use crate::train::TrainError;
use crate::train::log::{TrainingEvent, TrainingLog};
use crate::train::tensorboard::TensorBoard;
use capo_core::table::Table;

/// Fine-tune a model on the rewrites that raised the Lagrangian score in earlier runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SftArgs {
    #[command(flatten)]
    pub(super) training: TrainingArguments,
    /// Journals of runs to learn from.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    journals: Vec<PathBuf>,
    /// Model to start from: a folder, or a repository of the hub as owner/name@revision.
    #[arg(long, value_name = "NAME")]
    model: String,
    /// How often each pair is learned from, instead of what the settings say.
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// Highest learning rate, instead of what the settings say.
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
}

/// What is told at the end.
#[derive(Debug, Serialize)]
struct Outcome {
    /// `done` or `stopped`.
    status: &'static str,
    /// Steps made in all.
    steps: u64,
    /// Lowest loss on the held-out pairs, in nats a token.
    best_evaluation_loss: Option<f64>,
    /// The checkpoint that counts.
    checkpoint: String,
    /// Pairs learned from, and held out.
    pairs: [usize; 2],
    /// Pairs whose feedback had to be cut to fit the model's context.
    feedback_cut: usize,
    /// Pairs left out because they do not fit at all.
    too_long: usize,
}

/// Runs the command.
pub(crate) fn run(args: &SftArgs) -> Result<Ending, Failure> {
    let file = args.training.study.read()?;
    let seed = file.study.study.seed;
    let mut settings = args.training.settings()?;
    settings.sft.seed = seed;
    settings.sft.epochs = args.epochs.unwrap_or(settings.sft.epochs);
    settings.sft.learning_rate = args.learning_rate.unwrap_or(settings.sft.learning_rate);

    settings.sft.check().map_err(TrainError::from)?;

    let engine = args.training.device.open_all().map_err(TrainError::from)?;
    let start = args.training.start(&args.model, &settings, seed)?;
    let pairs = Pairs::read(&args.journals, &settings.pairs).map_err(TrainError::from)?;
    let read = read_examples(&start.folder.model, &pairs, settings.drawing.max_new_tokens)?;
    say_what_was_read(&pairs.tally, &read);
    if read.examples.training.is_empty() {
        return Err(Failure::new(
            "no pair is short enough: raise [drawing] max_new_tokens, or take a model with a longer context",
        ));
    }

    let folder = args.training.folder(&file, SFT);
    let data = json!({ "study": file.study.identity(), "journals": hashes(&args.journals)? });
    let how = json!({ "sft": deciding(&settings.sft), "pairs": settings.pairs, "max_new_tokens": settings.drawing.max_new_tokens });
    let checkpoints = checkpoints(&folder, SFT, (&start, &*engine), data, how, &settings)?;
    let steps_before = last_step(&checkpoints)?;
    let steps = read.steps(settings.sft.batch, settings.sft.epochs);
    let mut watch = Watch::new(&folder, steps_before, steps, engine.peak_flops())?;
    let (feedback_cut, too_long) = (read.feedback_cut, read.too_long);
    let trained = engine.fine_tune(&start, read.examples, settings.sft, &checkpoints, &mut |event| {
        watch.follow(event)
    });
    let asked = watch.end()?;
    trained.map_err(TrainError::from)?;

    let best = checkpoints.best().map_err(TrainError::from)?;
    let last = checkpoints.latest().map_err(TrainError::from)?;
    let chosen = best.as_ref().or(last.as_ref());
    let stopped = asked && last.as_ref().is_none_or(|last| last.step() < steps);
    let outcome = Outcome {
        status: if stopped { "stopped" } else { "done" },
        steps: last.as_ref().map_or(0, Checkpoint::step),
        best_evaluation_loss: best
            .as_ref()
            .and_then(|best| best.progress().merit)
            .map(|merit| -merit),
        checkpoint: chosen.map_or_else(String::new, |one| one.folder().display().to_string()),
        pairs: [pairs.tally.training, pairs.tally.held_out],
        feedback_cut,
        too_long,
    };
    if args.training.json {
        print_json(&outcome)?;
    } else {
        print(&page(&outcome, engine.device(), &folder))?;
    }
    if stopped {
        warn(&format!("stopped. To go on, run: {}", again(args)));
        return Ok(Ending::Stopped);
    }
    Ok(Ending::Done)
}

/// Examples in tokens, and what became of the pairs.
struct Read {
    examples: Examples,
    feedback_cut: usize,
    too_long: usize,
}

impl Read {
    /// Steps of a training that nothing stops early.
    fn steps(&self, batch: usize, epochs: u32) -> u64 {
        self.examples.training.len().div_ceil(batch.max(1)) as u64 * u64::from(epochs)
    }
}

fn read_examples(model: &Path, pairs: &Pairs, room: usize) -> Result<Read, TrainError> {
    let template = RewriteTemplate::from_folder(model)?;
    let (mut feedback_cut, mut too_long) = (0, 0);
    let mut examples = |pairs: &[Pair]| -> Result<Vec<SftExample>, TrainError> {
        let mut examples = Vec::new();
        for pair in pairs {
            match template.example(&pair.request, &pair.child, room) {
                Ok(example) => {
                    feedback_cut += usize::from(!example.prompt.left_out.is_nothing());
                    examples.push((example.prompt.tokens, example.completion));
                }
                Err(TemplateError::Overflow { .. } | TemplateError::Child { .. }) => too_long += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(examples)
    };
    let examples = Examples {
        training: examples(&pairs.training)?,
        held_out: examples(&pairs.held_out)?,
    };
    Ok(Read {
        examples,
        feedback_cut,
        too_long,
    })
}

fn say_what_was_read(tally: &Tally, read: &Read) {
    let of = |number: usize, noun: &str| counted(number as u64, noun);
    warn(&format!(
        "{} in {}: {} to learn, {} held out; left out {} without a child, {} of unfinished rounds, {} without gain, {}",
        of(tally.rewrites, "rewrite"),
        of(tally.journals, "journal"),
        count(tally.training as u64),
        count(tally.held_out as u64),
        count(tally.childless as u64),
        count(tally.unfinished as u64),
        count(tally.no_gain as u64),
        of(tally.duplicates, "duplicate"),
    ));
    if read.feedback_cut > 0 {
        warn(&format!(
            "the feedback of {} was cut to fit the model's context",
            of(read.feedback_cut, "pair")
        ));
    }
    if read.too_long > 0 {
        warn(&format!(
            "{} left out: the child exceeds [drawing] max_new_tokens, or the request the model's context",
            of(read.too_long, "pair")
        ));
    }
}

/// Lower-case hex SHA-256 of each file.
fn hashes(journals: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let hash = |path: &PathBuf| {
        let bytes =
            std::fs::read(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        Ok(sha256_hex(bytes))
    };
    journals.iter().map(hash).collect()
}

fn last_step(checkpoints: &Checkpoints) -> Result<u64, TrainError> {
    Ok(checkpoints.latest()?.map_or(0, |last| last.step()))
}

/// Tells what happens: to the log, to TensorBoard and to whoever watches.
struct Watch {
    log: TrainingLog,
    board: TensorBoard,
    bar: ProgressBar,
    interrupts: Interrupts,
    /// Operations per second that the devices can do, where that is known.
    peak_flops: Option<f64>,
    /// Loss on the held-out pairs, as far as it was measured.
    evaluated: Option<f64>,
    failed: Option<TrainError>,
}

impl Watch {
    fn new(folder: &Path, done: u64, steps: u64, peak_flops: Option<f64>) -> Result<Self, Failure> {
        let bar = SCREEN.add(ProgressBar::new(steps).with_position(done));
        bar.set_style(style(
            "{spinner} [{bar:12}] step {pos}/{len} · {msg} · {eta} left",
        ));
        bar.enable_steady_tick(Duration::from_millis(100));
        if done > 0 {
            warn(&format!("resuming after step {}", count(done)));
        }
        let interrupts = Interrupts::listen(|| warn("interrupted: writing a checkpoint after this step"))?;
        Ok(Self {
            log: TrainingLog::open(&folder.join("training.jsonl"), done).map_err(TrainError::from)?,
            board: TensorBoard::create(&folder.join("tensorboard"), done + 1).map_err(TrainError::from)?,
            bar,
            interrupts,
            peak_flops,
            evaluated: None,
            failed: None,
        })
    }

    fn follow(&mut self, event: SftEvent) -> ControlFlow<()> {
        let told = match event {
            SftEvent::Step(step) => self.step(&step),
            SftEvent::Evaluation { step, loss } => self.evaluation(step, loss),
        };
        match told {
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
            Ok(()) if self.interrupts.is_asked() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
        }
    }

    fn step(&mut self, step: &SftStep) -> Result<(), TrainError> {
        let speed = step.tokens as f64 / step.seconds;
        let peak_memory_bytes = peak_bytes();
        let mfu = self.peak_flops.map(|peak| step.flops / step.seconds / peak);
        self.log.write(&TrainingEvent::Step {
            step: step.step,
            loss: step.loss,
            gradient_norm: step.gradient_norm,
            learning_rate: step.learning_rate,
            tokens: step.tokens,
            seconds: step.seconds,
            peak_memory_bytes,
            device_memory_bytes: step.device_memory_bytes,
            mfu,
        })?;
        let curves = [
            ("loss", step.loss),
            ("gradient_norm", step.gradient_norm),
            ("learning_rate", step.learning_rate),
            ("tokens_per_second", speed),
        ];
        let known = [
            ("peak_memory_bytes", peak_memory_bytes.map(|bytes| bytes as f64)),
            (
                "device_memory_bytes",
                step.device_memory_bytes.map(|bytes| bytes as f64),
            ),
            ("mfu", mfu),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
        self.board.scalars(step.step, curves.into_iter().chain(known))?;
        let evaluated = self
            .evaluated
            .map(|loss| format!(" · held out {loss:.4}"))
            .unwrap_or_default();
        self.bar.set_message(
            writable(&format!("loss {:.4}{evaluated} · {speed:.0} tokens/s", step.loss)).into_owned(),
        );
        self.bar.set_position(step.step);
        Ok(())
    }

    fn evaluation(&mut self, step: u64, loss: f64) -> Result<(), TrainError> {
        self.evaluated = Some(loss);
        self.log.write(&TrainingEvent::Evaluation { step, loss })?;
        self.board.scalars(step, [("evaluation_loss", loss)])?;
        Ok(())
    }

    /// Whether somebody asked it to stop.
    fn end(self) -> Result<bool, TrainError> {
        self.bar.finish_and_clear();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.interrupts.is_asked()),
        }
    }
}

fn page(outcome: &Outcome, device: &str, folder: &Path) -> String {
    let mut grid = Table::default();
    grid.row(["steps".to_owned(), count(outcome.steps)]);
    if let Some(loss) = outcome.best_evaluation_loss {
        grid.row(["best held-out loss".to_owned(), format!("{loss:.4} nats a token")]);
    }
    grid.row(["checkpoint".to_owned(), outcome.checkpoint.clone()]);
    grid.row([
        "curves".to_owned(),
        folder.join("tensorboard").display().to_string(),
    ]);
    format!(
        "Fine-tuned on {device}\n{}\nTo search with it, name the folder in a study:\n\n\
         [models.rewriter]\nprovider = \"local\"\nmodel = \"{}\"\n",
        grid.text(2),
        shown(folder)
    )
}

/// The command that goes on.
fn again(args: &SftArgs) -> CommandLine {
    let training = &args.training;
    training
        .study
        .typed("train sft")
        .option("model", Some(&args.model))
        .path("out", training.out.as_deref())
        .path("settings", training.settings.as_deref())
        .option("epochs", args.epochs)
        .option("learning-rate", args.learning_rate)
        .options(training.device.named())
        .flag("full", training.full)
        .flag("json", training.json)
        .paths("journals", &args.journals)
}
