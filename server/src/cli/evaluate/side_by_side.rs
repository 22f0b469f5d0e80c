//! Prompts side by side: what each measured, and by how much it differs from the first.

use capo_core::reading::comparison::{self, CONFIDENCE};
use capo_core::reading::metrics;
use capo_core::statistics::{Interval, PairedDifference};
use capo_core::table::Table;
use capo_core::workload::Split;
use indexmap::IndexMap;
use serde::Serialize;

use super::trials::Tried;
use super::{Scored, paid, scored, verdict};
use crate::cli::layout::{NOTHING, counted, fitted, number, signed, yes_no};
use crate::cli::report;

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct SideBySide<'a> {
    /// Of the intervals.
    confidence: f64,
    prompts: Vec<Beside<'a>>,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Beside<'a> {
    /// The prompt's file.
    prompt: &'a str,
    /// As `--model` names it; null where that was left out.
    model: Option<&'a str>,
    /// Where the mean of a metric would lie with other examples; none where they do not differ.
    intervals: IndexMap<String, Interval>,
    #[serde(flatten)]
    scored: Scored<'a>,
}

/// A prompt minus the first, by example.
#[derive(Serialize)]
struct Difference {
    /// Place among the prompts, from 1.
    prompt: usize,
    minus: usize,
    metrics: IndexMap<String, PairedDifference>,
    /// How many examples are not compared, since one of the two left them out.
    dropped: usize,
    /// Why metrics are missing, where others play the user or judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<String>,
}

pub(super) fn object<'a>(tried: &'a [Tried], objective: &str, split: Split) -> SideBySide<'a> {
    let beside = |one: &'a Tried| Beside {
        prompt: &one.name.file,
        model: one.name.model.as_deref(),
        intervals: intervals(one, split),
        scored: scored(one, objective, split),
    };
    SideBySide {
        confidence: CONFIDENCE,
        prompts: tried.iter().map(beside).collect(),
        differences: (1..=tried.len())
            .filter_map(|place| difference(tried, place, split))
            .collect(),
    }
}

fn intervals(one: &Tried, split: Split) -> IndexMap<String, Interval> {
    let Some(prompt) = one.prompt() else {
        return IndexMap::new();
    };
    let interval = |metric: metrics::StudiedMetric| {
        let interval = comparison::interval(prompt, &metric, split)?;
        Some((metric.spec.name, interval))
    };
    let metrics = metrics::of_study(prompt.state).into_iter();
    metrics.filter_map(interval).collect()
}

/// The prompt at a place, from 1, minus the first; `None` of the first itself, and where one was not measured.
fn difference(tried: &[Tried], place: usize, split: Split) -> Option<Difference> {
    let first = tried.first().filter(|_| place > 1)?;
    let one = tried.get(place - 1)?;
    let found = comparison::differences(one.prompt()?, first.prompt()?, split);
    let metrics = found.metrics.into_iter();
    Some(Difference {
        prompt: place,
        minus: 1,
        metrics: metrics
            .map(|found| (found.metric.spec.name, found.paired))
            .filter(|(metric, _)| one.others.measure_alike(&first.others, metric))
            .collect(),
        dropped: found.dropped,
        withheld: one.others.differ_from(&first.others),
    })
}

pub(super) fn table(tried: &[Tried], objective: &str, split: Split) -> String {
    let (mut text, mut withheld) = (String::new(), String::new());
    let mut grid = Table::new([
        "",
        "at most",
        "measured",
        "interval",
        "satisfied",
        "minus prompt 1",
    ]);
    for (place, one) in (1_usize..).zip(tried) {
        let id = one.evaluation.candidate.short();
        let n = one.evaluation.estimates.get(objective);
        text += &format!(
            "prompt {place}: {} ({id}), {}, {}",
            one.name,
            counted(n.map_or(0, |estimate| estimate.n as u64), "example"),
            verdict(&one.evaluation)
        );
        grid.row([format!("prompt {place}")]);
        let difference = difference(tried, place, split);
        if let Some(dropped) = difference.as_ref().map(|found| found.dropped)
            && dropped > 0
        {
            let dropped = counted(dropped as u64, "example");
            text += &format!(", minus prompt 1 without {dropped} that one of them left out");
        }
        text += "\n";
        if let Some(why) = difference.as_ref().and_then(|found| found.withheld.as_ref()) {
            withheld += &format!("prompt {place} minus prompt 1: {why}\n");
        }
        rows(&mut grid, one, objective, split, difference.as_ref());
    }
    text += &format!(
        "\nMeans, and differences by example, with {:.0} % intervals\n{}{}{withheld}\n",
        100.0 * CONFIDENCE,
        report::star(CONFIDENCE),
        fitted(&grid, 0),
    );
    for (place, one) in (1_usize..).zip(tried) {
        text += &report::failures(one.evaluation.failures.as_ref());
        // A journal that several share tells of all of them at the last.
        if tried[place..].iter().all(|later| later.journal != one.journal) {
            text += &paid(one);
        }
    }
    text
}

/// A row for the objective and each constraint.
fn rows(grid: &mut Table, one: &Tried, objective: &str, split: Split, difference: Option<&Difference>) {
    let intervals = intervals(one, split);
    let constraints = one.evaluation.limits.keys().map(String::as_str);
    for metric in std::iter::once(objective).chain(constraints) {
        let limit = one.evaluation.limits.get(metric);
        let mean = one.evaluation.estimates.get(metric).map(|estimate| estimate.mean);
        let verdict = limit.zip(mean).map(|(limit, mean)| limit.is_satisfied(mean));
        let found = difference.and_then(|difference| difference.metrics.get(metric));
        grid.row([
            format!("  {metric}"),
            limit.map_or_else(String::new, |limit| number(limit.threshold)),
            mean.map_or_else(|| NOTHING.to_owned(), number),
            report::interval(intervals.get(metric).copied(), number),
            verdict.map_or_else(String::new, yes_no),
            found.map_or_else(String::new, minus_first),
        ]);
    }
}

/// A difference with its interval and star, in one cell: they say nothing one without the other.
fn minus_first(found: &PairedDifference) -> String {
    let interval = report::interval(found.interval, signed);
    let star = if found.is_clear() { '*' } else { ' ' };
    format!("{} {interval:>16} {star}", signed(found.mean))
}
