//! The page: built by Trunk, stamped with content hashes, served by `capo serve`.

mod bundle;
mod report;
mod shell;
mod stamp;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::install::{Tool, Toolbox, wasm_tools};
use crate::scratch::Scratch;
use crate::workspace::{DRIVER, Workspace};
use crate::{build, command};

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

/// The page as other people get it, built and served by `capo` on a free port for as long as this lives.
pub(crate) struct Host {
    server: Child,
    /// Held so that the server never writes into a closed pipe.
    _stdout: BufReader<ChildStdout>,
    /// The server's folder.
    _data: Scratch,
    /// What is installed, browsers included.
    toolbox: Toolbox,
    /// The page's files.
    pub(crate) directory: PathBuf,
    /// Where it is served, with a slash at the end.
    address: String,
}

impl Host {
    /// Builds the page and serves it.
    ///
    /// # Errors
    /// A tool is missing and cannot be installed, the page does not compile, or no port is free.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let mut toolbox = toolbox(workspace)?;
        toolbox.ensure(&Tool::Chromium)?;
        let directory = build(workspace, &toolbox, Build::Release)?;
        let data = Scratch::create(workspace)?;
        let mut server = Command::new(build::capo(workspace)?)
            .args(["serve", "--addr", "127.0.0.1:0", "--data"])
            .arg(data.file("capo"))
            .arg("--page")
            .arg(&directory)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = server.stdout.take().context("the server's standard output")?;
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ");
        let address = format!("{}/", address.context("the server did not start")?);
        Ok(Self {
            server,
            _stdout: stdout,
            _data: data,
            toolbox,
            directory,
            address,
        })
    }

    /// Has a browser do one of the tasks of the package `capo-browser` on the page.
    ///
    /// # Errors
    /// It does not compile, or fails.
    pub(crate) fn drive(&self, workspace: &Workspace, task: &str, paths: [&PathBuf; 2]) -> Result<()> {
        let mut cargo = workspace.cargo();
        self.toolbox.equip(&mut cargo);
        cargo.args(["run", "--quiet", "--package", DRIVER, "--", task, &self.address]);
        command::run(cargo.args(paths))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // One that has ended needs no end.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
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
