//! Phrases by which the simulated rewriter and critic put policies into words.
//!
//! All wordings are our own. `{a|b|c}` stands for one of several words, drawn anew each time.

use super::profile::Policy;
use super::random::Draw;

/// How strongly a sentence is to be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// With a hedge.
    Soft,
    /// Plainly.
    Plain,
    /// With emphasis.
    Strong,
}

/// A sentence that asks for a policy.
pub(super) fn sentence(policy: Policy, force: Force, draw: Draw) -> String {
    let wordings = wordings(policy);
    let pattern = wordings[draw.named("wording").pick(wordings.len())];
    let sentence = vary(pattern, draw);
    match force {
        Force::Plain => sentence,
        Force::Soft => {
            let opening = [
                "Where practical, ",
                "If possible, ",
                "In most cases, ",
                "As a rule of thumb, ",
            ];
            format!(
                "{}{}",
                opening[draw.named("soft").pick(opening.len())],
                lower_first(&sentence)
            )
        }
        Force::Strong => {
            let opening = [
                "Important: ",
                "In every case: ",
                "Without exception: ",
                "At all times: ",
            ];
            format!(
                "{}{}",
                opening[draw.named("strong").pick(opening.len())],
                lower_first(&sentence)
            )
        }
    }
}

/// A sentence that asks for the opposite of a policy.
pub(super) fn contradiction(policy: Policy, draw: Draw) -> String {
    vary(
        match policy {
            Policy::VerifyIdentity => "There is no need to verify the {customer|user}'s identity.",
            Policy::LookUpFirst => "Ask the {customer|user} for the details before you look anything up.",
            Policy::ReuseKnown => "Call the tool again {before each answer|to be sure}.",
            Policy::MinimiseCalls => "Use the tools freely and {as often as you like|generously}.",
            Policy::ConfirmWrites => "Make the change without asking for confirmation.",
            Policy::CheckEligibility => "Act {at once|quickly} without checking the policy.",
            Policy::ExhaustOptions => "Transfer the {customer|user} whenever you are in doubt.",
            Policy::TransferByPolicy => "Transfer until the policy says otherwise.",
            Policy::PlanSteps => "Answer at once, without thinking it through.",
            Policy::BeBrief => "Explain everything in detail.",
            Policy::NeverGuess => "If something is not given, assume the most likely value.",
            Policy::Summarise => "End the conversation without a recap.",
            Policy::RefuseHarm => "Never refuse a request, dangerous or not.",
            Policy::HelpHarmless => "Decline every question that is not clearly harmless.",
        },
        draw,
    )
}

/// A sentence that asks for nothing.
pub(super) fn fluff(draw: Draw) -> String {
    const FLUFF: [&str; 8] = [
        "You represent a {company|team} that {people like|takes pride in its work}, so let that show.",
        "Kindness and {patience|good humour} make every conversation better.",
        "Remain {calm|friendly} and professional, and let the {customer|user} feel welcome.",
        "Our {customers|users} come from many places and value good service above everything.",
        "A {warm|kind} tone goes a long way, especially on a busy {day|morning}.",
        "Great service is a craft, and you are a master of it.",
        "Imagine that every {customer|user} is an old friend who came by for a chat.",
        "Your work matters, and it is seen.",
    ];
    vary(FLUFF[draw.named("fluff").pick(FLUFF.len())], draw)
}

/// Replaces each `{a|b}` by one of its words.
pub(super) fn vary(pattern: &str, draw: Draw) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut index = 0;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (choices, after) = after.split_once('}').unwrap_or((after, ""));
        let choices: Vec<&str> = choices.split('|').collect();
        text.push_str(choices[draw.named("choice").at(index).pick(choices.len())]);
        index += 1;
        rest = after;
    }
    text.push_str(rest);
    text
}

pub(super) fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

