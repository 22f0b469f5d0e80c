//! `capo embed`: vectors of the texts that a study's examples are split by.

use std::path::Path;

use capo_core::llm::CallUsage;
use capo_models::{Builder, Embedder, Environment};
use capo_workloads::BuildError;
use capo_workloads::embeddings::{Embeddings, Wanted};
use capo_workloads::files::{FileError, Files as _};
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars};
use super::{Prices, StudyArgument};
use crate::files::write_whole;
use crate::session::{SessionError, StudyFile, block_on};

/// Have the model of `[models.embeddings]` make the vectors that a study splits its examples by; those in
/// its file already are not made again.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// Say how many texts would be sent, and touch nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object instead of a sentence.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    prices: Prices,
}

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
    let file = args.study.read()?;
    let refused = |error| SessionError::Workload {
        study: file.name.clone(),
        error,
    };
    let wanted = capo_workloads::texts_to_embed(&file.study.workload, &file.folder).map_err(refused)?;
    let embedder = Builder::new(&Environment)
        .prices(args.prices.table()?)
        .embedder(&file.study.models)
        .map_err(|error| SessionError::Models {
            study: file.name.clone(),
            error,
        })?;
    let path = file.folder.resolve(&wanted.file);
    let mut embeddings = read(&file, &wanted).map_err(refused)?;
    if let Some(other) = embeddings.model().filter(|model| *model != embedder.name()) {
        return Err(Failure::usage(format!(
            "{} holds vectors of {other}, and the study names {}; name another file in `workload.embeddings`",
            path.display(),
            embedder.name()
        )));
    }
    let missing: Vec<String> = wanted
        .texts
        .iter()
        .filter(|text| !embeddings.has(text))
        .cloned()
        .collect();
    let mut made = Made {
        model: embedder.name().to_owned(),
        file: path.display().to_string(),
        texts: wanted.texts.len(),
        missing: missing.len(),
        characters: missing.iter().map(|text| text.chars().count()).sum(),
        vectors: 0,
        calls: 0,
        input_tokens: 0,
        usd: Some(0.0),
    };
    let batches = missing.chunks(Embedder::BATCH).take_while(|_| !args.dry_run);
    for batch in batches {
        let failed = |made: &Made, problem: String| {
            Failure::new(format!(
                "{problem}\n{} of {} are kept in {}; run the same command again for the rest",
                made.vectors,
                counted(made.missing as u64, "vector"),
                made.file
            ))
        };
        let embedded = block_on(embedder.embed(batch))?.map_err(|error| failed(&made, error.to_string()))?;
        for (text, vector) in batch.iter().zip(embedded.vectors) {
            embeddings
                .insert(text, embedder.name(), vector)
                .map_err(|problem| failed(&made, format!("{}: {problem}", embedder.name())))?;
        }
        // After every batch, so that what was paid for is kept.
        write(&path, &embeddings)?;
        made.add(batch.len(), embedded.usage);
    }
    if args.json {
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
    write_whole(path, embeddings.written().as_bytes())
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}

impl Made {
    fn add(&mut self, vectors: usize, usage: CallUsage) {
        self.vectors += vectors;
        self.calls += 1;
        self.input_tokens += usage.input_tokens;
        self.usd = self.usd.zip(usage.usd).map(|(sum, usd)| sum + usd);
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
