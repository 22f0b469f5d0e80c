//! `cargo xtask build`: the release binary, with the page inside.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::page::{self, Build};
use crate::workspace::{MEASURE, SERVER, Workspace};

/// Builds `capo` and prints where it is and how big.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    tell(&with_page(workspace)?)
}

/// Builds the release `capo` with the page inside and returns its path.
///
/// # Errors
/// A tool is missing and cannot be installed, or the page or `capo` does not compile.
pub(crate) fn with_page(workspace: &Workspace) -> Result<PathBuf> {
    let toolbox = page::toolbox(workspace)?;
    around(workspace, &page::build(workspace, &toolbox, Build::Release)?)
}

/// Builds the release `capo` with a built page inside and returns its path.
///
/// # Errors
/// It does not compile.
pub(crate) fn around(workspace: &Workspace, page: &Path) -> Result<PathBuf> {
    command::run(capo_build(workspace, &[]).env("CAPO_EMBED", page))?;
    built(workspace, "release", &["capo"])
}

/// Prints where a file is and how big.
///
/// # Errors
/// It is not there.
pub(crate) fn tell(file: &Path) -> Result<()> {
    let size = std::fs::metadata(file)
        .with_context(|| format!("cannot read {}", file.display()))?
        .len();
    println!("{} ({:.1} MB)", file.display(), size as f64 / 1e6);
    Ok(())
}

/// Builds the release `capo` and returns its path.
///
/// # Errors
/// It does not compile.
pub(crate) fn capo(workspace: &Workspace) -> Result<PathBuf> {
    capo_with(workspace, &[])
}

/// Builds the release `capo` with features and returns its path.
///
/// # Errors
/// It does not compile.
pub(crate) fn capo_with(workspace: &Workspace, features: &[&str]) -> Result<PathBuf> {
    command::run(&mut capo_build(workspace, features))?;
    built(workspace, "release", &["capo"])
}

fn capo_build(workspace: &Workspace, features: &[&str]) -> Command {
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--release", "--package", SERVER, "--bin", "capo"])
        .args(features.iter().flat_map(|feature| ["--features", feature]));
    cargo
}

/// Builds the release program that measures the rewriter, with a GPU backend in it, and returns its path.
///
/// # Errors
/// It does not compile.
pub(crate) fn measure(workspace: &Workspace, backend: &str) -> Result<PathBuf> {
    command::run(workspace.cargo().args([
        "build",
        "--release",
        "--package",
        MEASURE,
        "--features",
        backend,
    ]))?;
    built(workspace, "release", &["capo-measure"])
}

/// Builds an example in release mode and returns its path.
///
/// # Errors
/// The package has no such example, or it does not compile.
pub(crate) fn example(workspace: &Workspace, package: &str, name: &str) -> Result<PathBuf> {
    let has = workspace
        .package(package)
        .is_some_and(|package| package.has_example(name));
    ensure!(has, "package {package} has no example `{name}`");
    command::run(
        workspace
            .cargo()
            .args(["build", "--release", "--package", package, "--example", name]),
    )?;
    built(workspace, "release", &["examples", name])
}

/// The path of a program that cargo has built with a profile whose folder is `profile`.
///
/// # Errors
/// It is not there.
pub(crate) fn built(workspace: &Workspace, profile: &str, path: &[&str]) -> Result<PathBuf> {
    let mut binary = workspace.target.join(profile);
    binary.extend(path);
    binary.set_extension(std::env::consts::EXE_EXTENSION);
    ensure!(
        binary.is_file(),
        "cargo built no {}\nIs another target or profile directory set in a cargo configuration?",
        binary.display()
    );
    Ok(binary)
}
