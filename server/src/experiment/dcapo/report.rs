//! Tables and the plot of the seeds that are finished.

use capo_core::estimate::Estimate;
use capo_core::random::Streams;
use capo_core::statistics::{PairedDifference, RESAMPLES, paired_difference};
use capo_core::study::Study;

use super::Plan;
use super::record::{HeldOut, PolicyRecord, SeedRecord};
use crate::experiment::table::{Cell, Column, ColumnKind, Table};
use crate::experiment::{Axis, Figure, Panel, Point, Report, Series, Share};

/// Confidence of intervals.
const CONFIDENCE: f64 = 0.95;

pub(super) fn report(base: &Study, plan: &Plan, seeds: &[SeedRecord]) -> Report {
    Report {
        tables: vec![searches(base, plan, seeds), gains(plan, seeds), sft(seeds)],
        figures: vec![gain_by_round(plan, seeds)],
    }
}

/// The record of a policy for each seed.
fn of<'a>(seeds: &'a [SeedRecord], key: &'a str) -> impl Iterator<Item = &'a PolicyRecord> {
    seeds
        .iter()
        .filter_map(move |seed| seed.policies.iter().find(|policy| policy.key == key))
}

/// What searches return, on held-out examples.
fn searches(base: &Study, plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("searches", "What searches return").over_seeds(seeds.len());
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new(base.objective.metric.clone(), ColumnKind::Estimate),
    ];
    for constraint in &base.constraints {
        let limit = constraint
            .threshold
            .map_or_else(String::new, |limit| format!(" ≤ {limit}"));
        let name = format!("{}{limit}", constraint.metric);
        table.columns.push(Column::new(name, ColumnKind::Estimate));
    }
    table.columns.push(Column::new("AllSat", ColumnKind::Share));
    let start: Vec<&[HeldOut]> = seeds.iter().map(|seed| &seed.seed_prompt[..]).collect();
    table.push(row("none: the seed prompt", &start, base.constraints.len()));
    for kind in plan.policies {
        let found: Vec<&[HeldOut]> = of(seeds, kind.key).map(|policy| &policy.searches[..]).collect();
        table.push(row(kind.label, &found, base.constraints.len()));
    }
    table.notes.push(
        "Means over the held-out examples of the prompts that searches with frozen policies return; ± is the \
         standard error over seeds, each the mean of its searches. AllSat counts searches, with Wilson's 95 % \
         interval."
            .into(),
    );
    table
}

fn row(label: &str, seeds: &[&[HeldOut]], constraints: usize) -> Vec<Cell> {
    let mean = |of: &dyn Fn(&HeldOut) -> f64| {
        let means: Vec<f64> = seeds
            .iter()
            .map(|searches| searches.iter().map(of).sum::<f64>() / searches.len() as f64)
            .collect();
        Cell::mean(&means)
    };
    let mut row = vec![Cell::text(label), mean(&|held| held.objective)];
    row.extend((0..constraints).map(|constraint| mean(&|held| held.costs[constraint])));
    let all_sat = seeds
        .iter()
        .flat_map(|searches| searches.iter().map(|held| held.all_sat));
    row.push(Cell::Share(Share::of(all_sat)));
    row
}

/// ΔJ of children before and after GRPO.
fn gains(plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("gains", "What children gain, before and after GRPO");
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new("seed", ColumnKind::Text),
        Column::new("requests", ColumnKind::Number).decimals(0),
        Column::new("ΔJ before", ColumnKind::Number),
        Column::new("ΔJ after", ColumnKind::Number),
        Column::new("difference", ColumnKind::Number),
        Column::new("low", ColumnKind::Number),
        Column::new("high", ColumnKind::Number),
        Column::new("children before", ColumnKind::Number).decimals(2),
        Column::new("children after", ColumnKind::Number).decimals(2),
    ];
    for kind in plan.policies {
        let sat: Vec<_> = seeds
            .iter()
            .filter_map(|seed| {
                let policy = seed.policies.iter().find(|policy| policy.key == kind.key)?;
                Some((seed.seed.to_string(), policy.evaluation.as_ref()?))
            })
            .collect();
        if sat.is_empty() {
            continue;
        }
        for (seed, sat) in &sat {
            let shares = (sat.before.children, sat.after.children);
            table.push(gain_row(
                kind.label,
                seed,
                &sat.before.gains,
                &sat.after.gains,
                shares,
            ));
        }
        let joined = |of: &dyn Fn(&super::record::EvaluatedPolicy) -> Vec<f64>| -> Vec<f64> {
            sat.iter().flat_map(|(_, sat)| of(sat)).collect()
        };
        let (before, after) = (
            joined(&|sat| sat.before.gains.clone()),
            joined(&|sat| sat.after.gains.clone()),
        );
        let share = |of: &dyn Fn(&super::record::EvaluatedPolicy) -> f64| {
            sat.iter().map(|(_, sat)| of(sat)).sum::<f64>() / sat.len() as f64
        };
        let shares = (
            share(&|sat| sat.before.children),
            share(&|sat| sat.after.children),
        );
        table.push(gain_row(kind.label, "all", &before, &after, shares));
    }
    table.notes.push(
        "ΔJ = J(child) − J(parent) under the request's λ on the held-out examples, mean over the rewrites of a \
         request; a rewrite without a child changes nothing and counts as 0. Both policies answer the same requests, \
         from searches that neither has learned from, with the same seeds. The interval is the paired bootstrap's at \
         95 % over requests. Children: share of the rewrites that gave one."
            .into(),
    );
    table
}

