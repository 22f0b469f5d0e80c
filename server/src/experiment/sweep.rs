//! The tables and plots every experiment shares: variants side by side, means over seeds.

use capo_core::estimate::Estimate;
use indexmap::IndexMap;

use super::figure::{Axis, Figure, Panel, Point, Series, Threshold};
use super::record::{Outcome, RoundRecord, RunRecord, Runs};
use super::statistics::Share;
use super::table::{Cell, Column, ColumnKind, Table};
use super::{Report, Variant, paper};

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
        tables: [summary(runs, sweep), pressures(runs, sweep)]
            .into_iter()
            .chain(sweep.paper.and_then(published_rows))
            .collect(),
        figures: vec![outcomes(runs, sweep.axis), trajectories(runs), multipliers(runs)],
    }
}

/// Held-out results by variant, with the paper's objectives beside them.
pub(super) fn summary(runs: &Runs, sweep: Sweep) -> Table {
    let settings = sweep.paper.map(paper::settings).unwrap_or_default();
    let constraints: Vec<&str> = runs.constraints().collect();
    let mut table = Table::new("summary", format!("Held-out results by {}", sweep.axis));
    table.columns.push(Column::new(sweep.axis, ColumnKind::Text));
    table.columns.push(Column::new("objective", ColumnKind::Estimate));
    table.columns.push(Column::new(
        format!("objective − {}", reference_label(runs, sweep)),
        ColumnKind::Estimate,
    ));
    for metric in &constraints {
        let heading = match Runs::common_threshold(metric, runs.records) {
            Some(threshold) => format!("{metric} (≤ {threshold})"),
            None => (*metric).to_owned(),
        };
        table.columns.push(Column::new(heading, ColumnKind::Estimate));
    }
    table
        .columns
        .push(Column::new("AllSat, held out", ColumnKind::Share));
    table
        .columns
        .push(Column::new("AllSat, search", ColumnKind::Share));
    table
        .columns
        .push(Column::new("rollouts", ColumnKind::Estimate).decimals(0));
    for setting in &settings {
        table
            .columns
            .push(Column::new(format!("paper: {setting}"), ColumnKind::Judged));
    }

    let cells = |outcomes: &[&Outcome]| -> Vec<Cell> {
        constraints
            .iter()
            .map(|metric| mean(outcomes.iter().filter_map(|outcome| cost(outcome, metric))))
            .chain([share(outcomes.iter().map(|outcome| outcome.all_sat))])
            .collect()
    };
    // Every variant starts from the same prompt; one of them tells how that does.
    let started = runs
        .records
        .iter()
        .filter(|record| record.variant == sweep.reference);
    let started: Vec<&Outcome> = started.filter_map(|record| record.seed_prompt.as_ref()).collect();
    let mut row = vec![
        Cell::text("seed prompt"),
        mean(started.iter().map(|outcome| outcome.objective)),
        Cell::Empty,
    ];
    row.extend(cells(&started));
    row.resize(table.columns.len(), Cell::Empty);
    table.push(row);

    for variant in runs.variants {
        let records: Vec<&RunRecord> = runs.of(variant).collect();
        let held_out: Vec<&Outcome> = records
            .iter()
            .filter_map(|record| record.evaluate.as_ref())
            .collect();
        let mut row = vec![
            Cell::text(&variant.label),
            mean(held_out.iter().map(|outcome| outcome.objective)),
            difference(runs, variant, sweep.reference),
        ];
        row.extend(cells(&held_out));
        let searched = records.iter().filter_map(|record| record.optimize.as_ref());
        row.push(share(searched.map(|outcome| outcome.all_sat)));
        row.push(mean(records.iter().map(|record| record.rollouts as f64)));
        row.extend(
            settings
                .iter()
                .map(|setting| published(sweep.paper, setting, &variant.key)),
        );
        table.push(row);
    }
    table.notes.push(format!(
        "Means over {} seeds ± one standard error (s/√n, ddof = 1); shares with Wilson's 95 % interval. \
         Differences are paired by seed.",
        runs.seeds()
    ));
    if let Some(label) = sweep.paper {
        table.notes.push(format!(
            "Paper columns: objective of its table `{label}`, tau2-bench with GPT-5-mini; ✓ and ✗ say whether every \
             threshold printed for it was met."
        ));
    }
    table
}

