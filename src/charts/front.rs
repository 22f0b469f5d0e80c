//! A front: the objective against one cost, of the prompts that win in turn as the cost's threshold rises.

use capo_core::estimate::Estimate;
use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, ValueAxis, WidthAxis},
    figure::TableData,
    labels::{Anchor, Label, Labels, Space, Wanted, arranged},
    marks::{Mark, Marks, STRONG, Shape, Weight, columns},
    measure::{Size, measured},
    roving::{Chart, Roving},
    scale::Range,
    series::{Segment, Segments},
    threshold::{upright_line, upright_sides},
    unit::{Unit, short},
};

/// What a front shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontData {
    /// What is reached, upwards.
    pub objective: FrontAxis,
    /// What it costs, to the right.
    pub cost: FrontAxis,
    /// The threshold of the cost.
    pub threshold: f64,
    /// The prompts, the cheapest first.
    pub points: Vec<FrontPoint>,
}

/// A metric along an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontAxis {
    /// Its name, as "human requests".
    pub name: String,
    /// The axis's title, as "human requests, %".
    pub title: String,
    /// What it is counted in.
    pub unit: Unit,
    /// What the axis holds; a threshold beyond it stands at its end.
    pub range: Range,
}

/// A prompt of the front.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontPoint {
    /// The prompt.
    pub id: String,
    /// What it reaches.
    pub objective: Estimate,
    /// What it costs.
    pub cost: Estimate,
    /// Whether it is the best one under the threshold.
    pub wins: bool,
}

impl FrontData {
    fn at(&self, cost: f64, objective: f64) -> (f64, f64) {
        let (across, up) = (self.cost.range, self.objective.range);
        (across.place(cost), up.from_top(objective))
    }

    fn threshold_at(&self) -> f64 {
        self.cost.range.place(self.threshold).clamp(0.0, 1.0)
    }

    fn says(&self, point: &FrontPoint) -> &'static str {
        match point.cost.mean <= self.threshold {
            true if point.wins => "the best inside",
            true => "inside",
            false => "outside",
        }
    }
}

