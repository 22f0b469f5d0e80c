//! Behaviour over rounds: peaks, overshoot, release, saturation, in numbers and in words.

use std::sync::Arc;

use capo_core::dual::DualStepName;

use super::setting::Setting;
use crate::charts::series::RoundValue;
use crate::format;
use crate::run::rounds::ScreenRound;
use crate::run::series::{ConstraintSeries, RoundPoint, Series};
use crate::run::studied::Shown as _;

/// From this round on a search has left its seed behind: averages begin here.
const SETTLED: ScreenRound = 8;

/// The series as it stood after a round.
pub(super) fn up_to(series: &Series, last: ScreenRound) -> Series {
    let end = last as usize + 1;
    let constraint = |of: &ConstraintSeries| {
        let cut = |values: &[Option<f64>]| values[..end.min(values.len())].to_vec();
        let next = of.multiplier_after(last.min(of.multipliers.len().saturating_sub(1) as ScreenRound));
        ConstraintSeries {
            thresholds: cut(&of.thresholds),
            multipliers: cut(&of.multipliers),
            next_multiplier: next,
            at_cap: of.at_cap.iter().copied().filter(|round| *round <= last).collect(),
            ..of.clone()
        }
    };
    Series {
        rounds: Arc::new(
            series
                .rounds
                .iter()
                .filter(|point| point.round <= last)
                .cloned()
                .collect(),
        ),
        arriving: Vec::new(),
        under_way: None,
        constraints: series.constraints.iter().map(constraint).collect(),
        ..series.clone()
    }
}

/// The leading cost of a constraint by round.
pub(super) fn costs(series: &Series, of: &ConstraintSeries) -> Vec<RoundValue> {
    let cost = |point: &RoundPoint| {
        let value = point.leading.as_ref()?.estimate(&of.metric)?.mean;
        Some(RoundValue {
            round: point.round,
            value,
        })
    };
    series.rounds.iter().filter_map(cost).collect()
}

/// The multiplier of each round that used one.
pub(super) fn multipliers(of: &ConstraintSeries) -> Vec<RoundValue> {
    (0..)
        .zip(&of.multipliers)
        .filter_map(|(round, value)| {
            Some(RoundValue {
                round,
                value: (*value)?,
            })
        })
        .collect()
}

/// The highest value, where it is reached first.
pub(super) fn highest(values: &[RoundValue]) -> Option<RoundValue> {
    values
        .iter()
        .copied()
        .reduce(|best, next| if next.value > best.value { next } else { best })
}

/// The lowest value, where it is reached first.
pub(super) fn lowest(values: &[RoundValue]) -> Option<RoundValue> {
    values
        .iter()
        .copied()
        .reduce(|best, next| if next.value < best.value { next } else { best })
}

/// The lowest cost inside the threshold after a round over it; the seed does not count.
pub(super) fn overshoot(costs: &[RoundValue], threshold: f64) -> Option<RoundValue> {
    let first_over = costs
        .iter()
        .find(|cost| cost.round > 0 && cost.value > threshold)?
        .round;
    let after: Vec<RoundValue> = costs
        .iter()
        .copied()
        .filter(|cost| cost.round > first_over && cost.value <= threshold)
        .collect();
    lowest(&after)
}

/// The first round after the peak in which the multiplier was lowest, when it fell to half of the
/// peak at least: slack let it go.
pub(super) fn release(multipliers: &[RoundValue]) -> Option<RoundValue> {
    let peak = highest(multipliers)?;
    let after: Vec<RoundValue> = multipliers
        .iter()
        .copied()
        .filter(|step| step.round > peak.round)
        .collect();
    lowest(&after).filter(|low| low.value <= peak.value / 2.0)
}

/// Rounds in which the leading prompt is feasible, of how many, and the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Feasible {
    pub(super) rounds: usize,
    pub(super) of: usize,
    pub(super) first: Option<ScreenRound>,
}

/// How often the leading prompt kept all thresholds, the seed's round included.
pub(super) fn feasible(series: &Series) -> Feasible {
    let is_feasible = |point: &&RoundPoint| point.leading.as_ref().is_some_and(|leading| leading.feasible);
    let kept: Vec<ScreenRound> = series
        .rounds
        .iter()
        .filter(is_feasible)
        .map(|point| point.round)
        .collect();
    Feasible {
        rounds: kept.len(),
        of: series.rounds.len(),
        first: kept.first().copied(),
    }
}

impl Feasible {
    /// "in 16 of 25 rounds, first in 6", "in all 25 rounds": what stands after the verdict.
    pub(super) fn words(self) -> String {
        let rounds = rounds(self.of);
        match self.first {
            None => format!("in all {rounds}"),
            Some(_) if self.rounds == self.of => format!("in all {rounds}"),
            Some(0) => format!("in {} of {rounds}, the seed's among them", self.rounds),
            Some(first) => format!("in {} of {rounds}, first in {first}", self.rounds),
        }
    }
}

