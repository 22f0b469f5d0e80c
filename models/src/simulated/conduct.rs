//! What can be seen in a trace: the agent's conduct, read line by line.
//!
//! The lines are those that evidence is rendered with: `user:`, `agent:`, `agent calls:`, `tool:`,
//! `Outcome:`. A case begins at a line that starts with `#### `.

use super::profile::Policy;

/// Answers longer than this many characters strike a reader as long.
const LONG_ANSWER: usize = 320;

/// Calls in one conversation that strike a reader as many.
const MANY_CALLS: usize = 7;

/// Splits evidence into its cases.
pub(super) fn cases(evidence: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = evidence
        .match_indices("#### ")
        .map(|(at, _)| at)
        .filter(|&at| at == 0 || evidence.as_bytes()[at - 1] == b'\n')
        .collect();
    if starts.is_empty() && !evidence.trim().is_empty() {
        starts.push(0);
    }
    starts
        .iter()
        .enumerate()
        .map(|(index, &start)| &evidence[start..starts.get(index + 1).copied().unwrap_or(evidence.len())])
        .collect()
}

/// Reads one case: the policies whose lack shows in it.
pub(super) fn lacks(case: &str) -> Vec<Policy> {
    let mut lacks = Vec::new();
    let mut calls: Vec<&str> = Vec::new();
    let mut verified = false;
    let mut proposed = false;
    for line in case.lines() {
        let Some((who, what)) = line.split_once(": ") else {
            continue;
        };
        match who {
            "agent calls" => {
                let name = what.split('(').next().unwrap_or(what);
                if calls.contains(&what) {
                    lacks.push(Policy::ReuseKnown);
                }
                calls.push(what);
                if is_transfer(name) {
                    lacks.push(Policy::TransferByPolicy);
                    if calls.len() <= 5 {
                        lacks.push(Policy::ExhaustOptions);
                    }
                } else if is_write(name) {
                    if !proposed {
                        lacks.push(Policy::ConfirmWrites);
                    }
                    if !verified {
                        lacks.push(Policy::VerifyIdentity);
                    }
                }
            }
            "agent" => {
                let lower = what.to_lowercase();
                proposed |=
                    lower.contains("shall i") || lower.contains("should i") || lower.contains("confirm");
                if lower.contains('?')
                    && (lower.contains("order number")
                        || lower.contains("which order")
                        || lower.contains("when did"))
                {
                    lacks.push(Policy::LookUpFirst);
                }
                if what.len() > LONG_ANSWER {
                    lacks.push(Policy::BeBrief);
                }
                if lower.contains("i'm sorry, but i can") || lower.contains("i cannot help with") {
                    lacks.push(Policy::HelpHarmless);
                }
            }
            "tool" => {
                verified |= what.contains("\"verified\":true");
                if what.contains("\"error\"") {
                    lacks.push(Policy::NeverGuess);
                    lacks.push(Policy::CheckEligibility);
                }
            }
            "Outcome" => lacks.extend(told_by_outcome(&what.to_lowercase())),
            _ => {}
        }
    }
    if calls.len() >= MANY_CALLS {
        lacks.push(Policy::MinimiseCalls);
    }
    lacks.sort_unstable();
    lacks.dedup();
    lacks
}

/// Cues in the workload's own account of what went wrong.
fn told_by_outcome(outcome: &str) -> Vec<Policy> {
    const CUES: [(&[&str], Policy); 9] = [
        (
            &[
                "not allowed",
                "not eligible",
                "against the policy",
                "ineligible",
                "should have been refused",
                "breaks the",
                "broke the",
            ],
            Policy::CheckEligibility,
        ),
        (
            &[
                "not confirmed",
                "unconfirmed",
                "without a yes",
                "without confirmation",
            ],
            Policy::ConfirmWrites,
        ),
        (
            &["unverified", "not verified", "without verifying"],
            Policy::VerifyIdentity,
        ),
        (
            &["wrong", "different from", "instead of", "unexpected"],
            Policy::NeverGuess,
        ),
        (
            &[
                "missing",
                "did not happen",
                "not done",
                "never made",
                "unchanged",
                "not changed",
            ],
            Policy::PlanSteps,
        ),
        (
            &[
                "not told",
                "never told",
                "was not said",
                "not mention",
                "did not tell",
            ],
            Policy::Summarise,
        ),
        (
            &[
                "no reason to transfer",
                "without reason",
                "should not have been transferred",
                "not expected",
                "needless transfer",
                "unneeded transfer",
            ],
            Policy::TransferByPolicy,
        ),
        (
            &[
                "should have been transferred",
                "transfer was expected",
                "not transferred",
                "no transfer",
            ],
            Policy::TransferByPolicy,
        ),
        (&["expected", "answer was", "incorrect"], Policy::PlanSteps),
    ];
    CUES.iter()
        .filter(|(cues, _)| cues.iter().any(|cue| outcome.contains(cue)))
        .map(|(_, policy)| *policy)
        .collect()
}

/// Whether a tool's name says that it hands the conversation to a person.
pub(super) fn is_transfer(name: &str) -> bool {
    ["transfer", "escalate", "handover", "hand_over"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether a tool's name says that it changes something.
pub(super) fn is_write(name: &str) -> bool {
    const VERBS: [&str; 14] = [
        "cancel", "return", "exchange", "change", "book", "update", "create", "delete", "modify", "send",
        "set", "refund", "move", "add",
    ];
    let verb = name.split('_').next().unwrap_or(name);
    VERBS.contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conduct_is_seen() {
        let case = "#### Example 3\nMeasured: success = 0\nuser: cancel it\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}\nagent calls: cancel_order({\"order_id\":\"O-1\"})\ntool: {\"error\":\"shipped\"}\nagent calls: transfer_to_human({\"reason\":\"x\"})\ntool: {}\nOutcome: the transfer was without reason";
        let lacks = lacks(case);
        for policy in [
            Policy::ReuseKnown,
            Policy::ConfirmWrites,
            Policy::VerifyIdentity,
            Policy::NeverGuess,
            Policy::TransferByPolicy,
            Policy::ExhaustOptions,
        ] {
            assert!(lacks.contains(&policy), "{}", policy.name());
        }
        assert!(!lacks.contains(&Policy::MinimiseCalls));
        assert!(!lacks.contains(&Policy::BeBrief));
    }

    #[test]
    fn evidence_falls_into_cases() {
        assert_eq!(
            cases("### Group\n\n#### Example a\nx\n#### Example b\ny").len(),
            2
        );
        assert_eq!(cases("just text").len(), 1);
        assert!(cases("").is_empty());
    }
}
