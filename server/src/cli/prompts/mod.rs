//! `capo prompts`: the prompts that a team server keeps for programs.

mod change;
mod read;
mod words;

use capo_api::PromptName;

use super::failure::{Ending, Failure};
use super::runs::server::ProjectArgument;
use crate::session::block_on;

/// Fetch and add prompts that a team server keeps for programs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PromptsArgs {
    #[command(subcommand)]
    command: PromptsCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum PromptsCommand {
    List(read::ListArgs),
    Show(read::ShowArgs),
    Get(read::GetArgs),
    Add(change::AddArgs),
    Label(change::LabelArgs),
    /// List what the runs of a project tested, the latest first.
    Certificates(read::ListArgs),
}

/// A prompt of a project.
#[derive(Debug, Clone, clap::Args)]
struct PromptArgument {
    /// The prompt's name.
    #[arg(value_name = "NAME")]
    name: PromptName,
    #[command(flatten)]
    of: ProjectArgument,
}

/// Runs the command.
pub(crate) fn run(args: &PromptsArgs) -> Result<Ending, Failure> {
    block_on(async {
        match &args.command {
            PromptsCommand::List(args) => read::list(args).await,
            PromptsCommand::Show(args) => read::show(args).await,
            PromptsCommand::Get(args) => read::get(args).await,
            PromptsCommand::Add(args) => change::add(args).await,
            PromptsCommand::Label(args) => change::label(args).await,
            PromptsCommand::Certificates(args) => read::certificates(args).await,
        }
    })?
}
