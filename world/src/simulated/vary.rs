//! Crossover and paraphrase: new prompts from old ones without any feedback.

use super::draft::Draft;
use super::phrases::{self, Force};
use super::profile::{self, Policy};
use super::random::Draw;

/// Joins two prompts: the opening of one, and of the instructions of both about half, each policy
/// once.
pub(super) fn cross(first: &str, second: &str, draw: Draw) -> String {
    let draw = draw.named("crossover").named(first).named(second);
    let (one, other) = (Draft::new(first), Draft::new(second));
    let mut child = Draft::new(first);
    let mut dropped = 0;
    for index in one.instructions() {
        if draw.named("keep").at(index).chance(0.25) {
            child.remove(index - dropped);
            dropped += 1;
        }
    }
    for index in other.instructions() {
        let sentence = other.sentence(index).trim_start_matches(['-', '*', ' ']);
        let new = profile::statements(sentence)
            .iter()
            .any(|&(policy, _)| child.asks_for(policy) < 0.3);
        if new && draw.named("take").at(index).chance(0.65) {
            child.append(sentence);
        }
    }
    child.text()
}

/// Says a prompt in other words: each instruction may be reworded, nothing is meant to change.
pub(super) fn paraphrase(prompt: &str, draw: Draw) -> String {
    let draw = draw.named("paraphrase").named(prompt);
    let mut draft = Draft::new(prompt);
    for index in draft.instructions() {
        let draw = draw.at(index);
        if !draw.named("reword").chance(0.6) {
            continue;
        }
        let said = profile::statements(draft.sentence(index));
        // A sentence that says several things, or speaks against something, is left alone.
        if let [(policy, weight)] = said[..]
            && weight > 0.0
        {
            let force = force(weight);
            draft.replace(index, &phrases::sentence(policy, force, draw.named("wording")));
        }
    }
    let text = draft.text();
    if text == prompt.trim() {
        swap_words(&text, draw)
    } else {
        text
    }
}

/// Mutates a prompt blindly: one instruction added, dropped or reworded.
pub(super) fn mutate(prompt: &str, draw: Draw) -> String {
    let draw = draw.named("mutation").named(prompt);
    let mut draft = Draft::new(prompt);
    let instructions = draft.instructions();
    let kind = draw.named("kind").uniform();
    if kind < 0.55 || instructions.is_empty() {
        let policy = Policy::ALL[draw.named("policy").pick(Policy::ALL.len())];
        draft.append(&phrases::sentence(policy, Force::Plain, draw.named("wording")));
    } else if kind < 0.7 {
        draft.remove(instructions[draw.named("drop").pick(instructions.len())]);
    } else {
        return paraphrase(prompt, draw);
    }
    draft.text()
}

fn force(weight: f64) -> Force {
    if weight < 0.6 {
        Force::Soft
    } else if weight < 1.0 {
        Force::Plain
    } else {
        Force::Strong
    }
}

/// Exchanges common words for others of the same meaning.
fn swap_words(text: &str, draw: Draw) -> String {
    const PAIRS: [(&str, &str); 6] = [
        ("You are", "You act as"),
        ("helpful", "supportive"),
        ("Help", "Assist"),
        ("help", "assist"),
        ("polite", "courteous"),
        ("customers", "clients"),
    ];
    let start = draw.named("swap").pick(PAIRS.len());
    for offset in 0..PAIRS.len() {
        let (word, other) = PAIRS[(start + offset) % PAIRS.len()];
        if text.contains(word) {
            return text.replacen(word, other, 1);
        }
    }
    format!("{text} Do this with care.")
}
