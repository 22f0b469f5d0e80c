//! `cargo xtask serve`: what can be tried out in this checkout, over HTTP.

use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use crate::workspace::Workspace;
use crate::{build, command};

/// Where the simulated models listen unless `--port` is given.
const PORT: &str = "8787";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Passed to `capo simulate`; see `cargo capo simulate --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    if workspace.has_page() {
        page()
    } else {
        simulated_models(workspace, &arguments.rest)
    }
}

/// Builds and serves the page.
fn page() -> Result<()> {
    bail!(
        "this checkout has a page (Trunk.toml), and this xtask cannot serve it yet\n\
         For the simulated models alone run: cargo capo simulate --port {PORT}"
    )
}

/// Serves the simulated models behind an OpenAI-compatible endpoint until interrupted.
fn simulated_models(workspace: &Workspace, rest: &[String]) -> Result<()> {
    eprintln!(
        "The page is not in this checkout. This serves the simulated models\n\
         behind an OpenAI-compatible HTTP endpoint instead; stop it with Ctrl-C."
    );
    let mut server = Command::new(build::capo(workspace)?);
    server.current_dir(&workspace.root).arg("simulate");
    if !names_port(rest) {
        server.args(["--port", PORT]);
    }
    server.args(rest);
    eprintln!("$ {}", command::line(&server));
    become_process(&mut server)
}

fn names_port(arguments: &[String]) -> bool {
    arguments
        .iter()
        .any(|argument| argument == "--port" || argument.starts_with("--port="))
}

/// Replaces this process, so that Ctrl-C and the exit status are the server's own.
#[cfg(unix)]
fn become_process(command: &mut Command) -> Result<()> {
    use std::os::unix::process::CommandExt;
    Err(command.exec().into())
}

#[cfg(not(unix))]
fn become_process(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    anyhow::ensure!(status.success(), "the server ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_the_user_wins() {
        let named = |words: &[&str]| names_port(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(named(&["--latency-ms", "5", "--port", "9000"]));
        assert!(named(&["--port=9000"]));
        assert!(!named(&["--portable"]));
    }
}
