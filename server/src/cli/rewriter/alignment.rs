//! `capo rewriter alignment`: how far a training's rewrites and steps agree with the gradient.

use std::path::{Path, PathBuf};

use capo_core::random::Streams;
use capo_core::statistics::{ClusteredMean, RESAMPLES, clustered_mean};
use capo_rewriter::alignment::{
    Alignment, AlignmentError, AlignmentExample, LearnedRound, RoundExamples, policies, read_rounds,
};
use capo_rewriter::engine::Engine;
use capo_rewriter::folder::{JOURNAL, PolicyFolder};
use capo_rewriter::template::RewriteTemplate;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::failure::{Failure, print, print_json};
use crate::cli::layout::{NOTHING, counted, significant};
use crate::cli::place;
use crate::progress::style;
use crate::stderr::SCREEN;
use crate::train::{Device, TrainError};
use capo_core::table::Table;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Measure how far the rewrites and steps of a training by `capo train grpo` agree with the policy's gradient
/// (Rewrite Alignment of the paper), for every round whose checkpoints before and after are kept.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AlignmentArgs {
    /// Folder of the training, which may be under way.
    #[arg(value_name = "TRAINING")]
    training: PathBuf,
    /// Write the figures, those of each pair too, to a JSON file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: Device,
}

/// The object of `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    training: String,
    device: String,
    confidence: f64,
    rounds: Vec<RoundSummary>,
    /// Over the pairs of all rounds.
    all: Means,
}

#[derive(Debug, Serialize)]
struct RoundSummary {
    round: u32,
    /// The policy that drew the round's rewrites.
    before: String,
    /// The policy that learned from them.
    after: String,
    #[serde(flatten)]
    means: Means,
    /// Pairs with less feedback in a request than in the journal, as the model has no room for all.
    feedback_cut: usize,
    /// Pairs left out because they do not fit the model at all.
    too_long: usize,
}

/// Means over pairs, with intervals over parents; null where there are no pairs.
#[derive(Debug, Serialize)]
struct Means {
    pairs: usize,
    /// ⟨ĝ_z, z⁺ − z⟩.
    hidden: Option<ClusteredMean>,
    /// ⟨ĝ_θ, Δθ⟩.
    parameters: Option<ClusteredMean>,
    /// J(child) − J(parent).
    gain: Option<ClusteredMean>,
}

/// The file of `--out`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    each: Vec<PairLine>,
}

#[derive(Debug, Serialize)]
struct PairLine {
    round: u32,
    /// Line of the journal that tells of the rewrite.
    line: usize,
    /// Which of the round's parents, from 0.
    parent: usize,
    /// J(child) − b.
    advantage: f64,
    hidden: f64,
    parameters: f64,
    gain: f64,
}

/// Runs the command.
pub(super) fn run(args: &AlignmentArgs) -> Result<(), Failure> {
    let rounds = read_rounds(&args.training).map_err(TrainError::from)?;
    if let Some(path) = &args.out {
        place::check("--out", path, [])?;
        place::try_out("--out", path)?;
    }
    let engine = args.device.open().map_err(TrainError::from)?;
    let measured = measure(&args.training, &*engine, &rounds)?;
    let summary = summary(&args.training, engine.device(), &measured);
    let written = match &args.out {
        Some(path) => write(path, &summary, &measured),
        None => Ok(()),
    };
    let shown = if args.json {
        print_json(&summary)
    } else {
        let out = args.out.as_deref().filter(|_| written.is_ok());
        print(&page(&summary, out))
    };
    // What was measured is shown even where it could not be written.
    written.and(shown)
}

/// A round with what its pairs came to.
struct Measured<'a> {
    round: &'a LearnedRound,
    read: RoundExamples,
    alignments: Vec<Alignment>,
}

impl Measured<'_> {
    fn pairs(&self) -> impl Iterator<Item = (&AlignmentExample, &Alignment)> {
        self.read.examples.iter().zip(&self.alignments)
    }
}

fn measure<'a>(
    training: &Path,
    engine: &dyn Engine,
    rounds: &'a [LearnedRound],
) -> Result<Vec<Measured<'a>>, TrainError> {
    let policies = policies(rounds)?;
    let mut read = Vec::new();
    for (round, [before, _]) in rounds.iter().zip(&policies) {
        read.push(round.examples(&RewriteTemplate::from_folder(&before.model)?)?);
    }
    let count: usize = read.iter().map(|read| read.examples.len()).sum();
    if count == 0 {
        return Err(AlignmentError::NoPairs {
            journal: training.join(JOURNAL),
            rewrites: rounds.iter().map(LearnedRound::children).sum(),
        }
        .into());
    }
    let bar = SCREEN.add(ProgressBar::new(count as u64));
    bar.set_style(style("{spinner} [{bar:12}] pair {pos}/{len} · {eta} left"));
    let align = |((round, policies), read): ((&'a LearnedRound, &[PolicyFolder; 2]), RoundExamples)| {
        let alignments = engine.align(policies, &read.examples, round.temperature(), &mut || bar.inc(1))?;
        Ok(Measured {
            round,
            read,
            alignments,
        })
    };
    let measured = rounds.iter().zip(&policies).zip(read).map(align).collect();
    bar.finish_and_clear();
    measured
}

