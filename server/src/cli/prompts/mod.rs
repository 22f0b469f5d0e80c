//! `capo prompts`: the prompts that a team server keeps for programs.

mod change;
mod read;
mod words;

use capo_api::{LabelName, PromptName, Role};

use super::failure::{Ending, Failure};
use super::runs::server::{Remote, project_for};
use crate::remote::Server;
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

/// A project of a team server.
#[derive(Debug, Clone, clap::Args)]
struct ProjectArgument {
    /// The project; the only one that you may use so unless stated.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl ProjectArgument {
    /// The server, and the project in which its owner has at least this role.
    async fn find(&self, role: Role) -> Result<(Server, String), Failure> {
        let server = self.remote.server()?;
        let what = if role == Role::Viewer {
            "fetch prompts"
        } else {
            "add prompts and move labels"
        };
        let project = project_for(&server, self.project.as_deref(), role, what).await?;
        Ok((server, project))
    }
}

/// A prompt of a project.
#[derive(Debug, Clone, clap::Args)]
struct PromptArgument {
    /// The prompt's name.
    #[arg(value_name = "NAME", value_parser = prompt_typed)]
    name: PromptName,
    #[command(flatten)]
    of: ProjectArgument,
}

/// [`PromptName`], as it is typed.
fn prompt_typed(text: &str) -> Result<PromptName, String> {
    PromptName::try_from(text.to_owned()).map_err(|error| error.to_string())
}

/// [`LabelName`], as it is typed.
fn label_typed(text: &str) -> Result<LabelName, String> {
    LabelName::try_from(text.to_owned()).map_err(|error| error.to_string())
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
