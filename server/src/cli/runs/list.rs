//! `capo runs list` and `capo runs show`.

use capo_api::{RunPage, RunShown};
use capo_core::table::{Align, Table};

use super::RunArgument;
use super::server::{Remote, all, find, refused};
use super::words::{origin, short, stage, standing, status};
use crate::cli::failure::{Ending, Failure, print, print_data, print_json};
use crate::cli::layout::{NOTHING, count, dollars, fitted, number, span, yes_no};

/// List runs, the latest first.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ListArgs {
    /// Only those of this project.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Show a run: where it stands, its numbers and its data files.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    run: RunArgument,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print its study file instead, prompt included.
    #[arg(long, conflicts_with = "json")]
    study: bool,
}

pub(super) async fn list(args: &ListArgs) -> Result<Ending, Failure> {
    let server = args.remote.server()?;
    let runs = all(&server, args.project.as_deref()).await?;
    if args.json {
        print_json(&RunPage { runs, before: None })?;
    } else if runs.is_empty() {
        print("no runs\n")?;
    } else {
        print(&table(&runs))?;
    }
    Ok(Ending::Done)
}

fn table(runs: &[RunShown]) -> String {
    let words = [Align::Left; 5];
    let numbers = [Align::Right; 5];
    let heading = [
        "run",
        "name",
        "project",
        "stage",
        "status",
        "best",
        "feasible on search",
        "rollouts",
        "spend",
        "duration",
        "started by",
        "touched",
    ];
    let aligns = words.into_iter().chain(numbers).chain([Align::Left; 2]);
    let mut grid = Table::new(heading).aligned(aligns);
    for run in runs {
        let best = run.progress.best;
        grid.row([
            short(&run.id).to_owned(),
            run.name.clone(),
            run.project.clone(),
            stage(run.stage).to_owned(),
            run.status.map_or(NOTHING, status).to_owned(),
            best.map_or_else(|| NOTHING.to_owned(), number),
            best.map_or_else(|| NOTHING.to_owned(), |_| yes_no(run.progress.feasible)),
            count(run.progress.rollouts),
            dollars(run.progress.usd),
            duration(run),
            run.started_by.clone(),
            run.touched_at.clone(),
        ]);
    }
    fitted(&grid, 0)
}

/// How long its search has worked, as of the last round or later; of one that came from elsewhere nobody knows.
fn duration(run: &RunShown) -> String {
    if run.times.last_line().is_none() {
        return NOTHING.to_owned();
    }
    span(run.times.last())
}

pub(super) async fn show(args: &ShowArgs) -> Result<Ending, Failure> {
    let server = args.run.remote.server()?;
    let run = find(&server, &args.run.run).await?;
    let detail = server.client().run(&run.id).await;
    let detail = detail.map_err(|error| refused(&server, &error))?;
    if args.json {
        print_json(&detail)?;
        return Ok(Ending::Done);
    }
    if args.study {
        print_data(&detail.study)?;
        return Ok(Ending::Done);
    }
    let mut text = format!("{}\n", run.name);
    text += &facts(&detail.run).text(2);
    if !detail.files.is_empty() {
        let mut files = Table::new(["Data files", "SHA-256"]);
        for (path, sha256) in &detail.files {
            files.row([path, sha256]);
        }
        text.push('\n');
        text += &files.text(0);
    }
    print(&text)?;
    Ok(Ending::Done)
}

fn facts(run: &RunShown) -> Table {
    let mut grid = Table::default().aligned([Align::Left; 2]);
    let progress = &run.progress;
    let best = progress.best.map_or_else(
        || "none yet".to_owned(),
        |best| {
            let not = if progress.feasible { "" } else { "not " };
            format!("{} at {}, {not}feasible on search", run.objective, number(best))
        },
    );
    grid.row(["run", &run.id]);
    grid.row(["project", &run.project]);
    grid.row(["started by", &run.started_by]);
    grid.row(["begins with", &origin(&run.origin)]);
    grid.row(["stage", &standing(run)]);
    if let Some(ended) = run.status {
        grid.row(["status", status(ended)]);
    }
    grid.row(["method", &run.method]);
    // The first is the seed prompt, before any round.
    grid.row(["rounds", &progress.by_round.len().saturating_sub(1).to_string()]);
    grid.row(["best", &best]);
    grid.row(["rollouts", &count(progress.rollouts)]);
    grid.row(["calls", &count(progress.calls)]);
    grid.row(["tokens", &count(progress.tokens)]);
    grid.row(["dollars", &dollars(progress.usd)]);
    grid.row(["duration", &duration(run)]);
    grid.row(["journal", &format!("{} lines", count(run.lines))]);
    grid.row(["added", &run.created_at]);
    grid.row(["touched", &run.touched_at]);
    grid
}
