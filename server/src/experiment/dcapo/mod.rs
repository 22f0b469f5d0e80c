//! The learned rewriter against the simulated world: from a new model to rewrites that raise J.

mod evaluation;
mod grpo;
mod output;
mod record;
mod report;
mod scheduler;
mod seed_run;
mod sft;
#[cfg(test)]
mod tests;
mod world;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use capo_core::study::FeedbackForm;
use capo_rewriter::checkpoint::CheckpointError;
use capo_rewriter::error::{FileError, RequestError};
use capo_rewriter::fine_tuning::{SftSettings, TrainingError};
use capo_rewriter::grpo::{AdvantageScale, Normalisation};
use capo_rewriter::optimizer::AdamW;
use capo_rewriter::pairs::PairsError;
use capo_rewriter::pool_grpo::GrpoSettings;
use capo_rewriter::template::TemplateError;
use capo_rewriter::tiny_qwen3::TinyQwen3Config;

use super::{Report, Seeds, Shipped, TrialError, drawn};
use crate::session::{SessionError, StudyFile};

pub use output::write;
pub use record::SeedRecord;
use scheduler::Scheduler;
use world::World;
pub use world::{Asking, Extent};

/// Why the experiment stopped.
#[derive(Debug, thiserror::Error)]
pub enum DcapoError {
    /// The study, its models, a journal or a run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A search did not go its whole way.
    #[error("the search with seed {seed} did not go its whole way: {reason}")]
    Search {
        /// Its seed.
        seed: u64,
        /// The reason in words, as it stands in the message.
        reason: String,
    },
    /// What a search returned cannot be measured on fresh examples.
    #[error(transparent)]
    Fresh(#[from] TrialError),
    /// The journals give nothing to learn from.
    #[error(transparent)]
    Pairs(#[from] PairsError),
    /// A request does not fit the model.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A model's file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Settings or numbers.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Training.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A folder or file of the experiment.
    #[error("{}: {source}; choose another directory with --out", path.display())]
    Folder {
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The record of a seed cannot be used.
    #[error("{}: {reason}; move it away, or choose another directory with --out", path.display())]
    Record {
        /// Path of the file.
        path: PathBuf,
        /// The reason in words, as it stands in the message.
        reason: String,
    },
    /// Work was not begun, because other work had failed.
    #[error("given up, because other work failed")]
    GivenUp,
    /// The system gives no thread.
    #[error("the system gives no thread: {0}; lower --jobs, or run fewer --seeds at a time")]
    Thread(String),
    /// The system gives no event queue.
    #[error("the system gives no event queue: {0}")]
    Runtime(#[source] std::io::Error),
}

impl DcapoError {
    fn folder(path: &Path, source: std::io::Error) -> Self {
        Self::Folder {
            path: path.to_owned(),
            source,
        }
    }
}

/// Name on the command line.
pub const NAME: &str = "dcapo";

/// Title of the report.
pub const TITLE: &str = "The learned rewriter";

/// What is done.
const EXPLANATION: &str = "A small model with random weights learns to rewrite system prompts: by SFT on parent → child \
                           pairs of simulated searches, then by GRPO on what its own rewrites are worth (Algorithm 2). \
                           The agent stays as it is. Everything that a policy answers is the model's own text. Compared \
                           are searches with the frozen policies and with the simulated rewriter that taught them, and \
                           children of the same requests before and after GRPO. Each seed has tasks, a model and \
                           trainings of its own.";

/// The study used when none is named.
pub const STUDY: Shipped = Shipped {
    file: "help-desk-dcapo.toml",
    text: include_str!("../../../../studies/help-desk-dcapo.toml"),
    rounds: Some(6),
};

/// Who rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewriter {
    /// The study's own, whose rewrites SFT teaches.
    Teacher,
    /// The policy after SFT.
    FineTuned,
    /// That policy after GRPO by the settings of [`Plan::grpo`].
    Trained,
    /// The same by the settings of [`Plan::paper_grpo`].
    PaperTrained,
}

impl Rewriter {
    /// Whether it learns by GRPO.
    pub fn learns(self) -> bool {
        matches!(self, Self::Trained | Self::PaperTrained)
    }
}

/// A rewriter that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyKind {
    /// Short and unique.
    pub key: &'static str,
    /// For tables and plots.
    pub label: &'static str,
    /// How it is asked, while it learns and after.
    pub asking: Asking,
    /// Who it is.
    pub rewriter: Rewriter,
}

const fn kind(key: &'static str, label: &'static str, form: FeedbackForm, rewriter: Rewriter) -> PolicyKind {
    PolicyKind {
        key,
        label,
        asking: Asking { depth: 1, form },
        rewriter,
    }
}

/// Keys of those that others are compared with.
const TEACHER: &str = "teacher";
const FINE_TUNED: &str = "sft";
const GRPO: &str = "grpo";

/// Every rewriter, in the order of the tables.
pub const POLICIES: &[PolicyKind] = &[
    kind(
        TEACHER,
        "simulated (the teacher)",
        FeedbackForm::Summary,
        Rewriter::Teacher,
    ),
    kind(FINE_TUNED, "SFT", FeedbackForm::Summary, Rewriter::FineTuned),
    kind(GRPO, "GRPO", FeedbackForm::Summary, Rewriter::Trained),
    kind(
        "paper",
        "GRPO, the paper's recipe",
        FeedbackForm::Summary,
        Rewriter::PaperTrained,
    ),
    kind("none", "GRPO, no feedback", FeedbackForm::None, Rewriter::Trained),
    kind(
        "excerpts",
        "GRPO, excerpts of trajectories",
        FeedbackForm::Trajectory,
        Rewriter::Trained,
    ),
];

/// How much of everything.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The rewriters that are compared.
    pub policies: &'static [PolicyKind],
    /// Whether all seeds have the study's own split instead of one that each draws.
    pub same_split: bool,
    /// Simulated searches that are learned from.
    pub sft_searches: u64,
    /// Extent of simulated searches.
    pub sft_extent: Extent,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Sizes of the model.
    pub model: TinyQwen3Config,
    /// Longest rewrite in tokens.
    pub longest: usize,
    /// Settings of supervised fine-tuning.
    pub sft: SftSettings,
    /// Searches in a row that GRPO learns from.
    pub grpo_searches: u64,
    /// Extent of each of them.
    pub grpo_extent: Extent,
    /// Settings of GRPO.
    pub grpo: GrpoSettings,
    /// Settings of the paper's GRPO: advantages over the children of one parent divided by their standard deviation.
    pub paper_grpo: GrpoSettings,
    /// Simulated searches that requests of the evaluation are drawn from.
    pub evaluation_searches: u64,
    /// Requests of the evaluation.
    pub requests: usize,
    /// Rewrites of each request.
    pub answers: usize,
    /// Rollouts of each held-out example.
    pub repeats: u32,
    /// Searches with each policy as it ended.
    pub final_searches: u64,
    /// Extent of each of them.
    pub final_extent: Extent,
}

impl Default for Plan {
    fn default() -> Self {
        const GRPO_LEARNING_RATE: f64 = 3e-4;
        const PASS_TOKENS: usize = 4096;
        Self {
            policies: POLICIES,
            same_split: false,
            sft_searches: 50,
            sft_extent: Extent {
                rounds: 4,
                parents: 4,
                children: 4,
            },
            vocabulary: 2048,
            model: TinyQwen3Config {
                hidden: 96,
                layers: 2,
                heads: 3,
                kv_heads: 1,
                head_dim: 32,
                intermediate: 256,
                context: 448,
                tied: true,
            },
            longest: 128,
            sft: SftSettings {
                epochs: 4,
                batch: 16,
                pass_tokens: PASS_TOKENS,
                learning_rate: 5e-3,
                warmup: 0.1,
                ..SftSettings::default()
            },
            grpo_searches: 6,
            grpo_extent: Extent {
                rounds: 4,
                parents: 4,
                children: 16,
            },
            grpo: GrpoSettings {
                learning_rate: GRPO_LEARNING_RATE,
                epochs: 2,
                optimizer: AdamW {
                    weight_decay: 0.0,
                    ..AdamW::default()
                },
                pass_tokens: PASS_TOKENS,
                // Rewards spread with λ. Divided by its own spread, a group of children that differ by a few
                // characters alone would teach as much as one with a find.
                scale: AdvantageScale::Batch,
                normalisation: Normalisation::TokenMean,
                no_child_penalty: 0.5,
                ..GrpoSettings::default()
            },
            // All else is the program's default.
            paper_grpo: GrpoSettings {
                learning_rate: GRPO_LEARNING_RATE,
                pass_tokens: PASS_TOKENS,
                ..GrpoSettings::default()
            },
            evaluation_searches: 4,
            requests: 32,
            answers: 4,
            repeats: 2,
            final_searches: 10,
            final_extent: Extent {
                rounds: 2,
                parents: 2,
                children: 4,
            },
        }
    }
}

impl Plan {
    /// The seed of a search: each use has a range of its own, so that no search for a comparison repeats one that was
    /// learned from.
    fn seed_of(seed: u64, purpose: u64, index: u64) -> u64 {
        const PURPOSES: u64 = 8;
        const SEARCHES: u64 = 1000;
        (seed * PURPOSES + purpose) * SEARCHES + index
    }

