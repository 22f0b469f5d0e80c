//! Finds concepts in a sentence and rules that hold between them.
//!
//! A **concept** is a meaning with the words that carry it; a **rule** is a sequence of concepts
//! that must follow each other in a sentence, in order, no further apart than a few words. Rules
//! speak for or against a policy, and negations in front of the rule's head turn them round.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::cues::{CONCEPTS, RULES};
use super::policy::Policy;
use crate::simulated::text::{Sentence, Word};

/// The most words that may stand between two concepts of one rule.
const REACH: usize = 12;

/// What one sentence says about one policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Statement {
    /// The policy it is about.
    pub(super) policy: Policy,
    /// How clearly it asks for the policy (positive, up to 1) or against it (negative).
    pub(super) weight: f64,
}

type ConceptId = usize;

#[derive(Debug)]
struct Rule {
    policy: Policy,
    weight: f64,
    sequence: Vec<ConceptId>,
    head: usize,
    absent: Vec<ConceptId>,
}

#[derive(Debug)]
enum WordPattern {
    Exact(&'static str),
    Prefix(&'static str),
}

impl WordPattern {
    fn parse(word: &'static str) -> Self {
        word.strip_suffix('*').map_or(Self::Exact(word), Self::Prefix)
    }

    fn matches(&self, word: &Word) -> bool {
        match self {
            Self::Exact(text) => word.text == *text,
            Self::Prefix(stem) => word.text.starts_with(stem),
        }
    }

    fn first_byte(&self) -> u8 {
        let (Self::Exact(text) | Self::Prefix(text)) = self;
        text.as_bytes()[0]
    }
}

#[derive(Debug)]
struct Phrase {
    concept: ConceptId,
    words: Vec<WordPattern>,
}

#[derive(Debug)]
struct Grammar {
    phrases_by_first_byte: HashMap<u8, Vec<Phrase>>,
    rules: Vec<Rule>,
    negator: ConceptId,
    clause_break: ConceptId,
    hedge: ConceptId,
    emphasis: ConceptId,
    concept_count: usize,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(Grammar::new);

/// Where a concept occurs: word positions, end exclusive.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
}

impl Grammar {
    fn new() -> Self {
        let ids: HashMap<&str, ConceptId> = CONCEPTS
            .iter()
            .enumerate()
            .map(|(id, (name, _))| (*name, id))
            .collect();
        let id = |name: &str| {
            *ids.get(name)
                .unwrap_or_else(|| panic!("the cue tables use the concept `{name}` without defining it"))
        };
        let mut phrases_by_first_byte: HashMap<u8, Vec<Phrase>> = HashMap::new();
        for (concept, (_, phrases)) in CONCEPTS.iter().enumerate() {
            for phrase in phrases.split('|') {
                let words: Vec<WordPattern> = phrase.split_whitespace().map(WordPattern::parse).collect();
                let first = words[0].first_byte();
                phrases_by_first_byte
                    .entry(first)
                    .or_default()
                    .push(Phrase { concept, words });
            }
        }
        let rules = RULES
            .iter()
            .map(|&(policy, weight, pattern)| {
                let mut rule = Rule {
                    policy,
                    weight,
                    sequence: Vec::new(),
                    head: 0,
                    absent: Vec::new(),
                };
                for name in pattern.split_whitespace() {
                    if let Some(name) = name.strip_prefix('!') {
                        rule.absent.push(id(name));
                    } else if let Some(name) = name.strip_prefix('*') {
                        rule.head = rule.sequence.len();
                        rule.sequence.push(id(name));
                    } else {
                        rule.sequence.push(id(name));
                    }
                }
                rule
            })
            .collect();
        Self {
            phrases_by_first_byte,
            rules,
            negator: id("negator"),
            clause_break: id("clause-break"),
            hedge: id("hedge"),
            emphasis: id("emphasis"),
            concept_count: CONCEPTS.len(),
        }
    }

    fn hits(&self, words: &[Word]) -> Vec<Vec<Hit>> {
        let mut hits = vec![Vec::new(); self.concept_count];
        for start in 0..words.len() {
            let first = words[start].text.as_bytes().first();
            let Some(phrases) = first.and_then(|byte| self.phrases_by_first_byte.get(byte)) else {
                continue;
            };
            for phrase in phrases {
                let end = start + phrase.words.len();
                if end <= words.len()
                    && phrase
                        .words
                        .iter()
                        .zip(&words[start..end])
                        .all(|(pattern, word)| pattern.matches(word))
                {
                    hits[phrase.concept].push(Hit { start, end });
                }
            }
        }
        hits
    }
}

/// What a sentence says, at most one statement for each policy: that of the rule that matches the
/// most of it.
pub(super) fn read(sentence: &Sentence<'_>) -> Vec<Statement> {
    let grammar = &*GRAMMAR;
    let hits = grammar.hits(&sentence.words);
    let manner = manner(grammar, &hits, sentence);
    let mut found: Vec<(usize, Statement)> = Vec::new();
    for rule in &grammar.rules {
        if rule.absent.iter().any(|&concept| !hits[concept].is_empty()) {
            continue;
        }
        let Some(head) = find(rule, &hits, 0, None, None) else {
            continue;
        };
        let sign = if negated(grammar, &hits, head) { -1.0 } else { 1.0 };
        let statement = Statement {
            policy: rule.policy,
            weight: (rule.weight * sign * manner).clamp(-1.0, 1.0),
        };
        let reach = rule.sequence.len();
        match found.iter_mut().find(|(_, known)| known.policy == rule.policy) {
            None => found.push((reach, statement)),
            Some((known_reach, known)) => {
                if (reach, statement.weight.abs()) > (*known_reach, known.weight.abs()) {
                    (*known_reach, *known) = (reach, statement);
                }
            }
        }
    }
    found.into_iter().map(|(_, statement)| statement).collect()
}

/// Finds the rule's concepts from `slot` on, in order; returns the head's hit.
fn find(rule: &Rule, hits: &[Vec<Hit>], slot: usize, after: Option<usize>, head: Option<Hit>) -> Option<Hit> {
    let Some(&concept) = rule.sequence.get(slot) else {
        return head;
    };
    hits[concept]
        .iter()
        .filter(|hit| after.is_none_or(|after| hit.start >= after && hit.start - after <= REACH))
        .find_map(|hit| {
            let head = if slot == rule.head { Some(*hit) } else { head };
            find(rule, hits, slot + 1, Some(hit.end), head)
        })
}

/// Whether an odd number of negators stand in front of `head` in its clause.
fn negated(grammar: &Grammar, hits: &[Vec<Hit>], head: Hit) -> bool {
    let clause_start = hits[grammar.clause_break]
        .iter()
        .map(|hit| hit.end)
        .filter(|&end| end <= head.start)
        .max()
        .unwrap_or(0);
    let mut counted_until = clause_start;
    let mut count = 0;
    for hit in &hits[grammar.negator] {
        if hit.start >= counted_until && hit.end <= head.start {
            count += 1;
            counted_until = hit.end;
        }
    }
    count % 2 == 1
}

/// How strongly the sentence is put: hedges weaken, emphasis strengthens.
fn manner(grammar: &Grammar, hits: &[Vec<Hit>], sentence: &Sentence<'_>) -> f64 {
    let hedged = !hits[grammar.hedge].is_empty();
    let emphasised = !hits[grammar.emphasis].is_empty()
        || sentence.words.iter().any(|word| word.shouted)
        || sentence.source.ends_with('!');
    match (hedged, emphasised) {
        (true, false) => 0.5,
        (true, true) => 0.75,
        (false, true) => 1.2,
        (false, false) => 1.0,
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use proptest::prelude::*;

    use crate::simulated::profile::{Policy, Profile};

    proptest! {
        #[test]
        fn any_prompt_can_be_read(prompt in "\\PC*|([a-z]{0,3}( n't|n't|'|’|, |\\.|\n)){0,20}") {
            let profile = Profile::read(&prompt);
            for policy in Policy::ALL {
                prop_assert!((0.0..=1.0).contains(&profile.strength(policy)));
            }
        }
    }
}
