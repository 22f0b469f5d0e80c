//! The simulated rewriter: reads parent, feedback, thresholds and weights, and edits the prompt.
//!
//! It picks an issue in proportion to how much it weighs, then a policy that the feedback
//! recommends for it (or, without feedback, one that is commonly held to bear on it), then an
//! edit. It knows wordings, not the world: its errors are stated in [`Errors`].

use super::draft::Draft;
use super::metric_concerns::{self, Concern};
use super::parameters::Parameters;
use super::phrases::{self, Force};
use super::profile::{self, Policy};
use super::random::Draw;
use super::review::{Issue, Review};
use super::text;
use super::trace_reading;

/// How often the rewriter goes wrong, as probabilities per edit or per answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// An edit aims at an issue drawn blindly instead of by its weight.
    pub wrong_issue: f64,
    /// An edit picks a policy at random instead of one the feedback or common sense suggests.
    pub wrong_policy: f64,
    /// An answer loses a sentence that was good.
    pub drops_sentence: f64,
    /// An answer gains a sentence that asks for nothing.
    pub adds_fluff: f64,
    /// An answer gains a sentence that contradicts the prompt.
    pub contradicts: f64,
    /// An answer comes without its delimiters and is useless.
    pub forgets_delimiters: f64,
}

impl Errors {
    /// The error rates of a model: the less competent, the more errors.
    pub fn of(parameters: &Parameters) -> Self {
        let carelessness = 1.0 - parameters.competence;
        Self {
            wrong_issue: 0.5 * carelessness,
            wrong_policy: 0.6 * carelessness,
            drops_sentence: 0.25 * carelessness,
            adds_fluff: 0.4 * carelessness,
            contradicts: 0.15 * carelessness,
            forgets_delimiters: 0.03 * carelessness,
        }
    }
}

/// An instruction that the feedback recommends or warns of.
#[derive(Debug, Clone, Copy)]
struct Advice {
    policy: Policy,
    /// Positive: ask for it (more); negative: soften or drop it.
    direction: f64,
}

/// A rewritten prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rewrite {
    pub(super) prompt: String,
    /// The answer is to come without the form that was asked for, and is useless.
    pub(super) forgets_form: bool,
}

/// Rewrites a prompt.
pub(super) fn rewrite(review: &Review<'_>, parameters: &Parameters, draw: Draw) -> Rewrite {
    let errors = Errors::of(parameters);
    let draw = draw
        .named("rewriter")
        .named(review.prompt)
        .named(review.feedback)
        .at(review.variant);
    let mut draft = Draft::new(review.prompt);
    let advice = advice(review, parameters, draw.named("sight"));
    // Mostly one edit, sometimes two or three.
    let edits =
        1 + usize::from(draw.named("second").chance(0.4)) + usize::from(draw.named("third").chance(0.1));
    for index in 0..edits {
        edit(&mut draft, review, &advice, errors, draw.named("edit").at(index));
    }
    slip(&mut draft, errors, draw.named("slip"));
    if let Some(limit) = review.max_characters {
        shorten(&mut draft, limit, draw.named("shorten"));
    }
    Rewrite {
        prompt: draft.text(),
        forgets_form: draw.named("delimiters").chance(errors.forgets_delimiters),
    }
}

/// How much an issue presses: the objective by how far it is from perfect, a violated constraint by
/// its weight and the size of the violation, a satisfied one not at all.
fn pressure(issue: &Issue) -> f64 {
    if issue.objective {
        0.5 * issue.residual
    } else if issue.residual > 0.0 {
        issue.weight * (0.2 + issue.residual.min(1.5))
    } else {
        0.0
    }
}

