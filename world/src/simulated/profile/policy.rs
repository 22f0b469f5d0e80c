//! The behaviours a system prompt can ask for.

use std::ops::{Index, IndexMut};

/// A behaviour that a simulated agent knows and a prompt can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Make sure who the customer is before anything else.
    VerifyIdentity,
    /// Look things up with the tools before asking the customer.
    LookUpFirst,
    /// Work from what is already known; do not repeat a call.
    ReuseKnown,
    /// Make as few calls as will do, batched where possible.
    MinimiseCalls,
    /// Ask for a yes before changing anything.
    ConfirmWrites,
    /// Check that the rules allow an action before taking it.
    CheckEligibility,
    /// Try every option before handing over to a person.
    ExhaustOptions,
    /// Hand over to a person only where the policy asks for it.
    TransferByPolicy,
    /// Think and plan step by step.
    PlanSteps,
    /// Answer in few words.
    BeBrief,
    /// Never guess or invent what is missing.
    NeverGuess,
    /// Sum up what was done at the end.
    Summarise,
    /// Refuse requests that would do harm.
    RefuseHarm,
    /// Help with what is harmless even if it sounds alarming.
    HelpHarmless,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 14] = [
        Self::VerifyIdentity,
        Self::LookUpFirst,
        Self::ReuseKnown,
        Self::MinimiseCalls,
        Self::ConfirmWrites,
        Self::CheckEligibility,
        Self::ExhaustOptions,
        Self::TransferByPolicy,
        Self::PlanSteps,
        Self::BeBrief,
        Self::NeverGuess,
        Self::Summarise,
        Self::RefuseHarm,
        Self::HelpHarmless,
    ];

    /// A short name for tests and screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::VerifyIdentity => "verify identity",
            Self::LookUpFirst => "look up first",
            Self::ReuseKnown => "reuse what is known",
            Self::MinimiseCalls => "minimise calls",
            Self::ConfirmWrites => "confirm writes",
            Self::CheckEligibility => "check eligibility",
            Self::ExhaustOptions => "exhaust options",
            Self::TransferByPolicy => "transfer by policy",
            Self::PlanSteps => "plan steps",
            Self::BeBrief => "be brief",
            Self::NeverGuess => "never guess",
            Self::Summarise => "summarise",
            Self::RefuseHarm => "refuse harm",
            Self::HelpHarmless => "help with the harmless",
        }
    }
}

/// A number for every policy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PerPolicy([f64; Policy::ALL.len()]);

impl Index<Policy> for PerPolicy {
    type Output = f64;

    fn index(&self, policy: Policy) -> &f64 {
        &self.0[policy as usize]
    }
}

impl IndexMut<Policy> for PerPolicy {
    fn index_mut(&mut self, policy: Policy) -> &mut f64 {
        &mut self.0[policy as usize]
    }
}
