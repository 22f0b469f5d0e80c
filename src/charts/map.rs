//! The map: every candidate's objective against its worst normalised residual, and the course from the
//! seed to the best prompt.

use std::collections::HashMap;

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, ValueAxis, WidthAxis},
    figure::TableData,
    labels::Labels,
    map_words::words,
    marks::{FAINT, Mark, Marks, STRONG, Shape, Weight, columns, verdict},
    measure::{Size, measured},
    roving::{Chart, Roving},
    scale::{Range, growing, round_name, round_title},
    series::{Segment, Segments},
    threshold::{upright_line, upright_sides},
    unit::{Unit, short, signed},
};
use crate::format::Quantity;

/// What the map shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapData {
    /// The objective's name, as "success".
    pub objective: String,
    /// What the objective is counted in.
    pub unit: Unit,
    /// The title of the objective's axis, as "success, %".
    pub axis: String,
    /// The candidates measured so far.
    pub points: Vec<MapPoint>,
    /// The ids of the best prompt's ancestors, from the seed to the best prompt itself.
    pub course: Vec<String>,
    /// What the end of the course is called, as "best so far" or "closest".
    pub best_name: String,
}

/// One candidate on the map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPoint {
    /// The candidate.
    pub id: String,
    /// The candidate it was rewritten from; none for the seed.
    pub parent: Option<String>,
    /// The round that wrote it; 0 for the seed.
    pub round: u32,
    /// Its objective.
    pub objective: f64,
    /// The greatest of its normalised residuals (cost − τ) / scale over all constraints.
    pub worst_residual: f64,
    /// Whether it keeps all thresholds.
    pub feasible: bool,
}

/// The horizontal and the vertical range of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranges {
    pub(super) residual: Range,
    objective: Range,
}

impl Ranges {
    pub(super) fn at(self, point: &MapPoint) -> (f64, f64) {
        (
            self.residual.place(point.worst_residual),
            self.objective.from_top(point.objective),
        )
    }
}

/// Objective against worst residual: left of zero every threshold holds. The axes only grow as
/// long as the component lives: mount another for another run.
#[component]
pub fn CandidateMap(
    /// What it shows.
    #[prop(into)]
    data: Signal<MapData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a candidate to open.
    #[prop(optional, into)]
    on_open: Option<Callback<String>>,
    /// The height of the plot, a CSS length.
    #[prop(default = "380px")]
    height: &'static str,
) -> impl IntoView {
    let plot = NodeRef::<Div>::new();
    let size = measured(
        plot,
        Size {
            width: 420.0,
            height: 380.0,
        },
    );

    let ranges = growing(data, |data| !data.points.is_empty(), ranges);
    let lineage = Memo::new(move |_| data.with(|data| lineage(data, ranges.get())));
    let course = Memo::new(move |_| data.with(|data| course(data, ranges.get())));
    let marks = Memo::new(move |_| data.with(|data| marks(data, ranges.get())));
    let words = Memo::new(move |_| data.with(|data| words(data, ranges.get(), size.get())));
    let roving = Roving::over(Signal::derive(move || marks.with(|marks| columns(marks))));
    let residual = Memo::new(move |_| ranges.get().residual);
    let zero = Memo::new(move |_| residual.get().place(0.0));
    let objective = Memo::new(move |_| ranges.get().objective);

    view! {
        <Chart label=label roving=roving on_open=on_open>
            <div class="plot last map" node_ref=plot style:--height=height>
                <svg>
                    <g aria-hidden="true">
                        {move || upright_sides(zero.get())} <Frame /> {move || upright_line(zero.get())}
                        <ValueAxis
                            range=objective
                            unit=Signal::derive(move || data.with(|data| data.unit))
                            title=Signal::derive(move || data.with(|data| data.axis.clone()))
                        />
                        <WidthAxis
                            range=residual
                            unit=Unit(Quantity::Ratio)
                            title=Signal::stored(
                                "how far over the worst limit, 0 = just inside".to_owned(),
                            )
                        /> <Segments segments=lineage class="c-lin" />
                        <Segments segments=course class="c-course" />
                    </g>
                    <Marks marks=marks roving=roving />
                    <g aria-hidden="true">
                        <Labels labels=words />
                    </g>
                </svg>
            </div>
        </Chart>
    }
}

/// The map's data as a table, one row per candidate.
pub fn map_table(data: &MapData) -> TableData {
    let mut table = TableData::with_headers(&[
        "Prompt",
        "Round",
        "Parent",
        &data.objective,
        "Worst residual",
        "Gate",
    ]);
    let row = |point: &MapPoint| {
        vec![
            short(&point.id),
            round_name(point.round),
            point.parent.as_deref().map_or_else(|| "–".to_owned(), short),
            data.unit.value(point.objective),
            signed(point.worst_residual, 2),
            verdict(point.feasible).to_owned(),
        ]
    };
    table.rows = data.points.iter().map(row).collect();
    table
}

/// Set by the seed's round and the zero line, then only grown.
fn ranges(data: &MapData, last: Option<Ranges>) -> Ranges {
    let unbounded = (f64::NEG_INFINITY, f64::INFINITY);
    let seeds = || data.points.iter().filter(|point| point.round == 0);
    let start = || Ranges {
        // Both sides of the zero line are there from the start.
        residual: Range::around(
            seeds().map(|point| point.worst_residual).chain([-0.2, 0.2]),
            unbounded,
        ),
        objective: Range::around(seeds().map(|point| point.objective), data.unit.natural_bounds()),
    };
    let from = last.unwrap_or_else(start);
    Ranges {
        residual: from
            .residual
            .grown(data.points.iter().map(|point| point.worst_residual)),
        objective: from
            .objective
            .grown(data.points.iter().map(|point| point.objective)),
    }
}

