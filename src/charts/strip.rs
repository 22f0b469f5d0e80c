//! The constraint strip: a cost by round against its threshold above, the multiplier that answers it
//! below, over one axis of rounds. Cause and answer are read together.

use leptos::{html::Div, prelude::*};

use super::{
    axis::{Frame, NowLine, ValueAxis},
    labels::Labels,
    marks::{Marks, Weight, columns, of_weight},
    measure::{Size, measured},
    multiplier::MultiplierPlot,
    roving::{Chart, Roving},
    scale::{Range, Rounds, Scales, growing},
    series::{self, Candidate, Leading, RoundValue, Segments, error_bars, line},
    strip_words::{marks, words},
    threshold::{Sides, ThresholdLine},
    unit::Unit,
};

pub use super::strip_words::strip_table;
use crate::components::Term;
use crate::run::word::Word;

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
    /// The multiplier's cap, positive; none when the method has none.
    pub cap: Option<f64>,
    /// Values that the value axis is drawn around, for strips that are compared side by side: all
    /// that either of them draws. Empty when it stands alone.
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

/// The strip's two plots as one chart. Its value axis only grows as long as the component lives: mount
/// another for another run.
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
    let range = growing(data, |data| !data.leading.is_empty(), range);
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
                <span class="axis-term">
                    <Term word=Word::LAMBDA/>
                </span>
            </div>
        </Chart>
    }
}

/// The range of the cost axis: set by the first round and the threshold, then only grown.
fn range(data: &StripData, last: Option<Range>) -> Range {
    let steps = data.threshold.iter().chain(&data.pending_threshold).copied();
    let StripData { leading, others, .. } = data;
    let (also, bounds) = (&data.also_in_range, data.unit.natural_bounds());
    series::range(leading, others, steps, also, bounds, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Quantity;

    #[test]
    fn the_range_holds_the_first_round_and_the_threshold_then_grows() {
        let point = |round, value| Leading {
            round,
            id: None,
            value,
            error: None,
            feasible: false,
        };
        let mut data = StripData {
            unit: Unit(Quantity::Rate),
            threshold: vec![RoundValue {
                round: 0,
                value: 0.35,
            }],
            leading: vec![point(0, 0.757), point(1, 0.5)],
            ..StripData::default()
        };
        let first = range(&data, None);
        assert!(first.low < 0.35 && first.high > 0.757);
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
}
