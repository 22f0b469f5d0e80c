//! The paper's bound on the duality gap, beside the gap of searches of a problem that is known in closed form.

mod case;
mod inequality;
mod oracle;
mod problem;
mod report;
mod search;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::json;

use self::case::CASES;
use self::inequality::{GAP, RECURSION};
use self::search::{Round, search};
use super::output::{OutputError, save_parts};
use super::{Report, Seeds};

/// Name on the command line.
pub const NAME: &str = "theory";

/// Title of the report.
pub const TITLE: &str = "The bound on the duality gap";

/// How many seeds unless stated.
pub const SEEDS: u64 = 100;

/// What is done.
const EXPLANATION: &str = "A strongly concave objective under three linear constraints, of which curvature, saddle point and every \
                           constant of the paper's bounds are known in closed form, is searched as prompts are: a pool of \
                           six, four parents drawn by J, two children each, the program's own dual step. A prompt is a point of a \
                           grid; a rewrite is a step of ascent with noise, rounded at random to the grid, so that B1 holds \
                           with ε = 0. The objective is measured with noise, costs are exact, and steps fall as \
                           t to the power −0.75. Then one assumption after the other is broken.";

/// The searches of every case, by seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Searches(Vec<Vec<Vec<Round>>>);

/// Makes all searches.
pub fn run(seeds: &Seeds) -> Searches {
    let of = |case: &case::Case| seeds.iter().map(|seed| search(case, seed)).collect();
    Searches(CASES.iter().map(of).collect())
}

/// Tables and plots.
pub fn report(searches: &Searches) -> Report {
    report::report(&searches.0)
}

/// Writes `report.md`, `report.json` with both sides at every T, each table as CSV and each plot as SVG. Returns the path
/// of `report.md`.
///
/// # Errors
/// When a file cannot be written or a figure cannot be drawn.
pub fn write(directory: &Path, searches: &Searches) -> Result<PathBuf, OutputError> {
    let report = report(searches);
    let sides = CASES.iter().zip(&searches.0).map(|(case, seeds)| {
        let of = |inequality: &inequality::Inequality| {
            let names: Vec<&str> = inequality.terms.iter().map(|term| term.name).collect();
            json!({ "label": inequality.label, "terms": names, "by_round": inequality.sides(seeds) })
        };
        json!({ "search": case.name, "gap": of(&GAP), "recursion": of(&RECURSION) })
    });
    let document = json!({
        "experiment": NAME,
        "title": TITLE,
        "explanation": EXPLANATION,
        "tables": report.tables,
        "searches": sides.collect::<Vec<_>>(),
    });
    let head = format!("# {NAME}: {TITLE}\n\n{EXPLANATION}\n");
    save_parts(directory, &report, &document, head)
}
