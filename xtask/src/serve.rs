//! `cargo xtask serve`: the page, built and open to a browser on this machine.

use anyhow::Result;
use clap::Args;

use crate::page::{self, Build, PageServer};
use crate::workspace::Workspace;

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
    let listener = PageServer::bind(arguments.port)?;
    let toolbox = page::toolbox(workspace)?;
    let build = if arguments.dev { Build::Dev } else { Build::Release };
    let directory = page::build(workspace, &toolbox, build)?;
    let server = PageServer::open(listener, &directory)?;
    println!("The page is at {}", server.address());
    println!("Stop it with Ctrl-C; after a change, stop and start it again.");
    server.run();
    Ok(())
}
