//! Held-out results and multipliers by variant, with the paper's beside them.

use capo_core::certificate::Verdict;
use capo_core::study::Study;
use indexmap::IndexMap;

use super::Sweep;
use crate::cli::layout::counted;
use crate::experiment::fresh::{ROLLOUTS, makes_examples};
use crate::experiment::record::{Outcome, RunRecord, Runs};
use crate::experiment::statistics::Share;
use crate::experiment::table::{Cell, Column, ColumnKind, Table};
use crate::experiment::{Variant, paper};

/// Held-out results by variant, with the paper's objectives beside them.
pub(in crate::experiment) fn summary(runs: &Runs, sweep: Sweep) -> Table {
    let settings = sweep.paper.map(paper::settings).unwrap_or_default();
    let constraints: Vec<&str> = runs.constraints().collect();
    let mut table =
        Table::new("summary", format!("Held-out results by {}", sweep.axis)).over_seeds(runs.seeds());
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
    let is_fresh = runs.records.iter().any(|record| record.fresh.is_some());
    if is_fresh {
        table.columns.extend(fresh_columns());
    }
    let is_tested = runs.records.iter().any(|record| record.certified.is_some());
    if is_tested {
        table.columns.push(Column::new("certified", ColumnKind::Share));
        table
            .columns
            .push(Column::new("AllSat, fresh, of those", ColumnKind::Share));
    }
    table
        .columns
        .push(Column::new("rollouts", ColumnKind::Estimate).decimals(0));
    for setting in &settings {
        table
            .columns
            .push(Column::new(format!("paper: {setting}"), ColumnKind::Judged));
    }

    let costs = |outcomes: &[&Outcome]| -> Vec<Cell> {
        constraints
            .iter()
            .map(|metric| mean(outcomes.iter().filter_map(|outcome| outcome.cost(metric))))
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
    row.extend(costs(&started));
    row.push(share(started.iter().map(|outcome| outcome.all_sat)));
    if is_fresh {
        row.push(Cell::Empty);
        let of_reference = runs
            .records
            .iter()
            .filter(|record| record.variant == sweep.reference);
        let measured = of_reference.map(|record| record.seed_prompt_fresh.as_ref());
        row.extend(fresh(measured.flatten().map(Some)));
    }
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
        row.extend(costs(&held_out));
        row.push(of_share(runs.all_sat(variant, |record| record.evaluate.as_ref())));
        row.push(of_share(runs.all_sat(variant, |record| record.optimize.as_ref())));
        if is_fresh {
            row.extend(fresh(records.iter().map(|record| record.fresh.as_ref())));
        }
        if is_tested {
            let is_certified = |record: &&&RunRecord| record.certified == Some(Verdict::Certified);
            let tested = records.iter().filter(|_| variant.study.confirm.is_some());
            row.push(share(tested.map(|record| is_certified(&record))));
            let certified = records.iter().filter(is_certified).filter(|_| is_fresh);
            row.push(share(certified.map(|record| {
                record.fresh.as_ref().is_some_and(|outcome| outcome.all_sat)
            })));
        }
        row.push(mean(records.iter().map(|record| record.rollouts as f64)));
        row.extend(
            settings
                .iter()
                .map(|setting| published(sweep.paper, setting, &variant.key)),
        );
        table.push(row);
    }
    table.notes.push(format!(
        "Means over {} ± one standard error over seeds, not over examples (s/√n, ddof = 1); shares with \
         Wilson's 95 % interval. Differences are paired by seed.",
        counted(runs.seeds() as u64, "seed")
    ));
    if is_fresh {
        table.notes.push(fresh_note(runs.base, runs.records));
    }
    if let Some(label) = sweep.paper {
        table.notes.push(format!(
            "Paper columns: objective of its table `{label}`, tau2-bench with GPT-5-mini; ✓ and ✗ say whether every \
             threshold printed for it was met."
        ));
    }
    table
}

/// What the columns of fresh examples of a study hold.
pub(in crate::experiment) fn fresh_note<'a>(
    study: &Study,
    records: impl IntoIterator<Item = &'a RunRecord>,
) -> String {
    let held_out = records.into_iter().map(|record| record.searched.held_out);
    let fresh = if makes_examples(study, ROLLOUTS) {
        "on new examples".to_owned()
    } else {
        format!(
            "on no new examples but the held-out ones of each run again ({}), under another seed",
            held_out.max().unwrap_or_default()
        )
    };
    format!(
        "Search: the examples searched on. Held out: those of the same split that only the end measures. Fresh: at \
         least 1,000 rollouts, unless --fresh says otherwise, {fresh}."
    )
}

/// The columns of [`fresh`].
pub(in crate::experiment) fn fresh_columns() -> [Column; 2] {
    [
        Column::new("AllSat, fresh", ColumnKind::Share),
        Column::new("objective, fresh", ColumnKind::Estimate),
    ]
}

/// How the prompts of runs do on fresh examples; one without a result counts as not holding.
pub(in crate::experiment) fn fresh<'a>(outcomes: impl Iterator<Item = Option<&'a Outcome>>) -> [Cell; 2] {
    let outcomes: Vec<Option<&Outcome>> = outcomes.collect();
    let measured = outcomes.iter().flatten();
    [
        share(
            outcomes
                .iter()
                .map(|outcome| outcome.is_some_and(|outcome| outcome.all_sat)),
        ),
        mean(measured.map(|outcome| outcome.objective)),
    ]
}

/// Final multipliers by variant, with the paper's where it prints them.
pub(super) fn pressures(runs: &Runs, sweep: Sweep) -> Table {
    let mut table =
        Table::new("multipliers", format!("Final multipliers by {}", sweep.axis)).over_seeds(runs.seeds());
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
        "Means over {} ± one standard error over seeds, after the last round.",
        counted(runs.seeds() as u64, "seed")
    ));
    table
}

/// The paper's own rows in full; `None` when it printed none.
pub(in crate::experiment) fn published_rows(label: &str) -> Option<Table> {
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

/// The mean over values, or nothing.
pub(in crate::experiment) fn mean(values: impl Iterator<Item = f64>) -> Cell {
    Cell::mean(&values.collect::<Vec<_>>())
}

/// The share of true ones, or nothing.
pub(in crate::experiment) fn share(values: impl Iterator<Item = bool>) -> Cell {
    of_share(Share::of(values))
}

fn of_share(share: Share) -> Cell {
    if share.of == 0 {
        Cell::Empty
    } else {
        Cell::Share(share)
    }
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
