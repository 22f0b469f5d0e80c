//! Numbers as Python's operators take them, and as pydantic reads them.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::python;
use super::tool::{ToolError, fail};

/// A Python number that came from JSON.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// An `int`.
    Int(i128),
    /// A `float`.
    Float(f64),
}

impl Number {
    /// Reads an operand; booleans are 0 and 1.
    ///
    /// # Errors
    /// For what Python does not calculate with.
    pub(super) fn of(value: &Value) -> Result<Self, ToolError> {
        match value {
            Value::Bool(flag) => Ok(Self::Int(i128::from(*flag))),
            Value::Number(number) => Ok(match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(int), ..) => Self::Int(i128::from(int)),
                (_, Some(int), _) => Self::Int(i128::from(int)),
                (.., float) => Self::Float(float.unwrap_or(f64::NAN)),
            }),
            other => fail(format!("unsupported operand: {}", python::repr(other))),
        }
    }

    /// As a float.
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    fn with(self, other: Self, ints: fn(i128, i128) -> i128, floats: fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Self::Int(ints(a, b)),
            (a, b) => Self::Float(floats(a.float(), b.float())),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, i128::saturating_add, |a, b| a + b)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.with(other, i128::saturating_sub, |a, b| a - b)
    }

    pub(super) fn times(self, other: Self) -> Self {
        self.with(other, i128::saturating_mul, |a, b| a * b)
    }

    /// The larger one, or zero.
    pub(super) fn or_zero(self) -> Self {
        if self.float() > 0.0 { self } else { Self::Int(0) }
    }

    /// Whether both are the same number, of whatever type.
    pub(super) fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (a, b) => a.float() == b.float(),
        }
    }

    /// As `str` prints it.
    pub(super) fn text(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float) => python::float(float),
        }
    }

    /// The whole number that a model's field of type `int` takes it for.
    pub(super) fn whole(self) -> Option<i64> {
        match self {
            Self::Int(int) => i64::try_from(int).ok(),
            Self::Float(float) => (float.fract() == 0.0 && float.abs() < 9.0e18).then_some(float as i64),
        }
    }
}

/// A field of type `int`: whole numbers, however written, booleans, and texts of digits.
pub(super) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let whole = text
                .split_once('.')
                .filter(|(_, zeros)| zeros.chars().all(|char| char == '0'));
            whole.map_or(text, |(whole, _)| whole).parse().ok()
        }
        other => Number::of(other).ok()?.whole(),
    }
}

/// A field of type `float`. Texts may name infinity, which JSON does not have and is refused.
pub(super) fn float(value: &Value) -> Option<f64> {
    let number: f64 = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => Number::of(other).ok()?.float(),
    };
    number.is_finite().then_some(number)
}

/// Reads a field of type `int`, for `#[serde(deserialize_with)]`.
pub(super) fn lax_int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    int(&value)
        .ok_or_else(|| serde::de::Error::custom(format_args!("{} is no whole number", python::repr(&value))))
}

/// Reads a field of type `float`, for `#[serde(deserialize_with)]`.
pub(super) fn lax_float<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    float(&value)
        .ok_or_else(|| serde::de::Error::custom(format_args!("{} is no number", python::repr(&value))))
}
