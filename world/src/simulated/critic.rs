//! The simulated critic: reads the evidence in its request and says what it sees there.
//!
//! It misses a stated share of what there is to see and sometimes blames the wrong cause; see
//! [`Sight`].

use std::fmt::Write;

use super::metric_concerns::{self, Concern};
use super::parameters::Parameters;
use super::phrases::{self, Force};
use super::profile::{PerPolicy, Policy, Profile};
use super::random::Draw;
use super::review::{Issue, Review};
use super::trace_reading;

/// How well the critic sees, as probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// An event in a trace goes unnoticed.
    pub misses: f64,
    /// The cause named for an issue is some other than the one seen.
    pub blames_wrongly: f64,
}

impl Sight {
    /// The sight of a model.
    pub fn of(parameters: &Parameters) -> Self {
        let carelessness = 1.0 - parameters.competence;
        Self {
            misses: 0.1 + 0.6 * carelessness,
            blames_wrongly: 0.45 * carelessness,
        }
    }
}

/// Answers a request to criticise a prompt.
pub(super) fn answer(review: &Review<'_>, parameters: &Parameters, draw: Draw) -> String {
    let draw = draw.named("critic").named(review.prompt);
    let sight = Sight::of(parameters);
    let mut issues: Vec<&Issue> = review.issues.iter().collect();
    issues.sort_by(|a, b| importance(b).total_cmp(&importance(a)));
    let seen = Seen::read(review.feedback, sight, draw.named("sight"));
    let profile = Profile::read(review.prompt);
    let mut text = String::new();
    for issue in issues {
        // Writing to a string cannot fail.
        let _ = report(
            &mut text,
            issue,
            &seen,
            &profile,
            sight,
            draw.named(&issue.metric),
        );
    }
    if text.is_empty() {
        "I see nothing in the evidence that the prompt could change.".into()
    } else {
        text
    }
}

/// The reasons a critic's account gives, at most so many: what it saw, with what it would ask for.
pub(super) fn reasons(account: &str, most: usize) -> Vec<String> {
    let told = |line: &&str| line.contains("should ask: ") || line.starts_with("Soften: ");
    let reasons: Vec<String> = account
        .lines()
        .filter(told)
        .take(most)
        .map(str::to_owned)
        .collect();
    if reasons.is_empty() {
        vec![account.trim().to_owned()]
    } else {
        reasons
    }
}

/// How important a critic finds an issue: violated constraints by weight and size, then the
/// objective, then what is satisfied.
fn importance(issue: &Issue) -> f64 {
    if issue.objective {
        0.5 * issue.residual
    } else if issue.residual > 0.0 {
        issue.weight.max(0.05) * (0.15 + issue.residual)
    } else {
        -1.0
    }
}

fn report(
    text: &mut String,
    issue: &Issue,
    seen: &Seen,
    profile: &Profile,
    sight: Sight,
    draw: Draw,
) -> std::fmt::Result {
    let concern = metric_concerns::concern(&issue.metric, issue.objective);
    if !issue.objective && issue.residual <= 0.0 {
        return writeln!(text, "`{}` is within its threshold; leave it.", issue.metric);
    }
    if concern == Concern::PromptLength {
        return writeln!(
            text,
            "`{}` is violated: the prompt has become too long, and repeated or empty sentences can go.",
            issue.metric
        );
    }
    let state = if issue.objective {
        "falls short"
    } else {
        "is violated"
    };
    writeln!(
        text,
        "`{}` {state} (weight {:.2}), {} cases seen.",
        issue.metric, issue.weight, seen.cases
    )?;
    let leanings = metric_concerns::leanings(concern);
    let mut named: Option<Policy> = None;
    for rank in 0..2 {
        let draw = draw.at(rank);
        let blamed = if draw.named("wrong").chance(sight.blames_wrongly) {
            Some(Policy::ALL[draw.named("blamed").pick(Policy::ALL.len())])
        } else {
            let weights: Vec<f64> = leanings
                .iter()
                .map(|&(policy, leaning)| {
                    // What the prompt does not yet ask for is the likelier cause.
                    let lacking = 1.15 - profile.strength(policy);
                    if leaning > 0.0 && named != Some(policy) {
                        seen.lacking[policy] * leaning * lacking
                    } else {
                        0.0
                    }
                })
                .collect();
            draw.named("cause")
                .weighted(&weights)
                .map(|index| leanings[index].0)
        };
        if let Some(policy) = blamed.filter(|policy| named != Some(*policy)) {
            named = Some(policy);
            // Who blames wrongly believes to have seen it.
            let cases = seen.lacking[policy].max(1.0);
            let advice = phrases::sentence(policy, Force::Plain, draw.named("advice"));
            writeln!(
                text,
                "In {cases} of them the agent {}. The prompt should ask: {advice}",
                complaint(policy)
            )?;
        }
    }
    // A strongly stated instruction that is known to work against a violated constraint.
    let against = leanings
        .iter()
        .filter(|(policy, leaning)| *leaning < 0.0 && profile.strength(*policy) > 0.6)
        .map(|(policy, _)| *policy)
        .next();
    if let Some(policy) = against
        && draw.named("soften").chance(0.7)
    {
        writeln!(
            text,
            "Soften: {}",
            phrases::sentence(policy, Force::Plain, draw.named("against"))
        )?;
    }
    Ok(())
}

