//! Units of measured values, as the charts write them.

use crate::format::{self, Quantity};

/// How the values of a chart are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(pub Quantity);

impl Default for Unit {
    fn default() -> Self {
        Self(Quantity::Ratio)
    }
}

impl Unit {
    /// The value with its unit: `32.4%`, `0.94`, `1.70k`.
    pub fn value(self, value: f64) -> String {
        self.0.value(value)
    }

    /// The value with its unit and as many more digits as tell it from a threshold that it is not.
    pub fn value_beside(self, value: f64, threshold: f64) -> String {
        self.0.against(value, threshold)
    }

    /// One standard error: `± 6.1`, `± 0.09`.
    pub fn error(self, error: f64) -> String {
        format!("± {}", self.0.error(error))
    }

    /// A distance without sign, rates in points: `2.6 pts`, `0.11`, `0.83k`.
    pub fn distance(self, distance: f64) -> String {
        self.0.distance(distance)
    }

    /// A difference with its sign, rates in points: `−9.5 pts`, `+0.02`.
    pub fn difference(self, difference: f64) -> String {
        self.0.difference(difference)
    }

    /// A threshold as it was typed, with its sign: `≤ 35%`, `≤ 1.05`, `≤ 5.0k`.
    pub fn threshold(self, threshold: f64) -> String {
        self.0.limit(threshold)
    }

    /// A value that someone chose, with the digits that they chose: `35%`, `37.5%`, `5.0k`.
    pub fn typed(self, value: f64) -> String {
        self.0.threshold(value)
    }

    /// A tick on an axis whose title names the unit, with as many digits as the step between ticks
    /// needs.
    pub fn tick(self, value: f64, step: f64) -> String {
        let (value, step) = (self.on_axis(value), self.on_axis(step));
        if value == 0.0 {
            return "0".to_owned();
        }
        let digits = if step >= 1.0 {
            0
        } else {
            (-step.log10()).ceil().clamp(0.0, 6.0) as usize
        };
        format::decimals(value, digits)
    }

    /// The ends that values of the unit cannot pass as long as none of them does: nothing measured
    /// here is expected below zero, and no rate above one.
    pub fn natural_bounds(self) -> (f64, f64) {
        match self.0 {
            Quantity::Rate => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        }
    }

    fn on_axis(self, value: f64) -> f64 {
        match self.0 {
            Quantity::Rate => value * 100.0,
            _ => value,
        }
    }
}

/// A number with a true minus and a fixed count of decimals; an en dash when it is not a number.
pub fn fixed(value: f64, decimals: usize) -> String {
    format::decimals(value, decimals)
}

/// A residual or a value of *J*: always with its sign, `+0.93`, `−0.07`.
pub fn signed(value: f64, decimals: usize) -> String {
    format::signed(value, decimals)
}

/// The first six hexadecimal digits of an id.
pub fn short(id: &str) -> String {
    id.chars().take(6).collect()
}
