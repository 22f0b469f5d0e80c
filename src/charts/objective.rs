//! The objective by round, higher is better, and below it what the pool held after each round.

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, NowLine, RoundAxis, ValueAxis},
    figure::TableData,
    keyed::keyed,
    labels::{Anchor, Label, Labels},
    marks::{Mark, Marks, Shape, Weight, class, columns, of_weight, outline, verdict},
    measure::{Size, measured},
    roving::{Chart, Roving},
    scale::{Range, Rounds, Scales, growing, percent, round_name, round_title},
    series::{
        self, Candidate, Leading, RoundValue, Segment, Segments, error_bars, leading_marks, line, other_marks,
    },
    unit::{Unit, short},
};

/// What the objective's chart shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectiveData {
    /// The objective's name, as "success".
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The title of the value axis, as "% of examples, higher is better".
    pub axis: String,
    /// The last round planned; the axis of rounds ends there from the start.
    pub last_round: u32,
    /// The last closed round of a run that goes on; none when it is over.
    pub now: Option<u32>,
    /// The best of each closed round by *J*, ordered by round.
    pub leading: Vec<Leading>,
    /// All other candidates measured.
    pub others: Vec<Candidate>,
    /// The objective of the best feasible prompt so far: one entry for each round that raised it.
    pub best_feasible: Vec<RoundValue>,
    /// What the pool held after each closed round; empty when the chart is drawn without it.
    pub pool: Vec<PoolColumn>,
    /// Values that the value axis is drawn around, for charts that are compared side by side: all
    /// that either of them draws. Empty when it stands alone.
    pub also_in_range: Vec<f64>,
}

/// The pool after a round.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolColumn {
    /// The round.
    pub round: u32,
    /// For each place taken, whether its prompt is feasible; feasible ones first.
    pub places: Vec<bool>,
}

/// The objective and, when the data has it, the pool. The value axis only grows as long as the component
/// lives: mount another for another run.
#[component]
pub fn ObjectiveChart(
    /// What it shows.
    #[prop(into)]
    data: Signal<ObjectiveData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a candidate to open.
    #[prop(optional, into)]
    on_open: Option<Callback<String>>,
    /// The height of the upper plot, a CSS length.
    #[prop(default = "186px")]
    height: &'static str,
    /// The height of the pool's plot, a CSS length.
    #[prop(default = "68px")]
    pool_height: &'static str,
) -> impl IntoView {
    let upper = NodeRef::<Div>::new();
    let size = measured(
        upper,
        Size {
            width: 280.0,
            height: 186.0,
        },
    );

    let rounds = Memo::new(move |_| Rounds {
        last: data.with(|data| data.last_round),
    });
    let range = growing(data, |data| !data.leading.is_empty(), range);
    let scales = Memo::new(move |_| Scales {
        rounds: rounds.get(),
        range: range.get(),
    });
    let now = Memo::new(move |_| data.with(|data| data.now));
    let best_line = Memo::new(move |_| data.with(|data| line(&data.leading, scales.get())));
    let errors = Memo::new(move |_| data.with(|data| error_bars(&data.leading, scales.get())));
    let best = Memo::new(move |_| data.with(|data| best_feasible(&data.best_feasible, scales.get())));
    let words = Memo::new(move |_| data.with(|data| best_words(data, scales.get())));
    let marks = Memo::new(move |_| data.with(|data| marks(data, scales.get(), size.get())));
    let faint = Memo::new(move |_| marks.with(|marks| of_weight(marks, Weight::Faint)));
    let strong = Memo::new(move |_| marks.with(|marks| of_weight(marks, Weight::Strong)));
    let pool = Memo::new(move |_| data.with(|data| pool_marks(&data.pool, rounds.get())));
    let has_pool = Memo::new(move |_| data.with(|data| !data.pool.is_empty()));
    let roving = Roving::over(Signal::derive(move || marks.with(|marks| columns(marks))));

    view! {
        <Chart label=label roving=roving on_open=on_open>
            <div class="plot ends" class:last=move || !has_pool.get() node_ref=upper style:--height=height>
                <svg>
                    <g aria-hidden="true">
                        <ValueAxis
                            range=range
                            unit=Signal::derive(move || data.with(|data| data.unit))
                            rules=true
                            title=Signal::derive(move || data.with(|data| data.axis.clone()))
                        />
                        <Frame />
                    </g>
                    <Marks marks=faint roving=roving />
                    <g aria-hidden="true">
                        <Segments segments=best class="c-best" />
                        <Segments segments=best_line class="c-line" />
                        <Segments segments=errors class="c-se" />
                    </g>
                    <Marks marks=strong roving=roving />
                    <g aria-hidden="true">
                        <Labels labels=words />
                        <NowLine rounds=rounds now=now />
                    </g>
                    <Show when=move || !has_pool.get()>
                        <RoundAxis rounds=rounds size=size />
                    </Show>
                </svg>
            </div>
            <Show when=move || has_pool.get()>
                <div class="plot last ends" style:--height=pool_height>
                    <PoolPlot marks=pool rounds=rounds now=now size=size />
                </div>
            </Show>
        </Chart>
    }
}

