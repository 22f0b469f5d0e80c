//! Means of several groups by what was spent, each with a band from the lowest to the highest value of its group: up to
//! four groups in one plot, from five on one plot each.

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, ValueAxis, WidthAxis},
    figure::TableData,
    labels::Labels,
    measure::{Size, measured},
    overlay::{MOST_IN_ONE_PLOT, VOICES, numbers_apart},
    scale::Range,
    unit::Unit,
};
use crate::format::{self, Quantity};

/// What the chart shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BandsData {
    /// What values are counted in.
    pub unit: Unit,
    /// The title of the value axis with its unit.
    pub axis: String,
    /// The groups in the order of their colours.
    pub lines: Vec<BandLine>,
}

/// A group. Each of its values holds until the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BandLine {
    /// Its name; at the end of its line stands its number, from 1.
    pub name: String,
    /// Its values, in order.
    pub points: Vec<BandPoint>,
    /// The rollouts at which the last of them ends.
    pub end: f64,
}

/// What a group came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandPoint {
    /// After so many rollouts.
    pub rollouts: f64,
    /// The mean over the group.
    pub mean: f64,
    /// The lowest value.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many values there are.
    pub n: usize,
}

impl BandLine {
    /// What holds after so many rollouts; nothing beyond the line's ends.
    fn at(&self, rollouts: f64) -> Option<&BandPoint> {
        let before = self.points.iter().rev();
        let mut before = before.filter(|_| rollouts <= self.end);
        before.find(|point| point.rollouts <= rollouts)
    }

    /// The corners of its steps in a picture of side 1, left to right.
    fn corners(&self, (across, up): Axes, value: fn(&BandPoint) -> f64) -> Vec<(f64, f64)> {
        let ends = self.points.iter().skip(1).map(|point| point.rollouts);
        let steps = self.points.iter().zip(ends.chain([self.end]));
        let corners = steps.flat_map(|(point, end)| {
            [point.rollouts, end].map(|rollouts| (across.place(rollouts), up.from_top(value(point))))
        });
        corners.collect()
    }
}

impl BandsData {
    /// The same as a table: rollouts down, groups across.
    pub fn table(&self) -> TableData {
        let end = self.lines.iter().map(|line| line.end).fold(0.0, f64::max);
        let (across, _) = axes(self);
        let mut rows: Vec<f64> = across.ticks();
        rows.retain(|rollouts| *rollouts > 0.0 && *rollouts < end);
        rows.push(end);
        let cell = |line: &BandLine, rollouts: f64| match line.at(rollouts) {
            None => format::NOTHING.to_owned(),
            Some(point) if point.n == 1 => format!("{}, one seed", self.unit.value(point.mean)),
            Some(point) => {
                let [mean, low, high] =
                    [point.mean, point.low, point.high].map(|value| self.unit.value(value));
                format!("{mean}, {low} to {high}, {}", format::counted(point.n, "seed"))
            }
        };
        let row = |rollouts: f64| {
            let cells = self.lines.iter().map(|line| cell(line, rollouts));
            std::iter::once(format::count(rollouts as u64))
                .chain(cells)
                .collect()
        };
        TableData {
            headers: std::iter::once("Rollouts".to_owned())
                .chain(self.lines.iter().map(|line| line.name.clone()))
                .collect(),
            rows: rows.into_iter().map(row).collect(),
            ..TableData::default()
        }
    }
}

/// Rollouts across, values upwards.
type Axes = (Range, Range);

fn axes(data: &BandsData) -> Axes {
    let ends = data.lines.iter().map(|line| line.end);
    let points = data.lines.iter().flat_map(|line| &line.points);
    let values = points.flat_map(|point| [point.low, point.high]);
    (
        Range::around(ends.chain([0.0]), (0.0, f64::INFINITY)),
        Range::around(values, data.unit.natural_bounds()),
    )
}

fn points(corners: impl Iterator<Item = (f64, f64)>) -> String {
    let written = corners.map(|(x, y)| format!("{x:.4},{y:.4}"));
    written.collect::<Vec<_>>().join(" ")
}

