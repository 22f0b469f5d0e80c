//! `capo prompts add` and `capo prompts label`.

use std::path::PathBuf;

use capo_api::{LabelMove, LabelName, NewVersion, Role, Title, WhichVersion};

use super::PromptArgument;
use super::words::numbers;
use crate::cli::failure::{Ending, Failure, print};
use crate::cli::runs::server::{find, refused, run_named};
use crate::files::read_prompt;

/// Add a version of a prompt, and with the first one the prompt.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    prompt: PromptArgument,
    #[command(flatten)]
    source: Source,
    /// The prompt of that run with this id, or the first 6 or more digits of it; the run's best unless stated.
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    candidate: Option<String>,
    /// What to say of it, on one line.
    #[arg(long, value_name = "TEXT")]
    note: Option<Title>,
}

#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// A run of the project that has ended: its id, or the first 6 or more digits of it. Its numbers are kept with the
    /// prompt.
    #[arg(long, value_name = "RUN", value_parser = run_named)]
    run: Option<String>,
    /// File with the prompt, UTF-8; one line break at its end is no part of it. No numbers come with it.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Move a label to a version of a prompt, and back.
///
/// The label production is moved by people on the server's page, and by no token.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    prompt: PromptArgument,
    /// The label, such as candidate.
    #[arg(value_name = "LABEL")]
    label: LabelName,
    /// The version.
    #[arg(value_name = "VERSION")]
    version: u64,
}

pub(super) async fn add(args: &AddArgs) -> Result<Ending, Failure> {
    // A file that cannot be read is found before the server is asked.
    let text = args.source.file.as_deref().map(read_prompt).transpose()?;
    let (server, project) = args
        .prompt
        .of
        .find(Role::Editor, "add prompts and move labels")
        .await?;
    let note = args.note.clone();
    let new = match (text, &args.source.run) {
        (Some(text), _) => NewVersion::Text { text, note },
        (None, Some(run)) => NewVersion::Run {
            run: find(&server, run).await?.id,
            candidate: args.candidate.clone(),
            note,
        },
        (None, None) => return Err(Failure::usage("say what to add with --run RUN or --file FILE")),
    };
    let name = args.prompt.name.as_str();
    let added = server.client().add_prompt_version(&project, name, &new).await;
    let version = added.map_err(|error| refused(&server, &error))?;
    print(&numbers(&version))?;
    Ok(Ending::Done)
}

pub(super) async fn label(args: &LabelArgs) -> Result<Ending, Failure> {
    let (server, project) = args
        .prompt
        .of
        .find(Role::Editor, "add prompts and move labels")
        .await?;
    let (client, name) = (server.client(), args.prompt.name.as_str());
    let label = args.label.as_str();
    let which = WhichVersion::Number(args.version);
    let version = client.prompt(&project, name, which).await;
    let version = version.map_err(|error| refused(&server, &error))?;
    let now = client.label(&project, name, label).await;
    let now = now.map_err(|error| refused(&server, &error))?;
    let was = now.map_or(0, |now| now.version);
    print(&numbers(&version))?;
    let to = LabelMove {
        version: args.version,
        seen: version.fingerprint,
        was: Some(was),
    };
    let moved = client.move_label(&project, name, label, &to).await;
    let moved = moved.map_err(|error| refused(&server, &error))?;
    let from = match was {
        0 => String::new(),
        was => format!(", it was on {was}"),
    };
    print(&format!("{label} is on version {}{from}\n", moved.version))?;
    Ok(Ending::Done)
}
