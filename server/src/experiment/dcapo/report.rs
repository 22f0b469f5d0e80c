//! Tables and the plot of the seeds that are finished. A seed has tasks and trainings of its own, so that every
//! interval is over means of seeds.

use capo_core::estimate::Estimate;
use capo_core::statistics::Interval;
use capo_core::study::Study;
use capo_rewriter::pool_grpo::GrpoSettings;
use serde_json::json;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::evaluation::Answers;
use super::record::{EvaluatedPolicy, PolicyRecord, SeedRecord};
use super::world::{EXCERPTS, Measured};
use super::{FINE_TUNED, GRPO, Plan, PolicyKind, TEACHER};
use crate::experiment::table::{Cell, Column, ColumnKind, Table};
use crate::experiment::{Axis, Figure, Panel, Point, Report, Series};

pub(super) fn report(base: &Study, plan: &Plan, seeds: &[SeedRecord]) -> Report {
    Report {
        tables: vec![
            searches(base, plan, seeds),
            differences(plan, seeds),
            gains(plan, seeds),
            reading(plan, seeds),
            rewrites(plan, seeds),
            sft(seeds),
        ],
        figures: vec![gain_by_round(plan, seeds)],
    }
}

/// The record of a rewriter for each seed.
fn of<'a>(seeds: &'a [SeedRecord], key: &'a str) -> impl Iterator<Item = &'a PolicyRecord> {
    seeds
        .iter()
        .filter_map(move |seed| seed.policies.iter().find(|policy| policy.key == key))
}

fn mean_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum::<f64>() / items.len() as f64
}

fn is_met(all_sat: bool) -> f64 {
    f64::from(u8::from(all_sat))
}

fn fresh_all_sat(policy: &PolicyRecord) -> f64 {
    mean_of(&policy.searches, |found| is_met(found.fresh.all_sat))
}

fn fresh_objective(policy: &PolicyRecord) -> f64 {
    mean_of(&policy.searches, |found| found.fresh.objective)
}

/// Columns of a difference between two rewriters of the same seeds.
fn difference_columns(name: &str) -> [Column; 4] {
    [
        Column::new(name, ColumnKind::Number),
        Column::new(format!("{name}: low"), ColumnKind::Number),
        Column::new(format!("{name}: high"), ColumnKind::Number),
        Column::new(format!("{name}: seeds above and below 0"), ColumnKind::Text),
    ]
}

/// Student's 95 % interval of a mean over independent values; `None` of fewer than two.
fn student_interval(estimate: Estimate) -> Option<Interval> {
    let student = StudentsT::new(0.0, 1.0, estimate.n as f64 - 1.0).ok()?;
    let half = student.inverse_cdf(0.975) * estimate.standard_error;
    Some(Interval {
        low: estimate.mean - half,
        high: estimate.mean + half,
    })
}

/// The mean of the differences of seeds, Student's 95 % interval, and how many have which sign.
fn difference(values: &[f64]) -> [Cell; 4] {
    let estimate = Estimate::of(values);
    let interval = estimate.and_then(student_interval);
    let above = values.iter().filter(|value| **value > 0.0).count();
    let below = values.iter().filter(|value| **value < 0.0).count();
    [
        Cell::number(estimate.map(|estimate| estimate.mean)),
        Cell::number(interval.map(|interval| interval.low)),
        Cell::number(interval.map(|interval| interval.high)),
        Cell::text(format!("{above}, {below} of {}", values.len())),
    ]
}

