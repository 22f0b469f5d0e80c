//! The constraint strip: a cost by round against its threshold above, the multiplier that answers it
//! below, over one axis of rounds. Cause and answer are read together.

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, NowLine, ValueAxis},
    figure::TableData,
    labels::{Anchor, Label, Labels, Space, Wanted, arranged},
    marks::{Mark, Marks, Weight, columns, verdict},
    measure::{Size, measured},
    multiplier::MultiplierPlot,
    roving::{Chart, Roving},
    scale::{Range, Rounds, Scales, round_name, round_title},
    series::{
        Candidate, Leading, RoundValue, Segments, error_bars, in_force, leading_marks, line, other_marks,
    },
    threshold::{Sides, ThresholdLine},
    unit::{Unit, fixed, short},
};

/// What a constraint strip shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripData {
    /// The cost's name, as "human requests".
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The title of the value axis, as "% of dialogues".
    pub axis: String,
    /// The last round planned; the axis of rounds ends there from the start.
    pub last_round: u32,
    /// The last closed round of a run that goes on; none when it is over.
    pub now: Option<u32>,
    /// The threshold τ: its first value at round 0, and one more for each change by hand.
    pub threshold: Vec<RoundValue>,
    /// A threshold set by hand that waits for its round.
    pub pending_threshold: Option<RoundValue>,
    /// The best of each closed round by *J*, ordered by round.
    pub leading: Vec<Leading>,
    /// All other candidates measured.
    pub others: Vec<Candidate>,
    /// The multiplier that each round used, ordered by round.
    pub multiplier: Vec<RoundValue>,
    /// A multiplier set by hand that waits for its round.
    pub pending_multiplier: Option<RoundValue>,
    /// The multiplier's cap, positive.
    pub cap: f64,
    /// Values that the value axis holds too, for strips that are compared side by side.
    pub also_in_range: Vec<f64>,
    /// A remark beside the line.
    pub remark: Option<Remark>,
}

/// A few words beside the line, above it on land and below it on water.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// Where the words stand.
    pub at: RoundValue,
    /// Whether they stand above the place or below it.
    pub is_above: bool,
    /// The words, as "overshoot, 0.24 under".
    pub text: String,
}

/// The strip's two plots as one chart.
#[component]
pub fn ConstraintStrip(
    /// What it shows.
    #[prop(into)]
    data: Signal<StripData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a candidate to open.
    #[prop(optional, into)]
    on_open: Option<Callback<String>>,
    /// The height of the upper plot, a CSS length.
    #[prop(default = "186px")]
    height: &'static str,
    /// The height of the lower plot, a CSS length.
    #[prop(default = "68px")]
    multiplier_height: &'static str,
) -> impl IntoView {
    let (upper, lower) = (NodeRef::<Div>::new(), NodeRef::<Div>::new());
    let size = measured(
        upper,
        Size {
            width: 280.0,
            height: 186.0,
        },
    );
    let lower_size = measured(
        lower,
        Size {
            width: 280.0,
            height: 68.0,
        },
    );

    let rounds = Memo::new(move |_| Rounds {
        last: data.with(|data| data.last_round),
    });
    let range = Memo::new(move |last: Option<&Range>| data.with(|data| range(data, last.copied())));
    let scales = Memo::new(move |_| Scales {
        rounds: rounds.get(),
        range: range.get(),
    });
    let steps = Memo::new(move |_| data.with(|data| data.threshold.clone()));
    let unit = Memo::new(move |_| data.with(|data| data.unit));
    let now = Memo::new(move |_| data.with(|data| data.now));
    let best_line = Memo::new(move |_| data.with(|data| line(&data.leading, scales.get())));
    let errors = Memo::new(move |_| data.with(|data| error_bars(&data.leading, scales.get())));
    let marks = Memo::new(move |_| data.with(|data| marks(data, scales.get(), size.get())));
    let faint = Memo::new(move |_| marks.with(|marks| of_weight(marks, Weight::Faint)));
    let strong = Memo::new(move |_| marks.with(|marks| of_weight(marks, Weight::Strong)));
    let words = Memo::new(move |_| {
        data.with(|data| marks.with(|marks| words(data, marks, scales.get(), size.get())))
    });
    let roving = Roving::over(Signal::derive(move || marks.with(|marks| columns(marks))));

    view! {
        <Chart label=label roving=roving on_open=on_open>
            <div class="plot ends" node_ref=upper style:--height=height>
                <svg>
                    <g aria-hidden="true">
                        <Sides scales=scales steps=steps />
                        <ValueAxis
                            range=range
                            unit=unit
                            title=Signal::derive(move || data.with(|data| data.axis.clone()))
                        />
                        <Frame />
                        <ThresholdLine
                            scales=scales
                            steps=steps
                            pending=Signal::derive(move || data.with(|data| data.pending_threshold))
                            unit=unit
                        />
                    </g>
                    <Marks marks=faint roving=roving />
                    <g aria-hidden="true">
                        <Segments segments=best_line class="c-line" />
                        <Segments segments=errors class="c-se" />
                    </g>
                    <Marks marks=strong roving=roving />
                    <g aria-hidden="true">
                        <Labels labels=words />
                        <NowLine rounds=rounds now=now />
                    </g>
                </svg>
            </div>
            <div class="plot last ends" node_ref=lower style:--height=multiplier_height>
                <MultiplierPlot
                    rounds=rounds
                    used=Signal::derive(move || data.with(|data| data.multiplier.clone()))
                    cap=Signal::derive(move || data.with(|data| data.cap))
                    pending=Signal::derive(move || data.with(|data| data.pending_multiplier))
                    now=now
                    size=lower_size
                />
            </div>
        </Chart>
    }
}

