//! `capo prompts list`, `capo prompts show` and `capo prompts get`.

use std::path::PathBuf;

use capo_api::{CertificatePage, LabelName, PromptShown, Role, VersionShown, WhichVersion};
use capo_core::table::{Align, Table};

use super::words::{labels_of, numbers};
use super::{ProjectArgument, PromptArgument};
use crate::cli::failure::{Ending, Failure, print, print_data, print_json};
use crate::cli::layout::{fitted, prompt};
use crate::cli::place;
use crate::cli::runs::server::refused;
use crate::remote::Server;

/// List the prompts of a project.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    of: ProjectArgument,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

/// Which version of a prompt.
#[derive(Debug, Clone, clap::Args)]
struct Version {
    /// The version that this label is on, such as production.
    #[arg(long, value_name = "LABEL")]
    label: Option<LabelName>,
    /// The version of this number; the newest unless a label or a version is stated.
    #[arg(long, value_name = "N", conflicts_with = "label")]
    version: Option<u64>,
}

/// Show a version of a prompt with what speaks for it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    prompt: PromptArgument,
    #[command(flatten)]
    version: Version,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Write the text of a prompt alone, as it is kept, for programs.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    prompt: PromptArgument,
    #[command(flatten)]
    version: Version,
    /// Write to this file, whole or not at all, instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn list(args: &ListArgs) -> Result<Ending, Failure> {
    let (server, project) = args.of.find(Role::Viewer, "fetch prompts").await?;
    let prompts = server.client().prompts(&project).await;
    let prompts = prompts.map_err(|error| refused(&server, &error))?;
    if args.json {
        print_json(&prompts)?;
    } else if prompts.is_empty() {
        print("no prompts\n")?;
    } else {
        print(&table(&prompts))?;
    }
    Ok(Ending::Done)
}

fn table(prompts: &[PromptShown]) -> String {
    let mut grid = Table::new(["prompt", "newest", "labels", "touched"]).aligned([
        Align::Left,
        Align::Right,
        Align::Left,
        Align::Left,
    ]);
    for prompt in prompts {
        grid.row([
            prompt.name.clone(),
            prompt.newest.to_string(),
            labels_of(prompt),
            prompt.touched_at.clone(),
        ]);
    }
    fitted(&grid, 0)
}

pub(super) async fn certificates(args: &ListArgs) -> Result<Ending, Failure> {
    let (server, project) = args.of.find(Role::Viewer, "fetch prompts").await?;
    let (mut all, mut page) = (Vec::new(), CertificatePage::default());
    loop {
        let next = server
            .client()
            .certificates(&project, page.before.as_deref())
            .await;
        page = next.map_err(|error| refused(&server, &error))?;
        all.append(&mut page.certificates);
        if page.before.is_none() {
            break;
        }
    }
    let mut grid = Table::new(["prompt", "test", "run", "at"]).aligned([Align::Left; 4]);
    for one in &all {
        let (prompt, said) = (one.certificate.candidate.short(), one.certificate.sentence());
        grid.row([prompt, said, one.run_name.clone(), one.at.clone()]);
    }
    if args.json {
        print_json(&all)?;
    } else if all.is_empty() {
        print("no certificates\n")?;
    } else {
        print(&fitted(&grid, 0))?;
    }
    Ok(Ending::Done)
}

/// The version that is meant.
async fn fetch(args: &PromptArgument, version: &Version) -> Result<(Server, VersionShown), Failure> {
    let (server, project) = args.of.find(Role::Viewer, "fetch prompts").await?;
    let which = match (&version.label, version.version) {
        (Some(label), _) => WhichVersion::Label(label.as_str()),
        (None, Some(number)) => WhichVersion::Number(number),
        (None, None) => WhichVersion::Newest,
    };
    let found = server.client().prompt(&project, args.name.as_str(), which).await;
    let found = found.map_err(|error| refused(&server, &error))?;
    Ok((server, found))
}

pub(super) async fn show(args: &ShowArgs) -> Result<Ending, Failure> {
    let (_, version) = fetch(&args.prompt, &args.version).await?;
    if args.json {
        print_json(&version)?;
    } else {
        print(&format!(
            "{}\n{}",
            numbers(&version),
            prompt("Prompt", &version.text)
        ))?;
    }
    Ok(Ending::Done)
}

pub(super) async fn get(args: &GetArgs) -> Result<Ending, Failure> {
    if let Some(path) = &args.output {
        place::check("--output", path, [])?;
    }
    let (_, version) = fetch(&args.prompt, &args.version).await?;
    match &args.output {
        None => print_data(&version.text)?,
        Some(path) => place::write(path, &version.text)?,
    }
    Ok(Ending::Done)
}