/// What searches return.
fn searches(base: &Study, plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("searches", "What searches return").over_seeds(seeds.len());
    let objective = &base.objective.metric;
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new(format!("{objective}, held out"), ColumnKind::Estimate),
    ];
    for constraint in &base.constraints {
        let limit = constraint
            .threshold
            .map_or_else(String::new, |limit| format!(" (≤ {limit})"));
        let name = format!("{}{limit}", constraint.metric);
        table.columns.push(Column::new(name, ColumnKind::Estimate));
    }
    for name in ["AllSat, search", "AllSat, held out", "AllSat, fresh"] {
        table
            .columns
            .push(Column::new(name, ColumnKind::Estimate).decimals(2));
    }
    table
        .columns
        .push(Column::new(format!("{objective}, fresh"), ColumnKind::Estimate));
    let row = |label: &str, seeds: &[&[Measured]]| {
        let mean = |of: &dyn Fn(&Measured) -> f64| {
            Cell::mean(&seeds.iter().map(|found| mean_of(found, of)).collect::<Vec<_>>())
        };
        let cost = |metric: &str| mean(&|found| found.held_out.cost(metric).unwrap_or(f64::NAN));
        let searched = seeds
            .iter()
            .all(|found| found.iter().all(|one| one.optimize.is_some()));
        let mut row = vec![Cell::text(label), mean(&|found| found.held_out.objective)];
        row.extend(base.constraints.iter().map(|constraint| cost(&constraint.metric)));
        row.push(if searched {
            mean(&|found| is_met(found.optimize.as_ref().is_some_and(|outcome| outcome.all_sat)))
        } else {
            Cell::Empty
        });
        row.push(mean(&|found| is_met(found.held_out.all_sat)));
        row.push(mean(&|found| is_met(found.fresh.all_sat)));
        row.push(mean(&|found| found.fresh.objective));
        row
    };
    let start: Vec<&[Measured]> = seeds.iter().map(|seed| &seed.seed_prompt[..]).collect();
    table.push(row("none: the seed prompt", &start));
    for kind in plan.policies {
        let found: Vec<&[Measured]> = of(seeds, kind.key).map(|policy| &policy.searches[..]).collect();
        table.push(row(kind.label, &found));
    }
    table.notes = vec![
        format!(
            "Means ± one standard error over {} seeds, each with tasks and trainings of its own and the mean of {} \
             searches of {} rounds, {} parents and {} children with each frozen rewriter. AllSat: share of the searches \
             whose prompt meets every threshold. Costs: held out. Fresh: at least 1,000 rollouts on tasks that nothing \
             has seen.",
            seeds.len(),
            plan.final_searches,
            plan.final_extent.rounds,
            plan.final_extent.parents,
            plan.final_extent.children,
        ),
        format!(
            "GRPO: {}. The paper's recipe standardises advantages within the children of a parent: {}. Excerpts: at most \
             {EXCERPTS} characters of dialogues, one for each issue, instead of a critic's summary.",
            recipe(&plan.grpo),
            recipe(&plan.paper_grpo),
        ),
    ];
    table
}

/// Settings of GRPO by the names that a file of settings has for them.
fn recipe(settings: &GrpoSettings) -> String {
    let settings = json!(settings);
    let names = [
        "scale",
        "normalisation",
        "epochs",
        "learning_rate",
        "no_child_penalty",
    ];
    let mut parts: Vec<String> = names
        .iter()
        .map(|name| format!("{name} = {}", settings[*name]))
        .collect();
    parts.push(format!("kl_weight = {}", settings["objective"]["kl_weight"]));
    parts.join(", ")
}

/// Rewriters against one another, paired by seed.
fn differences(plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("differences", "What searches return, paired by seed");
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new("minus", ColumnKind::Text),
    ];
    table.columns.extend(difference_columns("AllSat, fresh"));
    table.columns.extend(difference_columns("objective, fresh"));
    let find = |key: &str| plan.policies.iter().position(|kind| kind.key == key);
    for reference in [TEACHER, FINE_TUNED, GRPO].into_iter().filter_map(find) {
        let (reference, others) = (&plan.policies[reference], &plan.policies[reference + 1..]);
        for kind in others {
            let paired = |figure: fn(&PolicyRecord) -> f64| -> Vec<f64> {
                let pairs = of(seeds, kind.key).zip(of(seeds, reference.key));
                pairs.map(|(one, other)| figure(one) - figure(other)).collect()
            };
            let mut row = vec![Cell::text(kind.label), Cell::text(reference.label)];
            row.extend(difference(&paired(fresh_all_sat)));
            row.extend(difference(&paired(fresh_objective)));
            table.push(row);
        }
    }
    table.notes.push(INTERVALS.into());
    table
}

const INTERVALS: &str = "Low and high: Student's 95 % interval of the mean over seeds.";

/// The evaluation of a rewriter for each seed.
fn evaluations<'a>(seeds: &'a [SeedRecord], kind: &'a PolicyKind) -> Vec<&'a EvaluatedPolicy> {
    of(seeds, kind.key)
        .filter_map(|policy| policy.evaluation.as_ref())
        .collect()
}

fn gain(answers: &Answers) -> f64 {
    mean_of(&answers.gains, |gain| *gain)
}