/// One column per round with a mark for each pool place. The counts are part of each round's sentence,
/// so the marks themselves are only seen.
#[component]
fn PoolPlot(
    #[prop(into)] marks: Signal<Vec<Mark>>,
    #[prop(into)] rounds: Signal<Rounds>,
    #[prop(into)] now: Signal<Option<u32>>,
    size: Signal<Size>,
) -> impl IntoView {
    let places = keyed(
        marks,
        |mark| mark.key.clone(),
        |mark| {
            view! {
                <svg
                    x=move || percent(mark.with(|mark| mark.x))
                    y=move || percent(mark.with(|mark| mark.y))
                    overflow="visible"
                >
                    <path
                        class=move || mark.with(|mark| class(mark.shape, mark.weight))
                        d=move || mark.with(|mark| outline(mark.shape, mark.radius, 0.0))
                    />
                </svg>
            }
        },
    );
    view! {
        <svg aria-hidden="true">
            {places} <text class="c-tick" x="100%" y="50%" dx="6" dy="-9">
                "feasible"
            </text> <text class="c-tick" x="100%" y="50%" dx="6" dy="4">
                "on search,"
            </text> <text class="c-tick" x="100%" y="50%" dx="6" dy="17">
                "in pool"
            </text> <line class="c-frame" x1="0%" x2="100%" y1="100%" y2="100%" />
            <NowLine rounds=rounds now=now above=20 /> <RoundAxis rounds=rounds size=size />
        </svg>
    }
}

/// The objective's data as a table, one row per closed round.
pub fn objective_table(data: &ObjectiveData) -> TableData {
    let mut table = TableData::with_headers(&[
        "Round",
        "Best by J",
        &data.name,
        "SE",
        "Gate",
        "Feasible on search in pool",
    ]);
    let dash = || "–".to_owned();
    let row = |point: &Leading| {
        vec![
            round_name(point.round),
            point.id.as_deref().map_or_else(dash, short),
            data.unit.value(point.value),
            point.error.map_or_else(dash, |error| data.unit.error(error)),
            verdict(point.feasible).to_owned(),
            pool_count(&data.pool, point.round)
                .map_or_else(dash, |(feasible, all)| format!("{feasible} of {all}")),
        ]
    };
    table.rows = data.leading.iter().map(row).collect();
    table
}

/// The range of the objective's axis: set by the first round, then only grown.
fn range(data: &ObjectiveData, last: Option<Range>) -> Range {
    let ObjectiveData { leading, others, .. } = data;
    let (also, bounds) = (&data.also_in_range, data.unit.natural_bounds());
    series::range(leading, others, std::iter::empty(), also, bounds, last)
}

fn marks(data: &ObjectiveData, scales: Scales, size: Size) -> Vec<Mark> {
    let mut marks = other_marks(&data.others, scales, size, |point| {
        let (round, value) = (round_title(point.round), data.unit.value(point.value));
        format!(
            "{round}, {}: {} {value}, {}.",
            short(&point.id),
            data.name,
            verdict(point.feasible)
        )
    });
    marks.extend(leading_marks(&data.leading, scales, size, |point| {
        sentence(data, point)
    }));
    marks
}

fn sentence(data: &ObjectiveData, point: &Leading) -> String {
    let who = point.id.as_deref().map_or_else(
        || "mean of the best".to_owned(),
        |id| format!("best {}", short(id)),
    );
    let error = point
        .error
        .map(|error| format!(" {}", data.unit.error(error)))
        .unwrap_or_default();
    let pool = pool_count(&data.pool, point.round)
        .map(|(feasible, all)| format!("; {feasible} of {all} in the pool feasible there"))
        .unwrap_or_default();
    let (round, value) = (round_title(point.round), data.unit.value(point.value));
    format!(
        "{round}, {who}: {} {value}{error}, {}{pool}.",
        data.name,
        verdict(point.feasible)
    )
}

