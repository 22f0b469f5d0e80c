//! The charts of one side.

use leptos::prelude::*;

use super::behaviour::{self, multipliers};
use super::setting::{ROUNDS, Setting};
use crate::charts::figure::TableData;
use crate::charts::marks::verdict;
use crate::charts::objective::ObjectiveData;
use crate::charts::scale::round_name;
use crate::charts::series::{Leading, RoundValue};
use crate::charts::strip::{Remark, StripData};
use crate::charts::unit::Unit;
use crate::format;
use crate::run::series::{ConstraintSeries, RoundPoint, Series};
use crate::run::studied::Shown as _;

/// The values of a metric on both sides that the axes of both must hold: of all rounds, so that they
/// stay while rounds are played.
pub(super) fn shared_values(sides: &[Option<&Series>], metric: Option<&str>) -> Vec<f64> {
    let of_side = |series: &&Series| -> Vec<f64> {
        let constraint = metric.and_then(|metric| series.constraint(metric));
        let value = |point: &RoundPoint| {
            let leading = point.leading.as_ref()?;
            Some(match constraint {
                Some(of) => leading.estimate(&of.metric)?.mean,
                None => leading.objective.mean,
            })
        };
        let threshold = constraint.and_then(ConstraintSeries::threshold);
        series.rounds.iter().filter_map(value).chain(threshold).collect()
    };
    let values = sides.iter().flatten().flat_map(of_side);
    let ends = values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    });
    ends.map_or_else(Vec::new, |(low, high): (f64, f64)| vec![low, high])
}

/// A cost and its multiplier; a mark's shape follows the cost's own threshold.
pub(super) fn strip(
    series: &Series,
    of: &ConstraintSeries,
    setting: &Setting,
    shared: Vec<f64>,
) -> StripData {
    let threshold = of.threshold();
    let leading = |cost: RoundValue| Leading {
        round: cost.round,
        id: None,
        value: cost.value,
        error: None,
        feasible: threshold.is_some_and(|threshold| cost.value <= threshold),
    };
    StripData {
        name: of.metric.phrase(),
        unit: Unit(of.metric.quantity()),
        axis: of.metric.axis(),
        last_round: ROUNDS,
        threshold: threshold
            .map(|value| RoundValue { round: 0, value })
            .into_iter()
            .collect(),
        leading: behaviour::costs(series, of).into_iter().map(leading).collect(),
        multiplier: multipliers(of),
        cap: Some(series.cap.unwrap_or(setting.lambda_max)),
        also_in_range: shared,
        remark: behaviour::remark(series, of).map(|(at, is_above, text)| Remark { at, is_above, text }),
        ..StripData::default()
    }
}

/// The objective; a mark's shape follows all thresholds together.
pub(super) fn objective(series: &Series, shared: Vec<f64>) -> ObjectiveData {
    let leading = |point: &RoundPoint| {
        let leading = point.leading.as_ref()?;
        Some(Leading {
            round: point.round,
            id: None,
            value: leading.objective.mean,
            error: None,
            feasible: leading.feasible,
        })
    };
    ObjectiveData {
        name: series.objective.phrase(),
        unit: Unit(series.objective.quantity()),
        axis: format!("{}, higher is better", series.objective.axis()),
        last_round: ROUNDS,
        leading: series.rounds.iter().filter_map(leading).collect(),
        also_in_range: shared,
        ..ObjectiveData::default()
    }
}

/// Everything one side draws, as a table.
pub(super) fn table(series: &Series) -> TableData {
    let of_constraints = series
        .constraints
        .iter()
        .flat_map(|of| [of.metric.label(), "λ used".to_owned()]);
    let headers = ["Round".to_owned(), series.objective.label()]
        .into_iter()
        .chain(of_constraints)
        .chain(["Gate".to_owned()]);
    let row = |point: &RoundPoint| {
        let leading = point.leading.as_ref()?;
        let mut cells = vec![
            round_name(point.round),
            series.objective.quantity().value(leading.objective.mean),
        ];
        for of in &series.constraints {
            let quantity = of.metric.quantity();
            let cost = leading.estimate(&of.metric)?.mean;
            cells.push(of.threshold().map_or_else(
                || quantity.value(cost),
                |threshold| quantity.against(cost, threshold),
            ));
            let used = of.multipliers.get(point.round as usize).copied().flatten();
            cells.push(used.map_or_else(|| format::NOTHING.to_owned(), format::multiplier));
        }
        cells.push(verdict(leading.feasible).to_owned());
        Some(cells)
    };
    TableData {
        headers: headers.collect(),
        rows: series.rounds.iter().filter_map(row).collect(),
        ..TableData::default()
    }
}

/// The letter, what a setting is, and how feasible its search is.
#[component]
pub(super) fn SideHeader(letter: &'static str, about: Signal<String>, now: ViewFn) -> impl IntoView {
    view! {
        <header>
            <h2>
                {letter} " " <span class="unit">{about}</span>
            </h2>
            <span class="now">{move || now.run()}</span>
        </header>
    }
}