fn edit(draft: &mut Draft, review: &Review<'_>, advice: &[(usize, Advice)], errors: Errors, draw: Draw) {
    let issues = &review.issues;
    let blind = draw.named("blind").chance(errors.wrong_issue) || review.feedback.is_empty();
    let weights: Vec<f64> = issues
        .iter()
        .map(|issue| if blind { 1.0 } else { pressure(issue) })
        .collect();
    let Some(chosen) = draw.named("issue").weighted(&weights) else {
        reword(draft, draw);
        return;
    };
    let issue = &issues[chosen];
    let concern = metric_concerns::concern(&issue.metric, issue.objective);
    if concern == Concern::PromptLength {
        tighten(draft, draw);
        return;
    }
    let wanted = if draw.named("astray").chance(errors.wrong_policy) {
        let any = draw.named("any");
        Some(Advice {
            policy: Policy::ALL[any.pick(Policy::ALL.len())],
            direction: if any.named("sign").chance(0.75) { 1.0 } else { -1.0 },
        })
    } else {
        choose(
            draft,
            concern,
            advice
                .iter()
                .filter(|(about, _)| *about == chosen)
                .map(|(_, advice)| *advice),
            draw.named("choose"),
        )
    };
    match wanted {
        Some(wanted) => apply(draft, wanted, draw.named("apply")),
        None => reword(draft, draw),
    }
}

/// Picks an instruction for a concern: what the feedback recommends counts most, common leanings
/// count a little, and what the prompt already asks for clearly needs no asking again.
fn choose(
    draft: &Draft,
    concern: Concern,
    advice: impl Iterator<Item = Advice>,
    draw: Draw,
) -> Option<Advice> {
    let mut options: Vec<(Advice, f64)> = advice.map(|advice| (advice, 1.0)).collect();
    options.extend(
        metric_concerns::leanings(concern)
            .iter()
            .map(|&(policy, leaning)| {
                (
                    Advice {
                        policy,
                        direction: leaning.signum(),
                    },
                    0.35 * leaning.abs(),
                )
            }),
    );
    let weights: Vec<f64> = options
        .iter()
        .map(|(advice, weight)| {
            let present = draft.asks_for(advice.policy).clamp(0.0, 1.0);
            let room = if advice.direction > 0.0 {
                (1.05 - present).max(0.05)
            } else {
                present
            };
            weight * room
        })
        .collect();
    draw.weighted(&weights).map(|index| options[index].0)
}

/// Carries out one piece of advice: add or strengthen what is wanted, soften or delete what is not.
fn apply(draft: &mut Draft, wanted: Advice, draw: Draw) {
    let about = draft.about(wanted.policy);
    let present = draft.asks_for(wanted.policy);
    if wanted.direction > 0.0 {
        let force = if draw.named("force").chance(0.3) {
            Force::Strong
        } else {
            Force::Plain
        };
        match about.first() {
            None => {
                let sentence = phrases::sentence(wanted.policy, force, draw);
                if draft.len() > 2 && draw.named("place").chance(0.25) {
                    draft.insert(1 + draw.named("where").pick(draft.len() - 1), &sentence);
                } else {
                    draft.append(&sentence);
                }
            }
            Some(&index) if present < 0.95 => {
                draft.replace(index, &phrases::sentence(wanted.policy, Force::Strong, draw));
            }
            Some(&index) => draft.relocate(
                index,
                if draw.named("reorder").chance(0.5) {
                    1.min(draft.len() - 1)
                } else {
                    draft.len() - 1
                },
            ),
        }
    } else if let Some(&index) = about.first() {
        if draw.named("delete").chance(0.4) && draft.len() > 1 {
            draft.remove(index);
        } else {
            draft.replace(index, &phrases::sentence(wanted.policy, Force::Soft, draw));
        }
    }
}

/// Says one instruction in other words.
fn reword(draft: &mut Draft, draw: Draw) {
    let instructions = draft.instructions();
    if instructions.is_empty() {
        draft.append(&phrases::fluff(draw));
        return;
    }
    let index = instructions[draw.named("reword").pick(instructions.len())];
    if let Some(&(policy, _)) = profile::statements(draft.sentence(index)).first() {
        draft.replace(index, &phrases::sentence(policy, Force::Plain, draw));
    }
}

