//! Scales: values and rounds to places between 0 and 1.

use leptos::prelude::*;

/// The fewest and the most ticks of a value axis.
const TICKS: (usize, usize) = (4, 6);

/// The air left above and below what a range is first drawn around, as a fraction of its span.
const AIR: f64 = 0.1;

/// The pixels that the name of a round takes with the air around it; "seed" is the longest.
const ROOM_FOR_A_ROUND: f64 = 28.0;

/// A linear range of values with the step of its ticks; low < high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The value at the lower end.
    pub low: f64,
    /// The value at the upper end.
    pub high: f64,
    /// The distance between ticks: 1, 2 or 5 times a power of ten.
    pub step: f64,
    /// Ends that air and nice steps do not cross.
    bounds: (f64, f64),
}

impl Default for Range {
    /// The range without a value.
    fn default() -> Self {
        Self::around([], (0.0, 1.0))
    }
}

impl Range {
    /// The range around first values with 10% air, its ends at nice steps. Without a finite value it is
    /// drawn around 0 to 1. Neither air nor nice steps cross a bound that all values keep.
    pub fn around(values: impl IntoIterator<Item = f64>, bounds: (f64, f64)) -> Self {
        let (low, high) = extent(values).unwrap_or((0.0, 1.0));
        let bounds = kept(bounds, low, high);
        let span = match high - low {
            span if span > 0.0 => span,
            _ => (low.abs() * 0.5).max(0.1),
        };
        Self::nice(low - span * AIR, high + span * AIR, bounds)
    }

    /// The same range if it holds all values, otherwise one that holds both, its ends at nice steps.
    #[must_use]
    pub fn grown(self, values: impl IntoIterator<Item = f64>) -> Self {
        match extent(values) {
            Some((low, high)) if low < self.low || high > self.high => {
                let (low, high) = (low.min(self.low), high.max(self.high));
                Self::nice(low, high, kept(self.bounds, low, high))
            }
            _ => self,
        }
    }

    /// Grown round by round, so that a journal read at once gives the axis that the live run had.
    #[must_use]
    pub fn grown_by_round(self, values: impl IntoIterator<Item = (u32, f64)>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(round, _)| *round);
        values.chunk_by(|a, b| a.0 == b.0).fold(self, |range, round| {
            range.grown(round.iter().map(|(_, value)| *value))
        })
    }

    /// The place of a value: 0 at the lower end, 1 at the upper.
    pub fn place(self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The place of a value counted from the top: 0 at the upper end.
    pub fn from_top(self, value: f64) -> f64 {
        1.0 - self.place(value)
    }

    /// The ticks inside the range, ascending.
    pub fn ticks(self) -> Vec<f64> {
        let first = (self.low / self.step - 1e-9).ceil() as i64;
        let last = (self.high / self.step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * self.step).collect()
    }

    /// The smallest nice step with at most six ticks, and ends at half steps around low and high.
    fn nice(low: f64, high: f64, bounds: (f64, f64)) -> Self {
        let (low, high) = (low.max(bounds.0), high.min(bounds.1));
        let first = 10_f64.powf(((high - low) / 10.0).log10().floor());
        let mut range = Self {
            low,
            high,
            step: first,
            bounds,
        };
        for factor in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0] {
            let half = first * factor / 2.0;
            range = Self {
                low: ((low / half + 1e-9).floor() * half).max(bounds.0),
                high: ((high / half - 1e-9).ceil() * half).min(bounds.1),
                step: first * factor,
                bounds,
            };
            if range.ticks().len() <= TICKS.1 {
                break;
            }
        }
        range.widened()
    }

    /// Widened by half steps until it has the fewest ticks, upwards first.
    fn widened(mut self) -> Self {
        let half = self.step / 2.0;
        while self.ticks().len() < TICKS.0 {
            if self.high + half <= self.bounds.1 {
                self.high += half;
            } else if self.low - half >= self.bounds.0 {
                self.low -= half;
            } else {
                break;
            }
        }
        self
    }
}

/// The smallest and the greatest finite value.
fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold(None, |extent, value| match extent {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
}

/// The bounds that low and high keep; the others fall away.
fn kept(bounds: (f64, f64), low: f64, high: f64) -> (f64, f64) {
    (
        if low >= bounds.0 {
            bounds.0
        } else {
            f64::NEG_INFINITY
        },
        if high <= bounds.1 { bounds.1 } else { f64::INFINITY },
    )
}

/// Ranges of what is drawn that only grow. Until something is measured there is nothing that they could only grow from.
pub fn growing<T, R>(data: Signal<T>, is_measured: fn(&T) -> bool, ranges: fn(&T, Option<R>) -> R) -> Memo<R>
where
    T: Send + Sync + 'static,
    R: Copy + PartialEq + Send + Sync + 'static,
{
    let measured = Memo::new(move |last: Option<&Option<R>>| {
        data.with(|data| is_measured(data).then(|| ranges(data, last.copied().flatten())))
    });
    Memo::new(move |_| {
        measured
            .get()
            .unwrap_or_else(|| data.with(|data| ranges(data, None)))
    })
}

/// The rounds of a run as columns of equal width, round 0 (the seed) first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// The last round planned; future rounds are part of the axis from the start.
    pub last: u32,
}

