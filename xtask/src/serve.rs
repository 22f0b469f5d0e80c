//! `cargo xtask serve`: the page and the team server, built and open to a browser on this machine.

use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use anyhow::{Result, anyhow};
use clap::Args;

use crate::page::{self, Build};
use crate::workspace::Workspace;
use crate::{build, command};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The port to listen on, 0 for any free one
    #[arg(long, default_value_t = 8787)]
    port: u16,
    /// Build fast instead of building a fast page
    #[arg(long)]
    dev: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // First, so that a taken port is known before a build of some minutes.
    is_free(arguments.port)?;
    let toolbox = page::toolbox(workspace)?;
    let how = if arguments.dev { Build::Dev } else { Build::Release };
    // Side by side: each spends minutes on one core.
    let (page, capo) = thread::scope(|scope| {
        let capo = scope.spawn(|| build::capo(workspace));
        let page = page::build(workspace, &toolbox, how);
        let capo = capo
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (page, capo)
    });
    println!("Stop it with Ctrl-C; after a change, stop and start it again.");
    command::run(
        std::process::Command::new(capo?)
            .arg("serve")
            .args(["--addr", &format!("127.0.0.1:{}", arguments.port), "--page"])
            .arg(page?),
    )
}

/// Whether the port can be listened on.
fn is_free(port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    listener.map(|_| ()).map_err(|error| {
        anyhow!(
            "cannot listen on port {port} of this machine ({error})\n\
             Stop what listens there, or choose another: cargo xtask serve --port {}",
            port.checked_add(1).unwrap_or(8788)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_says_what_to_do() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = is_free(port).unwrap_err().to_string();
        assert!(
            error.contains(&format!("port {port}")) && error.contains("--port"),
            "{error}"
        );
    }
}
