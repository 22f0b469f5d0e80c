//! Zero-shot transfer of a trained rewriter: one round of rewrites on studies that it was not trained on.

mod report;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use capo_core::dual::DualSettings;
use capo_core::methods;
use capo_core::study::{Rounds, Study, suggest};
use capo_rewriter::checkpoint::CheckpointError;
use capo_rewriter::error::FileError;
use capo_rewriter::folder::PolicyFolder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::output::{OutputError, save_parts};
use super::{ExperimentError, RunRecord, Variant};
use crate::files::write_whole;
use crate::session::StudyFile;
use crate::train::local::{StatedDrawing, take_over};

pub use report::report;

/// Name on the command line.
pub const NAME: &str = "transfer";

/// Title of the report.
pub const TITLE: &str = "Zero-shot transfer of a rewriter";

/// What is done.
const EXPLANATION: &str = "A trained rewriter, frozen, is applied to studies that it was not trained on. In one round it \
                           rewrites a study's seed prompt four times, told what the seed prompt measured and did on the \
                           optimisation split. The rewrite of the highest J there, under the study's initial \
                           multipliers, is measured beside the seed prompt on held-out examples. Nothing is learned, and \
                           no pool is searched.";

/// Rewrites of the seed prompt.
const CANDIDATES: u32 = 4;

/// The paper's table.
const PAPER: &str = "tab:zero_shot_rewriter_transfer";

/// Why rewriters cannot be transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The rewriter is not there, or does not read.
    #[error(transparent)]
    Rewriter(#[from] CheckpointError),
    /// Its files do not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A study cannot be a target.
    #[error(transparent)]
    Study(#[from] ExperimentError),
    /// Two targets would have the same files.
    #[error("two of the studies are kept as `{0}`: give their files different names")]
    SameName(String),
    /// The directory holds the runs of another rewriter.
    #[error(
        "{} holds the runs of another rewriter ({there} → {here}); choose another directory with --out", path.display()
    )]
    OtherRewriter {
        /// What says so.
        path: PathBuf,
        /// The rewriter of the directory.
        there: String,
        /// The one that is given.
        here: String,
    },
    /// A file of the directory cannot be read or written.
    #[error("{}: {reason}; choose another directory with --out", path.display())]
    Directory {
        /// Path of the file or folder.
        path: PathBuf,
        /// The reason in words, as it stands in the message.
        reason: String,
    },
}

/// The rewriter that is transferred.
#[derive(Debug, Clone, PartialEq)]
pub struct Transferred {
    /// The policy that its name stood for when the experiment began.
    folder: PolicyFolder,
    /// How it is drawn from.
    drawn: StatedDrawing,
}

impl Transferred {
    /// Finds a rewriter as `capo rewriter serve` does: a training, a checkpoint, an adapter, a model, or a
    /// repository of the hub.
    ///
    /// # Errors
    /// When nothing of that name is there, or it does not read.
    pub fn find(name: &str, drawn: StatedDrawing) -> Result<Self, TransferError> {
        Ok(Self {
            folder: PolicyFolder::find(name)?,
            drawn,
        })
    }

    /// The table `[models.rewriter]` of a study that asks it.
    fn table(&self) -> Value {
        let policy = self.folder.adapter.as_ref().unwrap_or(&self.folder.model);
        let mut table = json!({ "provider": "local", "model": policy.display().to_string() });
        let stated = [
            ("temperature", self.drawn.temperature.map(Value::from)),
            ("max_tokens", self.drawn.max_tokens.map(Value::from)),
            ("concurrency", self.drawn.max_batch.map(Value::from)),
        ];
        for (key, value) in stated {
            if let Some(value) = value {
                table[key] = value;
            }
        }
        table
    }

    /// Writes down whose runs a directory holds, or finds that they are this rewriter's: its weights are told by
    /// their hash, since a training may have gone on in the same folder.
    ///
    /// # Errors
    /// When the directory is another rewriter's, cannot be written, or the weights do not read.
    pub fn hold(&self, directory: &Path) -> Result<(), TransferError> {
        let path = directory.join("rewriter.json");
        let failed = |reason: String| TransferError::Directory {
            path: path.clone(),
            reason,
        };
        let here = TransferOwner {
            weights: self.folder.identity(Value::Null, Value::Null)?.weights,
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let there: TransferOwner = serde_json::from_str(&text).map_err(|why| {
                    let why = suggest(&why.to_string());
                    failed(format!("it does not tell of a rewriter: {why}"))
                })?;
                if there == here {
                    return Ok(());
                }
                Err(TransferError::OtherRewriter {
                    path,
                    there: short(&there.weights),
                    here: short(&here.weights),
                })
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
                let written = std::fs::create_dir_all(directory)
                    .and_then(|()| write_whole(&path, json!(here).to_string().as_bytes()));
                written.map_err(|why| failed(why.to_string()))
            }
            Err(why) => Err(failed(why.to_string())),
        }
    }
}

