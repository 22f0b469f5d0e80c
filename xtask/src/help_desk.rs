//! The help-desk study, run by the command line.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

pub(crate) const STUDY: &str = "studies/help-desk.toml";
/// The exit codes of a search that ran to its end: with a feasible prompt, without one.
pub(crate) const SEARCH_ENDED: [i32; 2] = [0, 2];

/// `capo optimize` on a study, with everything but the result on standard error.
pub(crate) fn optimize(
    workspace: &Workspace,
    capo: &Path,
    study: &Path,
    seed: u64,
    journal: &Path,
) -> Command {
    let mut command = Command::new(capo);
    command
        .current_dir(&workspace.root)
        .arg("optimize")
        .arg(study)
        .args([
            "--allow-outside",
            "--json",
            "--seed",
            &seed.to_string(),
            "--journal",
        ])
        .arg(journal);
    command
}

/// Searches with `study` to the end and leaves the journal at `journal`.
///
/// # Errors
/// The search does not come to its end.
pub(crate) fn write_journal(
    workspace: &Workspace,
    capo: &Path,
    study: &Path,
    seed: u64,
    journal: &Path,
) -> Result<()> {
    let mut command = optimize(workspace, capo, study, seed, journal);
    let output = command.output().context("cannot start capo")?;
    ensure!(
        output
            .status
            .code()
            .is_some_and(|code| SEARCH_ENDED.contains(&code)),
        "capo did not finish {}: {}",
        study.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
