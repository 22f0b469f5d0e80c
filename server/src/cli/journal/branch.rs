//! `capo journal branch`.

use std::io;
use std::path::PathBuf;

use super::lines;
use crate::cli::failure::{Ending, Failure, print};
use crate::cli::steering::Changes;
use crate::files::NewFile;
use crate::recorded::RecordedRun;

/// Start a new journal from a round of another one, paying nothing again; changes take effect when
/// the branch is run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BranchArgs {
    /// The journal to branch off.
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// The first round of the new run's own; everything before it is shared.
    #[arg(long, value_name = "T")]
    round: u32,
    /// The new journal.
    #[arg(long, value_name = "NEW")]
    out: PathBuf,
    #[command(flatten)]
    changes: Changes,
}

pub(super) fn run(args: &BranchArgs) -> Result<Ending, Failure> {
    // A link that leads nowhere is a name taken, too.
    if args.out.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is there already; choose another --out, it is not overwritten",
            args.out.display()
        )));
    }
    let changes = args.changes.event()?;
    let run = RecordedRun::read(&args.journal)?;
    for (option, settings) in [
        ("--threshold", &args.changes.thresholds),
        ("--multiplier", &args.changes.multipliers),
    ] {
        for (metric, value) in settings {
            check_constrained(&run, metric)?;
            let least = match option {
                "--threshold" => minimum(&run, metric).unwrap_or(f64::NEG_INFINITY),
                _ => 0.0,
            };
            if *value < least {
                return Err(Failure::usage(format!(
                    "{option} {metric}={value}: it must be at least {least}"
                )));
            }
        }
    }
    let branched = capo_core::journal::branch(lines(&args.journal)?, args.round, changes)
        .map_err(|error| Failure::new(format!("{}: {error}", args.journal.display())))?;

    let text = branched.join("\n") + "\n";
    let write = || {
        let mut file = NewFile::like(&args.journal, &args.out)?;
        file.write(text.as_bytes())?;
        file.put(&args.out)
    };
    write().map_err(|error: io::Error| {
        Failure::new(format!("{} cannot be written: {error}", args.out.display()))
    })?;
    print(&format!(
        "{}: branched off at round {}. Run it with `capo optimize STUDY --journal {}`.\n",
        args.out.display(),
        args.round,
        crate::cli::layout::quoted(&args.out.to_string_lossy()),
    ))?;
    Ok(Ending::Done)
}

/// Refuses a metric that the study does not constrain.
fn check_constrained(run: &RecordedRun, metric: &str) -> Result<(), Failure> {
    let constraints = run.study.study.constraints.iter();
    let constrained: Vec<&str> = constraints.map(|constraint| constraint.metric.as_str()).collect();
    if constrained.contains(&metric) {
        return Ok(());
    }
    let hint = capo_core::study::nearest(metric, constrained.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    Err(Failure::usage(format!(
        "the study has no constraint on `{metric}`{hint}\nIts constraints: {}",
        constrained.join(", ")
    )))
}

/// The least value a metric can take, where it is bounded below: no threshold under it can be met.
fn minimum(run: &RecordedRun, metric: &str) -> Option<f64> {
    let mut metrics = run.study.workloads.values().flat_map(|record| &record.metrics);
    metrics.find(|spec| spec.name == metric)?.min
}
