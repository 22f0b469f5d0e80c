//! The tables and plots every experiment shares: variants side by side, means over seeds.

mod outcomes;
mod rounds;
mod tables;

use super::Report;
use super::record::Runs;

pub(super) use outcomes::outcomes;
pub(super) use rounds::{
    by_round, ended_sooner, lagrangian_panel, multiplier_panel, multipliers, trajectories,
};
pub(super) use tables::{fresh, fresh_columns, fresh_note, mean, published_rows, share, summary};

/// How an experiment that compares variants presents them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep {
    /// What distinguishes the variants, such as `dual rate β`.
    pub axis: &'static str,
    /// Key of the variant that the others are compared with.
    pub reference: &'static str,
    /// Label of the paper's table with the same variants, if it has one.
    pub paper: Option<&'static str>,
}

/// Tables of results, multipliers and the paper's rows; plots of outcomes, trajectories and
/// multipliers.
pub(super) fn report(runs: &Runs, sweep: Sweep) -> Report {
    Report {
        tables: [summary(runs, sweep), tables::pressures(runs, sweep)]
            .into_iter()
            .chain(sweep.paper.and_then(published_rows))
            .collect(),
        figures: vec![outcomes(runs, sweep.axis), trajectories(runs), multipliers(runs)],
    }
}

/// A quantity with its unit, for an axis.
pub(super) fn labelled(quantity: &str, unit: &str) -> String {
    if unit.is_empty() {
        quantity.to_owned()
    } else {
        format!("{quantity} ({unit})")
    }
}
