//! Seed prompt and transferred rewrite side by side.

use super::{CANDIDATES, PAPER, Target};
use crate::cli::layout::counted;
use crate::experiment::sweep::{fresh, fresh_columns, fresh_note, mean, published_rows, share};
use crate::experiment::{Cell, Column, ColumnKind, Outcome, Report, RunRecord, Runs, Table};

/// A table for each target, then the paper's.
pub fn report(targets: &[Target], records: &[RunRecord]) -> Report {
    let of = |target: &Target| -> Vec<&RunRecord> {
        let key = &target.variant.key;
        records.iter().filter(|record| record.variant == *key).collect()
    };
    let tables = targets.iter().map(|target| held_out(target, &of(target)));
    Report {
        tables: tables.chain(published_rows(PAPER)).collect(),
        figures: Vec::new(),
    }
}

/// Both prompts of a target on its held-out examples.
fn held_out(target: &Target, records: &[&RunRecord]) -> Table {
    let constraints = &target.variant.study.constraints;
    let mut table = Table::new(
        &format!("held-out-{}", target.variant.key),
        format!(
            "Held-out results on {} ({})",
            target.variant.label, target.variant.key
        ),
    )
    .over_seeds(records.len());
    table.columns = vec![
        Column::new("prompt", ColumnKind::Text),
        Column::new("objective", ColumnKind::Estimate),
        Column::new("objective − (seed prompt)", ColumnKind::Estimate),
    ];
    for constraint in constraints {
        let metric = &constraint.metric;
        let heading = match Runs::common_threshold(metric, records.iter().copied()) {
            Some(threshold) => format!("{metric} (≤ {threshold})"),
            None => metric.clone(),
        };
        table.columns.push(Column::new(heading, ColumnKind::Estimate));
    }
    table
        .columns
        .push(Column::new("AllSat, held out", ColumnKind::Share));
    table
        .columns
        .push(Column::new("AllSat, search", ColumnKind::Share));
    let is_fresh = records.iter().any(|record| record.fresh.is_some());
    if is_fresh {
        table.columns.extend(fresh_columns());
    }
    table.columns.push(Column::new("J, search", ColumnKind::Estimate));
    table
        .columns
        .push(Column::new("rewrites", ColumnKind::Estimate).decimals(1));

    let metrics: Vec<&str> = constraints
        .iter()
        .map(|constraint| constraint.metric.as_str())
        .collect();
    let costs = |outcomes: &[&Outcome]| -> Vec<Cell> {
        let of_metric = |metric| mean(outcomes.iter().filter_map(|outcome| outcome.cost(metric)));
        metrics.iter().copied().map(of_metric).collect()
    };
    // A run without a result holds nothing.
    let held = |found: fn(&RunRecord) -> Option<&Outcome>| {
        let holds = |record: &&RunRecord| found(record).is_some_and(|outcome| outcome.all_sat);
        share(records.iter().map(holds))
    };
    let both: Vec<(&Outcome, &Outcome)> = records
        .iter()
        .filter_map(|record| record.seed_prompt.as_ref().zip(record.evaluate.as_ref()))
        .collect();
    let started: Vec<&Outcome> = records
        .iter()
        .filter_map(|record| record.seed_prompt.as_ref())
        .collect();
    let mut row = vec![
        Cell::text("seed prompt"),
        mean(started.iter().map(|outcome| outcome.objective)),
        Cell::Empty,
    ];
    row.extend(costs(&started));
    row.push(share(started.iter().map(|outcome| outcome.all_sat)));
    row.push(Cell::Empty);
    if is_fresh {
        let measured = records.iter().map(|record| record.seed_prompt_fresh.as_ref());
        row.extend(fresh(measured.flatten().map(Some)));
    }
    row.resize(table.columns.len(), Cell::Empty);
    table.push(row);

    let rewritten: Vec<&Outcome> = records
        .iter()
        .filter_map(|record| record.evaluate.as_ref())
        .collect();
    let mut row = vec![
        Cell::text("rewrite"),
        mean(rewritten.iter().map(|outcome| outcome.objective)),
        mean(
            both.iter()
                .map(|(seed, rewrite)| rewrite.objective - seed.objective),
        ),
    ];
    row.extend(costs(&rewritten));
    row.push(held(|record| record.evaluate.as_ref()));
    row.push(held(|record| record.optimize.as_ref()));
    if is_fresh {
        row.extend(fresh(records.iter().map(|record| record.fresh.as_ref())));
    }
    row.push(mean(
        records
            .iter()
            .filter_map(|record| Some(record.rounds.first()?.lagrangian)),
    ));
    row.push(mean(records.iter().map(|record| rewrites(record) as f64)));
    table.push(row);
    table.notes = notes(records);
    if is_fresh {
        let note = fresh_note(&target.variant.study, records.iter().copied());
        table.notes.push(note);
    }
    table
}

/// Prompts other than the seed prompt.
fn rewrites(record: &RunRecord) -> usize {
    record.candidates.saturating_sub(1)
}

fn notes(records: &[&RunRecord]) -> Vec<String> {
    let mut notes = vec![format!(
        "Means over {} ± one standard error over seeds, not over examples (s/√n, ddof = 1); shares with \
         Wilson's 95 % interval. Differences are paired by seed. J is that of the chosen rewrite on the optimisation \
         split; rewrites are the different ones of {CANDIDATES}.",
        counted(records.len() as u64, "seed")
    )];
    let without = records.iter().filter(|record| rewrites(record) == 0).count();
    if without > 0 {
        notes.push(format!(
            "Under {without} of these seeds no rewrite gave another prompt, and the seed prompt counts as the rewrite."
        ));
    }
    notes
}