/// The front as stairs, each prompt with one standard error in both directions, the threshold upright, the best prompt inside
/// of it ringed and named.
#[component]
pub fn Front(
    /// What it shows.
    #[prop(into)]
    data: Signal<FrontData>,
    /// Its reading in one sentence.
    #[prop(into)]
    label: Signal<String>,
    /// Called with the id of a prompt to open.
    on_open: Callback<String>,
) -> impl IntoView {
    let plot = NodeRef::<Div>::new();
    let before = Size {
        width: 420.0,
        height: 256.0,
    };
    let size = measured(plot, before);
    let threshold = Memo::new(move |_| data.with(FrontData::threshold_at));
    let stairs = Memo::new(move |_| data.with(stairs));
    let errors = Memo::new(move |_| data.with(errors));
    let marks = Memo::new(move |_| data.with(marks));
    let words = Memo::new(move |_| data.with(|data| words(data, size.get())));
    let roving = Roving::over(Signal::derive(move || marks.with(|marks| columns(marks))));
    let axis = move |of: fn(&FrontData) -> &FrontAxis| {
        let range = Signal::derive(move || data.with(|data| of(data).range));
        let title = Signal::derive(move || data.with(|data| of(data).title.clone()));
        (range, data.with_untracked(|data| of(data).unit), title)
    };
    let (across, cost_unit, cost_title) = axis(|data| &data.cost);
    let (up, unit, title) = axis(|data| &data.objective);
    view! {
        <Chart label=label roving=roving on_open=Some(on_open)>
            <div class="plot last" node_ref=plot style:--height="16rem">
                <svg>
                    <g aria-hidden="true">
                        {move || upright_sides(threshold.get())} <Frame />
                        {move || upright_line(threshold.get())} <ValueAxis range=up unit title />
                        <WidthAxis range=across unit=cost_unit title=cost_title />
                        <Segments segments=stairs class="c-lin" /> <Segments segments=errors class="c-se" />
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

/// The front's data as a table, one row per prompt.
pub fn front_table(data: &FrontData) -> TableData {
    let (cost, objective) = (&data.cost, &data.objective);
    let mut table = TableData::with_headers(&["Prompt", &cost.name, &objective.name, "Threshold"]);
    let row = |point: &FrontPoint| {
        vec![
            short(&point.id),
            cost.unit.0.estimate_against(&point.cost, data.threshold),
            objective.unit.0.estimate(&point.objective),
            data.says(point).to_owned(),
        ]
    };
    table.rows = data.points.iter().map(row).collect();
    table
}

/// What is reached under each threshold: level up to the next prompt's cost, then up to what that reaches.
fn stairs(data: &FrontData) -> Vec<Segment> {
    let step = |place: usize| {
        let point = &data.points[place];
        let from = data.at(point.cost.mean, point.objective.mean);
        let next = data.points.get(place + 1);
        let to = next.map_or((1.0, 0.0), |next| data.at(next.cost.mean, next.objective.mean));
        let segment = |part: &str, from, to| Segment {
            key: format!("{part} {}", point.id),
            from,
            to,
        };
        let corner = (to.0, from.1);
        let rise = next.map(|_| segment("rise", corner, to));
        [Some(segment("level", from, corner)), rise]
    };
    (0..data.points.len()).flat_map(step).flatten().collect()
}

/// One standard error to either side, of what is reached and of what it costs.
fn errors(data: &FrontData) -> Vec<Segment> {
    let bars = |point: &FrontPoint| {
        let (cost, objective) = (point.cost, point.objective);
        let bar = |direction: &str, across: f64, up: f64| Segment {
            key: format!("{direction} {}", point.id),
            from: data.at(cost.mean - across, objective.mean - up),
            to: data.at(cost.mean + across, objective.mean + up),
        };
        [
            bar("across", cost.standard_error, 0.0),
            bar("up", 0.0, objective.standard_error),
        ]
    };
    data.points.iter().flat_map(bars).collect()
}

fn marks(data: &FrontData) -> Vec<Mark> {
    let mark = |(column, point): (u32, &FrontPoint)| {
        let (x, y) = data.at(point.cost.mean, point.objective.mean);
        let (cost, objective) = (&data.cost, &data.objective);
        Mark {
            key: point.id.clone(),
            id: Some(point.id.clone()),
            column,
            x,
            y,
            shift: 0.0,
            shape: Shape::of(point.cost.mean <= data.threshold),
            weight: Weight::Strong,
            radius: STRONG,
            ringed: point.wins,
            sentence: format!(
                "{}: {} {}, {} {}, {}.",
                short(&point.id),
                objective.name,
                objective.unit.0.estimate(&point.objective),
                cost.name,
                cost.unit.0.estimate_against(&point.cost, data.threshold),
                data.says(point)
            ),
        }
    };
    (0..).zip(&data.points).map(mark).collect()
}

/// The threshold's value beside its line, and the name of the best prompt inside.
fn words(data: &FrontData, size: Size) -> Vec<Label> {
    let beside = |class, (x, y): (f64, f64), dy, reach: f64, text: String| {
        let label = move |dx, anchor| Label {
            class,
            x,
            y,
            dx,
            dy,
            anchor,
            text: text.clone(),
        };
        let [right, left] = [label(reach, Anchor::Start), label(-reach, Anchor::End)];
        if x < 0.5 { [right, left] } else { [left, right] }
    };
    let limit = data.cost.unit.threshold(data.threshold);
    let threshold = beside("c-label b", (data.threshold_at(), 1.0), -8.0, 6.0, limit);
    let named = |point: &FrontPoint| {
        let at = data.at(point.cost.mean, point.objective.mean);
        let places = [-8.0, 16.0].map(|dy| beside("c-label acc on-water", at, dy, 11.0, short(&point.id)));
        places.into_iter().flatten().collect()
    };
    let best = data.points.iter().filter(|point| point.wins).map(named);
    let wanted = std::iter::once(threshold.to_vec()).chain(best);
    let wanted = wanted.map(|places| Wanted { places, stays: true }).collect();
    let taken = data.points.iter().map(|point| {
        let (x, y) = data.at(point.cost.mean, point.objective.mean);
        Space::of_mark(x, y, STRONG, size)
    });
    arranged(wanted, taken.collect(), size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    fn data(threshold: f64) -> FrontData {
        let axis = |name: &str| FrontAxis {
            name: name.to_owned(),
            unit: Unit(Quantity::Rate),
            ..FrontAxis::default()
        };
        let of = |mean, standard_error| Estimate {
            mean,
            standard_error,
            n: 40,
        };
        let point = |id: &str, cost, objective, wins| FrontPoint {
            id: id.to_owned(),
            objective: of(objective, 0.05),
            cost: of(cost, 0.1),
            wins,
        };
        FrontData {
            objective: axis("success"),
            cost: axis("human requests"),
            threshold,
            points: vec![point("cheap", 0.25, 0.5, true), point("costly", 0.75, 0.8, false)],
        }
    }

    #[test]
    fn every_prompt_has_a_bar_in_both_directions_and_the_best_inside_is_ringed_and_named() {
        let data = data(0.4);
        let bars = errors(&data);
        let range = data.cost.range;
        let [across, up] = [&bars[0], &bars[1]];
        assert_eq!(across.from.1, across.to.1);
        assert!((across.to.0 - across.from.0 - range.place(0.2) + range.place(0.0)).abs() < 1e-9);
        assert_eq!(up.from.0, up.to.0);
        assert!(up.from.1 > up.to.1);
        assert_eq!(bars.len(), 4);

        let marks = marks(&data);
        assert_eq!((marks[0].shape, marks[0].ringed), (Shape::Disc, true));
        assert_eq!((marks[1].shape, marks[1].ringed), (Shape::Diamond, false));
        assert_eq!(
            marks[0].sentence,
            "cheap: success 50.0% ± 5.0, human requests 25.0% ± 10.0, the best inside."
        );
        let size = Size {
            width: 420.0,
            height: 256.0,
        };
        let texts: Vec<_> = words(&data, size).into_iter().map(|label| label.text).collect();
        assert_eq!(texts, ["≤ 40%", "cheap"]);
        assert_eq!(front_table(&data).rows[1][3], "outside");
    }

    #[test]
    fn stairs_rise_where_the_next_prompt_stands_and_a_far_threshold_stands_at_the_end() {
        let far = data(30.0);
        let stairs = stairs(&far);
        assert_eq!(stairs.len(), 3);
        assert_eq!(stairs[0].to, (stairs[1].from.0, stairs[0].from.1));
        assert_eq!(stairs[2].to, (1.0, stairs[2].from.1));
        assert_eq!(far.threshold_at(), 1.0);
        assert_eq!(data(-1.0).threshold_at(), 0.0);
    }
}
