//! `capo optimize --dry-run`: what a run costs at most, and is expected to by what was measured of it.

use std::path::Path;

use capo_core::budget::Budget;
use capo_core::certificate;
use capo_core::journal::JournalError;
use capo_core::llm::Role;
use capo_core::reading::certify;
use capo_core::study::differences;
use capo_models::expected::{Expected, Figure};
use capo_models::forecast::Forecast;
use capo_models::prices::PriceTable;
use capo_models::{Builder, ModelSpec, Setup};
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars, fitted, span};
use crate::recorded::RecordedRun;
use crate::session::{SessionError, StudyFile};
use capo_core::table::Table;

/// Differences to another study that are looked for.
const DIFFERENCES: usize = 8;

/// What `--pilot` took.
#[derive(Debug, Serialize)]
pub(super) struct Pilot {
    /// Rollouts that were asked for.
    pub(super) asked: u64,
    /// Rollouts of the seed prompt that the search begins with.
    pub(super) of: u64,
    /// Rollouts made now; the others were in the journal, or failed.
    pub(super) rollouts: u64,
    /// Model calls.
    pub(super) calls: u64,
    /// Tokens read and written.
    pub(super) tokens: u64,
    /// US dollars; null where a price is unknown.
    pub(super) usd: Option<f64>,
    /// Seconds until the last was made.
    pub(super) seconds: f64,
}

/// The object of `--dry-run --json`.
#[derive(Serialize)]
struct DryRun {
    #[serde(flatten)]
    forecast: Forecast,
    /// Rollouts the journal holds already.
    paid_rollouts: u64,
    /// What was made of the run just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pilot: Option<Pilot>,
    /// What the whole run is expected to take by the rollouts in the journal; null without any.
    expected: Option<Expected>,
    /// What the examples kept for the test can certify, a sentence for each constraint; or that they certify nothing more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reach: Vec<String>,
    /// Programs of the study that it runs and addresses that it asks, beside the models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asks: Vec<String>,
    /// What its agent and its models still lack, such as keys and, under a budget of dollars, prices.
    missing: Vec<String>,
    /// Where it is kept on this machine, unless a server makes the run.
    journal: Option<String>,
}

/// Tells the bounds, and what `pilot` took; reads the journal if there is one, and writes nothing. Of a run that a server
/// makes, with its own keys, there is no `journal` on this machine.
pub(super) fn run(
    file: &StudyFile,
    prices: &PriceTable,
    journal: Option<&Path>,
    pilot: Option<Pilot>,
    json: bool,
) -> Result<Ending, Failure> {
    let Setup { problem, specs } = file.setup()?;
    let forecast = Forecast::new(&problem, &specs, prices).map_err(|error| SessionError::Study {
        study: file.name.clone(),
        error,
    })?;
    let (mut paid_rollouts, mut expected, mut reach) = (0, None, problem.reach());
    let begun = journal.map(|path| Ok::<_, SessionError>(RecordedRun::read_begun(path)?.zip(Some(path))));
    if let Some((recorded, path)) = begun.transpose()?.flatten() {
        if !recorded.study.is_of(&problem.id()) {
            let mut lines = differences(
                &recorded.study.study.identity(),
                &problem.study().identity(),
                DIFFERENCES,
            );
            if lines.is_empty() {
                lines.push("the data changed since it was written".into());
            }
            let error = SessionError::journal(path, JournalError::OtherStudy(lines));
            return Err(Failure::of_run(error, path, "Choose another file with --journal"));
        }
        paid_rollouts = recorded.state.rollouts().count();
        expected = Expected::of(&recorded.state, &problem.study().budget, prices);
        if let Some(confirm) = &problem.study().confirm
            && certify::is_spent(&recorded.state)
        {
            reach = vec![certificate::spent(confirm.examples) + "."];
        }
    }
    let mut missing = Vec::new();
    if journal.is_some() {
        let keys = file.keys();
        missing = capo_workloads::missing(&file.study.workload, &file.folder);
        let of_models = Builder::new(&keys).missing(&file.study.asked_tables());
        missing.extend(of_models.iter().map(ToString::to_string));
        missing.extend(without_rewriter(file));
        missing.extend(forecast.unpriced());
    }
    let dry_run = DryRun {
        forecast,
        paid_rollouts,
        pilot,
        expected,
        reach,
        asks: capo_workloads::asked_outside(&file.study.workload),
        missing,
        journal: journal.map(|path| path.display().to_string()),
    };
    if json {
        print_json(&dry_run)?;
    } else {
        print(&render(&dry_run, &file.study.study.name))?;
    }
    Ok(Ending::Done)
}

