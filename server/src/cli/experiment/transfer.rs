//! `capo experiment transfer`: a trained rewriter on studies that it was not trained on.

use super::{ExperimentArgs, TRANSFER, ending, forecast, run_trials, trials, usual_jobs};
use crate::cli::failure::{Ending, Failure, print};
use crate::experiment::transfer::{Target, TransferError, Transferred, report, targets, write};
use crate::experiment::{Table, Trial, Variant};
use crate::session::StudyFile;
use crate::train::TrainError;
use crate::train::local::StatedDrawing;

pub(super) fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let Some(name) = &args.rewriter else {
        return Err(Failure::usage(format!(
            "`{TRANSFER}` needs the rewriter: name the folder of a training, a checkpoint, an adapter or a model with --rewriter"
        )));
    };
    if args.study.is_empty() {
        return Err(Failure::usage(format!(
            "`{TRANSFER}` needs the studies that the rewriter is applied to: name their files with --study"
        )));
    }
    let drawn = StatedDrawing {
        temperature: args.temperature,
        max_tokens: args.max_tokens,
        max_batch: args.max_batch,
    };
    drawn.drawing().check().map_err(TrainError::from)?;
    let files = args.study.iter().map(|path| args.outside.read(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let rewriter = Transferred::find(name, drawn)?;
    let targets = targets(&files, &rewriter)?;
    let variants: Vec<Variant> = targets.iter().map(|target| target.variant.clone()).collect();
    let file = |trial: &Trial| target_file(&targets, trial);
    let out = args.out(TRANSFER);
    let trials = trials(TRANSFER, &variants, &args.seeds(), &out, args.same_split);
    // Whatever is wrong with a study, its workload or what a seed draws is said before anything is paid.
    for trial in &trials {
        file(trial).setup()?;
    }
    let prices = args.prices.table()?;
    if args.dry_run {
        return forecast(TRANSFER, &file, &trials, &prices);
    }
    rewriter.hold(&out)?;
    let jobs = args.jobs.unwrap_or_else(|| usual_jobs(&variants[0].study));
    let Some(records) = run_trials(args, &trials, jobs, None, &file, &prices)? else {
        return Ok(Ending::Stopped);
    };
    let page = write(&out, name, &targets, &records).map_err(|error| Failure::new(error.to_string()))?;
    let tables: Vec<String> = report(&targets, &records)
        .tables
        .iter()
        .map(Table::markdown)
        .collect();
    let journals = if args.no_journals { "" } else { " and journals" };
    let tables = tables.join("\n");
    print(&format!("{tables}\nTables{journals}: {}\n", page.display()))?;
    Ok(ending(&records))
}

/// The study of a trial, with the paths of the file that it came from.
fn target_file(targets: &[Target], trial: &Trial) -> StudyFile {
    let of_trial = |target: &&Target| target.variant.key == trial.variant.key;
    let target = targets
        .iter()
        .find(of_trial)
        .expect("a trial is of one of the targets");
    StudyFile {
        study: trial.study(),
        ..target.file.clone()
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Study(_) | TransferError::SameName(_) => Self::usage(error.to_string()),
            error => Self::new(error.to_string()),
        }
    }
}
