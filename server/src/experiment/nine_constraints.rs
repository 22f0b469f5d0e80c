//! Many constraints at once.

use capo_core::study::Study;
use serde_json::json;

use super::figure::{Axis, Figure, Panel, Point, Threshold};
use super::record::{RunRecord, Runs};
use super::sweep::{self, Sweep};
use super::table::{Column, ColumnKind, Table};
use super::{Cell, Experiment, Report, Series, Shipped, Variant};
use crate::cli::layout::counted;

/// Nine constraints: which ones bind?
pub(super) const NINE_CONSTRAINTS: Experiment = Experiment {
    name: "nine-constraints",
    title: "Nine constraints at once",
    explanation: "Constraints on resource use, reliability, user experience and safety together, with multipliers that \
                  follow the violations and, as a control, fixed at their start. The paper shows curves for Airline \
                  and prints no figures: multipliers of constraints that are met early stay near zero, those of the \
                  hard ones grow.",
    study: Shipped {
        file: "nine-constraints.toml",
        text: include_str!("../../../studies/nine-constraints.toml"),
        rounds: Some(10),
    },
    least_constraints: 1,
    truth_of: None,
    vary,
    report,
};

const ADAPTIVE: &str = "adaptive";
const SWEEP: Sweep = Sweep {
    axis: "multipliers",
    reference: ADAPTIVE,
    paper: None,
};

fn vary(base: &Study) -> Vec<Variant> {
    vec![
        Variant::of(base, ADAPTIVE, ADAPTIVE, |_| ()),
        Variant::of(base, "fixed", "fixed", |study| {
            study.method.insert("dual_step".into(), json!("fixed"));
        }),
    ]
}

fn report(runs: &Runs) -> Report {
    Report {
        tables: vec![by_constraint(runs), sweep::summary(runs, SWEEP)],
        figures: vec![dynamics(runs), sweep::multipliers(runs)],
    }
}

/// One row per constraint: where it started, where the adaptive runs ended, how hard they pressed.
fn by_constraint(runs: &Runs) -> Table {
    let mut table =
        Table::new("constraints", "Constraint by constraint, adaptive multipliers").over_seeds(runs.seeds());
    table.columns = vec![
        Column::new("constraint", ColumnKind::Text),
        Column::new("unit", ColumnKind::Text),
        Column::new("threshold", ColumnKind::Estimate),
        Column::new("seed prompt, held out", ColumnKind::Estimate),
        Column::new("returned, search", ColumnKind::Estimate),
        Column::new("returned, held out", ColumnKind::Estimate),
        Column::new("returned, fresh", ColumnKind::Estimate),
        Column::new("met, search", ColumnKind::Share),
        Column::new("met, held out", ColumnKind::Share),
        Column::new("met, fresh", ColumnKind::Share),
        Column::new("largest λ", ColumnKind::Estimate).decimals(2),
        Column::new("final λ", ColumnKind::Estimate).decimals(2),
    ];
    let records: Vec<&RunRecord> = runs
        .records
        .iter()
        .filter(|record| record.variant == ADAPTIVE)
        .collect();
    for metric in runs.constraints() {
        let threshold = |record: &RunRecord| record.thresholds.get(metric).copied();
        let met = |record: &RunRecord, cost: Option<f64>| Some(cost? <= threshold(record)?);
        let seed = |record: &RunRecord| record.seed_prompt.as_ref()?.cost(metric);
        let search = |record: &RunRecord| record.optimize.as_ref()?.cost(metric);
        let held_out = |record: &RunRecord| record.evaluate.as_ref()?.cost(metric);
        let fresh = |record: &RunRecord| record.fresh.as_ref()?.cost(metric);
        let largest = |record: &RunRecord| {
            let rounds = record.rounds.iter().map(|round| &round.multipliers);
            rounds
                .chain([&record.multipliers])
                .filter_map(|multipliers| multipliers.get(metric).copied())
                .reduce(f64::max)
        };
        let over = |value: &dyn Fn(&RunRecord) -> Option<f64>| {
            sweep::mean(records.iter().filter_map(|record| value(record)))
        };
        table.push(vec![
            Cell::text(metric),
            Cell::text(runs.unit(metric)),
            over(&threshold),
            over(&seed),
            over(&search),
            over(&held_out),
            over(&fresh),
            sweep::share(records.iter().filter_map(|record| met(record, search(record)))),
            sweep::share(records.iter().filter_map(|record| met(record, held_out(record)))),
            sweep::share(records.iter().filter_map(|record| met(record, fresh(record)))),
            over(&largest),
            over(&|record| record.multipliers.get(metric).copied()),
        ]);
    }
    table.notes.push(format!(
        "Means over {} ± one standard error over seeds, not over examples; shares with Wilson's 95 % interval.",
        counted(runs.seeds() as u64, "seed")
    ));
    table
}

/// Each cost by round on the optimisation split, and held out at the end.
fn dynamics(runs: &Runs) -> Figure {
    let last = runs.last_round() + 1;
    let x = || Axis::Steps {
        label: "round (held out: at the end)".into(),
        first: 0,
        last,
    };
    let adaptive = || {
        runs.variants
            .iter()
            .position(|variant| variant.key == ADAPTIVE)
            .into_iter()
    };
    let panels = runs
        .constraints()
        .map(|metric| {
            let mut panel = Panel::new(metric, x(), sweep::labelled("mean", runs.unit(metric)));
            panel.thresholds = Runs::common_threshold(metric, runs.records)
                .map(Threshold::common)
                .into_iter()
                .collect();
            let by_round = sweep::by_round(runs, |round| round.costs.get(metric).copied());
            panel.series = adaptive()
                .map(|at| Series {
                    label: "best of the round, optimisation split".into(),
                    style: 0,
                    ..by_round[at].clone()
                })
                .collect();
            let values: Vec<f64> = adaptive()
                .flat_map(|at| runs.of(&runs.variants[at]))
                .filter_map(|record| record.evaluate.as_ref()?.cost(metric))
                .collect();
            if let Some(estimate) = capo_core::estimate::Estimate::of(&values) {
                panel.series.push(Series {
                    label: "returned prompt, held out".into(),
                    style: 1,
                    joined: false,
                    points: vec![Point::estimate(f64::from(last), estimate)],
                });
            }
            panel
        })
        .collect();
    Figure {
        name: "dynamics".into(),
        title: format!(
            "{}: every constraint's cost, adaptive multipliers",
            runs.base.study.name
        ),
        caption: format!(
            "Mean over {}; bands and bars are one standard error over seeds, not over examples.{}",
            counted(runs.seeds() as u64, "seed"),
            sweep::ended_sooner(runs)
        ),
        panels,
    }
}
