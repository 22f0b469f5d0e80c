//! `capo journal`: look into a run, check it, take it elsewhere, branch off.

mod branch;
mod export;
mod show;

use std::path::{Path, PathBuf};

use super::failure::{Ending, Failure, print, print_json};
use super::layout::counted;
use crate::files::read_whole_lines;
use crate::recorded::expect_file;
use crate::session::block_on;

/// Look into the journal of a run, check it, export it, or branch off.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum JournalCommand {
    /// Show the run: study, rounds, candidates, failures, spend and best prompt.
    Show {
        /// The journal.
        #[arg(value_name = "JOURNAL")]
        journal: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Recompute every score, multiplier, pool and result from the raw rollouts; exit code 1 and
    /// the first difference when one does not follow.
    Verify {
        /// The journal.
        #[arg(value_name = "JOURNAL")]
        journal: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    Export(export::ExportArgs),
    Branch(branch::BranchArgs),
}

/// Runs the command.
pub(crate) fn run(args: &JournalArgs) -> Result<Ending, Failure> {
    match &args.command {
        JournalCommand::Show { journal, json } => show::run(journal, *json),
        JournalCommand::Verify { journal, json } => verify(journal, *json),
        JournalCommand::Export(args) => export::run(args),
        JournalCommand::Branch(args) => branch::run(args),
    }
}

/// The whole lines of a journal; a last one that a crash has cut off is left out.
pub(super) fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    expect_file(path)?;
    let text = read_whole_lines("journal", path).map_err(|error| Failure::new(error.to_string()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn verify(path: &Path, json: bool) -> Result<Ending, Failure> {
    let lines = lines(path)?;
    let verified = block_on(capo_core::verify(&lines))?
        .map_err(|difference| Failure::new(format!("{}: {difference}", path.display())))?;
    if json {
        print_json(&serde_json::json!({
            "journal": path.display().to_string(),
            "lines": verified.lines,
            "candidates": verified.candidates,
            "rollouts": verified.rollouts,
            "rounds": verified.rounds,
            "finished": verified.finished,
        }))?;
    } else {
        let result = if verified.finished {
            ", and the result, follow"
        } else {
            " follow"
        };
        print(&format!(
            "{}: verified. {}, {}, {}; every score, multiplier and pool of {}{result} from the rollouts.\n",
            path.display(),
            counted(verified.lines as u64, "line"),
            counted(verified.candidates as u64, "candidate"),
            counted(verified.rollouts, "rollout"),
            counted(u64::from(verified.rounds), "round"),
        ))?;
    }
    Ok(Ending::Done)
}