/// The strip's data as a table, one row per closed round.
pub fn strip_table(data: &StripData) -> TableData {
    let mut table = TableData::with_headers(&[
        "Round",
        "Best by J",
        &data.name,
        "SE",
        "Threshold",
        "Gate",
        "λ used",
    ]);
    table.rows = data.leading.iter().map(|point| table_row(data, point)).collect();
    table
}

fn table_row(data: &StripData, point: &Leading) -> Vec<String> {
    let dash = || "–".to_owned();
    let threshold = in_force(&data.threshold, point.round);
    let value = threshold.map_or_else(
        || data.unit.value(point.value),
        |threshold| data.unit.value_beside(point.value, threshold),
    );
    vec![
        round_name(point.round),
        point.id.as_deref().map_or_else(dash, short),
        value,
        point.error.map_or_else(dash, |error| data.unit.error(error)),
        threshold.map_or_else(dash, |threshold| data.unit.threshold(threshold)),
        verdict(point.feasible).to_owned(),
        used_in(data, point.round).map_or_else(dash, |used| fixed(used, 2)),
    ]
}

/// The range of the cost axis: set by the first round and the threshold, then only grown.
fn range(data: &StripData, last: Option<Range>) -> Range {
    let reach = |point: &Leading| {
        let error = point.error.unwrap_or(0.0);
        [point.value - error, point.value + error]
    };
    let first_round = data
        .leading
        .iter()
        .filter(|point| point.round == 0)
        .flat_map(reach);
    let first_threshold = data.threshold.first().map(|step| step.value);
    let first = first_round
        .chain(first_threshold)
        .chain(data.also_in_range.iter().copied());
    let start = || Range::around(first, data.unit.natural_bounds());
    let later = data.leading.iter().map(|point| (point.round, point.value));
    let later = later.chain(data.others.iter().map(|point| (point.round, point.value)));
    let later = later.chain(data.threshold.iter().map(|step| (step.round, step.value)));
    let later = later.chain(data.pending_threshold.map(|step| (step.round, step.value)));
    let later = later.chain(data.also_in_range.iter().map(|value| (0, *value)));
    grown_by_round(last.unwrap_or_else(start), later)
}

/// Grown round by round, so that a journal read at once gives the axis that the live run had.
pub(super) fn grown_by_round(range: Range, values: impl Iterator<Item = (u32, f64)>) -> Range {
    let mut values: Vec<_> = values.collect();
    values.sort_by_key(|(round, _)| *round);
    values.chunk_by(|a, b| a.0 == b.0).fold(range, |range, round| {
        range.grown(round.iter().map(|(_, value)| *value))
    })
}

pub(super) fn of_weight(marks: &[Mark], weight: Weight) -> Vec<Mark> {
    marks
        .iter()
        .filter(|mark| mark.weight == weight)
        .cloned()
        .collect()
}

fn marks(data: &StripData, scales: Scales, size: Size) -> Vec<Mark> {
    let mut marks = other_marks(&data.others, scales, size, |point| {
        let place = against_threshold(data, point.round, point.value, None);
        format!(
            "{}, {}: {} {place}, {}.",
            round_title(point.round),
            short(&point.id),
            data.name,
            verdict(point.feasible)
        )
    });
    marks.extend(leading_marks(&data.leading, scales, size, |point| {
        leading_sentence(data, point)
    }));
    marks
}

fn leading_sentence(data: &StripData, point: &Leading) -> String {
    let who = point.id.as_deref().map_or_else(
        || "mean of the best".to_owned(),
        |id| format!("best {}", short(id)),
    );
    let place = against_threshold(data, point.round, point.value, point.error);
    let used = used_in(data, point.round)
        .map(|used| {
            let at_cap = if used >= data.cap { ", at cap" } else { "" };
            format!("; multiplier used {}{at_cap}", fixed(used, 2))
        })
        .unwrap_or_default();
    let (round, verdict) = (round_title(point.round), verdict(point.feasible));
    format!("{round}, {who}: {} {place}, {verdict}{used}.", data.name)
}

