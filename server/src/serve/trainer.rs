//! Training of rewriters on the team server: by this program's own commands, each in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use capo_api::{CheckpointShown, TrainingKind};
use capo_core::llm::Llm;
use capo_core::methods;
use capo_core::study::{Format, Study};
use capo_models::ModelSpec;
use capo_models::local_models::LocalError;
use capo_rewriter::checkpoint::{self, Checkpoint, CheckpointError};
use capo_rewriter::folder::{CHECKPOINTS, POLICY, PolicyFolder, SFT, TRAINING};
use capo_rewriter::peft;
use capo_rewriter::stop::Stop;
use capo_team::trainings::{Begin, Job, Stopped, Trainer};

use crate::train::DEVICE;
use crate::train::local::open;
use crate::train::log::TrainingLog;
use crate::train::settings::TrainingSettings;
use crate::train::vllm_sampler::SamplerSettings;

/// Checkpoints of a training that are kept, at most.
const MOST_CHECKPOINTS: usize = 100;

/// The variables of the server that its trainings get, too, by what their names begin with: in others secrets may stand.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LC_",
    "TZ",
    "RUST_",
    "RAYON_",
    "LD_",
    "DYLD_",
    "CUDA",
    "CUBECL_",
    "NVIDIA_",
    "WGPU_",
    "VK_",
    "XDG_",
    "SYSTEMROOT",
    DEVICE,
];

/// Trains by `capo train` and `capo rewriter`.
pub(super) struct OwnCommands {
    program: PathBuf,
}

impl OwnCommands {
    /// With the program that runs.
    ///
    /// # Errors
    /// When the system does not say where it lies.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
        })
    }

    fn capo(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed_on)));
        command
    }

    /// The same on the device that the variable [`DEVICE`] names.
    fn on_device(&self, words: &[&str]) -> Command {
        let mut command = self.capo(words);
        if let Some(device) = std::env::var_os(DEVICE).filter(|device| !device.is_empty()) {
            command.arg("--device").arg(device);
        }
        command
    }
}

fn is_passed_on(name: &str) -> bool {
    PASSED_ON.iter().any(|beginning| name.starts_with(beginning))
}

/// The checkpoints of a training's folder, which may have none yet.
fn list(folder: &Path) -> Result<Vec<Checkpoint>, CheckpointError> {
    let folder = folder.join(CHECKPOINTS);
    if folder.is_dir() {
        checkpoint::list(&folder)
    } else {
        Ok(Vec::new())
    }
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in folder.read_dir()? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() {
            size(&entry.path())?
        } else {
            kind.len()
        };
    }
    Ok(bytes)
}

impl Trainer for OwnCommands {
    fn check(&self, kind: TrainingKind, study: &str, settings: &str) -> Result<(), String> {
        let settings = TrainingSettings::parse(settings).map_err(|error| format!("settings: {error}"))?;
        if settings.sampler != SamplerSettings::default() {
            return Err(
                "settings: [sampler] names a server, which members of a team server do not: rewrites are drawn where \
                 they are learned from"
                    .to_owned(),
            );
        }
        if settings.checkpoints.last.get() > MOST_CHECKPOINTS {
            return Err(format!(
                "settings: checkpoints.last: the server keeps at most {MOST_CHECKPOINTS}"
            ));
        }
        settings
            .sft
            .check()
            .map_err(|error| format!("settings: {error}"))?;
        settings
            .grpo
            .check()
            .map_err(|error| format!("settings: {error}"))?;
        let study = Study::parse(study, Format::Toml).map_err(|error| error.to_string())?;
        let method = methods::build(&study.study.method, &study.method).map_err(|error| error.to_string())?;
        if kind == TrainingKind::Grpo && !method.learns() {
            return Err(format!(
                "study.method is \"{}\", whose rewriter does not learn; write method = \"dcapo\"",
                study.study.method
            ));
        }
        Ok(())
    }

    fn model(&self, begin: &Begin, journals: &[PathBuf], into: &Path) -> Option<Command> {
        let mut command = match begin {
            Begin::Model(_) => return None,
            Begin::Policy(folder) => {
                let mut command = self.on_device(&["rewriter", "merge"]);
                command.arg(folder);
                command
            }
            Begin::Fresh {
                vocabulary,
                hidden,
                layers,
                context,
            } => {
                let mut command = self.capo(&["rewriter", "new", "--journals"]);
                command.args(journals);
                for (name, size) in [
                    ("--vocabulary", vocabulary),
                    ("--hidden", hidden),
                    ("--layers", layers),
                    ("--context", context),
                ] {
                    if let Some(size) = size {
                        command.arg(name).arg(size.to_string());
                    }
                }
                command
            }
        };
        command.arg("--out").arg(into);
        Some(command)
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = match job.kind {
            TrainingKind::Sft => {
                let mut command = self.on_device(&["train", "sft"]);
                command.arg("--model").arg(&job.model);
                command.arg("--journals").args(&job.journals);
                command
            }
            TrainingKind::Grpo => {
                let mut command = self.on_device(&["train", "grpo"]);
                command.arg("--init").arg(&job.model);
                command
            }
        };
        command.arg("--settings").arg(&job.settings);
        command.arg("--out").arg(&job.folder);
        if job.full {
            command.arg("--full");
        }
        command.arg("--supervised").arg(&job.study);
        command
    }

