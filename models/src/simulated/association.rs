//! What everybody knows about which instruction bears on which kind of metric.
//!
//! The critic and the rewriter judge a metric by the words of its name, as a person would who
//! sees it for the first time. They know none of the world's parameters: these leanings are rough
//! and some of them are wrong for a given agent.

use super::profile::Policy;
use super::profile::Policy::{
    BeBrief, CheckEligibility, ConfirmWrites, ExhaustOptions, HelpHarmless, LookUpFirst, MinimiseCalls,
    NeverGuess, PlanSteps, RefuseHarm, ReuseKnown, Summarise, TransferByPolicy, VerifyIdentity,
};

/// A kind of metric, recognised by words in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// Tasks done right.
    Success,
    /// Conversations handed to people.
    Handovers,
    /// Tool calls made.
    Calls,
    /// Tool calls that failed.
    CallErrors,
    /// Actions against the rules.
    Violations,
    /// Length of the conversation.
    Turns,
    /// Length of the answers.
    Wordiness,
    /// Time and money.
    Latency,
    /// Length of the prompt itself.
    PromptLength,
    /// Harmful requests answered.
    Harm,
    /// Harmless requests refused.
    OverRefusal,
    /// Wrong answers.
    Accuracy,
}

/// The kind of metric a name speaks of.
pub(super) fn concern(metric: &str, objective: bool) -> Concern {
    let name = metric.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["prompt_length", "prompt length", "plen"]) {
        Concern::PromptLength
    } else if has(&["human", "transfer", "escalat", "handover", "har"]) && !has(&["harm", "char"]) {
        Concern::Handovers
    } else if has(&["over_refus", "overrefus", "over-refus", "benign", "harmless"]) {
        Concern::OverRefusal
    } else if has(&["harm", "unsafe", "attack", "refus", "safety", "jailbreak"]) {
        Concern::Harm
    } else if has(&["violation", "policy"]) {
        Concern::Violations
    } else if has(&["tool_error", "call_error", "failed_call"]) {
        Concern::CallErrors
    } else if has(&["tool", "call", "repeat", "action", "step"]) {
        Concern::Calls
    } else if has(&["turn", "message"]) {
        Concern::Turns
    } else if has(&["verbos", "length", "long", "char", "word", "token"]) {
        Concern::Wordiness
    } else if has(&["latency", "second", "time", "cost", "usd"]) {
        Concern::Latency
    } else if objective && has(&["success", "pass", "resolve", "reward"]) {
        Concern::Success
    } else if objective || has(&["error", "accuracy", "wrong", "count", "exact", "numeric"]) {
        Concern::Accuracy
    } else {
        Concern::Success
    }
}

/// Which instructions are commonly held to better a metric (positive) or to worsen it (negative).
pub(super) fn leanings(concern: Concern) -> &'static [(Policy, f64)] {
    match concern {
        Concern::Success => &[
            (CheckEligibility, 1.0),
            (PlanSteps, 1.0),
            (NeverGuess, 0.9),
            (LookUpFirst, 0.7),
            (ConfirmWrites, 0.7),
            (TransferByPolicy, 0.6),
            (VerifyIdentity, 0.5),
            (Summarise, 0.4),
            (MinimiseCalls, -0.4),
            (BeBrief, -0.3),
        ],
        Concern::Handovers => &[
            (ExhaustOptions, 1.0),
            (TransferByPolicy, 0.9),
            (LookUpFirst, 0.5),
            (PlanSteps, 0.2),
            (MinimiseCalls, -0.4),
        ],
        Concern::Calls => &[
            (ReuseKnown, 1.0),
            (MinimiseCalls, 1.0),
            (PlanSteps, 0.2),
            (VerifyIdentity, -0.3),
            (ExhaustOptions, -0.5),
            (CheckEligibility, -0.2),
        ],
        Concern::CallErrors => &[
            (NeverGuess, 1.0),
            (CheckEligibility, 0.6),
            (LookUpFirst, 0.6),
            (MinimiseCalls, -0.3),
        ],
        Concern::Violations => &[
            (ConfirmWrites, 1.0),
            (CheckEligibility, 1.0),
            (VerifyIdentity, 0.9),
            (BeBrief, -0.2),
        ],
        Concern::Turns => &[
            (LookUpFirst, 1.0),
            (BeBrief, 0.5),
            (ConfirmWrites, -0.6),
            (Summarise, -0.2),
        ],
        Concern::Wordiness => &[(BeBrief, 1.0), (Summarise, -0.6), (PlanSteps, -0.3)],
        Concern::Latency => &[
            (BeBrief, 0.9),
            (MinimiseCalls, 0.7),
            (ReuseKnown, 0.5),
            (PlanSteps, -0.7),
            (Summarise, -0.3),
        ],
        Concern::PromptLength => &[],
        Concern::Harm => &[(RefuseHarm, 1.0), (HelpHarmless, -0.4)],
        Concern::OverRefusal => &[(HelpHarmless, 1.0), (RefuseHarm, -0.4)],
        Concern::Accuracy => &[(PlanSteps, 1.0), (NeverGuess, 0.5), (BeBrief, -0.4)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_concern() {
        for (metric, objective, expected) in [
            ("success", true, Concern::Success),
            ("human_requests", false, Concern::Handovers),
            ("excess_tools", false, Concern::Calls),
            ("repeated_calls", false, Concern::Calls),
            ("tool_errors", false, Concern::CallErrors),
            ("policy_violations", false, Concern::Violations),
            ("prompt_length", false, Concern::PromptLength),
            ("verbosity", false, Concern::Wordiness),
            ("long_answers", false, Concern::Wordiness),
            ("latency", false, Concern::Latency),
            ("turns", false, Concern::Turns),
            ("unsafe_answers", false, Concern::Harm),
            ("over_refusal", false, Concern::OverRefusal),
            ("numeric", true, Concern::Accuracy),
            ("counting_error", false, Concern::Accuracy),
            ("characters", false, Concern::Wordiness),
        ] {
            assert_eq!(concern(metric, objective), expected, "{metric}");
        }
    }
}
