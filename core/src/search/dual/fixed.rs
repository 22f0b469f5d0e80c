//! No dual step.

use super::{DualSettings, DualStep, Residuals};
use crate::study::score::Multipliers;

/// Multipliers stay where they started: the static weighting CAPO is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fixed;

impl Fixed {
    /// Without hyperparameters.
    pub fn new(_: &DualSettings) -> Self {
        Self
    }
}

impl DualStep for Fixed {
    fn step(&mut self, multipliers: &Multipliers, _: &Residuals) -> Multipliers {
        multipliers.clone()
    }
}
