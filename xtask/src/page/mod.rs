//! The page: built by Trunk, stamped with content hashes, served by `capo serve`.

mod bundle;
mod host;
mod report;
mod shell;
mod stamp;

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::command;
use crate::install::{Tool, Toolbox, wasm_tools};
use crate::workspace::Workspace;

pub(crate) use host::Host;
pub(crate) use shell::hash;
pub(crate) use stamp::run as stamp;

/// How the page's module is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Small and fast, with the profile `web` of `Cargo.toml`; some minutes.
    Release,
    /// Unoptimised, with the profile `dev`; for the inner loop.
    Dev,
}

/// What must be installed to build the page.
///
/// # Errors
/// `Cargo.lock` cannot be read.
pub(crate) fn tools(workspace: &Workspace) -> Result<Vec<Tool>> {
    // With node, for Binaryen's wasm-opt comes as a script for it.
    let mut tools = wasm_tools(workspace)?;
    tools.extend([Tool::Trunk, Tool::Binaryen, Tool::Esbuild]);
    Ok(tools)
}

/// Builds the page and returns the directory that any static file host can serve.
///
/// # Errors
/// It does not compile, or Trunk or the stamping fails.
pub(crate) fn build(workspace: &Workspace, toolbox: &Toolbox, build: Build) -> Result<PathBuf> {
    let mut trunk = toolbox.command("trunk");
    trunk
        .current_dir(&workspace.root)
        .args(["build", "--skip-version-check"])
        // Trunk accepts only `true` and `false` here, and some shells and services set it to `1`.
        .env_remove("NO_COLOR");
    if build == Build::Dev {
        trunk.arg("--release=false");
    }
    command::run(&mut trunk)?;
    let directory = workspace.root.join("dist");
    ensure!(
        directory.join("sw.js").is_file(),
        "Trunk left no page in {}\nIs another directory set for it (TRUNK_BUILD_DIST)?",
        directory.display()
    );
    Ok(directory)
}

/// Installs what building the page needs.
///
/// # Errors
/// A tool is missing and cannot be installed.
pub(crate) fn toolbox(workspace: &Workspace) -> Result<Toolbox> {
    let mut toolbox = Toolbox::open()?;
    for tool in tools(workspace)? {
        toolbox.ensure(&tool)?;
    }
    Ok(toolbox)
}