fn gain_row(label: &str, seed: &str, before: &[f64], after: &[f64], shares: (f64, f64)) -> Vec<Cell> {
    let difference = difference(before, after);
    let interval = difference.and_then(|difference| difference.interval);
    let mean = |numbers: &[f64]| Estimate::of(numbers).map(|estimate| estimate.mean);
    vec![
        Cell::text(label),
        Cell::text(seed),
        Cell::number(before.len() as f64),
        Cell::number(mean(before)),
        Cell::number(mean(after)),
        Cell::number(difference.map(|difference| difference.mean)),
        Cell::number(interval.map(|interval| interval.low)),
        Cell::number(interval.map(|interval| interval.high)),
        Cell::number(shares.0),
        Cell::number(shares.1),
    ]
}

/// After − before over the same requests.
fn difference(before: &[f64], after: &[f64]) -> Option<PairedDifference> {
    let mut stream = Streams::new(0).stream("gains", 0, 0);
    paired_difference(after, before, CONFIDENCE, RESAMPLES, &mut stream)
}

/// What the fine-tuning came to, and how long everything took.
fn sft(seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("training", "Training");
    table.columns = vec![
        Column::new("seed", ColumnKind::Text),
        Column::new("searches", ColumnKind::Number).decimals(0),
        Column::new("rewrites", ColumnKind::Number).decimals(0),
        Column::new("pairs", ColumnKind::Number).decimals(0),
        Column::new("parameters", ColumnKind::Number).decimals(0),
        Column::new("first loss", ColumnKind::Number),
        Column::new("held-out loss", ColumnKind::Number),
        Column::new("GRPO, s", ColumnKind::Number).decimals(0),
        Column::new("whole seed, s", ColumnKind::Number).decimals(0),
    ];
    for seed in seeds {
        let fine_tuned = &seed.sft;
        table.push(vec![
            Cell::text(seed.seed.to_string()),
            Cell::number(fine_tuned.searches as f64),
            Cell::number(fine_tuned.rewrites as f64),
            Cell::number(fine_tuned.pairs as f64),
            Cell::number(fine_tuned.parameters as f64),
            Cell::number(fine_tuned.first_loss),
            Cell::number(fine_tuned.held_out_loss),
            Cell::number(seed.policies.iter().map(|policy| policy.seconds).sum::<f64>()),
            Cell::number(seed.seconds),
        ]);
    }
    table.notes.push(
        "Losses are nats for each token of a child: the first step's, and on pairs of other parents in the end. Times \
         are wall times, as if all work on a seed were done one after the other."
            .into(),
    );
    table
}

/// Mean ΔJ of children over the rounds of GRPO.
fn gain_by_round(plan: &Plan, seeds: &[SeedRecord]) -> Figure {
    let rounds = plan.grpo_extent.rounds * plan.grpo_searches as u32;
    let axis = Axis::Steps {
        label: "round".into(),
        first: 0,
        last: rounds.saturating_sub(1),
    };
    let mut panel = Panel::new("Mean ΔJ of a round's children", axis, "ΔJ");
    for (style, kind) in plan.policies.iter().filter(|kind| kind.learns).enumerate() {
        let points = (0..rounds).filter_map(|round| {
            let gain = |policy: &PolicyRecord| policy.gains.get(round as usize).copied().flatten();
            let gains: Vec<f64> = of(seeds, kind.key).filter_map(gain).collect();
            Some(Point::estimate(f64::from(round), Estimate::of(&gains)?))
        });
        panel.series.push(Series {
            label: kind.label.into(),
            style,
            joined: true,
            points: points.collect(),
        });
    }
    for search in 1..plan.grpo_searches as u32 {
        panel
            .marks
            .push((f64::from(search * plan.grpo_extent.rounds) - 0.5, String::new()));
    }
    Figure {
        name: "grpo".into(),
        title: "GRPO".into(),
        caption:
            "Mean over seeds, band: one standard error. Dotted: the next search begins, from the seed prompt."
                .into(),
        panels: vec![panel],
    }
}
