//! What a step leaves out, for nobody sees what a test that passes prints.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Names the file in which end-to-end tests write why they check nothing, a line each. With `CI` set they fail instead.
pub(super) const VARIABLE: &str = "CAPO_TEST_SKIPPED";

pub(super) fn file(workspace: &Workspace) -> PathBuf {
    workspace.target.join("skipped-tests")
}

/// Forgets what earlier steps left out.
///
/// # Errors
/// The file cannot be removed.
pub(super) fn forget(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// What was written into the file, each line once.
pub(super) fn note(file: &Path) -> Option<String> {
    let written = fs::read_to_string(file).ok()?;
    let reasons: BTreeSet<&str> = written.lines().collect();
    let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
    Some(format!("but not all was checked: {reasons}"))
}

/// The steps that are not among these, and the call that runs them, too.
pub(super) fn left_out<S: PartialEq + Display>(all: &[S], run: &[S]) -> Option<String> {
    let left: Vec<String> = all
        .iter()
        .filter(|step| !run.contains(step))
        .map(S::to_string)
        .collect();
    (!left.is_empty()).then(|| format!("not run: {} (all: cargo xtask test --all)", left.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_and_forgotten_before_the_next_step() {
        let file = std::env::temp_dir().join(format!("capo-skipped-{}", std::process::id()));
        forget(&file).unwrap();
        assert_eq!(note(&file), None);
        fs::write(&file, "no disk\nno CAPO_S3RVER\nno disk\n").unwrap();
        let said = note(&file).unwrap();
        assert_eq!(said, "but not all was checked: no CAPO_S3RVER; no disk");
        forget(&file).unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn steps_that_are_not_run_are_named() {
        let all = ["format", "litellm", "schemathesis"];
        assert_eq!(left_out(&all, &all), None);
        let said = left_out(&all, &["format"]).unwrap();
        assert!(said.starts_with("not run: litellm, schemathesis ("), "{said}");
    }
}
