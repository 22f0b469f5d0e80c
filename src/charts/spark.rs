//! The objective by round in one row of a table.

use leptos::prelude::*;

use super::{
    marks::{Picture, verdict},
    scale::round_name,
    series::{Segment, Segments},
    unit::Unit,
};

/// What a spark line shows. All rows of one table share low and high, which its header names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparkData {
    /// The objective's name, as "success".
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The rounds in order.
    pub points: Vec<SparkPoint>,
    /// The value at the lower edge.
    pub low: f64,
    /// The value at the upper edge, above low.
    pub high: f64,
}

/// The best of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparkPoint {
    /// The round; 0 is the seed's.
    pub round: u32,
    /// Its objective.
    pub value: f64,
    /// Whether its mark is a disc.
    pub feasible: bool,
}

/// A line with its marks, without axes. One picture: the numbers stand in the table around it.
#[component]
pub fn Spark(
    /// What it shows.
    #[prop(into)]
    data: Signal<SparkData>,
) -> impl IntoView {
    let segments = Memo::new(move |_| data.with(segments));
    let marks = move || {
        let data = data.get();
        let mark = |point: &SparkPoint| {
            let (x, y) = place(&data, point);
            view! { <Picture x=x y=y feasible=point.feasible radius=2.7 /> }
        };
        data.points.iter().map(mark).collect_view()
    };
    view! {
        <div class="mini spark">
            <svg role="img" aria-label=move || data.with(sentence)>
                <Segments segments=segments class="c-line" />
                {marks}
            </svg>
        </div>
    }
}

fn place(data: &SparkData, point: &SparkPoint) -> (f64, f64) {
    let last = data.points.last().map_or(1, |last| last.round.max(1));
    let span = data.high - data.low;
    let y = if span > 0.0 {
        1.0 - (point.value - data.low) / span
    } else {
        0.5
    };
    (f64::from(point.round) / f64::from(last), y.clamp(0.0, 1.0))
}

fn segments(data: &SparkData) -> Vec<Segment> {
    data.points
        .windows(2)
        .map(|pair| Segment {
            key: pair[1].round.to_string(),
            from: place(data, &pair[0]),
            to: place(data, &pair[1]),
        })
        .collect()
}

fn sentence(data: &SparkData) -> String {
    let (Some(first), Some(last)) = (data.points.first(), data.points.last()) else {
        return format!("{}: no round closed yet", data.name);
    };
    format!(
        "{} by round: {} at {}, {} in round {}, {}",
        data.name,
        data.unit.value(first.value),
        round_name(first.round),
        data.unit.value(last.value),
        round_name(last.round),
        verdict(last.feasible)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    #[test]
    fn a_spark_line_fills_its_row() {
        let point = |round, value| SparkPoint {
            round,
            value,
            feasible: round > 3,
        };
        let data = SparkData {
            name: "success".to_owned(),
            unit: Unit(Quantity::Rate),
            points: vec![point(0, 0.446), point(4, 0.73), point(6, 0.757)],
            low: 0.35,
            high: 0.9,
        };
        let segments = segments(&data);
        assert_eq!((segments[0].from.0, segments[1].to.0), (0.0, 1.0));
        assert_eq!(
            sentence(&data),
            "success by round: 44.6% at seed, 75.7% in round 6, feasible on search"
        );
    }
}
