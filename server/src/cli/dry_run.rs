//! `capo optimize --dry-run`: what a run costs at most.

use std::path::Path;

use capo_core::budget::Budget;
use capo_core::journal::JournalError;
use capo_core::study::differences;
use capo_models::forecast::Forecast;
use capo_models::prices::PriceTable;
use capo_models::{Builder, Setup};
use serde::Serialize;

use super::failure::{Ending, Failure, print, print_json};
use super::layout::{count, counted, dollars};
use crate::recorded::RecordedRun;
use crate::session::{SessionError, StudyFile};
use capo_core::table::Table;

/// Differences to another study that are looked for.
const DIFFERENCES: usize = 8;

/// The object of `--dry-run --json`.
#[derive(Serialize)]
struct DryRun {
    #[serde(flatten)]
    forecast: Forecast,
    /// Rollouts the journal holds already.
    paid_rollouts: u64,
    /// What the whole run comes to at the price of those, critiques and rewrites included.
    usd_at_this_rate: Option<f64>,
    /// What the examples kept for the test can certify, a sentence for each constraint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reach: Vec<String>,
    /// Programs of the study that it runs and addresses that it asks, beside the models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asks: Vec<String>,
    /// What its agent and its models still lack, such as keys.
    missing: Vec<String>,
    /// Where it is kept on this machine, unless a server makes the run.
    journal: Option<String>,
}

/// Tells the bounds; reads the journal if there is one, and writes nothing. Of a run that a server makes, with its own keys,
/// there is no `journal` on this machine.
pub(super) fn run(
    file: &StudyFile,
    prices: &PriceTable,
    journal: Option<&Path>,
    json: bool,
) -> Result<Ending, Failure> {
    let Setup { problem, specs } = file.setup()?;
    let forecast = Forecast::new(&problem, &specs, prices).map_err(|error| SessionError::Study {
        study: file.name.clone(),
        error,
    })?;
    let (mut paid_rollouts, mut usd_at_this_rate) = (0, None);
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
        let ledger = recorded.state.ledger();
        paid_rollouts = recorded.state.rollouts().count();
        // A branch paid nothing itself for what it shares with another run.
        let own = ledger.rollouts();
        let share = forecast
            .rollouts
            .filter(|_| own > 0)
            .map(|all| all as f64 / own as f64);
        usd_at_this_rate = ledger
            .usage()
            .total()
            .usd
            .zip(share)
            .map(|(usd, share)| usd * share);
    }
    let mut missing = Vec::new();
    if journal.is_some() {
        let keys = file.keys();
        missing = capo_workloads::missing(&file.study.workload, &file.folder);
        let of_models = Builder::new(&keys).missing(&file.study.asked_tables());
        missing.extend(of_models.iter().map(ToString::to_string));
    }
    let dry_run = DryRun {
        forecast,
        paid_rollouts,
        usd_at_this_rate,
        reach: problem.reach(),
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

fn render(dry_run: &DryRun, name: &str) -> String {
    let DryRun {
        forecast,
        paid_rollouts,
        usd_at_this_rate,
        reach,
        asks,
        missing,
        journal,
    } = dry_run;
    let unbudgeted = &forecast.without_budget;
    let mut text = format!("{name}: at most, failed tries aside\n");
    let bound = |bound: Option<u64>| bound.map_or_else(|| "no bound".to_owned(), count);
    let mut grid = Table::default();
    grid.row(["rollouts".into(), bound(forecast.rollouts)]);
    grid.row(["  of the search".into(), bound(unbudgeted.search_rollouts)]);
    grid.row(["  held out".into(), count(unbudgeted.evaluation_rollouts)]);
    grid.row(["model calls".into(), bound(forecast.calls)]);
    for (role, asked) in &forecast.by_role {
        let price = asked.price.map_or_else(
            || "price unknown".to_owned(),
            |price| format!("${} in, ${} out per million tokens", price.input, price.output),
        );
        grid.row([format!("  {role} ({}; {price})", asked.model), bound(asked.calls)]);
    }
    grid.row(["dollars".to_owned(), dollars(forecast.usd)]);
    text += &grid.text(2);
    if !forecast.calls_all_known {
        text += "Calls that the agent makes on its own are counted when it reports them, and come on top.\n";
    }
    if forecast.usd.is_none() {
        text += "Tokens per call are not known beforehand; `usd` under [budget] sets a bound in dollars.\n";
    }
    text += &budget(
        &forecast.budget,
        &forecast.cut_by,
        unbudgeted.search_rollouts.is_none(),
    );
    if let Some(told) = &forecast.too_small {
        text += &format!("{told}\n");
    }
    if let (Some(journal), 1..) = (journal, *paid_rollouts) {
        text += &format!(
            "Paid already, in {journal}: {}",
            counted(*paid_rollouts, "rollout")
        );
        text += &match usd_at_this_rate {
            Some(usd) => format!("; at their price the whole comes to {}.\n", dollars(Some(*usd))),
            None => ".\n".to_owned(),
        };
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
