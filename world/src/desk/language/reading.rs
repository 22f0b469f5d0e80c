//! Reading of an agent's text: what it asks, proposes, refuses and reports.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

use super::cues::{CUES, Cue};
use super::topic::Topic;
use super::{holds_any, sentences};

/// What one text of an agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a text can do all of these at once")]
pub struct Reading {
    /// Asks for these, in the order of the text.
    pub topics: Vec<Topic>,
    /// Asks for a yes.
    pub proposes: bool,
    /// Says that something cannot be.
    pub refuses: bool,
    /// Says that something is done.
    pub reports: bool,
    /// Asks whether there is anything else.
    pub closes: bool,
    /// Tells something that may answer a question: a date, a number, where a parcel is.
    pub informs: bool,
    /// The lower-case text without the sentences that refuse.
    pub offered: String,
}

/// Reads a text of an agent.
pub fn read(text: &str) -> Reading {
    let text = text.to_lowercase().replace('’', "'");
    let mut reading = Reading::default();
    for sentence in sentences(&text) {
        let signs = Signs::of(sentence);
        if signs.has(Cue::Closing) {
            reading.closes = true;
            continue;
        }
        let refuses = signs.has(Cue::Refusal);
        reading.refuses |= refuses;
        let did = signs.has(Cue::Done) || (signs.has(Cue::ByMe) && signs.has(Cue::Operation));
        reading.reports |= !refuses && (did || sentence == "done");
        if signs.has(Cue::Proposal) && !signs.question && !signs.has(Cue::Inquiry) {
            reading.proposes = true;
        } else if signs.question || signs.has(Cue::Request) || sentence.ends_with('?') {
            let before = reading.topics.len();
            for topic in signs.topics() {
                if !reading.topics.contains(&topic) {
                    reading.topics.push(topic);
                }
            }
            reading.proposes |= reading.topics.len() == before && signs.has(Cue::Confirmation);
        } else if !refuses {
            reading.informs |= informs(sentence);
        }
        if !refuses {
            reading.offered.push_str(sentence);
            reading.offered.push(' ');
        }
    }
    reading
}

/// Whether a sentence holds a day or tells where something is. Ids of records tell nothing.
fn informs(sentence: &str) -> bool {
    const WHEREABOUTS: [&str; 5] = [
        "on its way",
        "has arrived",
        "been delivered",
        "is lost",
        "was lost",
    ];
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    holds_any(sentence, &WHEREABOUTS) || sentence.split_whitespace().any(is_number)
}

/// The cues found in one sentence, in order.
struct Signs {
    cues: Vec<Cue>,
    question: bool,
}

impl Signs {
    /// Finds all cues in one pass.
    fn of(sentence: &str) -> Self {
        let (automaton, meanings) = automaton();
        let mut signs = Self {
            cues: Vec::new(),
            question: false,
        };
        for found in automaton.find_overlapping_iter(sentence) {
            let before = sentence[..found.start()].chars().next_back();
            if before.is_some_and(char::is_alphanumeric) {
                continue;
            }
            let cue = meanings[found.pattern()];
            signs.question |= cue == Cue::Question && found.start() == 0;
            if !signs.has(cue) {
                signs.cues.push(cue);
            }
        }
        signs
    }

    fn has(&self, cue: Cue) -> bool {
        self.cues.contains(&cue)
    }

    fn topics(&self) -> impl Iterator<Item = Topic> + '_ {
        self.cues.iter().filter_map(|cue| match cue {
            Cue::Asks(topic) => Some(*topic),
            _ => None,
        })
    }
}

/// Searches for every cue at once, with what each of its patterns means.
fn automaton() -> &'static (AhoCorasick, Vec<Cue>) {
    static AUTOMATON: OnceLock<(AhoCorasick, Vec<Cue>)> = OnceLock::new();
    AUTOMATON.get_or_init(|| {
        let words = CUES
            .iter()
            .flat_map(|(cue, words)| words.iter().map(move |word| (*word, *cue)));
        let (patterns, meanings): (Vec<_>, Vec<_>) = words.unzip();
        let automaton = AhoCorasick::new(patterns).expect("the cues are few and short");
        (automaton, meanings)
    })
}
