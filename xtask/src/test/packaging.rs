//! The files of server/packaging, as far as they can be checked where no container runs.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::skipped;
use crate::command;
use crate::install::Toolbox;
use crate::scratch::Scratch;
use crate::workspace::Workspace;

/// The program that the unit starts, which is not there.
const PROGRAM: &str = "/usr/local/bin/capo";

/// Lints the Dockerfile and the installer, holds the compose file against its specification, and has systemd, where it is
/// installed, read the unit.
///
/// # Errors
/// One of them does not hold, or the image builds with another Rust than this checkout.
pub(super) fn check(workspace: &Workspace, toolbox: &Toolbox) -> Result<()> {
    let path = |name: &str| workspace.root.join("server/packaging").join(name);
    let lint = |program: &str| Command::new(toolbox.packaging_lint(program));
    command::run(lint("hadolint").arg(path("Dockerfile")))?;
    command::run(lint("shellcheck").arg(path("install.sh")))?;
    let mut compose = lint("check-jsonschema");
    compose.args(["--builtin-schema", "vendor.compose-spec"]);
    command::run(compose.arg(path("compose.yaml")))?;

    let toolchain = fs::read_to_string(workspace.root.join("rust-toolchain.toml"))?;
    let channel = toolchain
        .lines()
        .find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"'));
    let channel = channel.context("rust-toolchain.toml names no channel")?;
    let image = format!("FROM rust:{channel}-");
    ensure!(
        fs::read_to_string(path("Dockerfile"))?.contains(&image),
        "the Dockerfile must begin with {image}…, the toolchain of this checkout"
    );

    if !command::succeeds(Command::new("systemd-analyze").arg("--version")) {
        let why = "systemd is not installed and cannot read capo.service\n";
        fs::write(skipped::file(workspace), why)?;
        return Ok(());
    }
    let unit = fs::read_to_string(path("capo.service"))?;
    let scratch = Scratch::create(workspace)?;
    let copy = scratch.file("capo.service");
    fs::write(&copy, unit.replace(PROGRAM, "/bin/true"))?;
    // Only what is wrong with this unit counts, and not with those that it names.
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]);
    command::run(verify.arg(copy))
}