/// ΔJ of children before and after GRPO.
fn gains(plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("gains", "What children gain, before and after GRPO").over_seeds(seeds.len());
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new("ΔJ before", ColumnKind::Estimate),
        Column::new("ΔJ after", ColumnKind::Estimate),
    ];
    table.columns.extend(difference_columns("difference"));
    for name in [
        "without a child, before",
        "without a child, after",
        "distinct children, before",
        "distinct children, after",
    ] {
        table
            .columns
            .push(Column::new(name, ColumnKind::Estimate).decimals(2));
    }
    for kind in plan.policies.iter().filter(|kind| kind.rewriter.learns()) {
        let found = evaluations(seeds, kind);
        let each = |of: &dyn Fn(&EvaluatedPolicy) -> f64| -> Vec<f64> {
            found.iter().map(|policy| of(policy)).collect()
        };
        let mut row = vec![
            Cell::text(kind.label),
            Cell::mean(&each(&|policy| gain(&policy.before))),
            Cell::mean(&each(&|policy| gain(&policy.after))),
        ];
        row.extend(difference(&each(&|policy| {
            gain(&policy.after) - gain(&policy.before)
        })));
        row.extend([
            Cell::mean(&each(&|policy| 1.0 - policy.before.children)),
            Cell::mean(&each(&|policy| 1.0 - policy.after.children)),
            Cell::mean(&each(&|policy| policy.before.distinct)),
            Cell::mean(&each(&|policy| policy.after.distinct)),
        ]);
        table.push(row);
    }
    table.notes = vec![
        format!(
            "ΔJ = J(child) − J(parent) under the request's λ on the held-out tasks, mean over {} rewrites of each of {} \
             requests of a seed; a rewrite without a child changes nothing and counts as 0. Both policies answer the same \
             requests, from searches that neither has learned from, with the same sampling seeds. ± is one standard \
             error over seeds.",
            plan.answers, plan.requests,
        ),
        INTERVALS.into(),
        "Without a child: share of the rewrites that were cut off, empty or their parent. Distinct: different texts \
         among a seed's children, as a share of them."
            .into(),
    ];
    table
}

/// What answers lose when what the request says is not its own.
fn reading(plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("reading", "Do the policies read λ and feedback?").over_seeds(seeds.len());
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new("request", ColumnKind::Text),
        Column::new("ΔJ", ColumnKind::Estimate),
    ];
    table.columns.extend(difference_columns("minus as it is"));
    for kind in plan.policies {
        let found = evaluations(seeds, kind);
        if found.is_empty() {
            continue;
        }
        let own = found.iter().map(|policy| gain(&policy.after));
        let mut row = vec![
            Cell::text(kind.label),
            Cell::text("as it is"),
            Cell::mean(&own.collect::<Vec<_>>()),
        ];
        row.resize(table.columns.len(), Cell::Empty);
        table.push(row);
        let mut row = |request: &str, of: &dyn Fn(&EvaluatedPolicy) -> Option<f64>| {
            let values: Vec<f64> = found.iter().filter_map(|policy| of(policy)).collect();
            let lost = found
                .iter()
                .filter_map(|policy| Some(of(policy)? - gain(&policy.after)));
            let lost: Vec<f64> = lost.collect();
            if !values.is_empty() {
                let mut row = vec![Cell::text(kind.label), Cell::text(request), Cell::mean(&values)];
                row.extend(difference(&lost));
                table.push(row);
            }
        };
        row("λ permuted among constraints", &|policy| {
            Some(gain(&policy.other_multipliers))
        });
        row("feedback of another request", &|policy| {
            policy.other_feedback.as_ref().map(gain)
        });
    }
    table.notes = vec![
        "The policies as they ended answer the same requests with the same sampling seeds; each constraint has the \
         multiplier of the one before, or each request the feedback of another. ΔJ is under the request's own λ. A policy \
         that reads what was permuted does worse without it."
            .into(),
        INTERVALS.into(),
    ];
    table
}

/// Some answers of the first seed in full.
fn rewrites(plan: &Plan, seeds: &[SeedRecord]) -> Table {
    let mut table = Table::new("rewrites", "Five rewrites of each policy");
    table.columns = vec![
        Column::new("rewriter", ColumnKind::Text),
        Column::new("rewrite", ColumnKind::Text),
    ];
    let first = &seeds[..seeds.len().min(1)];
    for kind in plan.policies {
        for policy in evaluations(first, kind) {
            for text in &policy.after.examples {
                table.push(vec![Cell::text(kind.label), Cell::text(text)]);
            }
        }
    }
    table.notes.push(
        "Of the first seed: the first answer to each of five requests, the same of all that are asked alike."
            .into(),
    );
    table
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
    for (style, kind) in plan
        .policies
        .iter()
        .filter(|kind| kind.rewriter.learns())
        .enumerate()
    {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_seeds_have_students_interval() {
        assert_eq!(Estimate::of(&[1.0]).and_then(student_interval), None);
        // 2, 5, 10 and 200 values: Student's quantiles of 1, 4, 9 and 199 degrees of freedom.
        for (n, quantile) in [(2, 12.7062), (5, 2.7764), (10, 2.2622), (200, 1.9720)] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let estimate = Estimate::of(&values).unwrap();
            let half = (student_interval(estimate).unwrap().high - estimate.mean) / estimate.standard_error;
            assert!((half - quantile).abs() < 1e-4, "{n}: {half}");
        }
    }
}
