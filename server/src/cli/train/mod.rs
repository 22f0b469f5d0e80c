//! `capo train`: the learned rewriter, supervised and online.

mod grpo;
mod sft;

use std::fs::File;
use std::path::{Path, PathBuf};

use capo_rewriter::checkpoint::{Checkpoints, Identity};
use capo_rewriter::engine::{Engine, Learns, Start};
use capo_rewriter::folder::{CHECKPOINTS, PolicyFolder, TRAINING};
use capo_rewriter::lora::LoraConfig;
use capo_team::trainings::LOCK;
use serde::Serialize;
use serde_json::{Value, json};

use super::StudyArgument;
use super::failure::{Ending, Failure};
use crate::interrupt::heed_standard_input;
use crate::session::StudyFile;
use crate::train::settings::TrainingSettings;
use crate::train::{Device, TrainError};

/// Train the rewriter: on the successful rewrites of journals, or on the rounds of a search.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TrainArgs {
    #[command(subcommand)]
    training: Training,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Training {
    Sft(sft::SftArgs),
    Grpo(grpo::GrpoArgs),
}

/// What every training takes.
#[derive(Debug, Clone, clap::Args)]
struct TrainingArguments {
    #[command(flatten)]
    study: StudyArgument,
    /// Folder of the training; one that was stopped goes on where its last checkpoint stands
    /// [default: runs/STUDY-SEED.sft or .grpo].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// TOML file with the settings of pairs, training, adapter, drawing and checkpoints.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Train all weights instead of an adapter.
    #[arg(long)]
    full: bool,
    /// Print one JSON object instead of a summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: Device,
    /// A team server works on this training: it ends in good order when standard input is closed.
    #[arg(long, hide = true, requires = "out")]
    supervised: bool,
}

impl TrainingArguments {
    /// Of a team server's training: waits until no other process works in its folder, and hears that it is to end.
    fn supervise(&self) -> Result<Option<File>, Failure> {
        let Some(folder) = self.out.as_ref().filter(|_| self.supervised) else {
            return Ok(None);
        };
        let lock = File::create(folder.join(LOCK))?;
        lock.lock()?;
        heed_standard_input()?;
        Ok(Some(lock))
    }

    /// Refuses what a team server runs for nobody, whatever it checked itself.
    fn check_hosted(&self, file: &StudyFile) -> Result<(), Failure> {
        if self.supervised && capo_workloads::asks_outside(&file.study.workload) {
            return Err(Failure::usage(
                "a team server runs no programs of a study's own, and asks no addresses of its own",
            ));
        }
        Ok(())
    }

    fn settings(&self) -> Result<TrainingSettings, Failure> {
        Ok(TrainingSettings::read(self.settings.as_deref()).map_err(TrainError::from)?)
    }

    /// The training's folder; `kind` is its default's ending.
    fn folder(&self, file: &StudyFile, kind: &str) -> PathBuf {
        self.out
            .clone()
            .unwrap_or_else(|| self.study.default_journal(file.study.study.seed, kind))
    }

    fn start(&self, name: &str, settings: &TrainingSettings, seed: u64) -> Result<Start, Failure> {
        let folder = PolicyFolder::find(name).map_err(TrainError::from)?;
        Ok(Start {
            learns: if self.full {
                Learns::Whole
            } else {
                Learns::Adapter(adapter(&folder, &settings.lora)?)
            },
            folder,
            seed,
        })
    }
}

/// The adapter that learns: the one that is there, or a fresh one by the settings.
fn adapter(folder: &PolicyFolder, settings: &LoraConfig) -> Result<LoraConfig, Failure> {
    let Some(adapter) = &folder.adapter else {
        return Ok(settings.clone());
    };
    let there = LoraConfig::from_folder(adapter).map_err(TrainError::from)?;
    if *settings != LoraConfig::default() && *settings != there {
        return Err(Failure::usage(format!(
            "[lora] asks for rank {} and alpha {}, and the adapter in {} has rank {} and alpha {}, which cannot change\n\
             Leave [lora] out, or merge the adapter first with `capo rewriter merge`",
            settings.rank,
            settings.alpha,
            adapter.display(),
            there.rank,
            there.alpha
        )));
    }
    Ok(there)
}

/// What of the settings of a training decides its result: not how its memory is used.
fn deciding(settings: &impl Serialize) -> Value {
    let mut settings = json!(settings);
    if let Some(settings) = settings.as_object_mut() {
        for name in ["pass_tokens", "activation_checkpointing", "max_batch"] {
            settings.shift_remove(name);
        }
    }
    settings
}

/// Opens the checkpoints of a training on a device, which must be this one's.
fn checkpoints(
    folder: &Path,
    kind: &str,
    (start, engine): (&Start, &dyn Engine),
    data: Value,
    mut settings: Value,
    kept: &TrainingSettings,
) -> Result<Checkpoints, TrainError> {
    settings[TRAINING] = json!(kind);
    settings["dtype"] = json!(format!("{:?}", engine.number_type()).to_lowercase());
    settings["learns"] = match &start.learns {
        Learns::Whole => json!("all weights"),
        Learns::Adapter(config) => json!(config),
    };
    let identity: Identity = start.folder.identity(data, settings)?;
    Ok(Checkpoints::open(
        &folder.join(CHECKPOINTS),
        identity,
        kept.checkpoints,
    )?)
}

/// A folder as a study anywhere can name it.
fn shown(folder: &Path) -> String {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    whole.display().to_string()
}

/// Runs the command.
pub(crate) fn run(args: &TrainArgs) -> Result<Ending, Failure> {
    let (Training::Sft(sft::SftArgs { training, .. }) | Training::Grpo(grpo::GrpoArgs { training, .. })) =
        &args.training;
    let _held = training.supervise()?;
    match &args.training {
        Training::Sft(args) => sft::run(args),
        Training::Grpo(args) => grpo::run(args),
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        let message = error.to_string();
        if error.is_bad_usage() {
            Self::usage(message)
        } else {
            Self::new(message)
        }
    }
}
