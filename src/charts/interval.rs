//! A paired difference with its 95% interval around the zero line, beside the numbers in a table.

use leptos::prelude::*;

use super::{scale::percent, unit::Unit};

/// What an interval shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalData {
    /// The metric's name.
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// The mean of the paired differences.
    pub difference: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The difference at the right end, positive; the left end is its negative and zero the middle.
    pub reach: f64,
}

/// The square is the difference, the line its 95% interval; left of zero is lower.
#[component]
pub fn Interval(
    /// What it shows.
    #[prop(into)]
    data: Signal<IntervalData>,
) -> impl IntoView {
    let at = move |value: fn(&IntervalData) -> f64| data.with(|data| percent(place(value(data), data.reach)));
    view! {
        <div class="mini interval">
            <svg role="img" aria-label=move || data.with(sentence)>
                <line class="c-grid" x1="0%" x2="100%" y1="50%" y2="50%" />
                <line class="c-thr" x1="50%" x2="50%" y1="-10%" y2="110%" />
                <line
                    class="c-line"
                    x1=move || at(|data| data.low)
                    x2=move || at(|data| data.high)
                    y1="50%"
                    y2="50%"
                />
                <svg x=move || at(|data| data.difference) y="50%" overflow="visible">
                    <rect class="c-square" x="-4" y="-4" width="8" height="8" />
                </svg>
            </svg>
        </div>
    }
}

/// The place of a difference; what lies beyond an end stands at the end.
fn place(value: f64, reach: f64) -> f64 {
    if reach > 0.0 {
        f64::midpoint((value / reach).clamp(-1.0, 1.0), 1.0)
    } else {
        0.5
    }
}

fn sentence(data: &IntervalData) -> String {
    let unit = data.unit;
    format!(
        "{}: difference {}, 95% interval {} to {}",
        data.name,
        unit.difference(data.difference),
        unit.difference(data.low),
        unit.difference(data.high)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    #[test]
    fn zero_is_the_middle_and_the_ends_hold() {
        assert_eq!(place(0.0, 0.7), 0.5);
        assert_eq!(place(-0.7, 0.7), 0.0);
        assert_eq!(place(3.0, 0.7), 1.0);
    }

    #[test]
    fn an_interval_says_what_it_shows() {
        let data = IntervalData {
            name: "Success".to_owned(),
            unit: Unit(Quantity::Rate),
            difference: 0.25,
            low: 0.075,
            high: 0.425,
            reach: 0.7,
        };
        assert_eq!(
            sentence(&data),
            "Success: difference +25.0 pts, 95% interval +7.5 pts to +42.5 pts"
        );
    }
}