/// Whose runs a directory holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TransferOwner {
    /// SHA-256 of the weights, of an adapter's too.
    weights: String,
}

/// Enough of each hash to tell two apart.
fn short(weights: &str) -> String {
    let parts = weights.split(' ').map(|part| part.get(..12).unwrap_or(part));
    parts.collect::<Vec<_>>().join(" ")
}

/// A study that the rewriter is applied to.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The study with one round of the rewriter.
    pub variant: Variant,
    /// The study file as it was given.
    pub file: StudyFile,
}

/// The targets, in the order given. Each one is called after its file.
///
/// # Errors
/// When two files have the same name, or a study cannot be searched by a rewriter.
pub fn targets(files: &[StudyFile], rewriter: &Transferred) -> Result<Vec<Target>, TransferError> {
    let mut targets: Vec<Target> = Vec::new();
    for file in files {
        let key = key(&file.name);
        if targets.iter().any(|target| target.variant.key == key) {
            return Err(TransferError::SameName(key));
        }
        targets.push(Target {
            variant: variant(key, &file.study, rewriter)?,
            file: file.clone(),
        });
    }
    Ok(targets)
}

/// The name of a file without its ending, as far as it suits file names everywhere.
fn key(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "-.".contains(letter) {
            letter
        } else {
            '-'
        }
    };
    stem.to_string_lossy().chars().map(plain).collect()
}

/// One round of test-time sampling by the rewriter, which is just this: feedback on the seed prompt, rewrites of it
/// alone, the best of them by J on the whole optimisation split at multipliers that do not move.
fn variant(key: String, base: &Study, rewriter: &Transferred) -> Result<Variant, ExperimentError> {
    let unfit = |problem: String| ExperimentError::Unfit {
        experiment: NAME,
        study: base.study.name.clone(),
        problem,
    };
    let weight = initial_multiplier(base).map_err(unfit)?;
    let mut study = base.clone();
    study.study.method = "sampling".into();
    study.method = [
        ("k".to_owned(), json!(CANDIDATES)),
        ("weight".to_owned(), json!(weight)),
    ]
    .into_iter()
    .collect();
    study.study.rounds = Rounds::Count(1);
    (study.study.batch, study.study.batch_growth) = (None, None);
    take_over(&mut study, rewriter.table());
    Ok(Variant {
        key,
        label: base.study.name.clone(),
        study: study.checked().map_err(|error| unfit(error.to_string()))?,
    })
}

/// λ_0 of a study's method; of one without multipliers the paper's.
fn initial_multiplier(base: &Study) -> Result<f64, String> {
    let settings = methods::complete(&base.study.method, &base.method).map_err(|error| error.to_string())?;
    let known = ["lambda_init", "weight"]
        .into_iter()
        .find_map(|name| settings.get(name)?.as_f64());
    Ok(known.unwrap_or(DualSettings::default().lambda_init))
}

/// Writes `report.md`, `report.json` and each table as CSV. Returns the path of `report.md`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    directory: &Path,
    name: &str,
    targets: &[Target],
    records: &[RunRecord],
) -> Result<PathBuf, OutputError> {
    let report = report(targets, records);
    let studies: Vec<&str> = targets
        .iter()
        .map(|target| target.variant.label.as_str())
        .collect();
    let document = json!({
        "experiment": NAME,
        "title": TITLE,
        "explanation": EXPLANATION,
        "rewriter": name,
        "studies": studies,
        "tables": report.tables,
        "runs": records,
    });
    let finished = records.iter().filter(|record| record.complete).count();
    let head = format!(
        "# {NAME}: {TITLE}\n\n{EXPLANATION}\n\nRewriter `{name}`, {} of {} runs finished.\n",
        finished,
        records.len()
    );
    save_parts(directory, &report, &document, head)
}