/// A value, its error, and where it stands against the threshold of its round.
fn against_threshold(data: &StripData, round: u32, value: f64, error: Option<f64>) -> String {
    let with_error = error
        .map(|error| format!(" {}", data.unit.error(error)))
        .unwrap_or_default();
    let Some(threshold) = in_force(&data.threshold, round) else {
        return format!("{}{with_error}", data.unit.value(value));
    };
    let distance = data.unit.distance(threshold - value);
    let side = if value <= threshold {
        format!("slack {distance}")
    } else {
        format!("over by {distance}")
    };
    let near = if error.is_some_and(|error| error > 0.0 && (threshold - value).abs() <= error) {
        ", within 1 SE of the threshold"
    } else {
        ""
    };
    format!(
        "{}{with_error}, {side}{near}",
        data.unit.value_beside(value, threshold)
    )
}

fn used_in(data: &StripData, round: u32) -> Option<f64> {
    data.multiplier
        .iter()
        .find(|step| step.round == round)
        .map(|step| step.value)
}

/// The remark and the name of the feasible side, where marks leave room for them.
fn words(data: &StripData, marks: &[Mark], scales: Scales, size: Size) -> Vec<Label> {
    let taken = marks.iter().map(|mark| {
        let Space(left, top, right, bottom) = Space::of_mark(mark.x, mark.y, mark.radius, size);
        Space(left + mark.shift, top, right + mark.shift, bottom)
    });
    let remark = data.remark.as_ref().map(|remark| {
        let (x, y) = scales.at(remark.at.round, remark.at.value);
        let place = |dx, anchor| Label {
            class: if remark.is_above {
                "c-label on-land"
            } else {
                "c-label on-water"
            },
            x,
            y,
            dx,
            dy: if remark.is_above { -22.0 } else { 22.0 },
            anchor,
            text: remark.text.clone(),
        };
        let places = vec![
            place(0.0, Anchor::Middle),
            place(10.0, Anchor::End),
            place(-10.0, Anchor::Start),
        ];
        Wanted { places, stays: false }
    });
    let threshold_end = data
        .threshold
        .last()
        .map(|step| scales.range.from_top(step.value));
    let water = threshold_end.map_or(0.0, |y| (1.0 - y) * size.height);
    let side = (water >= 20.0).then(|| {
        let place = |x, dx, anchor| Label {
            class: "c-label c-side f on-water",
            x,
            y: 1.0,
            dx,
            dy: -6.0,
            anchor,
            text: "feasible side".to_owned(),
        };
        Wanted {
            places: vec![place(1.0, -5.0, Anchor::End), place(0.0, 5.0, Anchor::Start)],
            stays: false,
        }
    });
    arranged(remark.into_iter().chain(side).collect(), taken.collect(), size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data() -> StripData {
        StripData {
            name: "human requests".to_owned(),
            unit: Unit(Quantity::Rate),
            last_round: 6,
            threshold: vec![RoundValue {
                round: 0,
                value: 0.35,
            }],
            leading: vec![
                Leading {
                    round: 0,
                    id: Some("f36b0b11".into()),
                    value: 0.757,
                    error: Some(0.05),
                    feasible: false,
                },
                Leading {
                    round: 1,
                    id: None,
                    value: 0.324,
                    error: Some(0.061),
                    feasible: true,
                },
            ],
            multiplier: vec![RoundValue {
                round: 1,
                value: 10.0,
            }],
            cap: 10.0,
            ..StripData::default()
        }
    }

    #[test]
    fn a_point_is_a_full_sentence() {
        let data = data();
        assert_eq!(
            leading_sentence(&data, &data.leading[0]),
            "Seed round, best f36b0b: human requests 75.7% ± 5.0, over by 40.7 pts, not feasible."
        );
        assert_eq!(
            leading_sentence(&data, &data.leading[1]),
            "Round 1, mean of the best: human requests 32.4% ± 6.1, slack 2.6 pts, within 1 SE of the \
             threshold, feasible; multiplier used 10.00, at cap."
        );
    }

    #[test]
    fn the_range_holds_the_first_round_and_the_threshold_then_grows() {
        let mut data = data();
        let first = range(&data, None);
        assert!(first.low < 0.35 && first.high > 0.8);
        data.others.push(Candidate {
            id: "a".into(),
            round: 1,
            value: 0.99,
            feasible: false,
        });
        let grown = range(&data, Some(first));
        assert!(grown.high >= 0.99 && grown.low <= first.low);
        data.others.clear();
        assert_eq!(range(&data, Some(grown)), grown);
    }

    #[test]
    fn the_table_has_a_row_per_closed_round() {
        let table = strip_table(&data());
        assert_eq!(
            table.rows[0],
            ["seed", "f36b0b", "75.7%", "± 5.0", "≤ 35%", "not feasible", "–"]
        );
        assert!(table.rows.iter().all(|row| row.len() == table.headers.len()));
    }
}
