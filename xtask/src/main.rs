//! `cargo xtask`: set up a machine, build, serve, test and measure Capo.
//!
//! Everything a person or continuous integration does with the checkout goes
//! through here, so that there is one description of how it is done.

mod bench;
mod build;
mod command;
mod dist;
mod docs;
mod edge;
mod fuzz;
mod help_desk;
mod imports;
mod install;
mod page;
mod postgres;
mod scratch;
mod screenshots;
mod serve;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Set up, build, serve, test and measure Capo.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the other tasks need, and say what and why
    Setup,
    /// Build the release `capo` binary, with the page inside
    Build,
    /// Pack the release archive for this machine's target, with SHA256SUMS and install.sh beside it
    Dist(dist::Arguments),
    /// Build the page and the team server, and serve them on this machine
    Serve(serve::Arguments),
    /// Build the page and the key gate for Cloudflare's runtime, and run them on this machine
    Edge(edge::Arguments),
    /// Run the whole gate, or the steps named
    Test(test::Arguments),
    /// Run a benchmark; without a name, list them
    Bench(bench::Arguments),
    /// Call the tools of the tau2 domains with arbitrary arguments until one fails or the time is over
    Fuzz(fuzz::Arguments),
    /// Write the documentation generated from the code
    Docs(docs::Arguments),
    /// Take the pictures of the page that the documentation shows
    Screenshots,
    /// Stamp the page that Trunk has built; Trunk calls this
    #[command(hide = true)]
    Stamp,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    let workspace = Workspace::load()?;
    match task {
        Task::Setup => test::set_up(&workspace),
        Task::Build => build::run(&workspace),
        Task::Dist(arguments) => dist::run(&workspace, arguments),
        Task::Serve(arguments) => serve::run(&workspace, arguments),
        Task::Edge(arguments) => edge::run(&workspace, arguments),
        Task::Test(arguments) => test::run(&workspace, arguments),
        Task::Bench(arguments) => bench::run(&workspace, arguments),
        Task::Fuzz(arguments) => fuzz::run(&workspace, arguments),
        Task::Docs(arguments) => docs::run(&workspace, arguments),
        Task::Screenshots => screenshots::run(&workspace),
        Task::Stamp => page::stamp(),
    }
}
