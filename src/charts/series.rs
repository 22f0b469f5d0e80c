//! Line charts of what rounds measured: the line through the best of each, its errors, and the other candidates.

use std::collections::BTreeMap;

use leptos::prelude::*;

use super::{
    keyed::keyed,
    marks::{FAINT, Mark, NARROW, STRONG, Shape, Weight},
    measure::Size,
    scale::{Range, Scales, percent},
};

/// A value from a round on, or in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundValue {
    /// The round; 0 is the seed's.
    pub round: u32,
    /// The value.
    pub value: f64,
}

/// The best candidate of a round by *J*, or the mean over the best k0.
#[derive(Clone, Debug, PartialEq)]
pub struct Leading {
    /// The round; 0 is the seed's.
    pub round: u32,
    /// The candidate, or none when several are averaged.
    pub id: Option<String>,
    /// Its value in the chart's metric.
    pub value: f64,
    /// One standard error; none where the metric has none, as prompt length.
    pub error: Option<f64>,
    /// Whether its mark is a disc.
    pub feasible: bool,
}

impl Leading {
    /// The value less and plus one standard error.
    pub fn reach(&self) -> [f64; 2] {
        let error = self.error.unwrap_or(0.0);
        [self.value - error, self.value + error]
    }
}

/// Another candidate of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The candidate.
    pub id: String,
    /// The round that wrote and measured it.
    pub round: u32,
    /// Its value in the chart's metric.
    pub value: f64,
    /// Whether its mark is a disc.
    pub feasible: bool,
}

/// A straight line between two places of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Tells it from the other lines of its kind.
    pub key: String,
    /// From: left and top, 0 to 1.
    pub from: (f64, f64),
    /// To: left and top, 0 to 1.
    pub to: (f64, f64),
}

/// Lines that update in place.
#[component]
pub fn Segments(
    /// The lines, each told from the others by its key.
    #[prop(into)]
    segments: Signal<Vec<Segment>>,
    /// The class that sets their voice.
    class: &'static str,
) -> impl IntoView {
    keyed(
        segments,
        |segment| segment.key.clone(),
        move |segment| {
            view! {
                <line
                    class=class
                    x1=move || percent(segment.with(|segment| segment.from.0))
                    y1=move || percent(segment.with(|segment| segment.from.1))
                    x2=move || percent(segment.with(|segment| segment.to.0))
                    y2=move || percent(segment.with(|segment| segment.to.1))
                />
            }
        },
    )
}

/// The value in force in a round, of values that each hold from their round on.
pub fn in_force(steps: &[RoundValue], round: u32) -> Option<f64> {
    steps
        .iter()
        .rev()
        .find(|step| step.round <= round)
        .map(|step| step.value)
}

/// The range of a value axis: set by the first round and the first step, then only grown. Charts side by side know the same
/// values, whichever came first: their axes are `also` around those.
pub fn range(
    leading: &[Leading],
    others: &[Candidate],
    steps: impl Iterator<Item = RoundValue> + Clone,
    also: &[f64],
    bounds: (f64, f64),
    last: Option<Range>,
) -> Range {
    if !also.is_empty() {
        return Range::around(also.iter().copied(), bounds);
    }
    let first_round = leading.iter().filter(|point| point.round == 0);
    let first_step = steps.clone().next().map(|step| step.value);
    let first = first_round.flat_map(Leading::reach).chain(first_step);
    let values = |point: &Leading| point.reach().map(|value| (point.round, value));
    let later = leading.iter().flat_map(values);
    let later = later.chain(others.iter().map(|point| (point.round, point.value)));
    let later = later.chain(steps.map(|step| (step.round, step.value)));
    last.unwrap_or_else(|| Range::around(first, bounds))
        .grown_by_round(later)
}

/// The line through the leading candidates, ordered by round.
pub fn line(leading: &[Leading], scales: Scales) -> Vec<Segment> {
    leading
        .windows(2)
        .map(|pair| Segment {
            key: pair[1].round.to_string(),
            from: scales.at(pair[0].round, pair[0].value),
            to: scales.at(pair[1].round, pair[1].value),
        })
        .collect()
}

