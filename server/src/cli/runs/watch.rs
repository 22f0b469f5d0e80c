//! `capo watch`: a run of a team server as it goes on, and its result.

use std::path::Path;

use capo_api::{RunShown, RunStage};
use capo_core::journal::Status;
use capo_core::summary::Summary;

use super::RunArgument;
use super::server::{find, one_line, refused};
use super::words::{command, sentence, short, standing};
use crate::cli::failure::{Ending, Failure, print, print_json};
use crate::cli::outcome::ending;
use crate::cli::report;
use crate::interrupt::Interrupts;
use crate::progress::{LogFormat, Progress};
use crate::remote::{Events, Fold, Server, ServerEvent};
use crate::session::block_on;
use crate::stderr::warn;

/// Watch a run of a team server to its end, and print its result as `capo optimize` does.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    run: RunArgument,
    #[command(flatten)]
    telling: Telling,
}

/// How a run is told.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Telling {
    /// Print one JSON object instead of a summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// How progress is written to standard error; the fields of JSON: docs/log.md.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) log: LogFormat,
}

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> Result<Ending, Failure> {
    args.telling.log.take_effect();
    let server = args.run.remote.server()?;
    block_on(async {
        let run = find(&server, &args.run.run).await?;
        watch(&server, &run.id, args.telling, None).await
    })?
}

/// Watches a run to its end. `study` is the study file, where it is known.
pub(super) async fn watch(
    server: &Server,
    run: &str,
    telling: Telling,
    study: Option<&Path>,
) -> Result<Ending, Failure> {
    let interrupts = Interrupts::listen(|| {})?;
    let progress = Progress::of_search(telling.log);
    let followed = tokio::select! {
        followed = follow(server, run, &progress) => Some(followed),
        () = interrupts.asked() => None,
        () = progress.keep_telling() => None,
    };
    progress.finish();
    if let Some(followed) = followed {
        let (fold, run) = followed?;
        return result(server, &fold, &run, telling, study);
    }
    warn(&format!(
        "the run goes on on the server. To watch it again, run: {}\nTo stop it, run: {}",
        command("watch", server, run),
        command("runs stop", server, run)
    ));
    Ok(Ending::Stopped)
}

/// Shows what happens to a run until it comes to an end.
async fn follow(server: &Server, run: &str, progress: &Progress) -> Result<(Fold, RunShown), Failure> {
    let wrong = |error| Failure::new(format!("{}: {error}", server.address_of(run)));
    let mut events = Events::new(server, run);
    let mut fold = Fold::default();
    let (mut shown, mut said) = (0, String::new());
    loop {
        let told = events.next().await;
        match told.map_err(|error| refused(server, &error))? {
            ServerEvent::Run(run) => {
                if matches!(run.stage, RunStage::Queued | RunStage::Running) {
                    let standing = standing(&run);
                    if standing != said {
                        warn(&sentence(&run));
                        said = standing;
                    }
                } else if run.lines == fold.lines() {
                    return Ok((fold, *run));
                }
            }
            ServerEvent::Line(line) => {
                let event = fold.take(&line).map_err(wrong)?;
                if fold.lines() > shown {
                    shown = fold.lines();
                    progress.follow(&event, fold.state());
                }
            }
            ServerEvent::Waits(wait) => progress.wait_for(wait),
            ServerEvent::Study(line) => fold.replace_first(&line).map_err(wrong)?,
            ServerEvent::Anew => fold = Fold::default(),
            ServerEvent::Lost(reason) => warn(&format!(
                "the connection to {} broke ({reason}) and is made again",
                server.origin()
            )),
        }
    }
}

/// Prints how a run ended.
fn result(
    server: &Server,
    fold: &Fold,
    run: &RunShown,
    telling: Telling,
    study: Option<&Path>,
) -> Result<Ending, Failure> {
    let state = fold.state();
    let resume = command("runs resume", server, &run.id);
    let failed_otherwise =
        |finished: Option<Status>| run.stage == RunStage::Failed && finished != Some(Status::Failed);
    let finished = state.finished();
    if failed_otherwise(finished.map(|finished| finished.status)) {
        let error = run.error.as_deref().unwrap_or("the server does not say why");
        return Err(Failure::new(format!(
            "{} ({}) failed: {}\nTo go on once that is mended, run: {resume}",
            run.name,
            short(&run.id),
            one_line(error)
        )));
    }
    let Some(finished) = finished else {
        warn(&format!("{}. To go on, run: {resume}", sentence(run)));
        return Ok(Ending::Stopped);
    };
    let address = server.address_of(&run.id);
    if telling.json {
        print_json(&Summary::new(state, finished, address))?;
    } else {
        print(&report::result(state, finished, &address))?;
    }
    let resume = match finished.status {
        Status::Stopped | Status::Failed => resume,
        // A larger budget stands in a study file.
        _ => resume.path("study", Some(study.unwrap_or("STUDY".as_ref()))),
    };
    Ok(ending(state, finished, &resume))
}