impl Rounds {
    /// The width of one column as a fraction of all.
    pub fn width(self) -> f64 {
        1.0 / f64::from(self.last + 1)
    }

    /// The left end of a round's column; its right end is the left of the next round.
    pub fn left(self, round: u32) -> f64 {
        f64::from(round) * self.width()
    }

    /// The middle of a round's column.
    pub fn centre(self, round: u32) -> f64 {
        self.left(round) + self.width() / 2.0
    }

    /// The rounds that get a label in a plot of so many pixels: all while they have room and are at most
    /// nine, otherwise every 2nd, 4th, 5th …
    pub fn labelled(self, width: f64) -> Vec<u32> {
        let most = (width / ROOM_FOR_A_ROUND).clamp(2.0, 9.0) as u32;
        let mut scale = 1;
        let stride = loop {
            match [1, 2, 4, 5]
                .into_iter()
                .map(|stride| stride * scale)
                .find(|stride| self.last / stride < most)
            {
                Some(stride) => break stride,
                None => scale *= 10,
            }
        };
        (0..=self.last).step_by(stride as usize).collect()
    }
}

/// What a round is called: the seed's round has no number.
pub fn round_name(round: u32) -> String {
    if round == 0 {
        "seed".to_owned()
    } else {
        round.to_string()
    }
}

/// A round within a sentence: `Seed round` or `Round 4`.
pub fn round_title(round: u32) -> String {
    if round == 0 {
        "Seed round".to_owned()
    } else {
        format!("Round {round}")
    }
}

/// Rounds across and values upwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// The horizontal axis.
    pub rounds: Rounds,
    /// The vertical axis.
    pub range: Range,
}

impl Scales {
    /// The place of a value in the middle of a round's column, from the left and from the top.
    pub fn at(self, round: u32, value: f64) -> (f64, f64) {
        (self.rounds.centre(round), self.range.from_top(value))
    }
}

/// A place as a percentage of the plot, as SVG geometry takes it.
pub fn percent(place: f64) -> String {
    let hundred = (place * 100_000.0).round() / 1000.0;
    if hundred.is_finite() {
        format!("{hundred}%")
    } else {
        "0%".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: (f64, f64) = (0.0, 1.0);
    const COST: (f64, f64) = (0.0, f64::INFINITY);

    #[test]
    fn every_span_gets_four_to_six_ticks_that_it_holds() {
        for hundredths in 1..=4000 {
            let high = f64::from(hundredths) / 100.0;
            for low in [0.0, high * 0.3, high * 0.9, -high] {
                let range = Range::around([low, high], (f64::NEG_INFINITY, f64::INFINITY));
                let ticks = range.ticks();
                assert!((4..=6).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
                assert!(range.low <= low && high <= range.high);
            }
        }
    }

    #[test]
    fn air_does_not_cross_what_the_unit_cannot_pass() {
        let range = Range::around([0.02, 0.98], RATE);
        assert_eq!((range.low, range.high), (0.0, 1.0));
        assert_eq!(Range::around([300.0, 5000.0], COST).low, 0.0);
        assert!(Range::around([-0.2, 1.0], COST).low < -0.2);
    }

    #[test]
    fn a_range_only_grows() {
        let first = Range::around([0.757, 0.35], RATE);
        assert_eq!(first.grown([0.5, 0.4]), first);
        let mut range = first;
        for value in [0.81, 0.05, 0.97, 0.0] {
            let grown = range.grown([value]);
            assert!(grown.low <= range.low && grown.high >= range.high);
            assert!((0.0..=1.0).contains(&grown.place(value)));
            range = grown;
        }
    }

    #[test]
    fn one_value_alone_has_a_span() {
        let range = Range::around([0.5], RATE);
        assert!(range.low < 0.5 && range.high > 0.5);
        assert_eq!(Range::around([f64::NAN], RATE).low, 0.0);
    }

    #[test]
    fn rounds_fill_the_width_in_columns() {
        let rounds = Rounds { last: 6 };
        assert_eq!(percent(rounds.centre(0)), "7.143%");
        assert_eq!(percent(rounds.left(5)), "71.429%");
        assert_eq!(rounds.labelled(280.0).len(), 7);
        assert_eq!(Rounds { last: 24 }.labelled(500.0), [0, 4, 8, 12, 16, 20, 24]);
        assert_eq!(rounds.labelled(100.0), [0, 4]);
        assert!(Rounds { last: 437 }.labelled(500.0).len() <= 9);
    }
}