    fn rewind(&self, folder: &Path) -> Result<(), String> {
        let checkpoints = list(folder).map_err(|error| error.to_string())?;
        let step = checkpoints.last().map_or(0, Checkpoint::step);
        let path = folder.join("training.jsonl");
        if path.exists() {
            TrainingLog::open(&path, step).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn checkpoints(&self, folder: &Path) -> Result<Vec<CheckpointShown>, String> {
        let checkpoints = list(folder).map_err(|error| error.to_string())?;
        let is_sft = checkpoints.first().is_some_and(|one| {
            let kind = one.identity().settings.get(TRAINING);
            kind.is_some_and(|kind| kind == SFT)
        });
        let best = checkpoint::best(&checkpoints).filter(|_| is_sft);
        let counts = best.or(checkpoints.last()).map(Checkpoint::step);
        let shown = checkpoints.iter().map(|one| {
            let folder = one.path(POLICY).map_err(|error| error.to_string())?;
            let merit = one.progress().merit;
            Ok(CheckpointShown {
                step: one.step(),
                loss: merit.filter(|_| is_sft).map(|merit| -merit),
                reward: merit.filter(|_| !is_sft),
                counts: counts == Some(one.step()),
                is_adapter: folder.join(peft::CONFIG).exists(),
                bytes: size(&folder).map_err(|error| error.to_string())?,
            })
        });
        shown.collect()
    }

    fn policy(&self, folder: &Path, step: u64) -> Result<PathBuf, String> {
        let checkpoints = list(folder).map_err(|error| error.to_string())?;
        let found = checkpoints.iter().find(|one| one.step() == step);
        let found = found.ok_or_else(|| format!("the training has no checkpoint of step {step} any more"))?;
        found.path(POLICY).map_err(|error| error.to_string())
    }

    fn rewriter(&self, folder: &Path, spec: &ModelSpec, stopped: Stopped) -> Result<Rc<dyn Llm>, LocalError> {
        let folder = PolicyFolder::find(&folder.display().to_string());
        let folder = folder.map_err(|error| LocalError::Table(error.to_string()))?;
        let name = format!("local/{}", spec.model.as_deref().unwrap_or_default());
        open(&name, &folder, spec, Stop::new(move || stopped()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = "[study]\nname = \"desk\"\nmethod = \"capo\"\n[workload]\nkind = \"desk\"\n[prompt]\ntext = \"Help.\"\n\
                         [objective]\nmetric = \"success\"\n[models.agent]\nprovider = \"simulated\"\n";

    #[test]
    fn no_secret_of_the_server_is_passed_on() {
        for secret in [
            "CAPO_MASTER_KEY",
            "CAPO_DATABASE",
            "CAPO_TOKEN",
            "CAPO_OIDC_CLIENT_SECRET_FILE",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
        ] {
            assert!(!is_passed_on(secret), "{secret}");
        }
        for needed in ["PATH", "CAPO_DEVICE", "CUDA_VISIBLE_DEVICES"] {
            assert!(is_passed_on(needed), "{needed}");
        }
    }

    #[test]
    fn what_cannot_begin_is_refused() {
        let trainer = OwnCommands::new().unwrap();
        let learns = STUDY.replace("\"capo\"", "\"dcapo\"");
        let (sft, grpo) = (TrainingKind::Sft, TrainingKind::Grpo);
        assert_eq!(trainer.check(sft, STUDY, "[sft]\nepochs = 1\n"), Ok(()));
        assert_eq!(trainer.check(grpo, &learns, ""), Ok(()));
        let vllm = "[sampler]\nprovider = \"vllm\"\nbase_url = \"http://169.254.169.254/v1\"\n";
        for (kind, study, settings, said) in [
            (grpo, STUDY, "", "dcapo"),
            (sft, STUDY, "[sft]\nepoch = 1\n", "line 2"),
            (sft, STUDY, "[sft]\nlearning_rate = -1.0\n", "learning rate"),
            (grpo, learns.as_str(), vllm, "[sampler]"),
            (sft, "[study]", "", "name"),
        ] {
            let refused = trainer.check(kind, study, settings).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
