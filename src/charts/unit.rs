//! What a measured value is counted in, and how it is written.

/// The unit of a metric. Values stay as the journal has them: rates as fractions of one, lengths in
/// characters; only their text differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A fraction of one, written as percent with one decimal.
    Rate,
    /// A ratio, written with two decimals.
    Ratio,
    /// Characters, written in thousands with two decimals and a k.
    Kilo,
    /// Anything else, written with up to two decimals.
    #[default]
    Plain,
}

impl Unit {
    /// The value with its unit: `32.4%`, `0.94`, `1.70k`.
    pub fn value(self, value: f64) -> String {
        self.with_decimals(value, 0)
    }

    /// The value with its unit and one more digit if it would otherwise look equal to a threshold that it
    /// is not equal to.
    pub fn value_beside(self, value: f64, threshold: f64) -> String {
        let blurred = value != threshold && self.value(value) == self.value(threshold);
        self.with_decimals(value, usize::from(blurred))
    }

    /// One standard error: `± 6.1`, `± 0.09`, `± 0`.
    pub fn error(self, error: f64) -> String {
        if error == 0.0 {
            return "± 0".to_owned();
        }
        match self {
            Self::Rate => format!("± {}", fixed(error * 100.0, 1)),
            Self::Ratio | Self::Plain => format!("± {}", fixed(error, 2)),
            Self::Kilo => format!("± {}k", fixed(error / 1000.0, 2)),
        }
    }

    /// A distance without sign, rates in points: `2.6 pts`, `0.11`, `0.83k`.
    pub fn distance(self, distance: f64) -> String {
        let distance = distance.abs();
        match self {
            Self::Rate => format!("{} pts", fixed(distance * 100.0, 1)),
            _ => self.value(distance),
        }
    }

    /// A difference with its sign, rates in points: `−9.5 pts`, `+0.02`.
    pub fn difference(self, difference: f64) -> String {
        let distance = self.distance(difference);
        let is_zero = !distance.contains(|digit: char| ('1'..='9').contains(&digit));
        let sign = match difference {
            _ if is_zero => "",
            difference if difference < 0.0 => "−",
            _ => "+",
        };
        format!("{sign}{distance}")
    }

    /// A threshold as it was typed, with its sign: `≤ 35%`, `≤ 1.05`, `≤ 5.0k`.
    pub fn threshold(self, threshold: f64) -> String {
        format!("≤ {}", self.typed(threshold))
    }

    /// A value that someone chose, with the digits that they chose: `35%`, `37.5%`, `0.60`, `5.0k`.
    pub fn typed(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}%", at_least(value * 100.0, 0)),
            Self::Ratio => at_least(value, 2),
            Self::Kilo => format!("{}k", at_least(value / 1000.0, 1)),
            Self::Plain => at_least(value, 0),
        }
    }

    /// A tick on an axis whose title names the unit, with as many digits as the step between ticks needs.
    pub fn tick(self, value: f64, step: f64) -> String {
        let (value, step) = (self.on_axis(value), self.on_axis(step));
        if value == 0.0 {
            return "0".to_owned();
        }
        let decimals = if step >= 1.0 {
            0
        } else {
            (-step.log10()).ceil().clamp(0.0, 6.0) as usize
        };
        fixed(value, decimals)
    }

    /// The ends that values of the unit cannot pass as long as none of them does: nothing measured here
    /// is expected below zero, and no rate above one.
    pub fn natural_bounds(self) -> (f64, f64) {
        match self {
            Self::Rate => (0.0, 1.0),
            Self::Ratio | Self::Kilo | Self::Plain => (0.0, f64::INFINITY),
        }
    }

    fn on_axis(self, value: f64) -> f64 {
        match self {
            Self::Rate => value * 100.0,
            Self::Kilo => value / 1000.0,
            Self::Ratio | Self::Plain => value,
        }
    }

    fn with_decimals(self, value: f64, more: usize) -> String {
        match self {
            Self::Rate => format!("{}%", fixed(value * 100.0, 1 + more)),
            Self::Kilo => format!("{}k", fixed(value / 1000.0, 2 + more)),
            Self::Plain if value.fract() == 0.0 => fixed(value, more),
            Self::Ratio | Self::Plain => fixed(value, 2 + more),
        }
    }
}

