//! Reading of traces: the agent's conduct, line by line.
//!
//! The lines are those that evidence is rendered with: `user:`, `agent:`, `agent calls:`, `tool:`,
//! `Outcome:`. A case begins at a heading `Example`, of any level, and its outcome is all that stands from `Outcome:` on,
//! or, in the words of others, under a heading `Feedback`.

use super::profile::Policy;

/// Answers longer than this many characters strike a reader as long.
const LONG_ANSWER: usize = 320;

/// Calls in one conversation that strike a reader as many.
const MANY_CALLS: usize = 7;

/// How our own evidence heads a case.
const CASE: &str = "#### Example ";

/// Whether feedback holds cases themselves instead of somebody's account of them.
pub(super) fn holds_cases(feedback: &str) -> bool {
    feedback.lines().any(heads_case)
}

/// Whether a line is a heading such as `## Example 3`, of any level.
fn heads_case(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    title.len() < line.len() && title.starts_with(" Example ")
}

/// Splits evidence into its cases.
pub(super) fn cases(evidence: &str) -> Vec<&str> {
    let ours = evidence.lines().any(|line| line.starts_with(CASE));
    let mut starts = Vec::new();
    let mut offset = 0;
    for line in evidence.split_inclusive('\n') {
        // Beside our own headings others are part of what is quoted.
        let heads = if ours {
            line.starts_with(CASE)
        } else {
            heads_case(line)
        };
        if heads {
            starts.push(offset);
        }
        offset += line.len();
    }
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
    let (events, outcome) = case
        .split_once("\nOutcome: ")
        .or_else(|| case.split_once("# Feedback\n"))
        .unwrap_or((case, ""));
    let outcome = outcome.to_lowercase();
    let mut lacks: Vec<Policy> = outcome.lines().flat_map(told_by_outcome).collect();
    let mut calls: Vec<&str> = Vec::new();
    let (mut verified, mut proposed) = (false, false);
    for line in events.lines() {
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
                if is_transfer(name) && !outcome.contains("a human was right") {
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
                verified |= lower.contains("who you are");
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
                if what.contains("\"error\"") || what.starts_with("Error:") {
                    lacks.push(Policy::NeverGuess);
                    lacks.push(Policy::CheckEligibility);
                }
            }
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

/// What a line of the workload's own account says that the agent lacked, told by its words. `line`
/// is in lower case.
fn told_by_outcome(line: &str) -> Vec<Policy> {
    const CUES: [(&[&str], Policy); 10] = [
        (
            &[
                "although",
                "not allowed",
                "not eligible",
                "against the policy",
                "ineligible",
                "should have been refused",
            ],
            Policy::CheckEligibility,
        ),
        (
            &[
                "not confirmed",
                "unconfirmed",
                "customer's yes",
                "without confirmation",
            ],
            Policy::ConfirmWrites,
        ),
        (
            &["unverified", "not verified", "was verified", "without verifying"],
            Policy::VerifyIdentity,
        ),
        (
            &[
                "wrong",
                "different from",
                "nobody needed",
                "unexpected",
                "not as they should be",
                "not what the task needs",
            ],
            Policy::NeverGuess,
        ),
        (
            &[
                "missing",
                "did not happen",
                "not done",
                "never made",
                "did not call",
                "used up its steps",
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
                "without need",
                "no reason to transfer",
                "gives no reason",
                "should not have been handed",
                "human and was not",
                "should have been handed to",
                "should have been transferred",
            ],
            Policy::TransferByPolicy,
        ),
        (&["without need", "gives no reason"], Policy::ExhaustOptions),
        (&["repeated call"], Policy::ReuseKnown),
        (&["expected", "answer was", "incorrect"], Policy::PlanSteps),
    ];
    CUES.iter()
        .filter(|(cues, _)| cues.iter().any(|cue| line.contains(cue)))
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
    const VERBS: [&str; 19] = [
        "cancel", "return", "exchange", "change", "book", "update", "create", "delete", "modify", "send",
        "set", "refund", "move", "add", "enable", "disable", "suspend", "resume", "refuel",
    ];
    let verb = name.split('_').next().unwrap_or(name);
    VERBS.contains(&verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conduct_is_seen() {
        let case = "#### Example 3\nMeasured: success = 0\nuser: cancel it\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}\nagent calls: cancel_order({\"order_id\":\"O-1\"})\ntool: {\"error\":\"shipped\"}\nagent calls: transfer_to_human({\"reason\":\"x\"})\ntool: {}\nOutcome: The task was not solved.\nThe dialogue was handed to a human without need.";
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
    fn the_workloads_account_is_read_line_by_line() {
        let told = |finding: &str| {
            lacks(&format!(
                "#### Example 1\nuser: hello\nagent: hello\nOutcome: The task was not solved.\n{finding}"
            ))
        };
        for (finding, expected) in [
            (
                "Missing: order O-1042, state, should have become \"cancelled\".",
                &[Policy::PlanSteps][..],
            ),
            (
                "Wrong: slot T-041, booked_by, became \"C-2001\", which nobody needed.",
                &[Policy::NeverGuess],
            ),
            (
                "The customer was not told that clearance items are not taken back.",
                &[Policy::Summarise],
            ),
            (
                "The dialogue should have been handed to a human and was not.",
                &[Policy::TransferByPolicy],
            ),
            (
                "The dialogue was handed to a human without need.",
                &[Policy::ExhaustOptions, Policy::TransferByPolicy],
            ),
            (
                "Policy: cancel_order on O-1042 before its owner was verified.",
                &[Policy::VerifyIdentity],
            ),
            (
                "Policy: cancel_order on O-1042 without the customer's yes to it.",
                &[Policy::ConfirmWrites],
            ),
            (
                "Policy: return_items on O-1042 although clearance items are final.",
                &[Policy::CheckEligibility],
            ),
            (
                "Repeated call: get_order with {\"order_id\":\"O-1042\"}.",
                &[Policy::ReuseKnown],
            ),
            (
                "The agent used up its steps before the customer was done.",
                &[Policy::PlanSteps],
            ),
        ] {
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(told(finding), expected, "{finding}");
        }
        assert_eq!(told("Handing the dialogue to a human was right."), []);
    }

    #[test]
    fn a_handover_that_was_right_is_no_fault() {
        let case = "#### Example 1\nagent calls: transfer_to_human({})\ntool: {}\nOutcome: The task was solved.\nHanding the dialogue to a human was right.";
        assert_eq!(lacks(case), []);
    }

    #[test]
    fn feedback_under_a_heading_is_read_as_an_outcome() {
        let case = "# Example 1\n## Inputs\ncancel it\n\n## Generated Outputs\nagent: Done.\n\n## Feedback\nThe customer was not told that clearance items are not taken back.\n";
        assert_eq!(lacks(case), [Policy::Summarise]);
        assert_eq!(cases(&format!("{case}\n\n{case}")).len(), 2);
        assert!(holds_cases(case));
    }

    #[test]
    fn evidence_falls_into_cases() {
        assert_eq!(
            cases("### Group\n\n#### Example a\nx\n#### Example b\ny").len(),
            2
        );
        assert_eq!(
            cases("#### Example 1\nagent: The answer is 42.\n#### 42\nOutcome: Right.").len(),
            1
        );
        assert_eq!(cases("just text").len(), 1);
        assert!(cases("").is_empty());
    }
}