    fn sft_seed(seed: u64, search: u64) -> u64 {
        Self::seed_of(seed, 1, search)
    }

    fn grpo_seed(seed: u64, search: u64) -> u64 {
        Self::seed_of(seed, 2, search)
    }

    fn evaluation_seed(seed: u64, search: u64) -> u64 {
        Self::seed_of(seed, 3, search)
    }

    /// The seed of the rollouts on which children are compared.
    fn rollout_seed(seed: u64) -> u64 {
        Self::seed_of(seed, 4, 0)
    }

    fn final_seed(seed: u64, search: u64) -> u64 {
        Self::seed_of(seed, 5, search)
    }
}

/// Runs the seeds and returns their records in order. Of all their policies as many are at work at once as there are
/// `jobs`. A seed whose record lies in `out` is not run again. `say` is told how far each one is.
///
/// # Errors
/// When a seed fails; work under way ends first.
pub fn run(
    base: &StudyFile,
    plan: &Plan,
    seeds: &Seeds,
    jobs: NonZeroUsize,
    out: &Path,
    say: &(dyn Fn(u64, &str) + Sync),
) -> Result<Vec<SeedRecord>, DcapoError> {
    std::fs::create_dir_all(out).map_err(|source| DcapoError::folder(out, source))?;
    let identity = record::identity(base, plan)?;
    let mut records = Vec::new();
    for seed in seeds.iter() {
        let known = record::read(&record_of(out, seed), &identity)?;
        if known.is_some() {
            say(seed, "known");
        }
        records.push((seed, known));
    }
    let scheduler = Scheduler::new(jobs);
    scheduler.all(records, |place, (seed, known)| match known {
        Some(known) => Ok(known),
        None => {
            OneSeed { plan, seed, place }.record(base, &identity, out, &scheduler, &|text| say(seed, text))
        }
    })
}

/// The file of a seed's record.
fn record_of(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}.json"))
}

/// A seed of the experiment.
#[derive(Clone, Copy)]
struct OneSeed<'a> {
    plan: &'a Plan,
    seed: u64,
    /// Its place among the seeds, from 0.
    place: usize,
}

impl OneSeed<'_> {
    fn record(
        self,
        base: &StudyFile,
        identity: &serde_json::Value,
        out: &Path,
        scheduler: &Scheduler,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<SeedRecord, DcapoError> {
        let folder = tempfile::tempdir_in(out).map_err(|source| DcapoError::folder(out, source))?;
        let mut base = base.clone();
        if !self.plan.same_split {
            base.study = drawn(&base.study, self.seed);
        }
        let found = seed_run::run(&World::new(&base), self, folder.path(), scheduler, say)?;
        record::write(&record_of(out, self.seed), identity, &found)?;
        Ok(found)
    }
}

/// Tables and plots of the seeds.
pub fn report(base: &StudyFile, plan: &Plan, seeds: &[SeedRecord]) -> Report {
    report::report(&base.study, plan, seeds)
}