/// Digits, since it stands beside other counts: "1 round", "25 rounds".
fn rounds(number: usize) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} round{plural}")
}

/// The remark beside a constraint's line: where, and what.
pub(super) fn remark(series: &Series, of: &ConstraintSeries) -> Option<(RoundValue, bool, String)> {
    let (costs, threshold) = (costs(series, of), of.threshold()?);
    let quantity = of.metric.quantity();
    if of.at_cap_since().is_some() {
        let lowest = lowest(&costs).filter(|lowest| lowest.value > threshold)?;
        let words = format!(
            "lowest {}, still {} over",
            quantity.against(lowest.value, threshold),
            quantity.distance(lowest.value - threshold)
        );
        return Some((lowest, true, words));
    }
    let deepest = overshoot(&costs, threshold)?;
    let words = format!(
        "overshoot, {} under",
        quantity.distance(threshold - deepest.value)
    );
    Some((deepest, false, words))
}

/// What one side shows, in a few sentences.
pub(super) fn reading(series: &Series, setting: &Setting) -> String {
    let mut sentences: Vec<String> = Vec::new();
    if series.rounds.len() < 2 {
        return "The search begins with the seed prompt.".to_owned();
    }
    if setting.step == DualStepName::Fixed {
        sentences.push(format!(
            "The multipliers stay at {} whatever is measured.",
            format::multiplier(setting.lambda_init.min(setting.lambda_max))
        ));
    }
    for of in &series.constraints {
        sentences.extend(story(series, of, setting));
    }
    if setting.noise > 0.0 {
        sentences.push(format!(
            "The dual step sees every cost with noise of {} added, so a multiplier may move against what is drawn.",
            format::decimals(setting.noise, 2)
        ));
    }
    sentences.extend(average(series));
    sentences.join(" ")
}

fn story(series: &Series, of: &ConstraintSeries, setting: &Setting) -> Option<String> {
    let threshold = of.threshold()?;
    let (costs, multipliers) = (costs(series, of), multipliers(of));
    let searched: Vec<RoundValue> = costs.iter().copied().filter(|cost| cost.round > 0).collect();
    let over = searched.iter().filter(|cost| cost.value > threshold).count();
    let (label, quantity) = (of.metric.label(), of.metric.quantity());
    let rounds = rounds(searched.len());
    let lowest = lowest(&searched)?;
    if setting.step == DualStepName::Fixed {
        return Some(match over {
            0 => format!("{label} is inside its threshold in every round."),
            over if over == searched.len() => {
                format!("{label} is over its threshold in every round, and no weight grows to push it back.")
            }
            over => format!(
                "{label} is over its threshold in {over} of {rounds}, and its weight does not answer."
            ),
        });
    }
    let peak = highest(&multipliers)?;
    if let Some(since) = of.at_cap_since() {
        let reach = if lowest.value > threshold {
            format!(
                "the lowest cost reached is {}, so the residual never changes sign and the multiplier climbs until \
                 the cap stops it in round {since}: the threshold is out of reach of this rewriter",
                quantity.against(lowest.value, threshold)
            )
        } else {
            format!("its multiplier has been at the cap since round {since}")
        };
        return Some(format!("{label}: {reach}."));
    }
    if over == 0 {
        let last = multipliers.last().map_or(0.0, |last| last.value);
        return Some(if last == 0.0 {
            format!("{label} stays inside its threshold, so its multiplier is let go to 0.")
        } else {
            format!(
                "{label} stays inside its threshold, and its multiplier falls to {}.",
                format::multiplier(last)
            )
        });
    }
    let peaks = format!(
        "{label} is over its threshold in {over} of {rounds}; its multiplier peaks at {} in round {}",
        format::multiplier(peak.value),
        peak.round
    );
    let overshoots = overshoot(&costs, threshold).map(|deepest| {
        format!(
            ", the cost overshoots to {} in round {}",
            quantity.value(deepest.value),
            deepest.round
        )
    });
    let lets_go = release(&multipliers).map(|low| {
        format!(
            ", and slack lets the multiplier down to {} by round {}",
            format::multiplier(low.value),
            low.round
        )
    });
    let tail = overshoots.into_iter().chain(lets_go).collect::<String>();
    Some(format!("{peaks}{tail}."))
}

/// The objective's mean over the rounds that have settled.
fn average(series: &Series) -> Option<String> {
    let settled: Vec<f64> = series
        .rounds
        .iter()
        .filter(|point| point.round >= SETTLED)
        .filter_map(|point| Some(point.leading.as_ref()?.objective.mean))
        .collect();
    if settled.is_empty() {
        return None;
    }
    let mean = settled.iter().sum::<f64>() / settled.len() as f64;
    Some(format!(
        "{} is {} on average from round {SETTLED} on.",
        series.objective.label(),
        series.objective.quantity().value(mean)
    ))
}