fn summary(training: &Path, device: &str, measured: &[Measured]) -> Summary {
    let round = |one: &Measured| RoundSummary {
        round: one.round.round,
        before: one.round.before.folder().display().to_string(),
        after: one.round.after.folder().display().to_string(),
        means: Means::of(std::slice::from_ref(one)),
        feedback_cut: one.read.feedback_cut,
        too_long: one.read.too_long,
    };
    Summary {
        training: training.display().to_string(),
        device: device.to_owned(),
        confidence: CONFIDENCE,
        rounds: measured.iter().map(round).collect(),
        all: Means::of(measured),
    }
}

impl Means {
    /// Of the pairs of some rounds.
    fn of(measured: &[Measured]) -> Self {
        let mean = |of: fn(&AlignmentExample, &Alignment) -> f64| {
            let mut clusters: Vec<Vec<f64>> = Vec::new();
            for one in measured {
                let pairs: Vec<_> = one.pairs().collect();
                // Pairs of one parent follow each other.
                let families = pairs.chunk_by(|(one, _), (other, _)| one.parent == other.parent);
                clusters.extend(families.map(|family| {
                    let values = family.iter().map(|(example, alignment)| of(example, alignment));
                    values.collect()
                }));
            }
            // The same draws for every figure.
            let mut stream = Streams::new(0).stream("alignment", 0, 0);
            clustered_mean(&clusters, CONFIDENCE, RESAMPLES, &mut stream)
        };
        Self {
            pairs: measured.iter().map(|one| one.alignments.len()).sum(),
            hidden: mean(|_, alignment| alignment.hidden),
            parameters: mean(|_, alignment| alignment.parameters),
            gain: mean(|example, _| example.gain),
        }
    }
}

fn write(path: &Path, summary: &Summary, measured: &[Measured]) -> Result<(), Failure> {
    let line = |one: &Measured| -> Vec<PairLine> {
        let round = one.round.round;
        let line = |(example, alignment): (&AlignmentExample, &Alignment)| PairLine {
            round,
            line: example.line,
            parent: example.parent,
            advantage: example.advantage,
            hidden: alignment.hidden,
            parameters: alignment.parameters,
            gain: example.gain,
        };
        one.pairs().map(line).collect()
    };
    let document = Document {
        summary,
        each: measured.iter().flat_map(line).collect(),
    };
    let text = serde_json::to_string_pretty(&document).map_err(|error| Failure::new(error.to_string()))?;
    place::write(path, &(text + "\n"))
}

fn page(summary: &Summary, out: Option<&Path>) -> String {
    let mut grid = Table::new([
        "",
        "parents",
        "pairs",
        "⟨ĝ_z, z⁺ − z⟩",
        "⟨ĝ_θ, Δθ⟩",
        "J(child) − J(parent)",
    ]);
    let mut row = |name: String, means: &Means| {
        let parents = means.gain.map_or(0, |gain| gain.clusters);
        let counts = [parents, means.pairs].map(|count| count.to_string());
        let cells = [&means.hidden, &means.parameters, &means.gain].map(|mean| cell(mean.as_ref()));
        grid.row(std::iter::once(name).chain(counts).chain(cells));
    };
    for round in &summary.rounds {
        row(format!("round {}", round.round), &round.means);
    }
    if summary.rounds.len() > 1 {
        row("all".into(), &summary.all);
    }
    let total = |of: fn(&RoundSummary) -> usize| summary.rounds.iter().map(of).sum::<usize>() as u64;
    let mut text = format!(
        "Alignment of {} on {}: means over pairs of parent and child, with {:.0} % intervals over parents\n\n{}",
        summary.training,
        summary.device,
        100.0 * summary.confidence,
        grid.text(2)
    );
    for (pairs, what) in [
        (
            total(|round| round.feedback_cut),
            "less feedback than the journal, as the model has no room for all",
        ),
        (
            total(|round| round.too_long),
            "no room in the model and were left out",
        ),
    ] {
        if pairs > 0 {
            text += &format!("\n{} had {what}\n", counted(pairs, "pair"));
        }
    }
    if let Some(path) = out {
        text += &format!("\nEach pair: {}\n", path.display());
    }
    text
}

fn cell(mean: Option<&ClusteredMean>) -> String {
    let Some(found) = mean else {
        return NOTHING.to_owned();
    };
    let mean = significant(found.mean);
    found.interval.map_or(mean.clone(), |interval| {
        format!(
            "{mean} [{}, {}]",
            significant(interval.low),
            significant(interval.high)
        )
    })
}
