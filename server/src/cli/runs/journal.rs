//! `capo runs push` and `capo runs pull`: journals to and from a team server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use capo_api::{MOST_JOURNAL, Title, journal_path};
use futures::StreamExt as _;

use super::RunArgument;
use super::server::{Remote, find, project, refused, title};
use super::words::{command, sentence};
use crate::cli::failure::{Ending, Failure, print};
use crate::cli::layout::counted;
use crate::files::{NewFile, read_whole_lines};
use crate::recorded::RecordedRun;
use crate::remote::Server;

/// Keep the journal of a run that was made here on the server, as a run of a project.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PushArgs {
    /// The journal.
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// The project; the only one in which you may start runs unless stated.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// What the run is called; like its study unless stated.
    #[arg(long, value_name = "TEXT")]
    name: Option<Title>,
    #[command(flatten)]
    remote: Remote,
}

/// Write the journal of a run to a file, for `capo journal` and `capo compare`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PullArgs {
    #[command(flatten)]
    run: RunArgument,
    /// The new file.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
}

pub(super) async fn push(args: &PushArgs) -> Result<Ending, Failure> {
    let server = args.remote.server()?;
    let recorded = RecordedRun::read(&args.journal)?;
    let name = title(args.name.as_ref(), &recorded.study.study.study.name)?;
    let lines =
        read_whole_lines("journal", &args.journal).map_err(|error| Failure::new(error.to_string()))?;
    if lines.len() > MOST_JOURNAL {
        return Err(Failure::new(format!(
            "{} is larger than {} MiB, and a team server takes no larger journal",
            args.journal.display(),
            MOST_JOURNAL >> 20
        )));
    }
    let project = project(&server, args.project.as_deref()).await?;
    let pushed = server
        .client()
        .push_run(&project, name.as_str(), &BTreeMap::new(), lines.into_bytes())
        .await;
    let run = pushed.map_err(|error| refused(&server, &error))?;
    print(&format!(
        "{} in the project {}\nTo show it, run: {}\n",
        sentence(&run),
        run.project,
        command("runs show", &server, &run.id)
    ))?;
    Ok(Ending::Done)
}

pub(super) async fn pull(args: &PullArgs) -> Result<Ending, Failure> {
    let path = &args.journal;
    // A link that leads nowhere is a name taken, too.
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{} is there already; choose another --journal, it is not overwritten",
            path.display()
        )));
    }
    let unwritten = |error| Failure::new(format!("{} cannot be written: {error}", path.display()));
    let server = args.run.remote.server()?;
    let mut run = find(&server, &args.run.run).await?;
    loop {
        let mut file = NewFile::beside(path).map_err(unwritten)?;
        let lines = copy(&server, &run.id, &mut file, path).await?;
        let after = find(&server, &run.id).await?;
        // Of a run that begins, the first line may have been replaced meanwhile.
        if after.revision == run.revision {
            if lines < run.lines {
                return Err(Failure::new(format!(
                    "{} sent {} of {} lines of the journal; try it again",
                    server.origin(),
                    lines,
                    run.lines
                )));
            }
            file.put(path).map_err(unwritten)?;
            print(&format!(
                "{}: {} of {}\n",
                path.display(),
                counted(lines, "line"),
                sentence(&after)
            ))?;
            return Ok(Ending::Done);
        }
        run = after;
    }
}

/// Copies a journal into a file. Returns the number of whole lines.
async fn copy(
    server: &Server,
    run: &str,
    file: &mut NewFile,
    path: &std::path::Path,
) -> Result<u64, Failure> {
    let response = server.stream(&journal_path(run, 0)).await;
    let mut chunks = response.map_err(|error| refused(server, &error))?.bytes_stream();
    let (mut lines, mut last) = (0, None);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            Failure::new(format!(
                "the connection to {} broke: {}; nothing was written, try it again",
                server.origin(),
                capo_core::error_chain::with_causes(&error.without_url())
            ))
        })?;
        file.write(&chunk)
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))?;
        lines += chunk.split(|byte| *byte == b'\n').count() as u64 - 1;
        last = chunk.last().copied().or(last);
    }
    if last.is_some_and(|last| last != b'\n') {
        return Err(Failure::new(format!(
            "{} sent half a line at the end of the journal; nothing was written, try it again",
            server.origin()
        )));
    }
    Ok(lines)
}
