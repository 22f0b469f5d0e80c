//! Runs compared on one metric by round: up to four as lines of one plot, from five on one plot each.

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, RoundAxis, ValueAxis},
    figure::TableData,
    labels::{Anchor, Label, Labels},
    marks::{FAINT, Mark, Marks, Shape, Weight, columns, verdict},
    measure::{Size, measured},
    roving::{Chart, Roving},
    scale::{Range, Rounds, Scales, round_name, round_title},
    series::{RoundValue, Segment, Segments},
    threshold::{Sides, ThresholdLine},
    unit::Unit,
};

/// The most runs that share one plot.
pub const MOST_IN_ONE_PLOT: usize = 4;
/// The least distance of two labels at the lines' ends in pixels.
const LABEL_LINE: f64 = 13.0;
/// The classes of the compared runs: each sets a colour and a dash.
pub(super) const VOICES: [&str; MOST_IN_ONE_PLOT] =
    ["c-series s1", "c-series s2", "c-series s3", "c-series s4"];

/// What an overlay shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverlayData {
    /// The metric's name, as "success".
    pub metric: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The title of the value axis with its unit.
    pub axis: String,
    /// The threshold that the runs share, for a cost.
    pub threshold: Option<f64>,
    /// The runs in the order of their colours.
    pub runs: Vec<OverlayRun>,
}

/// One run of an overlay.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlayRun {
    /// The run's id, which opening one of its points calls back with.
    pub id: String,
    /// Its name; at the end of its line stands its number, from 1.
    pub name: String,
    /// The best of each round, in order.
    pub points: Vec<OverlayPoint>,
}

/// The best of one round of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlayPoint {
    /// The round; 0 is the seed's.
    pub round: u32,
    /// Its value in the metric.
    pub value: f64,
    /// Whether its mark is a disc.
    pub feasible: bool,
}

/// One plot for up to four runs, otherwise one small plot for each run on the same axes.
#[component]
pub fn Overlay(
    /// What it shows.
    #[prop(into)]
    data: Signal<OverlayData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a run to open.
    #[prop(optional, into)]
    on_open: Option<Callback<String>>,
    /// The height of the shared plot, a CSS length.
    #[prop(default = "220px")]
    height: &'static str,
    /// The height of each of the small plots, a CSS length.
    #[prop(default = "110px")]
    small_height: &'static str,
) -> impl IntoView {
    let scales = Memo::new(move |_| data.with(scales));
    let keys = Signal::derive(move || data.with(|data| columns(&all_marks(data, scales.get()))));
    let roving = Roving::over(keys);
    let run_count = Memo::new(move |_| data.with(|data| data.runs.len()));
    let small = move |run: usize| {
        let name = move || data.with(|data| data.runs.get(run).map(|run| run.name.clone()));
        view! {
            <div class="multiple">
                <h3>{name}</h3>
                <Plot data=data scales=scales roving=roving only=Some(run) height=small_height />
            </div>
        }
    };
    let plots = move || {
        if run_count.get() <= MOST_IN_ONE_PLOT {
            view! { <Plot data=data scales=scales roving=roving only=None height=height /> }.into_any()
        } else {
            view! { <div class="multiples">{(0..run_count.get()).map(small).collect_view()}</div> }.into_any()
        }
    };
    view! {
        <Chart label=label roving=roving on_open=on_open>
            {plots}
        </Chart>
    }
}