pub(super) fn by_id(data: &MapData) -> HashMap<&str, &MapPoint> {
    data.points
        .iter()
        .map(|point| (point.id.as_str(), point))
        .collect()
}

fn lineage(data: &MapData, ranges: Ranges) -> Vec<Segment> {
    let by_id = by_id(data);
    let hairline = |point: &MapPoint| {
        let parent = by_id.get(point.parent.as_deref()?)?;
        Some(Segment {
            key: point.id.clone(),
            from: ranges.at(parent),
            to: ranges.at(point),
        })
    };
    data.points.iter().filter_map(hairline).collect()
}

fn course(data: &MapData, ranges: Ranges) -> Vec<Segment> {
    let by_id = by_id(data);
    let leg = |pair: &[String]| {
        let (from, to) = (by_id.get(pair[0].as_str())?, by_id.get(pair[1].as_str())?);
        Some(Segment {
            key: pair[1].clone(),
            from: ranges.at(from),
            to: ranges.at(to),
        })
    };
    data.course.windows(2).filter_map(leg).collect()
}

fn marks(data: &MapData, ranges: Ranges) -> Vec<Mark> {
    let best = data.course.last();
    let mark = |point: &MapPoint| {
        let (x, y) = ranges.at(point);
        let is_on_course = data.course.contains(&point.id);
        let is_strong = is_on_course || point.feasible;
        Mark {
            key: point.id.clone(),
            id: Some(point.id.clone()),
            column: point.round,
            x,
            y,
            shift: 0.0,
            shape: Shape::of(point.feasible),
            weight: if is_strong { Weight::Strong } else { Weight::Faint },
            radius: if is_on_course { STRONG } else { FAINT + 0.3 },
            ringed: best == Some(&point.id),
            sentence: sentence(data, point),
        }
    };
    let mut marks: Vec<_> = data.points.iter().map(mark).collect();
    marks.sort_by_key(|mark| (mark.ringed, mark.weight == Weight::Strong));
    marks
}

fn sentence(data: &MapData, point: &MapPoint) -> String {
    let end = if data.course.last() == Some(&point.id) {
        format!(", {}", data.best_name)
    } else {
        String::new()
    };
    format!(
        "{}, {}: {} {}, worst residual {}, {}{end}.",
        round_title(point.round),
        short(&point.id),
        data.objective,
        data.unit.value(point.objective),
        signed(point.worst_residual, 2),
        verdict(point.feasible),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(id: &str, parent: Option<&str>, round: u32, objective: f64, worst_residual: f64) -> MapPoint {
        MapPoint {
            id: id.to_owned(),
            parent: parent.map(ToOwned::to_owned),
            round,
            objective,
            worst_residual,
            feasible: worst_residual <= 0.0,
        }
    }

    fn data() -> MapData {
        MapData {
            objective: "success".to_owned(),
            unit: Unit(Quantity::Rate),
            points: vec![
                point("f36b0b", None, 0, 0.446, 1.06),
                point("432e82", Some("f36b0b"), 1, 0.554, 1.12),
                point("c95e03", Some("432e82"), 4, 0.73, -0.02),
                point("b0f70d", Some("432e82"), 4, 0.6, 0.3),
            ],
            course: ["f36b0b", "432e82", "c95e03"].map(ToOwned::to_owned).into(),
            best_name: "best so far".to_owned(),
            ..MapData::default()
        }
    }

    #[test]
    fn the_course_is_strong_and_its_end_ringed() {
        let data = data();
        let ranges = ranges(&data, None);
        let marks = marks(&data, ranges);
        assert_eq!(
            marks.iter().filter(|mark| mark.weight == Weight::Strong).count(),
            3
        );
        assert_eq!(
            marks.last().map(|mark| (mark.key.as_str(), mark.ringed)),
            Some(("c95e03", true))
        );
        assert_eq!(lineage(&data, ranges).len(), 3);
        assert_eq!(course(&data, ranges).len(), 2);
    }

    #[test]
    fn seed_best_and_corners_are_labelled_and_never_the_others() {
        let data = data();
        let size = Size {
            width: 420.0,
            height: 380.0,
        };
        let texts: Vec<_> = words(&data, ranges(&data, None), size)
            .into_iter()
            .map(|label| label.text)
            .collect();
        assert_eq!(
            texts,
            ["seed", "best so far c95e03", "inside", "outside", "432e82"]
        );
    }

    #[test]
    fn the_seed_is_named_before_any_prompt_is_feasible() {
        let data = MapData {
            course: Vec::new(),
            ..data()
        };
        let size = Size {
            width: 420.0,
            height: 380.0,
        };
        let words = words(&data, ranges(&data, None), size);
        let texts: Vec<_> = words.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["seed", "inside", "outside"]);
    }

    #[test]
    fn both_sides_of_the_zero_line_are_always_there() {
        let data = MapData {
            points: vec![point("a", None, 0, 0.5, 1.4)],
            ..data()
        };
        let residual = ranges(&data, None).residual;
        assert!(residual.low < 0.0 && residual.high > 1.4);
    }
}
