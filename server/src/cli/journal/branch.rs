//! `capo journal branch`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use capo_core::journal::SteerEvent;
use indexmap::IndexMap;

use super::lines;
use crate::cli::failure::{Ending, Failure, print};
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
    /// Another threshold from there on; may be given several times.
    #[arg(long = "threshold", value_name = "METRIC=VALUE", value_parser = setting)]
    thresholds: Vec<(String, f64)>,
    /// Another multiplier at that round; may be given several times.
    #[arg(long = "multiplier", value_name = "METRIC=VALUE", value_parser = setting)]
    multipliers: Vec<(String, f64)>,
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let refuse = || "write it as METRIC=VALUE, such as human_requests=0.3".to_owned();
    let (metric, value) = text.split_once('=').ok_or_else(refuse)?;
    match value.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && !metric.trim().is_empty() => Ok((metric.trim().to_owned(), value)),
        _ => Err(refuse()),
    }
}

pub(super) fn run(args: &BranchArgs) -> Result<Ending, Failure> {
    let run = RecordedRun::read(&args.journal)?;
    let constrained: Vec<&str> = run
        .study
        .study
        .constraints
        .iter()
        .map(|constraint| constraint.metric.as_str())
        .collect();
    for (metric, value) in args.thresholds.iter().chain(&args.multipliers) {
        if !constrained.contains(&metric.as_str()) {
            let hint = capo_core::study::nearest(metric, constrained.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(Failure::usage(format!(
                "the study has no constraint on `{metric}`{hint}\nIts constraints: {}",
                constrained.join(", ")
            )));
        }
        if args.multipliers.contains(&(metric.clone(), *value)) && *value < 0.0 {
            return Err(Failure::usage(format!(
                "the multiplier of `{metric}` must be at least 0"
            )));
        }
    }
    let given = |settings: &[(String, f64)]| {
        (!settings.is_empty()).then(|| settings.iter().cloned().collect::<IndexMap<String, f64>>())
    };
    let changes = SteerEvent {
        thresholds: given(&args.thresholds),
        multipliers: given(&args.multipliers),
        ..SteerEvent::default()
    };
    let branched = capo_core::journal::branch(lines(&args.journal)?, args.round, changes)
        .map_err(|error| Failure::new(format!("{}: {error}", args.journal.display())))?;

    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.out)
        .map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::AlreadyExists => "; choose another --out, it is not overwritten",
                _ => "",
            };
            Failure::new(format!("{} cannot be made: {error}{hint}", args.out.display()))
        })?;
    let text = branched.join("\n") + "\n";
    file.write_all(text.as_bytes())
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", args.out.display())))?;
    print(&format!(
        "{}: branched off at round {}. Run it with `capo optimize STUDY --journal {}`.\n",
        args.out.display(),
        args.round,
        crate::cli::layout::quoted(&args.out.to_string_lossy()),
    ))?;
    Ok(Ending::Done)
}