/// Makes the prompt shorter: merges repeated instructions, drops what asks for nothing, or shortens
/// the longest instruction.
fn tighten(draft: &mut Draft, draw: Draw) {
    let doubled = Policy::ALL
        .into_iter()
        .find_map(|policy| draft.about(policy).get(1).copied());
    if let Some(index) = doubled.or_else(|| draft.fluff().last().copied()) {
        draft.remove(index);
    } else if let Some(longest) = draft
        .instructions()
        .into_iter()
        .max_by_key(|&index| draft.sentence(index).len())
        && let Some(&(policy, _)) = profile::statements(draft.sentence(longest)).first()
    {
        let shortest = (0..6)
            .map(|attempt| phrases::sentence(policy, Force::Plain, draw.named("shorter").at(attempt)))
            .min_by_key(String::len)
            .expect("six attempts were made");
        draft.replace(longest, &shortest);
    }
}

fn slip(draft: &mut Draft, errors: Errors, draw: Draw) {
    let instructions = draft.instructions();
    if draw.named("drop").chance(errors.drops_sentence) && instructions.len() > 1 {
        draft.remove(instructions[draw.named("dropped").pick(instructions.len())]);
    }
    if draw.named("fluff").chance(errors.adds_fluff) {
        draft.append(&phrases::fluff(draw));
    }
    if draw.named("contradict").chance(errors.contradicts) {
        let asked: Vec<Policy> = Policy::ALL
            .into_iter()
            .filter(|&policy| draft.asks_for(policy) > 0.3)
            .collect();
        if !asked.is_empty() {
            draft.append(&phrases::contradiction(
                asked[draw.named("contradicted").pick(asked.len())],
                draw,
            ));
        }
    }
}

/// Drops sentences until the prompt fits or one is left: what asks for nothing first, then
/// instructions.
fn shorten(draft: &mut Draft, limit: usize, draw: Draw) {
    let mut round = 0;
    while draft.text().chars().count() > limit && draft.len() > 1 {
        let fluff = draft.fluff();
        match fluff.last() {
            Some(&index) => draft.remove(index),
            None => draft.remove(1 + draw.at(round).pick(draft.len() - 1)),
        }
        round += 1;
    }
}

/// Words that mark a sentence of the feedback as a recommendation.
const RECOMMENDING: [&str; 9] = [
    "should",
    "ask for",
    "ask it",
    "tell it",
    "tell the agent",
    "instruct",
    "add ",
    "needs to",
    "recommend",
];
/// Words that mark a recommendation as one to ask for less.
const LESS: [&str; 6] = ["ask less", "soften", "drop ", "remove", "relax", "too strongly"];

/// What the feedback recommends, with the issue each piece of advice stands under.
///
/// A critic's summary is read for its recommendations. Cases are read for the agent's conduct, as
/// the critic would read them.
fn advice(review: &Review<'_>, parameters: &Parameters, draw: Draw) -> Vec<(usize, Advice)> {
    if trace_reading::holds_cases(review.feedback) {
        return super::critic::conduct_advice(review, parameters, draw)
            .into_iter()
            .map(|(issue, policy)| {
                (
                    issue,
                    Advice {
                        policy,
                        direction: 1.0,
                    },
                )
            })
            .collect();
    }
    let mut found = Vec::new();
    let mut about = 0;
    for (start, stop) in text::sentence_ranges(review.feedback) {
        let sentence = &review.feedback[start..stop];
        if let Some(issue) = review
            .issues
            .iter()
            .position(|issue| sentence.contains(issue.metric.as_str()))
        {
            about = issue;
        }
        let lower = sentence.to_lowercase();
        let less = LESS.iter().any(|word| lower.contains(word));
        if !less && !RECOMMENDING.iter().any(|word| lower.contains(word)) {
            continue;
        }
        // What is recommended stands after the colon where there is one.
        let recommended = sentence.split_once(':').map_or(sentence, |(_, after)| after);
        for (policy, weight) in profile::statements(recommended) {
            let direction = if less { -weight } else { weight };
            found.push((
                about,
                Advice {
                    policy,
                    direction: direction.signum(),
                },
            ));
        }
    }
    found
}