/// Final multipliers by variant, with the paper's where it prints them.
fn pressures(runs: &Runs, sweep: Sweep) -> Table {
    let mut table = Table::new("multipliers", format!("Final multipliers by {}", sweep.axis));
    table.columns.push(Column::new(sweep.axis, ColumnKind::Text));
    table.columns.extend(
        runs.constraints()
            .map(|metric| Column::new(format!("λ {metric}"), ColumnKind::Estimate).decimals(2)),
    );
    let published: Vec<(&str, &str)> = sweep
        .paper
        .into_iter()
        .flat_map(paper::figures)
        .flat_map(|figure| {
            figure
                .multipliers
                .keys()
                .map(|metric| (figure.setting.as_str(), metric.as_str()))
        })
        .fold(Vec::new(), |mut seen, pair| {
            if !seen.contains(&pair) {
                seen.push(pair);
            }
            seen
        });
    table.columns.extend(published.iter().map(|(setting, metric)| {
        Column::new(format!("paper: {setting}, λ {metric}"), ColumnKind::Number).decimals(1)
    }));
    for variant in runs.variants {
        let mut row = vec![Cell::text(&variant.label)];
        row.extend(runs.constraints().map(|metric| {
            mean(
                runs.of(variant)
                    .filter_map(|record| record.multipliers.get(metric).copied()),
            )
        }));
        row.extend(published.iter().map(|(setting, metric)| {
            Cell::number(
                sweep
                    .paper
                    .into_iter()
                    .flat_map(paper::figures)
                    .find(|figure| figure.setting == *setting && figure.variant == variant.key)
                    .and_then(|figure| figure.multipliers.get(*metric).copied()),
            )
        }));
        table.push(row);
    }
    table.notes.push(format!(
        "Means over {} seeds ± one standard error, after the last round.",
        runs.seeds()
    ));
    table
}

