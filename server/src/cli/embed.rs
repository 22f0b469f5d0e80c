//! `capo embed`: vectors of the texts that a study's examples are split by.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use capo_core::llm::{CallUsage, LlmError};
use capo_models::{Builder, Embedder, embedder_name};
use capo_workloads::BuildError;
use capo_workloads::embeddings::{Embeddings, Wanted};
use capo_workloads::files::{FileError, Files as _};
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars};
use super::{OutputArgs, Outside};
use crate::files::write_whole;
use crate::progress::Progress;
use crate::session::{SessionError, StudyFile, block_on};

/// Characters of a text that a message repeats.
const SHOWN: usize = 60;

/// Have the model of `[models.embeddings]` make the vectors that a study splits its examples by; those in
/// its file already are not made again.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EmbedArgs {
    /// Study file: TOML, or JSON when it ends in `.json`.
    #[arg(value_name = "STUDY")]
    study: PathBuf,
    /// Texts sent in one request; some servers take 10 at most.
    #[arg(long, value_name = "N", default_value_t = BATCH)]
    batch: NonZeroUsize,
    /// Say how many texts would be sent, and touch nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    outside: Outside,
    #[command(flatten)]
    output: OutputArgs,
}

const BATCH: NonZeroUsize = NonZeroUsize::new(Embedder::BATCH).expect("not 0");

/// The object of `--json`.
#[derive(Serialize)]
struct Made {
    /// Provider and model.
    model: String,
    /// Where the vectors are kept.
    file: String,
    /// Texts the study wants vectors of.
    texts: usize,
    /// Those without a vector before.
    missing: usize,
    /// Their characters.
    characters: usize,
    /// Vectors that were made; 0 with `--dry-run`.
    vectors: usize,
    calls: u64,
    input_tokens: u64,
    /// Null when the price is not known.
    usd: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(args: &EmbedArgs) -> Result<Ending, Failure> {
    args.output.log.take_effect();
    let file = args.outside.read(&args.study)?;
    let refused = |error| SessionError::Workload {
        study: file.name.clone(),
        error,
    };
    let wrong_model = |error| SessionError::Models {
        study: file.name.clone(),
        error,
    };
    let wanted = capo_workloads::texts_to_embed(&file.study.workload, &file.folder).map_err(refused)?;
    let model = embedder_name(&file.study.models).map_err(wrong_model)?;
    let path = file.folder.place(&wanted.file).map_err(|error| {
        refused(BuildError::File {
            key: "workload.embeddings".to_owned(),
            error,
        })
    })?;
    let there = || {
        let embeddings = read(&file, &wanted).map_err(refused)?;
        if let Some(other) = embeddings.model().filter(|other| *other != model) {
            return Err(Failure::usage(format!(
                "{} holds vectors of {other}, and the study names {model}; name another file in \
                 `workload.embeddings`",
                path.display(),
            )));
        }
        let missing = wanted.texts.iter().filter(|text| !embeddings.has(text));
        let missing: Vec<String> = missing.cloned().collect();
        Ok((embeddings, missing))
    };
    let (mut embeddings, mut missing) = there()?;
    let only_writer = if missing.is_empty() || args.dry_run {
        None
    } else {
        let only_writer = OnlyWriter::of(&path)?;
        // Another may have made them meanwhile.
        (embeddings, missing) = there()?;
        Some(only_writer)
    };
    let mut made = Made {
        model,
        file: path.display().to_string(),
        texts: wanted.texts.len(),
        missing: missing.len(),
        characters: missing.iter().map(|text| text.chars().count()).sum(),
        vectors: 0,
        calls: 0,
        input_tokens: 0,
        usd: Some(0.0),
    };
    if only_writer.is_some() && !missing.is_empty() {
        let keys = file.keys();
        let progress = Progress::of_evaluation(args.output.log);
        let embedder = Builder::new(&keys)
            .prices(args.output.prices.table()?)
            .observer(progress.of_waits())
            .embedder(&file.study.models)
            .map_err(wrong_model)?;
        // Before anything is paid for.
        write(&path, &embeddings)?;
        let ended = block_on(async {
            let making = async {
                for batch in missing.chunks(args.batch.get()) {
                    made.add(&embedder, batch, &mut embeddings, &path).await?;
                }
                Ok::<(), Failure>(())
            };
            tokio::select! {
                ended = making => ended,
                () = progress.keep_telling() => Ok(()),
            }
        });
        progress.finish();
        ended??;
    }
    if args.output.json {
        print_json(&made)?;
    } else {
        print(&made.told(args.dry_run))?;
    }
    Ok(Ending::Done)
}

/// The vectors there are already.
fn read(file: &StudyFile, wanted: &Wanted) -> Result<Embeddings, BuildError> {
    match file.folder.read(&wanted.file) {
        Ok(content) => Embeddings::parse(&wanted.file, &content),
        Err(FileError::NotFound(_)) => Ok(Embeddings::default()),
        Err(error) => Err(BuildError::file("workload.embeddings", error)),
    }
}

fn write(path: &Path, embeddings: &Embeddings) -> Result<(), Failure> {
    write_whole(path, embeddings.written().as_bytes()).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
}

/// Keeps another `capo embed` from the same file while this lives: each would write what it had read, without
/// what the other paid for. The file itself is replaced whenever it is written, so a file beside it is locked.
struct OnlyWriter {
    /// The file beside it, which goes when this goes.
    lock: PathBuf,
    _locked: File,
}

impl OnlyWriter {
    fn of(path: &Path) -> Result<Self, Failure> {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        loop {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let opened = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false).open(&lock)
            });
            let locked = opened.map_err(|error| not_written(path, &error))?;
            match locked.try_lock() {
                // Who held it may have taken it away since it was opened, and another made it anew.
                Ok(()) if !is_at(&locked, &lock) => {}
                Ok(()) => {
                    return Ok(Self {
                        lock,
                        _locked: locked,
                    });
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::new(format!(
                        "another `capo embed` is writing {}; wait until it is done, then give the same command",
                        path.display()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(not_written(path, &error)),
            }
        }
    }
}

/// Whether an open file is the one that lies at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let there = fs::metadata(path).ok().map(place);
    there.is_some() && file.metadata().ok().map(place) == there
}