/// A number with a true minus, commas between thousands and a fixed count of decimals; an en dash when it
/// is not a number.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = format!("{:.*}", decimals, value.abs());
    let is_zero = !digits.contains(|digit: char| ('1'..='9').contains(&digit));
    let grouped = with_commas(&digits);
    if value < 0.0 && !is_zero {
        format!("−{grouped}")
    } else {
        grouped
    }
}

fn with_commas(digits: &str) -> String {
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::with_capacity(digits.len() + whole.len() / 3);
    for (place, digit) in whole.char_indices() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// A residual or a value of *J*: always with its sign, `+0.93`, `−0.07`, `0.00`.
pub fn signed(value: f64, decimals: usize) -> String {
    let digits = fixed(value, decimals);
    let is_positive = value > 0.0 && digits.contains(|digit: char| ('1'..='9').contains(&digit));
    if is_positive { format!("+{digits}") } else { digits }
}

/// The first six digits of an id, as ids are shown wherever the whole is a hover away.
pub fn short(id: &str) -> String {
    id.chars().take(6).collect()
}

/// The shortest text of at most four decimals that keeps the value, with at least `decimals` of them.
fn at_least(value: f64, decimals: usize) -> String {
    let is_whole = |decimals: &usize| {
        let scaled = value * [1.0, 10.0, 100.0, 1000.0][*decimals];
        (scaled - scaled.round()).abs() < 1e-6
    };
    fixed(value, (decimals..4).find(is_whole).unwrap_or(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_unit() {
        assert_eq!(Unit::Rate.value(0.324), "32.4%");
        assert_eq!(Unit::Ratio.value(0.94), "0.94");
        assert_eq!(Unit::Kilo.value(1704.0), "1.70k");
        assert_eq!(Unit::Plain.value(12.0), "12");
        assert_eq!(Unit::Plain.value(-9840.0), "−9,840");
        assert_eq!(Unit::Plain.value(1_234_567.5), "1,234,567.50");
        assert_eq!(Unit::Rate.value(f64::NAN), "–%");
    }

    #[test]
    fn a_value_that_rounds_to_its_threshold_shows_one_more_digit() {
        assert_eq!(Unit::Rate.value_beside(0.350_4, 0.35), "35.04%");
        assert_eq!(Unit::Rate.value_beside(0.35, 0.35), "35.0%");
        assert_eq!(Unit::Ratio.value_beside(1.051, 1.05), "1.051");
    }

    #[test]
    fn thresholds_keep_the_digits_they_were_typed_with() {
        assert_eq!(Unit::Rate.threshold(0.35), "≤ 35%");
        assert_eq!(Unit::Rate.threshold(0.375), "≤ 37.5%");
        assert_eq!(Unit::Ratio.threshold(0.6), "≤ 0.60");
        assert_eq!(Unit::Kilo.threshold(5000.0), "≤ 5.0k");
    }

    #[test]
    fn differences_carry_a_true_minus_and_points() {
        assert_eq!(Unit::Rate.difference(-0.095), "−9.5 pts");
        assert_eq!(Unit::Ratio.difference(0.02), "+0.02");
        assert_eq!(Unit::Ratio.difference(-0.001), "0.00");
        assert_eq!(signed(-0.07, 2), "−0.07");
        assert_eq!(signed(0.93, 3), "+0.930");
        assert_eq!(fixed(-0.001, 2), "0.00");
    }

    #[test]
    fn ticks_have_the_digits_of_their_step() {
        assert_eq!(Unit::Rate.tick(0.4, 0.1), "40");
        assert_eq!(Unit::Ratio.tick(1.5, 0.5), "1.5");
        assert_eq!(Unit::Ratio.tick(0.0, 0.5), "0");
        assert_eq!(Unit::Ratio.tick(0.25, 0.05), "0.25");
        assert_eq!(Unit::Kilo.tick(4000.0, 2000.0), "4");
    }
}
