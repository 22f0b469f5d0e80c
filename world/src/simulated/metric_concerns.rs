//! Common knowledge of which instruction bears on which kind of metric.
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

/// Words of names and the concern they speak of. The first that stands in a name decides, so that
/// what is told by several words comes before what is told by one of them.
///
/// A cue is words that follow each other in the name; `refus*` is the beginning of a word.
const CUES: [(Concern, &[&str]); 11] = [
    (Concern::PromptLength, &["prompt length", "prompt size", "plen"]),
    (
        Concern::Handovers,
        &[
            "human",
            "humans",
            "transfer*",
            "escalat*",
            "handover*",
            "handoff*",
            "hand over*",
            "hand off*",
            "har",
        ],
    ),
    (
        Concern::OverRefusal,
        &["over refus*", "overrefus*", "false refus*", "benign", "harmless*"],
    ),
    (
        Concern::Harm,
        &[
            "harm*",
            "unsafe",
            "attack*",
            "refus*",
            "safety",
            "jailbreak*",
            "toxic*",
        ],
    ),
    (Concern::Violations, &["violation*", "policy"]),
    (
        Concern::CallErrors,
        &["tool error*", "call error*", "failed call*", "failed tool*"],
    ),
    (
        Concern::Calls,
        &[
            "tool*", "call", "calls", "repeat*", "action", "actions", "step", "steps",
        ],
    ),
    (Concern::Turns, &["turn", "turns", "message", "messages"]),
    (
        Concern::Wordiness,
        &[
            "verbos*",
            "length*",
            "long*",
            "char",
            "chars",
            "character*",
            "word",
            "words",
            "wordiness",
            "token*",
        ],
    ),
    (
        Concern::Latency,
        &[
            "latenc*", "second", "seconds", "time", "times", "runtime", "duration", "cost*", "usd", "price",
        ],
    ),
    (
        Concern::Accuracy,
        &["error*", "accura*", "wrong*", "count*", "exact*", "numeric*"],
    ),
];

/// Words that say that an objective is about tasks done right, whatever the tasks are about.
const SUCCESS: [&str; 5] = ["success*", "pass", "passed", "resol*", "reward*"];

/// The kind of metric a name speaks of.
pub(super) fn concern(metric: &str, objective: bool) -> Concern {
    let words = name_words(metric);
    let has = |cues: &[&str]| cues.iter().any(|cue| holds(&words, cue));
    if objective && has(&SUCCESS) {
        return Concern::Success;
    }
    let told = CUES.iter().find(|(_, cues)| has(cues));
    match told {
        Some((concern, _)) => *concern,
        None if objective => Concern::Accuracy,
        None => Concern::Success,
    }
}

/// The words of a name such as `excess_tools`, `excess-tools` or `excessTools`, in lower case.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for character in name.chars() {
        let parts = !character.is_alphanumeric();
        if parts || (after_small && character.is_uppercase()) {
            words.push(String::new());
        }
        if !parts && let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        after_small = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the words of a cue follow each other in a name.
fn holds(words: &[String], cue: &str) -> bool {
    let cue: Vec<&str> = cue.split(' ').collect();
    words.windows(cue.len()).any(|seen| {
        seen.iter()
            .zip(&cue)
            .all(|(word, cue)| match cue.strip_suffix('*') {
                Some(beginning) => word.starts_with(beginning),
                None => word == cue,
            })
    })
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
            ("har", false, Concern::Handovers),
            ("human-handovers", false, Concern::Handovers),
            ("overRefusal", false, Concern::OverRefusal),
            ("prompt length", false, Concern::PromptLength),
            ("harmless_refused", false, Concern::OverRefusal),
            ("response_time", false, Concern::Latency),
            ("cost_usd", false, Concern::Latency),
            ("avgTokens", false, Concern::Wordiness),
            // The objective's own words come first.
            ("tool_success", true, Concern::Success),
            ("pass_rate", true, Concern::Success),
            ("policy_pass", true, Concern::Success),
            ("tasks_resolved", true, Concern::Success),
            ("exact_match", true, Concern::Accuracy),
            ("word_count", true, Concern::Wordiness),
            // Words that only hold the letters of another.
            ("satisfaction", false, Concern::Success),
            ("satisfaction", true, Concern::Accuracy),
            ("sentiment", false, Concern::Success),
            ("return_rate", false, Concern::Success),
            ("shared_facts", false, Concern::Success),
            ("recall", true, Concern::Accuracy),
            ("charity", false, Concern::Success),
        ] {
            assert_eq!(concern(metric, objective), expected, "{metric}");
        }
    }
}