/// A plot with all runs, or with one.
#[component]
fn Plot(
    data: Signal<OverlayData>,
    scales: Memo<Scales>,
    roving: Roving,
    only: Option<usize>,
    height: &'static str,
) -> impl IntoView {
    let node = NodeRef::<Div>::new();
    let size = measured(
        node,
        Size {
            width: 420.0,
            height: 200.0,
        },
    );
    let is_shown = move |run: usize| only.is_none_or(|only| only == run);
    let steps = Memo::new(move |_| data.with(threshold));
    let line = move |run: usize| {
        let segments = Memo::new(move |_| {
            data.with(|data| {
                data.runs
                    .get(run)
                    .map(|run| line(run, scales.get()))
                    .unwrap_or_default()
            })
        });
        // A plot of its own needs no colour to tell its run from others.
        let voice = if only.is_some() {
            "c-line"
        } else {
            VOICES[run % MOST_IN_ONE_PLOT]
        };
        view! { <Segments segments=segments class=voice /> }
    };
    let run_count = Memo::new(move |_| data.with(|data| data.runs.len()));
    let lines = move || {
        (0..run_count.get())
            .filter(|run| is_shown(*run))
            .map(line)
            .collect_view()
    };
    let marks = Memo::new(move |_| {
        let shown = |data: &OverlayData| {
            let runs = data.runs.iter().enumerate().filter(|(run, _)| is_shown(*run));
            runs.flat_map(|(_, run)| marks(data, run, scales.get()))
                .collect::<Vec<_>>()
        };
        data.with(shown)
    });
    let names = Memo::new(move |_| match only {
        Some(_) => Vec::new(),
        None => data.with(|data| end_labels(data, scales.get(), size.get())),
    });
    let rounds = Memo::new(move |_| scales.get().rounds);
    view! {
        <div
            class="plot last"
            class:numbered=only.is_none()
            class:ends=move || !steps.with(Vec::is_empty)
            node_ref=node style:--height=height>
            <svg>
                <g aria-hidden="true">
                    <Sides scales=scales steps=steps />
                    <ValueAxis
                        range=Signal::derive(move || scales.get().range)
                        unit=Signal::derive(move || data.with(|data| data.unit))
                        rules=data.with_untracked(|data| data.threshold.is_none())
                        title=Signal::derive(move || data.with(|data| data.axis.clone()))
                    />
                    <Frame />
                    <ThresholdLine
                        scales=scales
                        steps=steps
                        pending=Signal::stored(None)
                        unit=Signal::derive(move || data.with(|data| data.unit))
                    />
                    {lines}
                </g>
                <Marks marks=marks roving=roving />
                <g aria-hidden="true">
                    <Labels labels=names />
                </g>
                <RoundAxis rounds=rounds size=size />
            </svg>
        </div>
    }
}

/// The overlay's data as a table: rounds down, runs across.
pub fn overlay_table(data: &OverlayData) -> TableData {
    let headers = std::iter::once("Round".to_owned()).chain(data.runs.iter().map(|run| run.name.clone()));
    let cell = |run: &OverlayRun, round| {
        let point = run.points.iter().find(|point| point.round == round);
        point.map_or_else(
            || "–".to_owned(),
            |point| format!("{}, {}", data.unit.value(point.value), verdict(point.feasible)),
        )
    };
    let row = |round| {
        let cells = data.runs.iter().map(|run| cell(run, round));
        std::iter::once(round_name(round)).chain(cells).collect()
    };
    TableData {
        headers: headers.collect(),
        rows: (0..=last_round(data)).map(row).collect(),
        ..TableData::default()
    }
}

fn last_round(data: &OverlayData) -> u32 {
    data.runs
        .iter()
        .flat_map(|run| &run.points)
        .map(|point| point.round)
        .max()
        .unwrap_or(0)
}

fn scales(data: &OverlayData) -> Scales {
    let values = data
        .runs
        .iter()
        .flat_map(|run| &run.points)
        .map(|point| point.value);
    Scales {
        rounds: Rounds {
            last: last_round(data),
        },
        range: Range::around(values.chain(data.threshold), data.unit.natural_bounds()),
    }
}

fn threshold(data: &OverlayData) -> Vec<RoundValue> {
    data.threshold
        .map(|value| RoundValue { round: 0, value })
        .into_iter()
        .collect()
}

fn line(run: &OverlayRun, scales: Scales) -> Vec<Segment> {
    let leg = |pair: &[OverlayPoint]| Segment {
        key: pair[1].round.to_string(),
        from: scales.at(pair[0].round, pair[0].value),
        to: scales.at(pair[1].round, pair[1].value),
    };
    run.points.windows(2).map(leg).collect()
}

fn all_marks(data: &OverlayData, scales: Scales) -> Vec<Mark> {
    data.runs
        .iter()
        .flat_map(|run| marks(data, run, scales))
        .collect()
}

fn marks(data: &OverlayData, run: &OverlayRun, scales: Scales) -> Vec<Mark> {
    let mark = |point: &OverlayPoint| {
        let (x, y) = scales.at(point.round, point.value);
        let (round, value) = (round_title(point.round), data.unit.value(point.value));
        Mark {
            key: format!("{} {}", run.id, point.round),
            id: Some(run.id.clone()),
            column: point.round,
            x,
            y,
            shift: 0.0,
            shape: Shape::of(point.feasible),
            weight: Weight::Strong,
            radius: FAINT,
            ringed: false,
            sentence: format!(
                "{round}, {}: {} {value}, {}.",
                run.name,
                data.metric,
                verdict(point.feasible)
            ),
        }
    };
    run.points.iter().map(mark).collect()
}