/// The paper's own rows in full; `None` when it printed none.
pub(super) fn published_rows(label: &str) -> Option<Table> {
    let mut metrics: Vec<&str> = Vec::new();
    let mut multipliers: Vec<&str> = Vec::new();
    for figure in paper::figures(label) {
        metrics.extend(
            figure
                .costs
                .keys()
                .map(String::as_str)
                .filter(|name| !metrics.contains(name))
                .collect::<Vec<_>>(),
        );
        multipliers.extend(
            figure
                .multipliers
                .keys()
                .map(String::as_str)
                .filter(|name| !multipliers.contains(name))
                .collect::<Vec<_>>(),
        );
    }
    let mut table = Table::new("paper", format!("The paper's figures (`{label}`)"));
    table.columns = vec![
        Column::new("setting", ColumnKind::Text),
        Column::new("variant", ColumnKind::Text),
        Column::new("objective", ColumnKind::Judged),
    ];
    table.columns.extend(
        metrics
            .iter()
            .map(|metric| Column::new(*metric, ColumnKind::Number)),
    );
    table.columns.extend(
        multipliers
            .iter()
            .map(|metric| Column::new(format!("final λ {metric}"), ColumnKind::Number)),
    );
    for figure in paper::figures(label) {
        let mut row = vec![
            Cell::text(&figure.setting),
            Cell::text(&figure.variant),
            Cell::Judged {
                value: figure.objective,
                all_sat: figure.all_sat(),
            },
        ];
        row.extend(
            metrics
                .iter()
                .map(|metric| Cell::number(figure.costs.get(*metric).copied())),
        );
        row.extend(
            multipliers
                .iter()
                .map(|metric| Cell::number(figure.multipliers.get(*metric).copied())),
        );
        table.push(row);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Objective, costs and feasibility of the returned prompts, variant by variant.
pub(super) fn outcomes(runs: &Runs, axis: &str) -> Figure {
    let names: Vec<String> = runs
        .variants
        .iter()
        .map(|variant| variant.label.clone())
        .collect();
    let x = || Axis::Categories {
        label: axis.to_owned(),
        names: names.clone(),
    };
    let mut objective = Panel::new(
        format!("Objective: {}", runs.base.objective.metric),
        x(),
        labelled("mean", runs.unit(&runs.base.objective.metric)),
    );
    objective.series = both_splits(runs, |outcome| Some(outcome.objective));
    let mut panels = vec![objective];
    for metric in runs.constraints() {
        let mut panel = Panel::new(
            format!("Cost: {metric}"),
            x(),
            labelled("mean", runs.unit(metric)),
        );
        panel.series = both_splits(runs, |outcome| cost(outcome, metric));
        panel.thresholds = thresholds_by_variant(runs, metric);
        panels.push(panel);
    }
    let mut feasible = Panel::new("Every threshold met", x(), "share of seeds");
    feasible.y_range = Some((0.0, 1.0));
    feasible.series = SPLITS
        .iter()
        .map(|split| Series {
            points: runs
                .variants
                .iter()
                .enumerate()
                .filter_map(|(at, variant)| {
                    let share = Share::of(
                        runs.of(variant)
                            .filter_map(split.outcome)
                            .map(|outcome| outcome.all_sat),
                    );
                    Some(Point {
                        x: at as f64 + split.offset,
                        y: share.fraction()?,
                        interval: share.wilson()?,
                    })
                })
                .collect(),
            ..split.series()
        })
        .collect();
    panels.push(feasible);
    Figure {
        name: "outcomes".into(),
        title: format!("{}: returned prompts by {axis}", runs.base.study.name),
        caption: format!(
            "Mean over {} seeds; bars are one standard error, for shares Wilson's 95 % interval.",
            runs.seeds()
        ),
        panels,
    }
}

/// Objective and costs of each round's best candidate, one line per variant.
pub(super) fn trajectories(runs: &Runs) -> Figure {
    let rounds = || Axis::Steps {
        label: "round".into(),
        first: 0,
        last: runs.last_round(),
    };
    let mut objective = Panel::new(
        format!("Objective: {}", runs.base.objective.metric),
        rounds(),
        labelled("mean", runs.unit(&runs.base.objective.metric)),
    );
    objective.series = by_round(runs, |round| Some(round.objective));
    let mut panels = vec![objective];
    for metric in runs.constraints() {
        let mut panel = Panel::new(
            format!("Cost: {metric}"),
            rounds(),
            labelled("mean", runs.unit(metric)),
        );
        panel.series = by_round(runs, |round| round.costs.get(metric).copied());
        panel.thresholds = match Runs::common_threshold(metric, runs.records) {
            Some(threshold) => vec![Threshold::common(threshold)],
            None => runs
                .variants
                .iter()
                .enumerate()
                .filter_map(|(style, variant)| {
                    let value = Runs::common_threshold(metric, runs.of(variant))?;
                    Some(Threshold {
                        value,
                        span: None,
                        style: Some(style),
                    })
                })
                .collect(),
        };
        panels.push(panel);
    }
    Figure {
        name: "trajectories".into(),
        title: format!("{}: the best candidate of each round", runs.base.study.name),
        caption: format!(
            "Best by the round's Lagrangian score, on the optimisation split; mean over {} seeds, bands are one standard \
             error.",
            runs.seeds()
        ),
        panels,
    }
}

/// Each constraint's multiplier by round, one line per variant.
pub(super) fn multipliers(runs: &Runs) -> Figure {
    Figure {
        name: "multipliers".into(),
        title: format!("{}: multipliers by round", runs.base.study.name),
        caption: format!("Mean over {} seeds; bands are one standard error.", runs.seeds()),
        panels: runs
            .constraints()
            .map(|metric| multiplier_panel(runs, metric))
            .collect(),
    }
}

/// λ of one constraint at the start of each round, and after the last one.
pub(super) fn multiplier_panel(runs: &Runs, metric: &str) -> Panel {
    let last = runs.last_round() + 1;
    let x = Axis::Steps {
        label: "round".into(),
        first: 0,
        last,
    };
    let mut panel = Panel::new(format!("Multiplier: {metric}"), x, "λ at the start of the round");
    panel.series = lines(runs, last, |record, round| {
        record
            .rounds
            .iter()
            .find(|entry| entry.round == round)
            .map_or_else(
                || (record.rounds.last()?.round + 1 == round).then_some(&record.multipliers),
                |entry| Some(&entry.multipliers),
            )?
            .get(metric)
            .copied()
    });
    panel
}

/// Lagrangian score of each round's best candidate, under that round's multipliers.
pub(super) fn lagrangian_panel(runs: &Runs) -> Panel {
    let x = Axis::Steps {
        label: "round".into(),
        first: 0,
        last: runs.last_round(),
    };
    let mut panel = Panel::new(
        "Lagrangian score of the best",
        x,
        "J under the round's multipliers",
    );
    panel.series = by_round(runs, |round| Some(round.lagrangian));
    panel
}

/// One line per variant over the rounds.
pub(super) fn by_round(runs: &Runs, value: impl Fn(&RoundRecord) -> Option<f64>) -> Vec<Series> {
    lines(runs, runs.last_round(), |record, round| {
        record
            .rounds
            .iter()
            .find(|entry| entry.round == round)
            .and_then(&value)
    })
}

fn lines(runs: &Runs, last: u32, value: impl Fn(&RunRecord, u32) -> Option<f64>) -> Vec<Series> {
    runs.variants
        .iter()
        .enumerate()
        .map(|(style, variant)| Series {
            label: variant.label.clone(),
            style,
            joined: true,
            points: (0..=last)
                .filter_map(|round| {
                    let values: Vec<f64> = runs
                        .of(variant)
                        .filter_map(|record| value(record, round))
                        .collect();
                    Some(Point::estimate(f64::from(round), Estimate::of(&values)?))
                })
                .collect(),
        })
        .collect()
}

/// A quantity with its unit, for an axis.
pub(super) fn labelled(quantity: &str, unit: &str) -> String {
    if unit.is_empty() {
        quantity.to_owned()
    } else {
        format!("{quantity} ({unit})")
    }
}

/// The mean over values, or nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Cell {
    Cell::mean(&values.collect::<Vec<_>>())
}

/// The share of true ones, or nothing.
pub(super) fn share(values: impl Iterator<Item = bool>) -> Cell {
    let share = Share::of(values);
    if share.of == 0 {
        Cell::Empty
    } else {
        Cell::Share(share)
    }
}

/// A prompt's mean cost on a metric.
pub(super) fn cost(outcome: &Outcome, metric: &str) -> Option<f64> {
    outcome.costs.get(metric).copied()
}

fn reference_label(runs: &Runs, sweep: Sweep) -> String {
    runs.variants
        .iter()
        .find(|variant| variant.key == sweep.reference)
        .map_or_else(
            || sweep.reference.to_owned(),
            |variant| format!("({})", variant.label),
        )
}

/// Held-out objective minus the reference variant's at the same seed.
fn difference(runs: &Runs, variant: &Variant, reference: &str) -> Cell {
    if variant.key == reference {
        return Cell::Empty;
    }
    let objective = |record: &RunRecord| record.evaluate.as_ref().map(|outcome| outcome.objective);
    let references: IndexMap<u64, f64> = runs
        .records
        .iter()
        .filter(|record| record.variant == reference)
        .filter_map(|record| Some((record.seed, objective(record)?)))
        .collect();
    mean(
        runs.of(variant)
            .filter_map(|record| Some(objective(record)? - references.get(&record.seed)?)),
    )
}

fn published(label: Option<&str>, setting: &str, variant: &str) -> Cell {
    label
        .into_iter()
        .flat_map(paper::figures)
        .find(|figure| figure.setting == setting && figure.variant == variant)
        .map_or(Cell::Empty, |figure| Cell::Judged {
            value: figure.objective,
            all_sat: figure.all_sat(),
        })
}

/// A split's place in the plots of outcomes.
struct SplitMark {
    label: &'static str,
    style: usize,
    /// Moves its points aside, so that bars of the two splits do not cover each other.
    offset: f64,
    outcome: fn(&RunRecord) -> Option<&Outcome>,
}

const SPLITS: [SplitMark; 2] = [
    SplitMark {
        label: "optimisation split",
        style: 0,
        offset: -0.08,
        outcome: |record| record.optimize.as_ref(),
    },
    SplitMark {
        label: "held out",
        style: 1,
        offset: 0.08,
        outcome: |record| record.evaluate.as_ref(),
    },
];

impl SplitMark {
    fn series(&self) -> Series {
        Series {
            label: self.label.to_owned(),
            style: self.style,
            joined: false,
            points: Vec::new(),
        }
    }
}

fn both_splits(runs: &Runs, value: impl Fn(&Outcome) -> Option<f64>) -> Vec<Series> {
    SPLITS
        .iter()
        .map(|split| Series {
            points: runs
                .variants
                .iter()
                .enumerate()
                .filter_map(|(at, variant)| {
                    let values: Vec<f64> = runs
                        .of(variant)
                        .filter_map(split.outcome)
                        .filter_map(&value)
                        .collect();
                    Some(Point::estimate(at as f64 + split.offset, Estimate::of(&values)?))
                })
                .collect(),
            ..split.series()
        })
        .collect()
}

/// One dashed line, or one for each variant where the variants differ in their threshold.
fn thresholds_by_variant(runs: &Runs, metric: &str) -> Vec<Threshold> {
    if let Some(value) = Runs::common_threshold(metric, runs.records) {
        return vec![Threshold::common(value)];
    }
    runs.variants
        .iter()
        .enumerate()
        .filter_map(|(at, variant)| {
            let value = Runs::common_threshold(metric, runs.of(variant))?;
            Some(Threshold {
                value,
                span: Some((at as f64 - 0.4, at as f64 + 0.4)),
                style: None,
            })
        })
        .collect()
}
