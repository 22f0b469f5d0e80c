//! `capo projects`: a project of a team server as a file, and back.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use capo_api::{ProjectName, ProjectShown, export_path, import_path};
use capo_core::error_chain::with_causes;
use futures::StreamExt as _;

use super::failure::{Ending, Failure, print};
use super::runs::server::{Remote, refused};
use crate::files::NewFile;
use crate::session::block_on;

/// Bytes of an archive that are read at once.
const PIECE: usize = 1 << 20;

/// Export a project of a team server, and import it on another.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProjectsArgs {
    #[command(subcommand)]
    command: ProjectsCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum ProjectsCommand {
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Write all that a project has but keys into a new tar archive: runs with studies and journals, data files, prompts.
#[derive(Debug, Clone, clap::Args)]
struct ExportArgs {
    /// The project, of which you are an admin.
    #[arg(value_name = "PROJECT")]
    project: String,
    /// The new file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    remote: Remote,
}

/// Make a project of an archive, once its journals are verified.
#[derive(Debug, Clone, clap::Args)]
struct ImportArgs {
    /// The archive.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The project's name in addresses; the one that it had unless stated.
    #[arg(long, value_name = "NAME")]
    name: Option<ProjectName>,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub(crate) fn run(args: &ProjectsArgs) -> Result<Ending, Failure> {
    block_on(async {
        match &args.command {
            ProjectsCommand::Export(args) => export(args).await,
            ProjectsCommand::Import(args) => import(args).await,
        }
    })?
}

async fn export(args: &ExportArgs) -> Result<Ending, Failure> {
    let path = &args.file;
    // A link that leads nowhere is a name taken, too.
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is there already; name a new file, it is not overwritten",
            path.display()
        )));
    }
    let unwritten = |error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    let server = args.remote.server()?;
    let mut file = NewFile::beside(path).map_err(unwritten)?;
    let response = server.stream(&export_path(&args.project)).await;
    let mut pieces = response.map_err(|error| refused(&server, &error))?.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            Failure::new(format!(
                "{} broke off: {}; nothing was written, its log says why unless the connection broke",
                server.origin(),
                with_causes(&error.without_url())
            ))
        })?;
        file.write(&piece).map_err(unwritten)?;
    }
    file.put(path).map_err(unwritten)?;
    print(&format!("{}: the project {}\n", path.display(), args.project))?;
    Ok(Ending::Done)
}

async fn import(args: &ImportArgs) -> Result<Ending, Failure> {
    let server = args.remote.server()?;
    let archive = pieces(&args.file)
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}", args.file.display())))?;
    let name = args.name.as_ref().map(ProjectName::as_str);
    let sent = server
        .upload(&import_path(name), "application/x-tar", archive)
        .await;
    let project: ProjectShown = sent.map_err(|error| refused(&server, &error))?;
    print(&format!(
        "made the project {} ({})\n",
        project.name, project.title
    ))?;
    Ok(Ending::Done)
}

/// A file as it is read.
fn pieces(path: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<Vec<u8>>> + Send + 'static> {
    let mut file = File::open(path)?;
    Ok(std::iter::from_fn(move || {
        let mut piece = Vec::new();
        let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        match read {
            Ok(0) => None,
            Ok(_) => Some(Ok(piece)),
            Err(error) => Some(Err(error)),
        }
    }))
}
