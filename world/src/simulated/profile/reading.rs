//! From a prompt's text to how strongly it asks for each policy.

use super::grammar;
use super::policy::{PerPolicy, Policy};
use crate::simulated::text;

/// Characters a reader takes in without losing attention.
pub(super) const ATTENTION_SPAN: f64 = 3000.0;

/// Policies a reader keeps in mind without losing attention.
pub(super) const POLICIES_IN_MIND: f64 = 8.0;

/// How much of what is still missing to full strength a second statement of the same policy adds.
const REPETITION: f64 = 0.15;

/// What a system prompt asks for, read from its text alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    strengths: PerPolicy,
    attention: f64,
    characters: usize,
}

impl Profile {
    /// Reads a system prompt.
    ///
    /// ```
    /// use capo_world::simulated::profile::{Policy, Profile};
    ///
    /// let profile = Profile::read("Never repeat a call you have already made.");
    /// assert!(profile.strength(Policy::ReuseKnown) > 0.5);
    /// assert_eq!(profile.strength(Policy::Summarise), 0.0);
    /// ```
    pub fn read(prompt: &str) -> Self {
        let sentences = text::sentences(prompt);
        let mut evidence: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); Policy::ALL.len()];
        let count = sentences.len();
        let mut idle = 0;
        for (index, sentence) in sentences.iter().enumerate() {
            // What stands first and last is remembered a little better than the middle.
            let place = if index == 0 || index + 1 == count {
                1.05
            } else {
                1.0
            };
            let statements = grammar::read(sentence);
            if statements.is_empty() {
                idle += sentence.source.chars().count();
            }
            for statement in statements {
                let (for_it, against) = &mut evidence[statement.policy as usize];
                let weight = (statement.weight.abs() * place).min(1.0);
                if statement.weight > 0.0 {
                    for_it.push(weight);
                } else {
                    against.push(weight);
                }
            }
        }
        let mut strengths = PerPolicy::default();
        for policy in Policy::ALL {
            let (for_it, against) = &mut evidence[policy as usize];
            strengths[policy] = (accumulate(for_it) - accumulate(against)).clamp(0.0, 1.0);
        }
        let stated: f64 = Policy::ALL.iter().map(|&policy| strengths[policy]).sum();
        let characters = prompt.chars().count();
        let attention = attention(characters as f64, idle as f64, stated);
        for policy in Policy::ALL {
            strengths[policy] *= attention;
        }
        Self {
            strengths,
            attention,
            characters,
        }
    }

    /// How strongly the prompt asks for a policy, in [0, 1], attention included.
    pub fn strength(&self, policy: Policy) -> f64 {
        self.strengths[policy]
    }

    /// What is left of the reader's attention, in (0, 1]: 1 for a short prompt without idle words.
    pub fn attention(&self) -> f64 {
        self.attention
    }

    /// The prompt's length in characters.
    pub fn characters(&self) -> usize {
        self.characters
    }
}

/// Saying a thing twice adds little: the strongest statement counts in full, each further one a
/// small share of what is missing.
fn accumulate(weights: &mut [f64]) -> f64 {
    weights.sort_by(|a, b| b.total_cmp(a));
    let mut total: f64 = weights.first().copied().unwrap_or(0.0);
    for weight in weights.iter().skip(1) {
        total += (1.0 - total) * weight * REPETITION;
    }
    total
}

/// Attention falls with every character beyond the span, with every policy beyond those one can
/// keep in mind, and, from the first word, with text that asks for nothing.
fn attention(characters: f64, idle: f64, policies: f64) -> f64 {
    let length = (characters / ATTENTION_SPAN - 1.0).max(0.0);
    let crowd = (policies / POLICIES_IN_MIND - 1.0).max(0.0);
    1.0 / (1.0 + 0.8 * length + 0.5 * crowd + 0.5 * idle / ATTENTION_SPAN)
}