/// The lines with their bands. One picture: the numbers stand in the table below.
#[component]
pub fn Bands(
    /// What it shows.
    #[prop(into)]
    data: Signal<BandsData>,
    /// Its reading in a sentence.
    #[prop(into)]
    label: Signal<String>,
) -> impl IntoView {
    let count = Memo::new(move |_| data.with(|data| data.lines.len()));
    let small = move |line: usize| {
        let name = move || data.with(|data| data.lines.get(line).map(|line| line.name.clone()));
        view! {
            <div class="multiple">
                <h3>{name}</h3>
                <Plot data only=Some(line) height="110px"/>
            </div>
        }
    };
    let plots = move || {
        if count.get() <= MOST_IN_ONE_PLOT {
            view! { <Plot data only=None height="260px"/> }.into_any()
        } else {
            view! { <div class="multiples">{(0..count.get()).map(small).collect_view()}</div> }.into_any()
        }
    };
    view! {
        <div class="chart" role="img" aria-label=move || label.get()>
            {plots}
        </div>
    }
}

/// A plot with all groups, or with one.
#[component]
fn Plot(data: Signal<BandsData>, only: Option<usize>, height: &'static str) -> impl IntoView {
    let node = NodeRef::<Div>::new();
    let before = Size {
        width: 420.0,
        height: 260.0,
    };
    let size = measured(node, before);
    let axes = Memo::new(move |_| data.with(axes));
    let shown = move |line: &usize| only.is_none_or(|only| only == *line);
    let shape = move |place: usize| {
        let of = move |value: fn(&BandPoint) -> f64| {
            let axes = axes.get();
            data.with(|data| {
                let line = data.lines.get(place);
                line.map_or_else(Vec::new, |line| line.corners(axes, value))
            })
        };
        let band = move || {
            let high = of(|point| point.high).into_iter();
            points(high.chain(of(|point| point.low).into_iter().rev()))
        };
        let line = move || points(of(|point| point.mean).into_iter());
        // A plot of its own needs no colour to tell its group from others.
        let (ground, voice) = match only {
            Some(_) => ("c-band".to_owned(), "c-line"),
            None => (format!("c-band s{}", place + 1), VOICES[place % MOST_IN_ONE_PLOT]),
        };
        view! {
            <polygon class=ground points=band/>
            <polyline class=voice points=line vector-effect="non-scaling-stroke"/>
        }
    };
    let count = Memo::new(move |_| data.with(|data| data.lines.len()));
    let shapes = move || (0..count.get()).filter(shown).map(shape).collect_view();
    let names = Memo::new(move |_| {
        let ((across, up), size) = (axes.get(), size.get());
        let place = |(line, number): (&BandLine, usize)| {
            let last = line.points.last()?;
            Some((across.place(line.end), up.from_top(last.mean), number))
        };
        data.with(|data| match only {
            Some(_) => Vec::new(),
            None => numbers_apart(data.lines.iter().zip(1..).filter_map(place), None, size),
        })
    });
    view! {
        <div
            class="plot last"
            class:numbered=only.is_none()
            node_ref=node
            style:--height=height
        >
            <svg aria-hidden="true">
                <ValueAxis
                    range=Signal::derive(move || axes.get().1)
                    unit=Signal::derive(move || data.with(|data| data.unit))
                    rules=true
                    title=Signal::derive(move || data.with(|data| data.axis.clone()))
                />
                <Frame/>
                <svg viewBox="0 0 1 1" preserveAspectRatio="none" width="100%" height="100%">
                    {shapes}
                </svg>
                <Labels labels=names/>
                <WidthAxis
                    range=Signal::derive(move || axes.get().0)
                    unit=Unit(Quantity::Many)
                    title=Signal::stored("rollouts".to_owned())
                />
            </svg>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_until_the_next_and_no_longer_than_their_line() {
        let point = |rollouts, mean, n| BandPoint {
            rollouts,
            mean,
            low: mean - 0.1,
            high: mean + 0.1,
            n,
        };
        let line = |name: &str, points, end| BandLine {
            name: name.to_owned(),
            points,
            end,
        };
        let data = BandsData {
            unit: Unit(Quantity::Rate),
            axis: String::new(),
            lines: vec![
                line("a", vec![point(40.0, 0.5, 2), point(60.0, 0.7, 2)], 100.0),
                line("b", vec![point(20.0, 0.6, 1)], 50.0),
            ],
        };
        let table = data.table();
        assert_eq!(table.headers, ["Rollouts", "a", "b"]);
        let of = |rollouts: &str| table.rows.iter().find(|row| row[0] == rollouts).unwrap();
        assert_eq!(
            of("40")[1..],
            ["50.0%, 40.0% to 60.0%, two seeds", "60.0%, one seed"]
        );
        assert_eq!(of("100")[1..], ["70.0%, 60.0% to 80.0%, two seeds", "–"]);
        let corners = data.lines[0].corners(axes(&data), |point| point.mean);
        assert_eq!(corners.len(), 4);
        assert!(corners[1].0 == corners[2].0 && corners[1].1 > corners[2].1);
    }
}
