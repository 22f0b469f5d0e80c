//! `capo runs`: the runs of a team server. `capo watch`: one of them as it goes on.

mod journal;
mod list;
mod orders;
pub(super) mod server;
pub(crate) mod start;
pub(crate) mod watch;
mod words;

use super::failure::{Ending, Failure};
use crate::session::block_on;
use server::{Remote, run_named};

/// Look after the runs of a team server.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum RunsCommand {
    List(list::ListArgs),
    Show(list::ShowArgs),
    /// Have a run start nothing new; it is resumed by `capo runs resume`.
    Pause(RunArgument),
    Resume(orders::ResumeArgs),
    /// End a run with the best prompt so far.
    Stop(RunArgument),
    /// Delete a run with its journal. It must not be running.
    Delete(RunArgument),
    Steer(orders::SteerArgs),
    Branch(orders::BranchArgs),
    Push(journal::PushArgs),
    Pull(journal::PullArgs),
}

/// A run of a team server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunArgument {
    /// The run: its id, or the first 6 or more digits of it.
    #[arg(value_name = "RUN", value_parser = run_named)]
    run: String,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub(crate) fn run(args: &RunsArgs) -> Result<Ending, Failure> {
    let listed = RunsCommand::List(args.list.clone());
    block_on(async {
        match args.command.as_ref().unwrap_or(&listed) {
            RunsCommand::List(args) => list::list(args).await,
            RunsCommand::Show(args) => list::show(args).await,
            RunsCommand::Pause(args) => orders::pause(args).await,
            RunsCommand::Resume(args) => orders::resume(args).await,
            RunsCommand::Stop(args) => orders::stop(args).await,
            RunsCommand::Delete(args) => orders::delete(args).await,
            RunsCommand::Steer(args) => orders::steer(args).await,
            RunsCommand::Branch(args) => orders::branch(args).await,
            RunsCommand::Push(args) => journal::push(args).await,
            RunsCommand::Pull(args) => journal::pull(args).await,
        }
    })?
}
