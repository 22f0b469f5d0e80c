//! Plots over the rounds: best candidates and multipliers, one line per variant.

use capo_core::estimate::Estimate;

use super::labelled;
use crate::cli::layout::counted;
use crate::experiment::figure::{Axis, Figure, Panel, Point, Series, Threshold};
use crate::experiment::record::{RoundRecord, RunRecord, Runs};

/// Objective and costs of each round's best candidate, one line per variant.
pub(in crate::experiment) fn trajectories(runs: &Runs) -> Figure {
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
            "Best by the round's Lagrangian score, on the optimisation split; mean over {}, bands are one standard \
             error over seeds, not over examples.{}",
            counted(runs.seeds() as u64, "seed"),
            ended_sooner(runs)
        ),
        panels,
    }
}

/// Each constraint's multiplier by round, one line per variant.
pub(in crate::experiment) fn multipliers(runs: &Runs) -> Figure {
    Figure {
        name: "multipliers".into(),
        title: format!("{}: multipliers by round", runs.base.study.name),
        caption: format!(
            "Mean over {}; bands are one standard error over seeds.{}",
            counted(runs.seeds() as u64, "seed"),
            ended_sooner(runs)
        ),
        panels: runs
            .constraints()
            .map(|metric| multiplier_panel(runs, metric))
            .collect(),
    }
}

/// A line that says how many runs a mean is over where some ended before the last round; empty
/// where all went as far. Means over fewer runs are means over other seeds.
pub(in crate::experiment) fn ended_sooner(runs: &Runs) -> String {
    let falls = |variant| {
        let mut all = runs.of(variant).count();
        let fall = |round| {
            let reached = |record: &&RunRecord| record.rounds.iter().any(|entry| entry.round == round);
            let now = runs.of(variant).filter(reached).count();
            let before = std::mem::replace(&mut all, now);
            (now < before).then(|| format!("n = {now} from round {round}"))
        };
        (0..=runs.last_round()).filter_map(fall).collect::<Vec<_>>()
    };
    let variants: Vec<String> = runs
        .variants
        .iter()
        .map(|variant| (variant, falls(variant)))
        .filter(|(_, falls)| !falls.is_empty())
        .map(|(variant, falls)| format!("{}: {}", variant.label, falls.join(", ")))
        .collect();
    if variants.is_empty() {
        String::new()
    } else {
        format!(
            "\nRuns that ended sooner are left out of later rounds. {}.",
            variants.join("; ")
        )
    }
}

/// λ of one constraint at the start of each round, and after the last one.
pub(in crate::experiment) fn multiplier_panel(runs: &Runs, metric: &str) -> Panel {
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
pub(in crate::experiment) fn lagrangian_panel(runs: &Runs) -> Panel {
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
pub(in crate::experiment) fn by_round(
    runs: &Runs,
    value: impl Fn(&RoundRecord) -> Option<f64>,
) -> Vec<Series> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{EXPERIMENTS, fixture};

    #[test]
    fn a_round_that_fewer_runs_reached_is_told() {
        fixture::with_runs(EXPERIMENTS[0], |runs| {
            assert_eq!(ended_sooner(runs), "");
            let mut records = runs.records.to_vec();
            records[0].rounds.truncate(3);
            records[1].rounds.truncate(5);
            let cut = Runs {
                records: &records,
                ..*runs
            };
            let label = &runs.variants[0].label;
            let caption = trajectories(&cut).caption;
            assert!(
                caption.ends_with(&format!(
                    "rounds. {label}: n = 2 from round 3, n = 1 from round 5."
                )),
                "{caption}"
            );
        });
    }
}
