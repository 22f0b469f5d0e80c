//! What rustup and `cargo install` bring.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Toolbox;
use crate::command;
use crate::workspace::cargo_program;

/// Adds a component to the toolchain in use.
pub(super) fn component(name: &str) -> Result<()> {
    rustup(&["component", "add", name])
}

/// Adds a compilation target to the toolchain in use.
pub(super) fn target(name: &str) -> Result<()> {
    rustup(&["target", "add", name])
}

fn rustup(arguments: &[&str]) -> Result<()> {
    command::run(Command::new("rustup").args(arguments))
        .context("it comes with rustup (https://rustup.rs), or from whoever packaged this Rust toolchain")
}

/// Whether the toolchain has the target's standard library, whoever installed it.
pub(super) fn has_target(toolbox: &Toolbox, name: &str) -> bool {
    let mut rustc = toolbox.command("rustc");
    command::output(rustc.args(["--print", "target-libdir", "--target", name]))
        .is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}

/// Where one version of a tool is installed.
pub(super) fn root(cache: &Path, name: &str, version: &str) -> PathBuf {
    cache.join(format!("{name}-{version}"))
}

/// Builds a tool from the registry at exactly that version into its own root.
pub(super) fn install(cache: &Path, name: &str, version: &str, options: &[&str]) -> Result<()> {
    let root = root(cache, name, version);
    let build = root.join("build");
    // That one rewrites modules of many megabytes; the others start programs.
    let opt_level = if name == "wasm-bindgen-cli" { "3" } else { "1" };
    let mut cargo = Command::new(cargo_program());
    cargo
        .args(["install", name, "--version"])
        .arg(format!("={version}"))
        .args(options)
        .arg("--root")
        .arg(&root)
        // Its own, kept until it is done: an interrupted install goes on.
        .arg("--target-dir")
        .arg(&build)
        // Trunk's own profile asks for fat LTO, which triples the time to build
        // a program that runs for a second.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", opt_level);
    command::run(&mut cargo)?;
    std::fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}
