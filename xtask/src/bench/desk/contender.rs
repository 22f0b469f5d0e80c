//! What searches for prompts in a comparison.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// The paper's search.
    Capo,
    /// The same with every multiplier fixed at 1.
    Fixed,
    /// The same with caution, and with fixed multipliers besides.
    Cautious,
    CautiousFixed,
    /// With caution until the budget is spent, the same with batches that grow, and that with a small pool, which is how the
    /// help desk is shipped.
    CautiousUntilBudget,
    Growing,
    GrowingSmallPool,
    /// As it is shipped but for batches that grow, and but for caution.
    SmallPool,
    Incautious,
    /// GEPA with the Lagrangian score at multipliers of 1.
    GepaSigned,
    /// GEPA with success less what exceeds the thresholds.
    GepaHinge,
}

impl Contender {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Capo => "capo",
            Self::Fixed => "fixed",
            Self::Cautious => "cautious",
            Self::CautiousFixed => "cautious-fixed",
            Self::CautiousUntilBudget => "cautious-until",
            Self::Growing => "growing",
            Self::GrowingSmallPool => "growing-small-pool",
            Self::SmallPool => "small-pool",
            Self::Incautious => "no-caution",
            Self::GepaSigned => "gepa-signed",
            Self::GepaHinge => "gepa-hinge",
        }
    }
}
