//! One metric of several runs, round by round.

use std::sync::Arc;

use capo_core::reading::metrics::StudiedMetric;

use crate::charts::marks::verdict;
use crate::charts::overlay::{OverlayData, OverlayPoint, OverlayRun};
use crate::charts::unit::Unit;
use crate::format;
use crate::run::series::{RoundPoint, Series};
use crate::run::studied::Shown as _;

/// A run that is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    pub(super) id: String,
    /// What people call it.
    pub(super) name: String,
    /// What it measured.
    pub(super) series: Arc<Series>,
}

/// What a plot compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Metric {
    /// What the runs maximise.
    Objective,
    /// The constraint on this metric.
    Constraint(String),
}

/// The objective, then every constraint that any of the runs has, in the order of the first.
pub(super) fn metrics(runs: &[Compared]) -> Vec<Metric> {
    let mut metrics = vec![Metric::Objective];
    let constraints = runs.iter().flat_map(|run| &run.series.constraints);
    for of in constraints {
        let metric = Metric::Constraint(of.metric.name().to_owned());
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

impl Metric {
    /// What it is in a run, if that has it.
    fn of<'a>(&self, series: &'a Series) -> Option<&'a StudiedMetric> {
        match self {
            Self::Objective => Some(&series.objective),
            Self::Constraint(name) => series.constraint(name).map(|of| &of.metric),
        }
    }

    fn threshold(&self, series: &Series) -> Option<f64> {
        match self {
            Self::Objective => None,
            Self::Constraint(name) => series.constraint(name)?.threshold(),
        }
    }
}

/// What one plot shows, and what must be said beside it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Overlaid {
    /// The metric as a title.
    pub(super) title: String,
    pub(super) data: OverlayData,
    /// Thresholds that differ; empty when there is one or none.
    pub(super) note: String,
    /// The plot in a sentence or two.
    pub(super) reading: String,
}

/// A metric of all runs that have it.
pub(super) fn overlaid(runs: &[Compared], metric: &Metric) -> Overlaid {
    let Some(shown) = runs.iter().find_map(|run| metric.of(&run.series)) else {
        return Overlaid::default();
    };
    let is_same = |run: &&Compared| {
        metric
            .of(&run.series)
            .is_some_and(|other| other.name() == shown.name())
    };
    let (with, without): (Vec<&Compared>, Vec<&Compared>) = runs.iter().partition(is_same);
    let mut thresholds: Vec<f64> = with
        .iter()
        .filter_map(|run| metric.threshold(&run.series))
        .collect();
    thresholds.dedup();
    let data = OverlayData {
        metric: shown.phrase(),
        unit: Unit(shown.quantity()),
        axis: match metric {
            Metric::Objective => format!("{}, higher is better", shown.axis()),
            Metric::Constraint(_) => shown.axis(),
        },
        threshold: match thresholds[..] {
            [only] => Some(only),
            _ => None,
        },
        // A run without the metric keeps its place, and with it the colours of those after it.
        runs: runs
            .iter()
            .map(|run| OverlayRun {
                id: run.id.clone(),
                name: run.name.clone(),
                points: if is_same(&run) {
                    points(run, metric)
                } else {
                    Vec::new()
                },
            })
            .collect(),
    };
    let note = if thresholds.len() > 1 {
        let of_runs = with.iter().filter_map(|run| {
            let threshold = metric.threshold(&run.series)?;
            Some(format!("{} {}", run.name, shown.quantity().limit(threshold)))
        });
        let of_runs: Vec<String> = of_runs.collect();
        format!("thresholds differ: {}", of_runs.join(", "))
    } else {
        String::new()
    };
    Overlaid {
        title: shown.label(),
        reading: reading(&data, &without, metric),
        data,
        note,
    }
}

fn points(run: &Compared, metric: &Metric) -> Vec<OverlayPoint> {
    let point = |point: &RoundPoint| {
        let leading = point.leading.as_ref()?;
        Some(OverlayPoint {
            round: point.round,
            value: leading.estimate(metric.of(&run.series)?)?.mean,
            feasible: leading.feasible,
        })
    };
    run.series.rounds.iter().filter_map(point).collect()
}

/// Where each run ends, the objective's highest or the cost's lowest first.
fn reading(data: &OverlayData, without: &[&Compared], metric: &Metric) -> String {
    let mut ends: Vec<(&str, OverlayPoint)> = data
        .runs
        .iter()
        .filter_map(|run| Some((run.name.as_str(), *run.points.last()?)))
        .collect();
    ends.sort_by(|a, b| match metric {
        Metric::Objective => b.1.value.total_cmp(&a.1.value),
        Metric::Constraint(_) => a.1.value.total_cmp(&b.1.value),
    });
    let ends: Vec<String> = ends
        .iter()
        .map(|(name, end)| {
            let value = match data.threshold {
                Some(threshold) => data.unit.value_beside(end.value, threshold),
                None => data.unit.value(end.value),
            };
            format!("{name} {value} ({})", verdict(end.feasible))
        })
        .collect();
    let ends = match &ends[..] {
        [] => "Nothing is measured yet.".to_owned(),
        ends => format!("Best by J of the last round: {}.", ends.join(", ")),
    };
    let names: Vec<&str> = without.iter().map(|run| run.name.as_str()).collect();
    if names.is_empty() {
        return ends;
    }
    let verb = if names.len() == 1 { "does" } else { "do" };
    let what = match metric {
        Metric::Objective => "maximise this",
        Metric::Constraint(_) => "have this constraint",
    };
    format!("{ends} {} {verb} not {what}.", format::listed(&names))
}

#[cfg(test)]
mod tests {
    use capo_core::study::Study;

    use super::*;
    use crate::run::fixture;

    fn run(id: &str, change: impl Fn(&mut Study)) -> Compared {
        let state = fixture::fold(&fixture::events(change, None));
        Compared {
            id: id.into(),
            name: format!("Run {id}"),
            series: Arc::new(Series::new(&state).unwrap()),
        }
    }

    #[test]
    fn runs_share_a_threshold_or_say_that_they_do_not() {
        let strict = |study: &mut Study| study.constraints[0].threshold = Some(0.3);
        let runs = [run("a", |_| {}), run("b", |_| {}), run("c", strict)];
        let metric = Metric::Constraint("human_requests".into());
        let same = overlaid(&runs[..2], &metric);
        assert_eq!(same.data.threshold, Some(0.4));
        assert_eq!(same.note, "");
        assert_eq!(same.data.runs[0].points, same.data.runs[1].points);
        let differ = overlaid(&runs, &metric);
        assert_eq!(differ.data.threshold, None);
        assert_eq!(
            differ.note,
            "thresholds differ: Run a ≤ 40%, Run b ≤ 40%, Run c ≤ 30%"
        );
    }

    #[test]
    fn a_run_without_a_constraint_keeps_its_place() {
        let without = |study: &mut Study| study.constraints.retain(|one| one.metric != "excess_tools");
        let runs = [run("a", without), run("b", |_| {})];
        assert_eq!(metrics(&runs).len(), 4);
        let shown = overlaid(&runs, &Metric::Constraint("excess_tools".into()));
        assert_eq!(shown.data.runs.len(), 2);
        assert!(shown.data.runs[0].points.is_empty());
        assert!(shown.reading.ends_with("Run a does not have this constraint."));
    }
}