/// Whether an open file is the one that lies at a path: elsewhere none that is open can be taken away.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

impl Drop for OnlyWriter {
    fn drop(&mut self) {
        // One that stays is locked by nobody and in nobody's way.
        let _ = fs::remove_file(&self.lock);
    }
}

impl Made {
    /// Has the vectors of some texts made, and keeps those that fit.
    async fn add(
        &mut self,
        embedder: &Embedder,
        texts: &[String],
        embeddings: &mut Embeddings,
        path: &Path,
    ) -> Result<(), Failure> {
        self.calls += 1;
        let embedded = match embedder.embed(texts).await {
            Ok(embedded) => embedded,
            Err(error) => {
                if let LlmError::Failed { usage, .. } = &error {
                    self.spent(*usage);
                }
                return Err(self.ended(&error.to_string()));
            }
        };
        self.spent(embedded.usage);
        let mut problem = None;
        for (text, vector) in texts.iter().zip(embedded.vectors) {
            match embeddings.insert(text, embedder.name(), vector) {
                Ok(()) => self.vectors += 1,
                Err(wrong) => problem = problem.or(Some((text, wrong))),
            }
        }
        write(path, embeddings)?;
        match problem {
            None => Ok(()),
            Some((text, wrong)) => {
                let begin: String = text.chars().take(SHOWN).collect();
                Err(self.ended(&format!(
                    "{}: {wrong}; it is of the text \"{begin}…\"",
                    self.model
                )))
            }
        }
    }

    fn spent(&mut self, usage: CallUsage) {
        self.input_tokens += usage.input_tokens;
        self.usd = self.usd.zip(usage.usd).map(|(sum, usd)| sum + usd);
    }

    /// Why it goes no further, and what there is.
    fn ended(&self, problem: &str) -> Failure {
        Failure::new(format!(
            "{problem}\n{} of {} are in {} ({} tokens, {} now); the same command goes on with the rest, --batch \
             makes requests smaller",
            self.texts - self.missing + self.vectors,
            counted(self.texts as u64, "vector"),
            self.file,
            count(self.input_tokens),
            dollars(self.usd),
        ))
    }

    fn told(&self, is_dry: bool) -> String {
        let texts = counted(self.texts as u64, "text");
        if self.missing == 0 {
            return format!(
                "{} has the vectors of all {texts} by {}.\n",
                self.file, self.model
            );
        }
        if is_dry {
            return format!(
                "{} of {texts}, {} characters, would be sent to {} for {}.\n",
                count(self.missing as u64),
                count(self.characters as u64),
                self.model,
                self.file
            );
        }
        format!(
            "{} of {texts} sent to {} ({} tokens, {}); the vectors are in {}.\n",
            count(self.vectors as u64),
            self.model,
            count(self.input_tokens),
            dollars(self.usd),
            self.file
        )
    }
}