/// The folder of a rewriter on this machine that is not there. None is looked for where it may be a repository of the hub,
/// as `owner/name@revision`.
fn without_rewriter(file: &StudyFile) -> Option<String> {
    let spec = ModelSpec::parse(file.study.models.get(&Role::Rewriter)?).ok()?;
    let model = spec.is_local().then_some(spec.model)??;
    let parts = model
        .split('@')
        .next()
        .and_then(|repository| repository.split_once('/'));
    let may_be_repository = !model.starts_with(['.', '~'])
        && parts.is_some_and(|(owner, name)| !owner.is_empty() && !name.is_empty() && !name.contains('/'));
    let is_there = may_be_repository || file.folder.resolve(&model).exists();
    (!is_there).then(|| format!("models.rewriter: there is no folder `{model}`"))
}

fn render(dry_run: &DryRun, name: &str) -> String {
    let DryRun {
        forecast,
        paid_rollouts,
        pilot,
        expected,
        reach,
        asks,
        missing,
        journal,
    } = dry_run;
    let mut text = pilot.as_ref().map_or_else(String::new, piloted);
    text += &match expected {
        Some(expected) => format!(
            "{name}: expected by {}, and at most; failed tries aside\n",
            counted(expected.measured, "rollout")
        ),
        None => format!("{name}: at most, failed tries aside\n"),
    };
    text += &fitted(&bounds(forecast, expected.as_ref()), 2);
    for (role, asked) in &forecast.by_role {
        let price = asked.price.map_or_else(
            || "price unknown".to_owned(),
            |price| format!("${} in, ${} out per million tokens", price.input, price.output),
        );
        text += &format!("Asked as {role}: {}; {price}\n", asked.model);
    }
    if !forecast.calls_all_known {
        text += "Calls that the agent makes on its own are counted when it reports them, and come on top.\n";
    }
    match expected {
        Some(expected) => {
            text += &reading(expected);
            if forecast
                .by_role
                .values()
                .any(|asked| asked.model.starts_with("simulated/"))
            {
                text += "The time of simulated models is what they simulate; they take `latency` of it.\n";
            }
        }
        None if forecast.usd.is_none() => {
            text += "Tokens per call are not known beforehand; `usd` under [budget] sets a bound in dollars";
            text += match journal {
                Some(_) => ", and --pilot 5 measures what to expect.\n",
                None => ".\n",
            };
        }
        None => {}
    }
    text += &budget(
        &forecast.budget,
        &forecast.cut_by,
        forecast.without_budget.search_rollouts.is_none(),
    );
    if let Some(told) = &forecast.too_small {
        text += &format!("{told}\n");
    }
    if let (Some(journal), 1..) = (journal, *paid_rollouts) {
        text += &format!(
            "Paid already, in {journal}: {}.\n",
            counted(*paid_rollouts, "rollout")
        );
    }
    for sentence in reach {
        text += &format!("Test: {sentence}\n");
    }
    for asked in asks {
        text += &format!("Runs or asks: {asked}\n");
    }
    for missing in missing {
        text += &format!("Missing for a run: {missing}\n");
    }
    text
}