/// The runs' numbers at their lines' ends.
fn end_labels(data: &OverlayData, scales: Scales, size: Size) -> Vec<Label> {
    let ends = data.runs.iter().zip(1..).filter_map(|(run, number): (_, usize)| {
        let last = run.points.last()?;
        let (x, y) = scales.at(last.round, last.value);
        Some((x, y, number))
    });
    let threshold = data.threshold.map(|value| scales.range.from_top(value));
    numbers_apart(ends, threshold, size)
}

/// Numbers at the ends of lines, moved apart where they would touch: none of them is dropped. Places of lines and of a
/// threshold are from 0 to 1, from the left and from the top.
pub(super) fn numbers_apart(
    ends: impl Iterator<Item = (f64, f64, usize)>,
    threshold: Option<f64>,
    size: Size,
) -> Vec<Label> {
    let mut ends: Vec<_> = ends
        .map(|(x, y, number)| (x, y * size.height, number.to_string()))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    // The threshold's two lines of text stand at the right end as well, and they do not move.
    let threshold = threshold.map(|threshold| threshold * size.height);
    let mut free = f64::NEG_INFINITY;
    let mut places: Vec<f64> = ends
        .iter()
        .map(|(_, end, _)| {
            let mut y = end.max(free);
            if let Some(threshold) = threshold.filter(|threshold| (y - threshold).abs() < 2.0 * LABEL_LINE) {
                y = y.max(threshold + 2.0 * LABEL_LINE);
            }
            free = y + LABEL_LINE;
            y
        })
        .collect();
    // Those that would come to lie over the axis below move up, and others before them.
    let mut lowest = size.height - LABEL_LINE / 2.0;
    for y in places.iter_mut().rev() {
        // By more than a rounding error.
        if *y > lowest + 1e-6 {
            *y = lowest;
            if let Some(threshold) = threshold.filter(|threshold| (*y - threshold).abs() < 2.0 * LABEL_LINE) {
                *y = (threshold - 2.0 * LABEL_LINE).min(lowest);
            }
        }
        lowest = *y - LABEL_LINE;
    }
    ends.into_iter()
        .zip(places)
        .map(|((x, end, text), y)| Label {
            class: "c-label name",
            x,
            y: end / size.height,
            dx: 8.0,
            dy: 4.0 + y - end,
            anchor: Anchor::Start,
            text,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data() -> OverlayData {
        let run = |id: &str, values: [f64; 2]| OverlayRun {
            id: id.to_owned(),
            name: format!("run {id}"),
            points: (0..)
                .zip(values)
                .map(|(round, value)| OverlayPoint {
                    round,
                    value,
                    feasible: false,
                })
                .collect(),
        };
        OverlayData {
            metric: "success".to_owned(),
            unit: Unit(Quantity::Rate),
            runs: vec![run("a", [0.4, 0.75]), run("b", [0.4, 0.752])],
            ..OverlayData::default()
        }
    }

    #[test]
    fn labels_at_the_ends_do_not_touch() {
        let data = data();
        let size = Size {
            width: 400.0,
            height: 200.0,
        };
        let labels = end_labels(&data, scales(&data), size);
        let baselines: Vec<_> = labels
            .iter()
            .map(|label| label.y * size.height + label.dy)
            .collect();
        assert_eq!(labels[0].text, "2");
        assert!(baselines[1] - baselines[0] >= LABEL_LINE - 1e-9);
        let data = OverlayData {
            threshold: Some(0.75),
            ..data
        };
        let threshold = scales(&data).range.from_top(0.75) * size.height;
        let labels = end_labels(&data, scales(&data), size);
        assert!(
            labels
                .iter()
                .all(|label| label.y * size.height + label.dy - threshold > LABEL_LINE)
        );
    }

    #[test]
    fn labels_stay_above_the_axis() {
        let data = OverlayData {
            runs: data()
                .runs
                .into_iter()
                .map(|mut run| {
                    run.points.reverse();
                    for (round, point) in (0..).zip(&mut run.points) {
                        point.round = round;
                    }
                    run
                })
                .collect(),
            ..data()
        };
        let size = Size {
            width: 400.0,
            height: 60.0,
        };
        let labels = end_labels(&data, scales(&data), size);
        assert!(
            labels
                .iter()
                .all(|label| label.y * size.height + label.dy < size.height)
        );
    }

    #[test]
    fn the_table_has_a_column_per_run() {
        let table = overlay_table(&data());
        assert_eq!(table.headers, ["Round", "run a", "run b"]);
        assert_eq!(table.rows[1][2], "75.2%, not feasible on search");
    }
}
