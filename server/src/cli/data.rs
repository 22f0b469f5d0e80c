//! `capo data`: the data sets and studies of a project of a team server.

use std::path::{Path, PathBuf};

use capo_api::{DataKind, DataSetName, DataSetShown, MOST_FILE, Role, data_set_path};
use capo_core::ids::hex;
use capo_core::table::{Align, Table};
use sha2::{Digest as _, Sha256};

use super::failure::{Ending, Failure, print, print_json};
use super::layout::fitted;
use super::runs::server::{ProjectArgument, refused};
use crate::files::write_new;
use crate::remote::Server;
use crate::session::block_on;

/// Upload and download data sets and studies of a team server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum DataCommand {
    /// List the data sets and studies of a project.
    List(ListArgs),
    /// Give a project a data set or a study, which the server reads before it keeps it.
    Upload(UploadArgs),
    /// Write the file of a data set or a study, as it was uploaded.
    Download(DownloadArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    of: ProjectArgument,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, clap::Args)]
struct UploadArgs {
    /// A table (.csv, .tsv, .jsonl), a study (.toml), or the tau2 benchmark's data (.zip).
    file: PathBuf,
    /// What it is called; like the file unless stated.
    #[arg(long, value_name = "NAME")]
    name: Option<DataSetName>,
    #[command(flatten)]
    of: ProjectArgument,
}

#[derive(Debug, Clone, clap::Args)]
struct DownloadArgs {
    /// The data set's name.
    #[arg(value_name = "NAME")]
    name: DataSetName,
    /// The new file; one of that name here unless stated.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    of: ProjectArgument,
}

/// Runs the command.
pub(crate) fn run(args: &DataArgs) -> Result<Ending, Failure> {
    block_on(async {
        match &args.command {
            DataCommand::List(args) => list(args).await,
            DataCommand::Upload(args) => upload(args).await,
            DataCommand::Download(args) => download(args).await,
        }
    })?
}

async fn sets(server: &Server, project: &str) -> Result<Vec<DataSetShown>, Failure> {
    let sets = server.client().data_sets(project).await;
    sets.map_err(|error| refused(server, &error))
}

async fn list(args: &ListArgs) -> Result<Ending, Failure> {
    let (server, project) = args.of.find(Role::Viewer, "read data").await?;
    let sets = sets(&server, &project).await?;
    if args.json {
        print_json(&sets)?;
    } else if sets.is_empty() {
        print("no data sets\n")?;
    } else {
        let heads = ["name", "kind", "rows", "columns", "bytes", "added by", "added"];
        let mut grid = Table::new(heads).aligned([
            Align::Left,
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
            Align::Left,
        ]);
        for set in sets {
            let (kind, has_rows) = match set.kind {
                DataKind::Csv => ("table", true),
                DataKind::Jsonl => ("JSON Lines", true),
                DataKind::Tau2 => ("tau2 benchmark", true),
                DataKind::Study => ("study", false),
            };
            let of_rows = |count: u64| {
                if has_rows {
                    count.to_string()
                } else {
                    "–".to_owned()
                }
            };
            grid.row([
                set.name,
                kind.to_owned(),
                of_rows(set.rows),
                of_rows(set.columns.len() as u64),
                set.size.to_string(),
                set.added_by,
                set.added_at,
            ]);
        }
        print(&fitted(&grid, 0))?;
    }
    Ok(Ending::Done)
}

async fn upload(args: &UploadArgs) -> Result<Ending, Failure> {
    // What cannot be sent is found before the server is asked.
    let bytes = read(&args.file)?;
    let name = if let Some(name) = &args.name {
        name.clone()
    } else {
        let name = args.file.file_name().unwrap_or_default().to_string_lossy();
        name.parse::<DataSetName>()
            .map_err(|error| Failure::usage(error.to_string()))?
    };
    let (server, project) = args.of.find(Role::Editor, "upload data").await?;
    let sha256 = hex(&Sha256::digest(&bytes));
    let added = server.client().add_data_set(&project, name, sha256, bytes).await;
    let set = added.map_err(|error| refused(&server, &error))?;
    let is = match set.kind {
        DataKind::Study => format!("a study of {project}"),
        DataKind::Csv | DataKind::Jsonl | DataKind::Tau2 => {
            format!("a data set of {project}, {} rows", set.rows)
        }
    };
    print(&format!("{} is {is}\n", set.name))?;
    Ok(Ending::Done)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unread = |error| Failure::new(format!("{} cannot be read: {error}", path.display()));
    if std::fs::metadata(path).map_err(unread)?.len() > MOST_FILE as u64 {
        return Err(Failure::usage(format!(
            "{} is larger than {} MiB, and a team server takes no larger file",
            path.display(),
            MOST_FILE >> 20
        )));
    }
    std::fs::read(path).map_err(unread)
}

async fn download(args: &DownloadArgs) -> Result<Ending, Failure> {
    let (server, project) = args.of.find(Role::Viewer, "read data").await?;
    let name = args.name.as_str();
    let set = sets(&server, &project)
        .await?
        .into_iter()
        .find(|set| set.name == name);
    let set = set.ok_or_else(|| {
        Failure::new(format!(
            "the project {project} has no data set {name}; `capo data list` lists them"
        ))
    })?;
    let content = server.bytes(&data_set_path(&project, &set.id)).await;
    let content = content.map_err(|error| refused(&server, &error))?;
    let path = args.output.clone().unwrap_or_else(|| name.into());
    write_new(&path, &content)
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))?;
    print(&format!("wrote {}\n", path.display()))?;
    Ok(Ending::Done)
}
