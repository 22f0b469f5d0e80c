//! The loss of a training by step: on what it learns, and on what is held out.

use leptos::prelude::*;

use super::axis::{Frame, ValueAxis, WidthAxis};
use super::figure::TableData;
use super::labels::{Anchor, Label, Labels};
use super::scale::Range;
use super::series::{Segment, Segments};
use super::unit::{Unit, fixed};
use crate::format::Quantity;

/// Strokes that a line has at most: a longer one is drawn by the means of as many stretches.
const STROKES: usize = 300;

const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

/// What the chart shows: losses in nats a token, each with its step, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossData {
    /// Of the rewrites that are learned, before each step.
    pub learned: Vec<(u64, f64)>,
    /// Of the rewrites that are held out.
    pub held_out: Vec<(u64, f64)>,
}

impl LossData {
    fn points(&self) -> impl Iterator<Item = &(u64, f64)> {
        self.learned.iter().chain(&self.held_out)
    }

    /// One sentence that reads it.
    pub fn sentence(&self) -> String {
        let of = |points: &[(u64, f64)]| {
            let (first, last) = (points.first()?.1, points.last()?);
            Some(format!(
                "from {} to {} at step {}",
                fixed(first, 3),
                fixed(last.1, 3),
                last.0
            ))
        };
        match (of(&self.learned), of(&self.held_out)) {
            (None, None) => "Nothing is measured yet.".to_owned(),
            (Some(learned), None) => format!("The loss went {learned}."),
            (None, Some(held_out)) => format!("The loss on held-out rewrites went {held_out}."),
            (Some(learned), Some(held_out)) => {
                format!("The loss went {learned}, on held-out rewrites {held_out}.")
            }
        }
    }

    /// The same as a table: the steps at which held-out rewrites were measured, and the last one.
    pub fn table(&self) -> TableData {
        let mut table = TableData::with_headers(&["step", "learned", "held out"]);
        let mut steps: Vec<u64> = self.held_out.iter().map(|(step, _)| *step).collect();
        steps.extend(self.learned.last().map(|(step, _)| *step));
        steps.sort_unstable();
        steps.dedup();
        let at = |points: &[(u64, f64)], step: u64| {
            let found = points.iter().find(|(of, _)| *of == step);
            found.map_or_else(|| "–".to_owned(), |(_, loss)| fixed(*loss, 4))
        };
        table.rows = steps
            .into_iter()
            .map(|step| {
                vec![
                    step.to_string(),
                    at(&self.learned, step),
                    at(&self.held_out, step),
                ]
            })
            .collect();
        table
    }
}

/// The means of at most [`STROKES`] stretches.
fn thinned(points: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(STROKES).max(1);
    let mean = |points: &[(u64, f64)]| {
        let count = points.len() as f64;
        let steps = points.iter().map(|(step, _)| *step as f64).sum::<f64>();
        let losses = points.iter().map(|(_, loss)| loss).sum::<f64>();
        (steps / count, losses / count)
    };
    points.chunks(stretch).map(mean).collect()
}

fn line(points: &[(u64, f64)], (across, up): (Range, Range)) -> Vec<Segment> {
    let at = |(step, loss): (f64, f64)| (across.place(step), up.from_top(loss));
    let thinned = thinned(points);
    let strokes = thinned.windows(2).enumerate();
    strokes
        .map(|(number, pair)| Segment {
            key: number.to_string(),
            from: at(pair[0]),
            to: at(pair[1]),
        })
        .collect()
}

fn names(data: &LossData, up: Range) -> Vec<Label> {
    let name = |points: &[(u64, f64)], text: &str| {
        let y = up.from_top(thinned(points).last()?.1);
        Some(Label {
            class: "c-tick",
            x: 1.0,
            y,
            dx: 6.0,
            dy: 4.0,
            anchor: Anchor::Start,
            text: text.to_owned(),
        })
    };
    let mut names = Vec::from_iter(name(&data.learned, "learned"));
    if let Some(mut held_out) = name(&data.held_out, "held out") {
        // Two lines that end together would be named on one another.
        if let Some(learned) = names
            .first_mut()
            .filter(|learned| (learned.y - held_out.y).abs() < 0.08)
        {
            let is_above = held_out.y <= learned.y;
            (held_out.dy, learned.dy) = if is_above { (-4.0, 11.0) } else { (11.0, -4.0) };
        }
        names.push(held_out);
    }
    names
}

/// Both losses by step. One picture: the numbers stand in the table below.
#[component]
pub fn LossChart(
    /// What it shows.
    #[prop(into)]
    data: Signal<LossData>,
) -> impl IntoView {
    let scales = Memo::new(move |_| {
        data.with(|data| {
            let steps = data.points().map(|(step, _)| *step as f64);
            let losses = data.points().map(|(_, loss)| *loss);
            (
                Range::around(steps.chain([0.0]), POSITIVE),
                Range::around(losses, POSITIVE),
            )
        })
    });
    let learned = Memo::new(move |_| data.with(|data| line(&data.learned, scales.get())));
    let held_out = Memo::new(move |_| data.with(|data| line(&data.held_out, scales.get())));
    let names = Memo::new(move |_| data.with(|data| names(data, scales.get().1)));
    let across = Memo::new(move |_| scales.get().0);
    let up = Memo::new(move |_| scales.get().1);
    let unit = Unit(Quantity::Many);
    view! {
        <div class="chart">
            <div class="plot last ends" style:--height="220px">
                <svg role="img" aria-label=move || data.with(LossData::sentence)>
                    <g aria-hidden="true">
                        <ValueAxis
                            range=up
                            unit=Signal::stored(Unit::default())
                            rules=true
                            title=Signal::stored("nats a token".to_owned())
                        />
                        <Frame/>
                        <Segments segments=learned class="c-line"/>
                        <Segments segments=held_out class="c-best"/>
                        <Labels labels=names/>
                        <WidthAxis range=across unit title=Signal::stored("step".to_owned())/>
                    </g>
                </svg>
            </div>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> LossData {
        LossData {
            learned: (1..=1000).map(|step| (step, 4.0 / step as f64)).collect(),
            held_out: vec![(500, 0.02), (1000, 0.01)],
        }
    }

    #[test]
    fn a_long_line_is_drawn_by_the_means_of_its_stretches() {
        let thinned = thinned(&data().learned);
        assert!(thinned.len() <= STROKES && thinned.first().unwrap().0 > 1.0);
        assert_eq!(super::thinned(&[(1, 2.0), (2, 1.0)]), [(1.0, 2.0), (2.0, 1.0)]);
        assert_eq!(super::thinned(&[]), []);
    }

    #[test]
    fn its_sentence_and_table_say_where_it_stands() {
        assert_eq!(
            data().sentence(),
            "The loss went from 4.000 to 0.004 at step 1000, on held-out rewrites from 0.020 to 0.010 at step 1000."
        );
        assert_eq!(
            data().table().rows,
            [["500", "0.0080", "0.0200"], ["1000", "0.0040", "0.0100"]]
        );
        assert_eq!(LossData::default().sentence(), "Nothing is measured yet.");
    }
}
