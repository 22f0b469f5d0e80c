//! Answers to single questions: counting letters, requests to refuse, and for all else a phrase about the
//! question's first words.
//!
//! An assistant workload needs no more of it than that letters are counted, harm is refused and what only
//! sounds harmful is not; problems to reason about want a real model.

use super::behaviour::{Behaviour, BehaviourModel};
use super::speech::Voice;
use crate::simulated::random::Draw;

/// Words that sound alarming.
const ALARMING: [&str; 34] = [
    "kill",
    "bomb",
    "hack",
    "steal",
    "weapon",
    "malware",
    "exploit",
    "virus",
    "murder",
    "poison",
    "fraud",
    "blackmail",
    "launder",
    "phishing",
    "explosive",
    "suicide",
    "self-harm",
    "terroris",
    "kidnap",
    "racist",
    "discriminat",
    "stalk",
    "forge",
    "counterfeit",
    "illegal",
    "drug",
    "shoot",
    "torture",
    "bully",
    "scam",
    "theft",
    "shoplift",
    "ransom",
    "violence",
];

/// Words that show that an alarming word is meant harmlessly.
const HARMLESS: [&str; 26] = [
    "python",
    "process",
    "program",
    "linux",
    "terminal",
    "lights",
    "time",
    "game",
    "movie",
    "film",
    "novel",
    "history",
    "joke",
    "recipe",
    "photo",
    "basketball",
    "cocktail",
    "weeds",
    "headache",
    "conversation",
    "engine",
    "thread",
    "definition",
    "prevent",
    "protect",
    "what is",
];

/// What a question is, as far as a glance tells.
enum Kind<'a> {
    Harmful,
    SoundsHarmful,
    Count { letter: char, word: &'a str },
    Other,
}

fn kind(question: &str) -> Kind<'_> {
    let lower = question.to_lowercase();
    if ALARMING.iter().any(|word| lower.contains(word)) {
        return if HARMLESS.iter().any(|word| lower.contains(word)) {
            Kind::SoundsHarmful
        } else {
            Kind::Harmful
        };
    }
    if let Some((letter, word)) = counted(question, &lower) {
        return Kind::Count { letter, word };
    }
    Kind::Other
}

/// The letter and the text of a question such as: how many times does "a" occur in "banana"?
fn counted<'a>(question: &'a str, lower: &str) -> Option<(char, &'a str)> {
    if !["how many", "count", "number of"]
        .iter()
        .any(|cue| lower.contains(cue))
        || !["letter", "character", "times"]
            .iter()
            .any(|cue| lower.contains(cue))
    {
        return None;
    }
    let quoted: Vec<&str> = question
        .split(['"', '“', '”', '\'', '`'])
        .skip(1)
        .step_by(2)
        .collect();
    let letter = quoted
        .iter()
        .find(|text| text.chars().count() == 1)?
        .chars()
        .next()?;
    let word = quoted.iter().copied().find(|text| text.chars().count() > 1)?;
    Some((letter, word))
}

/// Answers a question.
pub(super) fn reply(question: &str, behaviours: &BehaviourModel, draw: Draw) -> String {
    let voice = Voice::in_general(behaviours, draw);
    match kind(question) {
        Kind::Harmful if behaviours.does(Behaviour::RefuseHarm, draw.named("harm"), 0.0) => refusal(draw),
        Kind::SoundsHarmful if behaviours.does(Behaviour::TakeAlarm, draw.named("alarm"), 0.0) => {
            refusal(draw)
        }
        Kind::Harmful | Kind::SoundsHarmful | Kind::Other => {
            let topic: Vec<&str> = question.split_whitespace().take(12).collect();
            voice.say(&format!("Here is what matters about \"{}\": take it in small steps, start with the first, and see what comes of it.", topic.join(" ")))
        }
        Kind::Count { letter, word } => {
            let exact = word
                .chars()
                .filter(|character| character.eq_ignore_ascii_case(&letter))
                .count();
            let thorough = behaviours.does(Behaviour::WorkThrough, draw.named("work"), 0.0);
            // Letters counted at a glance are often off by one, longer words more often.
            let off = !thorough
                && draw
                    .named("glance")
                    .chance(0.2 + 0.03 * word.chars().count() as f64);
            let count = if !off {
                exact
            } else if exact > 0 && draw.named("down").chance(0.5) {
                exact - 1
            } else {
                exact + 1
            };
            let spelled: Vec<String> = word.chars().map(String::from).collect();
            let steps = if thorough {
                format!("Letter by letter: {}. ", spelled.join("-"))
            } else {
                String::new()
            };
            voice.say(&format!(
                "{steps}The letter \"{letter}\" occurs {count} times.\n#### {count}"
            ))
        }
    }
}

fn refusal(draw: Draw) -> String {
    const REFUSALS: [&str; 4] = [
        "I'm sorry, but I can't help with that.",
        "I cannot help with this request.",
        "I'm sorry, but I cannot assist with that request.",
        "I apologize, but I can't provide that.",
    ];
    REFUSALS[draw.named("refusal").pick(REFUSALS.len())].to_owned()
}
