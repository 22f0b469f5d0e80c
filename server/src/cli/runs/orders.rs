//! Orders to a run of a team server: pause, resume, stop, steer, branch.

use std::path::PathBuf;

use capo_api::{NewBranch, RunOrder, Title};

use super::RunArgument;
use super::server::{find, refused};
use super::words::{command, sentence};
use crate::cli::Outside;
use crate::cli::failure::{Ending, Failure, print};
use crate::cli::steering::Changes;

/// Have a run go on where its journal ends.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    run: RunArgument,
    /// Study file to go on with, such as one with a larger budget; `capo runs show RUN --study` prints the one it has.
    #[arg(long, value_name = "FILE")]
    study: Option<PathBuf>,
    /// Seed to use instead of that study's.
    #[arg(long, value_name = "N", requires = "study")]
    seed: Option<u64>,
    #[command(flatten)]
    outside: Outside,
}

/// Change thresholds and multipliers of a run from its next round on.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SteerArgs {
    #[command(flatten)]
    run: RunArgument,
    #[command(flatten)]
    changes: Changes,
}

/// Start a run that shares the beginning of another one and pays nothing of it again.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct BranchArgs {
    #[command(flatten)]
    run: RunArgument,
    /// The first round of the new run's own; everything before it is shared.
    #[arg(long, value_name = "T")]
    round: u32,
    /// What the new run is called.
    #[arg(long, value_name = "TEXT")]
    name: Title,
    #[command(flatten)]
    changes: Changes,
    /// Leave it paused; `capo runs resume` starts it.
    #[arg(long)]
    paused: bool,
}

pub(super) async fn pause(args: &RunArgument) -> Result<Ending, Failure> {
    order(args, &RunOrder::Pause).await
}

pub(super) async fn stop(args: &RunArgument) -> Result<Ending, Failure> {
    order(args, &RunOrder::Stop).await
}

pub(super) async fn resume(args: &ResumeArgs) -> Result<Ending, Failure> {
    let study = match &args.study {
        None => None,
        Some(path) => {
            let mut file = args.outside.read(path)?;
            if let Some(seed) = args.seed {
                file.study.study.seed = seed;
            }
            Some(file.to_toml()?)
        }
    };
    order(&args.run, &RunOrder::Resume { study }).await
}

pub(super) async fn steer(args: &SteerArgs) -> Result<Ending, Failure> {
    let change = args.changes.event()?;
    if change.thresholds.is_none() && change.multipliers.is_none() {
        return Err(Failure::usage(
            "say what to change: --threshold METRIC=VALUE, --multiplier METRIC=VALUE, or several of them",
        ));
    }
    order(&args.run, &RunOrder::Steer { change }).await
}

async fn order(args: &RunArgument, order: &RunOrder) -> Result<Ending, Failure> {
    let server = args.remote.server()?;
    let run = find(&server, &args.run).await?;
    let told = server.client().order_run(&run.id, order).await;
    let told = told.map_err(|error| refused(&server, &error))?;
    print(&format!("{}\n", sentence(&told)))?;
    Ok(Ending::Done)
}

pub(super) async fn delete(args: &RunArgument) -> Result<Ending, Failure> {
    let server = args.remote.server()?;
    let run = find(&server, &args.run).await?;
    let deleted = server.client().delete_run(&run.id).await;
    deleted.map_err(|error| refused(&server, &error))?;
    print(&format!("deleted {} ({})\n", run.name, run.id))?;
    Ok(Ending::Done)
}

pub(super) async fn branch(args: &BranchArgs) -> Result<Ending, Failure> {
    let new = NewBranch {
        name: args.name.clone(),
        round: args.round,
        change: args.changes.event()?,
        start: !args.paused,
    };
    let server = args.run.remote.server()?;
    let run = find(&server, &args.run.run).await?;
    let made = server.client().branch_run(&run.id, &new).await;
    let made = made.map_err(|error| refused(&server, &error))?;
    let next = if args.paused {
        format!("To start it, run: {}", command("runs resume", &server, &made.id))
    } else {
        format!("To watch it, run: {}", command("watch", &server, &made.id))
    };
    print(&format!("{}\n{next}\n", sentence(&made)))?;
    Ok(Ending::Done)
}
