//! The page, served to a browser of its own.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};

use super::{Build, toolbox};
use crate::install::{Tool, Toolbox};
use crate::scratch::Scratch;
use crate::workspace::{DRIVER, Workspace};
use crate::{build, command};

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
        let directory = super::build(workspace, &toolbox, Build::Release)?;
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