/// The bounds, beside what is expected where that is known.
fn bounds(forecast: &Forecast, expected: Option<&Expected>) -> Table {
    let unbudgeted = &forecast.without_budget;
    let bound = |bound: Option<u64>| bound.map_or_else(|| "no bound".to_owned(), count);
    let mut grid = Table::default();
    let mut row = |name: String, of: Option<String>, most: String| {
        let of = expected.map(|_| of.unwrap_or_default());
        grid.row([name].into_iter().chain(of).chain([most]));
    };
    if expected.is_some() {
        row(String::new(), Some("expected".into()), "at most".into());
    }
    let rounded = |value: f64| count(value.round() as u64);
    row(
        "rollouts".into(),
        expected.map(|expected| count(expected.rollouts)),
        bound(forecast.rollouts),
    );
    row("  of the search".into(), None, bound(unbudgeted.search_rollouts));
    row("  held out".into(), None, count(unbudgeted.evaluation_rollouts));
    row(
        "model calls".into(),
        expected.map(|expected| expected.calls.text(rounded)),
        bound(forecast.calls),
    );
    for (role, asked) in &forecast.by_role {
        row(
            format!("  {role}"),
            expected.map(|expected| count(expected.by_role.get(role).map_or(0, |asked| asked.calls))),
            bound(asked.calls),
        );
    }
    if let Some(expected) = expected {
        let tokens = expected.tokens.text(rounded);
        row("tokens".into(), Some(tokens), bound(forecast.tokens));
    }
    row(
        "dollars".into(),
        expected.map(|expected| unless_unknown(expected.usd, |usd| dollars(Some(usd)))),
        dollars(forecast.usd),
    );
    if let Some(expected) = expected {
        let time = format!(
            "time, {} at once",
            counted(expected.concurrency as u64, "rollout")
        );
        let most = forecast.budget.seconds.map_or_else(|| "no bound".into(), span);
        row(time, Some(unless_unknown(expected.seconds, span)), most);
    }
    grid
}

/// What is expected of a quantity.
fn unless_unknown(figure: Option<Figure>, write: fn(f64) -> String) -> String {
    figure.map_or_else(|| "unknown".into(), |figure| figure.text(write))
}

/// What was made of the run just now.
fn piloted(pilot: &Pilot) -> String {
    let mut text = format!(
        "Pilot: {} made now, {}, {}, cost {}, {}.",
        counted(pilot.rollouts, "rollout"),
        counted(pilot.calls, "call"),
        counted(pilot.tokens, "token"),
        dollars(pilot.usd),
        span(pilot.seconds),
    );
    if pilot.asked > pilot.of {
        let of = counted(pilot.of, "rollout");
        text += &format!(" The search begins with no more than {of} of the seed prompt.");
    }
    text + "\n"
}

/// What is measured of it, and what estimated.
fn reading(expected: &Expected) -> String {
    let mut text = String::from(
        "Expected, if every rewrite gives a prompt of its own: what rollouts take is measured, with two standard errors",
    );
    if expected.by_role.values().any(|asked| !asked.measured) {
        text += "; critiques and rewrites are estimated from the lengths of prompts";
    }
    if expected.share < 1.0 {
        text += &format!(
            ". The budget has room for {:.0} % of that course",
            100.0 * expected.share
        );
    }
    text + ".\n"
}

/// What the budget allows, and whether it can end the run early.
fn budget(budget: &Budget, cut_by: &[&str], open: bool) -> String {
    let bounds = [
        ("rollouts", budget.rollouts.map(count)),
        ("calls", budget.calls.map(count)),
        ("tokens", budget.tokens.map(count)),
        ("usd", budget.usd.map(|usd| dollars(Some(usd)))),
        ("seconds", budget.seconds.map(|seconds| seconds.to_string())),
    ];
    let stated: Vec<String> = bounds
        .into_iter()
        .filter_map(|(name, bound)| Some(format!("{name} {}", bound?)))
        .collect();
    if stated.is_empty() {
        return "No budget is set.\n".into();
    }
    let effect = if open {
        "the search goes on until it is spent".to_owned()
    } else if cut_by.is_empty() {
        "it is above these bounds and cuts nothing".to_owned()
    } else {
        format!("{} may end the run early", cut_by.join(", "))
    };
    format!("Budget: {}; {effect}.\n", stated.join(", "))
}
