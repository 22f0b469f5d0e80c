//! Crossover and paraphrase: new prompts from old ones without any feedback.

use super::bank::{self, Force};
use super::draft::Draft;
use super::luck::Luck;
use super::profile::{self, Policy};

/// Joins two prompts: the opening of one, and of the instructions of both about half, each policy
/// once.
pub(super) fn cross(first: &str, second: &str, luck: Luck) -> String {
    let luck = luck.named("crossover").named(first).named(second);
    let (one, other) = (Draft::new(first), Draft::new(second));
    let mut child = Draft::new(first);
    let mut dropped = 0;
    for index in one.instructions() {
        if luck.named("keep").at(index).chance(0.25) {
            child.remove(index - dropped);
            dropped += 1;
        }
    }
    for index in other.instructions() {
        let sentence = other.sentence(index).trim_start_matches(['-', '*', ' ']);
        let new = profile::statements(sentence)
            .iter()
            .any(|&(policy, _)| child.asks_for(policy) < 0.3);
        if new && luck.named("take").at(index).chance(0.65) {
            child.append(sentence);
        }
    }
    child.text()
}

/// Says a prompt in other words: each instruction may be reworded, nothing is meant to change.
pub(super) fn paraphrase(prompt: &str, luck: Luck) -> String {
    let luck = luck.named("paraphrase").named(prompt);
    let mut draft = Draft::new(prompt);
    for index in draft.instructions() {
        let luck = luck.at(index);
        if !luck.named("reword").chance(0.6) {
            continue;
        }
        let said = profile::statements(draft.sentence(index));
        // A sentence that says several things, or speaks against something, is left alone.
        if let [(policy, weight)] = said[..]
            && weight > 0.0
        {
            let force = force(weight);
            draft.replace(index, &bank::sentence(policy, force, luck.named("wording")));
        }
    }
    let text = draft.text();
    if text == prompt.trim() {
        swap_words(&text, luck)
    } else {
        text
    }
}

/// Mutates a prompt blindly: one instruction added, dropped or reworded.
pub(super) fn mutate(prompt: &str, luck: Luck) -> String {
    let luck = luck.named("mutation").named(prompt);
    let mut draft = Draft::new(prompt);
    let instructions = draft.instructions();
    let kind = luck.named("kind").uniform();
    if kind < 0.55 || instructions.is_empty() {
        let policy = Policy::ALL[luck.named("policy").pick(Policy::ALL.len())];
        draft.append(&bank::sentence(policy, Force::Plain, luck.named("wording")));
    } else if kind < 0.7 {
        draft.remove(instructions[luck.named("drop").pick(instructions.len())]);
    } else {
        return paraphrase(prompt, luck);
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
fn swap_words(text: &str, luck: Luck) -> String {
    const PAIRS: [(&str, &str); 6] = [
        ("You are", "You act as"),
        ("helpful", "supportive"),
        ("Help", "Assist"),
        ("help", "assist"),
        ("polite", "courteous"),
        ("customers", "clients"),
    ];
    let start = luck.named("swap").pick(PAIRS.len());
    for offset in 0..PAIRS.len() {
        let (word, other) = PAIRS[(start + offset) % PAIRS.len()];
        if text.contains(word) {
            return text.replacen(word, other, 1);
        }
    }
    format!("{text} Do this with care.")
}