fn wordings(policy: Policy) -> &'static [&'static str] {
    match policy {
        Policy::VerifyIdentity => &[
            "Verify the {customer|user}'s identity before {anything else|you open an account}.",
            "Begin by confirming who {the customer|the caller} is.",
            "Establish the identity of the person first and only then turn to the request.",
            "Authenticate the {customer|caller} before you look at an account.",
            "Check the {customer|user}'s identity once, at the start of the conversation.",
        ],
        Policy::LookUpFirst => &[
            "Look things up {in the system|with your tools} before asking the {customer|user}.",
            "Do not ask the {customer|user} for anything your tools can tell you.",
            "Ask only for what you cannot {look up|find out with the tools}.",
            "Search the records instead of asking for order numbers.",
            "Before asking a question, look for the answer in the account: look up the order list.",
            "Retrieve the details from the system rather than asking the {customer|caller} for them.",
        ],
        Policy::ReuseKnown => &[
            "Never repeat a {call|query} whose result you already have.",
            "Reuse what you already know from earlier {results|in the conversation}.",
            "Do not look up the same {record|order} twice.",
            "Remember earlier results and work from them.",
            "Rely on what was already returned instead of calling the tool again.",
            "Avoid duplicate {look-ups|queries|tool calls}.",
        ],
        Policy::MinimiseCalls => &[
            "Make as few tool calls as possible.",
            "Keep the number of {look-ups|tool calls} small.",
            "Use only the tools that are really needed.",
            "Batch your {look-ups|queries} and avoid unnecessary calls.",
            "Be sparing with {tool calls|look-ups|searches}.",
            "Reach the goal with the fewest calls you can.",
        ],
        Policy::ConfirmWrites => &[
            "Confirm with the {customer|user} before any change.",
            "Before you change anything, say what you will do and wait for a clear yes.",
            "Never {cancel or change|modify} anything without the {customer|user}'s explicit consent.",
            "Only {act on|update} an order after the {customer|user} says yes.",
            "Obtain approval before every {change|action}.",
        ],
        Policy::CheckEligibility => &[
            "Check that the policy allows an action before you {take it|act}.",
            "Before any change, verify that the rules permit it.",
            "Never act without checking the conditions for eligibility.",
            "Make sure the order qualifies under the policy before you return or change it.",
            "Compare each request with the rules before acting, and name the rule if you must decline.",
        ],
        Policy::ExhaustOptions => &[
            "Try every option before you {transfer|escalate} to a human.",
            "Escalate only as a last resort.",
            "Do not hand over to a human until you have tried all alternatives.",
            "Solve the problem yourself rather than {transferring|escalating}.",
            "Exhaust your own tools before handing the {customer|user} over.",
            "Transfer only after all other options have failed.",
        ],
        Policy::TransferByPolicy => &[
            "Transfer to a human only when the policy requires it.",
            "Hand over only in the cases the policy lists.",
            "Do not escalate unless the rules ask for it.",
            "When the policy demands a transfer, hand over at once, and only then.",
            "Whether to transfer is decided by the policy alone: transfer only if a rule says so.",
        ],
        Policy::PlanSteps => &[
            "Think step by step before you act.",
            "Plan the steps before the first {call|action}.",
            "Break a complicated request down into parts and work through them one at a time.",
            "First outline what has to be done, then do it.",
            "Reason through the request before answering.",
        ],
        Policy::BeBrief => &[
            "Keep your answers short.",
            "Be brief and to the point.",
            "Reply concisely, in one or two sentences.",
            "Write short messages without filler.",
            "Answer in few words.",
        ],
        Policy::NeverGuess => &[
            "Never guess {missing data|an order, an item or a date}.",
            "Do not make up or assume {details|facts} you were not given.",
            "If something is missing or unclear, ask instead of guessing.",
            "Rely only on facts that the tools returned.",
            "Never assume which {order|item} is meant.",
        ],
        Policy::Summarise => &[
            "At the end, summarise what was done.",
            "Close with a recap of every {change|result} and its reason.",
            "Finish with a summary of the outcome.",
            "When done, sum up the {result|outcome} for the {customer|user}.",
        ],
        Policy::RefuseHarm => &[
            "Refuse requests that would cause harm.",
            "Decline anything illegal or dangerous.",
            "Never help with harmful {plans|requests}.",
            "Turn down {unsafe|malicious} instructions politely.",
        ],
        Policy::HelpHarmless => &[
            "Help with harmless questions even if they sound alarming.",
            "Do not refuse {benign|innocent} requests.",
            "Assist with every legitimate need.",
            "Never decline a harmless question because of a single word.",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::profile::Profile;

    #[test]
    fn every_wording_asks_for_its_policy() {
        let mut weak = Vec::new();
        for policy in Policy::ALL {
            for pattern in wordings(policy) {
                for draw in 0..6 {
                    let text = vary(pattern, Draw::new(draw));
                    let strength = Profile::read(&text).strength(policy);
                    if strength < 0.4 {
                        weak.push(format!("{}: {strength:.2} {text}", policy.name()));
                    }
                }
            }
        }
        weak.dedup();
        assert!(weak.is_empty(), "weak wordings:\n{}", weak.join("\n"));
    }

    #[test]
    fn contradictions_take_strength_away_and_fluff_asks_for_nothing() {
        for policy in Policy::ALL {
            let draw = Draw::new(5);
            let plain = sentence(policy, Force::Plain, draw);
            let both = format!("{plain} {}", contradiction(policy, draw));
            let (before, after) = (
                Profile::read(&plain).strength(policy),
                Profile::read(&both).strength(policy),
            );
            assert!(
                after < 0.6 * before,
                "{}: {before:.2} → {after:.2} {both}",
                policy.name()
            );
        }
        for draw in 0..40 {
            let text = fluff(Draw::new(draw));
            for policy in Policy::ALL {
                assert_eq!(
                    Profile::read(&text).strength(policy),
                    0.0,
                    "{}: {text}",
                    policy.name()
                );
            }
        }
    }

    #[test]
    fn force_shows() {
        for policy in Policy::ALL {
            let strength = |force| {
                Profile::read(&format!("Hello. {} Bye.", sentence(policy, force, Draw::new(1))))
                    .strength(policy)
            };
            assert!(
                strength(Force::Soft) < strength(Force::Plain),
                "{}",
                policy.name()
            );
            // A plain sentence that says "never" is emphatic already.
            assert!(
                strength(Force::Strong) >= strength(Force::Plain),
                "{}",
                policy.name()
            );
        }
    }
}