/// What the critic says the agent did when a policy is lacking. Worded so that a reader of the
/// feedback does not take it for a recommendation.
fn complaint(policy: Policy) -> &'static str {
    match policy {
        Policy::VerifyIdentity => "went ahead although it was unclear with whom",
        Policy::LookUpFirst => "put questions whose answers were at hand",
        Policy::ReuseKnown => "did the same work more than one time",
        Policy::MinimiseCalls => "needed a great deal of calls",
        Policy::ConfirmWrites => "went ahead unasked",
        Policy::CheckEligibility => "did what it could have known to be impossible",
        Policy::ExhaustOptions => "gave up soon",
        Policy::TransferByPolicy => "gave the conversation away, or kept it, for the wrong reason",
        Policy::PlanSteps => "lost the thread",
        Policy::BeBrief => "was wordy",
        Policy::NeverGuess => "took something for granted that proved wrong",
        Policy::Summarise => "left the outcome unsaid",
        Policy::RefuseHarm => "went along with what it had better left alone",
        Policy::HelpHarmless => "turned away what was fine",
    }
}

/// What was noticed in the evidence.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    cases: usize,
    /// Per policy, the number of cases in which its lack was noticed.
    lacking: PerPolicy,
}

impl Seen {
    fn read(evidence: &str, sight: Sight, draw: Draw) -> Self {
        let mut seen = Self::default();
        for (index, case) in trace_reading::cases(evidence).into_iter().enumerate() {
            seen.cases += 1;
            for policy in trace_reading::lacks(case) {
                if !draw.at(index).named(policy.name()).chance(sight.misses) {
                    seen.lacking[policy] += 1.0;
                }
            }
        }
        seen
    }
}

/// For a rewriter that is given traces instead of a summary: what it would ask for to mend each
/// issue (by position). Whoever writes as well as reads has less of an eye for detail: it misses
/// half of what a critic of its competence would see.
pub(super) fn conduct_advice(
    review: &Review<'_>,
    parameters: &Parameters,
    draw: Draw,
) -> Vec<(usize, Policy)> {
    let sight = Sight::of(parameters);
    let casual = Sight {
        misses: 0.5 + 0.5 * sight.misses,
        ..sight
    };
    let seen = Seen::read(review.feedback, casual, draw);
    let mut found = Vec::new();
    for (index, issue) in review.issues.iter().enumerate() {
        let concern = metric_concerns::concern(&issue.metric, issue.objective);
        for &(policy, leaning) in metric_concerns::leanings(concern) {
            if leaning > 0.0
                && draw
                    .at(index)
                    .named(policy.name())
                    .chance(seen.lacking[policy] / seen.cases.max(1) as f64)
            {
                found.push((index, policy));
            }
        }
    }
    found
}
