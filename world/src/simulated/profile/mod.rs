//! Reading a system prompt the way a simulated agent does.
//!
//! A [`Profile`] holds, for each [`Policy`], how strongly the text asks for it. Meaning is carried
//! by concepts (words and stems), their order in a sentence, negation, hedges and emphasis, never
//! by one magic phrase; contradictions cancel, repetition adds little, and attention is finite.

mod cues;
mod grammar;
mod policy;
mod reading;
#[cfg(test)]
mod tests;

pub use policy::{PerPolicy, Policy};
pub use reading::Profile;

/// What one sentence, read alone, says about each policy: signed weights, negative against it.
pub(super) fn statements(sentence: &str) -> Vec<(Policy, f64)> {
    super::text::sentences(sentence)
        .iter()
        .flat_map(grammar::read)
        .map(|statement| (statement.policy, statement.weight))
        .collect()
}
