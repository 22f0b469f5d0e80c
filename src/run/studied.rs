//! Formats of a study's metrics on screens.

use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::metrics::{Part, StudiedMetric};

use super::rounds::{ScreenRound, on_screen};
use crate::format::{self, Quantity};

/// What screens say of a metric.
pub trait Shown {
    /// How its values are written.
    fn quantity(&self) -> Quantity;

    /// Its name as a title: "Human requests".
    fn label(&self) -> String;

    /// Its name within a sentence: "human requests".
    fn phrase(&self) -> String;

    /// The title of its axis with its unit: "% of examples".
    fn axis(&self) -> String;

    /// The first round on screen in which it counts as a constraint; 0 from the seed on.
    fn enters(&self) -> ScreenRound;
}

impl Shown for StudiedMetric {
    fn quantity(&self) -> Quantity {
        Quantity::of(&self.spec)
    }

    fn label(&self) -> String {
        format::label(&self.spec.name)
    }

    fn phrase(&self) -> String {
        format::phrase(&self.spec.name)
    }

    fn axis(&self) -> String {
        match self.quantity() {
            Quantity::Rate => "% of examples".into(),
            Quantity::Thousands if self.name() == PROMPT_LENGTH => "thousand characters".into(),
            quantity => quantity.unit(&self.spec),
        }
    }

    fn enters(&self) -> ScreenRound {
        match self.part {
            Part::Constraint { from_round: 0, .. } | Part::Objective | Part::Measured => 0,
            Part::Constraint { from_round, .. } => on_screen(from_round),
        }
    }
}