fn pool_count(pool: &[PoolColumn], round: u32) -> Option<(usize, usize)> {
    let column = pool.iter().find(|column| column.round == round)?;
    Some((
        column.places.iter().filter(|feasible| **feasible).count(),
        column.places.len(),
    ))
}

/// The best feasible so far as steps from the middle of its round to the end of the plot.
fn best_feasible(steps: &[RoundValue], scales: Scales) -> Vec<Segment> {
    let end_of = |step: usize| {
        steps
            .get(step + 1)
            .map_or(1.0, |next| scales.rounds.centre(next.round))
    };
    let level = steps.iter().enumerate().map(|(number, step)| {
        let from = scales.at(step.round, step.value);
        Segment {
            key: format!("from {}", step.round),
            from,
            to: (end_of(number), from.1),
        }
    });
    let rises = steps.windows(2).map(|pair| {
        let to = scales.at(pair[1].round, pair[1].value);
        Segment {
            key: format!("rise {}", pair[1].round),
            from: (to.0, scales.range.from_top(pair[0].value)),
            to,
        }
    });
    level.chain(rises).collect()
}

fn best_words(data: &ObjectiveData, scales: Scales) -> Vec<Label> {
    let Some(best) = data.best_feasible.last() else {
        return Vec::new();
    };
    let beside = |class, dy, text| Label {
        class,
        x: 1.0,
        y: scales.range.from_top(best.value),
        dx: 6.0,
        dy,
        anchor: Anchor::Start,
        text,
    };
    vec![
        beside("c-tick", -2.0, "best feasible".to_owned()),
        beside("c-label acc", 11.0, data.unit.value(best.value)),
        beside("c-tick", 24.0, "on search".to_owned()),
    ]
}

/// A column of marks per round from the bottom up, closer together in a large pool.
fn pool_marks(pool: &[PoolColumn], rounds: Rounds) -> Vec<Mark> {
    let most = pool.iter().map(|column| column.places.len()).max().unwrap_or(0);
    let between = 0.165_f64.min(0.9 / most.max(1) as f64);
    let column = |column: &PoolColumn| {
        let round = column.round;
        let place = move |(place, feasible): (usize, &bool)| Mark {
            key: format!("{round} {place}"),
            id: None,
            column: round,
            x: rounds.centre(round),
            y: 0.92 - place as f64 * between,
            shift: 0.0,
            shape: Shape::of(*feasible),
            weight: if *feasible { Weight::Strong } else { Weight::Faint },
            radius: if *feasible { 3.2 } else { 3.0 },
            ringed: false,
            sentence: String::new(),
        };
        column.places.iter().enumerate().map(place).collect::<Vec<_>>()
    };
    pool.iter().flat_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data() -> ObjectiveData {
        ObjectiveData {
            name: "success".to_owned(),
            unit: Unit(Quantity::Rate),
            last_round: 6,
            leading: vec![Leading {
                round: 4,
                id: Some("c95e03".to_owned()),
                value: 0.73,
                error: Some(0.052),
                feasible: true,
            }],
            best_feasible: vec![
                RoundValue {
                    round: 4,
                    value: 0.73,
                },
                RoundValue {
                    round: 6,
                    value: 0.757,
                },
            ],
            pool: vec![PoolColumn {
                round: 4,
                places: vec![true, false, false],
            }],
            ..ObjectiveData::default()
        }
    }

    #[test]
    fn a_round_says_how_much_of_the_pool_is_feasible() {
        let data = data();
        assert_eq!(
            sentence(&data, &data.leading[0]),
            "Round 4, best c95e03: success 73.0% ± 5.2, feasible on search; 1 of 3 in the pool feasible there."
        );
        assert_eq!(objective_table(&data).rows[0][5], "1 of 3");
    }

    #[test]
    fn the_best_feasible_rises_in_steps_to_the_end_of_the_plot() {
        let data = data();
        let scales = Scales {
            rounds: Rounds { last: 6 },
            range: range(&data, None),
        };
        let steps = best_feasible(&data.best_feasible, scales);
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[1].to.0, 1.0);
        assert_eq!(best_words(&data, scales)[1].text, "75.7%");
    }
}