/// One standard error up and down, cut where the plot ends.
pub fn error_bars(leading: &[Leading], scales: Scales) -> Vec<Segment> {
    let bar = |point: &Leading| {
        let error = point.error.filter(|error| *error > 0.0)?;
        let end = |value| {
            let (x, y) = scales.at(point.round, value);
            (x, y.clamp(0.0, 1.0))
        };
        Some(Segment {
            key: point.round.to_string(),
            from: end(point.value + error),
            to: end(point.value - error),
        })
    };
    leading.iter().filter_map(bar).collect()
}

/// The marks of the leading candidates; smaller where columns are narrow.
pub fn leading_marks(
    leading: &[Leading],
    scales: Scales,
    size: Size,
    sentence: impl Fn(&Leading) -> String,
) -> Vec<Mark> {
    let is_narrow = scales.rounds.width() * size.width < 24.0;
    let mark = |point: &Leading| {
        let (x, y) = scales.at(point.round, point.value);
        Mark {
            key: format!("round {}", point.round),
            id: point.id.clone(),
            column: point.round,
            x,
            y,
            shift: 0.0,
            shape: Shape::of(point.feasible),
            weight: Weight::Strong,
            radius: if is_narrow { NARROW } else { STRONG },
            ringed: false,
            sentence: sentence(point),
        }
    };
    leading.iter().map(mark).collect()
}

/// The marks of the other candidates, those of one round spread sideways, never vertically, as far as
/// their column is wide.
pub fn other_marks(
    others: &[Candidate],
    scales: Scales,
    size: Size,
    sentence: impl Fn(&Candidate) -> String,
) -> Vec<Mark> {
    let mut by_round: BTreeMap<u32, Vec<&Candidate>> = BTreeMap::new();
    for candidate in others {
        by_round.entry(candidate.round).or_default().push(candidate);
    }
    let column = scales.rounds.width() * size.width;
    let spread = |(round, candidates): (u32, Vec<&Candidate>)| {
        let between = 3.1_f64.min(0.8 * column / candidates.len() as f64);
        let middle = (candidates.len() - 1) as f64 / 2.0;
        candidates
            .into_iter()
            .enumerate()
            .map(|(place, candidate)| {
                let (x, y) = scales.at(round, candidate.value);
                Mark {
                    key: candidate.id.clone(),
                    id: Some(candidate.id.clone()),
                    column: round,
                    x,
                    y,
                    shift: (place as f64 - middle) * between,
                    shape: Shape::of(candidate.feasible),
                    weight: Weight::Faint,
                    radius: if column < 24.0 { FAINT * 0.7 } else { FAINT },
                    ringed: false,
                    sentence: sentence(candidate),
                }
            })
            .collect::<Vec<_>>()
    };
    by_round.into_iter().flat_map(spread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::scale::{Range, Rounds};

    const SIZE: Size = Size {
        width: 280.0,
        height: 186.0,
    };

    fn scales() -> Scales {
        Scales {
            rounds: Rounds { last: 6 },
            range: Range::around([0.0, 1.0], (0.0, 1.0)),
        }
    }

    #[test]
    fn a_step_holds_until_the_next() {
        let steps = [
            RoundValue {
                round: 0,
                value: 0.35,
            },
            RoundValue { round: 4, value: 0.3 },
        ];
        assert_eq!(in_force(&steps, 3), Some(0.35));
        assert_eq!(in_force(&steps, 4), Some(0.3));
        assert_eq!(in_force(&[], 4), None);
    }

    #[test]
    fn candidates_of_a_round_are_spread_sideways_only() {
        let others: Vec<_> = ["a", "b", "c"]
            .map(|id| Candidate {
                id: id.to_owned(),
                round: 2,
                value: 0.5,
                feasible: false,
            })
            .into();
        let marks = other_marks(&others, scales(), SIZE, |_| String::new());
        let shifts: Vec<_> = marks.iter().map(|mark| mark.shift).collect();
        assert_eq!(shifts, [-3.1, 0.0, 3.1]);
        assert!(marks.iter().all(|mark| mark.y == marks[0].y));
    }

    #[test]
    fn an_error_bar_ends_with_the_plot() {
        let point = |error| Leading {
            round: 0,
            id: None,
            value: 0.95,
            error,
            feasible: true,
        };
        let bars = error_bars(&[point(Some(0.1)), point(None), point(Some(0.0))], scales());
        assert_eq!(bars.len(), 1);
        assert_eq!(bars[0].from.1, 0.0);
    }
}
