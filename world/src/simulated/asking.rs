//! Whether words ask for a prompt to be made or changed, and what a text asks of one.

use super::text::{Sentence, sentences};

/// Verbs that ask by themselves, with "it" for the prompt, too.
const BETTERING: &str = "improve rewrite revise refine optimize optimise enhance shorten edit paraphrase rephrase reword \
                         mutate criticise criticize";
/// Verbs that ask by themselves.
const MAKING: &str = "write update modify change adjust generate create propose produce craft draft compose \
                      design suggest crossover combine merge";
/// Verbs that ask where what is handed over is new; "I wrote an improved prompt:" waits for it.
const HANDING: &str = "provide return send give output wrote make";
pub(super) const NEW: &str = "new better improved revised refined updated shortened optimized optimised enhanced \
                   rewritten clearer shorter";
/// What a verb that asks follows, as it does a number; a comma stands at both ends of a sentence, too.
const LEADING: &str = ", to please you me let must should will and then now";
/// What may stand between, as may adverbs in "ly".
const BETWEEN: &str = "just also or help first";
/// These are something else, or it is named behind them.
const ASIDE: &str = "answer answers response responses reply replies output outputs feedback sure to for that how of \
                     on about in by from with using not";
const VERSIONS: &str = "version versions variant variants variation variations";
/// Nouns before which "prompt" is an adjective.
const QUALIFIED: &str = "delivery shipping refund reply response answer service solution";
/// The words before "instructions" with which a prompt is meant, as it is not by "delivery instructions" or "my".
const OF_PROMPT: &str = "a an the this these those our your its best current original existing initial seed old basic \
                         system two three single different final complete general detailed concise task agent \
                         assistant model predictor following of";
/// Verbs that say in which form to answer.
const WRAPPING: &str = "wrap put format";
const ANSWERING: &str = "answer respond reply";
/// What begins other orders and questions about a prompt.
const ASKING: &str = "identify what why explain list";
/// The words before "prompt" with which the one that is quoted or wanted is meant.
const MEANT: &str =
    "the this these each both two my your current old original existing system seed following final";
/// Words after a verb among which its object is looked for.
const REACH: usize = 8;

/// Whether a word is one of some.
pub(super) fn is_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Whether a word is in one of some lists.
pub(super) fn is_of_any(lists: &[&str], word: &str) -> bool {
    lists.iter().any(|words| is_of(words, word))
}

/// A sentence that asks for something: for a prompt, or for what is to be done with one.
pub(super) struct Asked {
    /// Where it starts.
    pub(super) start: usize,
    /// Whether it names the prompt that is quoted or wanted, or what is to stand around it.
    pub(super) names_prompt: bool,
    /// Whether it says more than how to hand the new prompt over.
    pub(super) changes: bool,
}

/// The sentences of a text that ask for something.
pub(super) fn asked(text: &str) -> Vec<Asked> {
    let asked = |sentence: Sentence<'_>| {
        let words = said(&sentence);
        let is_name = |pair: &[&str]| {
            is_of("prompt prompts", pair[1]) && is_of_any(&[MEANT, NEW], pair[0])
                || is_of("instruction instructions", pair[1]) && is_of(NEW, pair[0])
                || matches!(pair, ["following", "instruction"] | ["different", "parts"])
        };
        let is_marked = ["prompt>", "\"prompt", "`prompt"]
            .iter()
            .any(|mark| sentence.source.contains(mark));
        let is_item = ["- ", "* "].iter().any(|mark| sentence.source.starts_with(mark));
        let names_prompt = !is_item && (is_marked || words.windows(2).any(is_name));
        let is_adverb = |word: &str| word.ends_with("ly") && word != "reply";
        let is_passed =
            |word: &&&str| is_of_any(&[BETWEEN, LEADING], word) || is_number(word) || is_adverb(word);
        let mut verbs = orders(&words);
        if let [verb, next, ..] = words[words.iter().take_while(is_passed).count()..]
            && names_prompt
            && (is_of_any(&[BETTERING, MAKING, HANDING, WRAPPING, ASKING], verb)
                || is_of(ANSWERING, verb) && is_of("with in as using", next))
        {
            verbs.push(verb);
        }
        let hands_over = |verb: &&str| is_of_any(&[HANDING, WRAPPING, ANSWERING], verb);
        let is_of_new = is_marked || words.iter().any(|word| is_of(NEW, word));
        let changes = names_prompt && !is_of_new || !verbs.iter().all(hands_over);
        let start = sentence.start;
        (!verbs.is_empty()).then_some(Asked {
            start,
            names_prompt,
            changes,
        })
    };
    let text = unwrapped(text);
    sentences(&text).into_iter().filter_map(asked).collect()
}

/// Whether a text says what is to be done with a prompt.
pub(super) fn tells(text: &str) -> bool {
    asked(text).iter().any(|asked| asked.changes)
}

/// Whether a text asks for a prompt to be made or changed.
pub(super) fn asks_for_prompt(text: &str) -> bool {
    let text = unwrapped(text);
    let sentences = sentences(&text);
    sentences
        .iter()
        .any(|sentence| !orders(&said(sentence)).is_empty())
}

/// The words of a sentence, with a comma at both ends.
fn said<'a>(sentence: &'a Sentence<'_>) -> Vec<&'a str> {
    let words = sentence.words.iter().map(|word| word.text.as_str());
    [","].into_iter().chain(words).chain([","]).collect()
}

/// The verbs with which words ask for a prompt to be made or changed.
fn orders<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let orders = (1..words.len()).filter(|at| is_order(&words[..*at], &words[*at..]));
    orders.map(|at| words[at]).collect()
}

/// A text of the same length with each line that goes on with a small letter joined to the one before.
fn unwrapped(text: &str) -> String {
    let next = |at: usize| text[at + 1..].trim_start_matches(' ').chars().next();
    let goes_on = |at: usize| next(at).is_some_and(char::is_lowercase);
    let joined = |(at, character)| [character, ' '][usize::from(character == '\n' && goes_on(at))];
    text.char_indices().map(joined).collect()
}

/// Whether words begin with a verb that asks, and its object is a prompt.
fn is_order(before: &[&str], words: &[&str]) -> bool {
    let verb = words[0];
    let (betters, hands) = (is_of(BETTERING, verb), is_of(HANDING, verb));
    if !(betters || hands || is_of(MAKING, verb)) {
        return false;
    }
    let before = before
        .iter()
        .rfind(|word| !is_of(BETWEEN, word) && !word.ends_with("ly"));
    if !before.is_some_and(|word| is_of(LEADING, word) || is_number(word)) && verb != "wrote" {
        return false;
    }
    if betters && matches!(words, [_, "it" | "them", ..] | [_, "this", ",", ..]) {
        return true;
    }
    let mut is_new = !hands;
    for three in words.windows(3).take(REACH) {
        let &[before, word, next] = three else {
            return false;
        };
        let of_version = word == "of" && (is_of(VERSIONS, before) || is_of("set sets", before));
        if is_of(ASIDE, word) && !of_version {
            return false;
        }
        is_new |= is_of(NEW, word) || is_of(NEW, next);
        let is_prompt = means_prompt(before, word) && !is_of(QUALIFIED, next);
        let is_version = is_of(VERSIONS, word) && next != "of" || word == "one" && is_of(NEW, before);
        if is_new && (is_prompt || is_version) {
            return true;
        }
    }
    false
}

/// Whether a word means a prompt, with the one before it on its line; both are in lower case.
pub(super) fn means_prompt(before: &str, word: &str) -> bool {
    is_of("prompt prompts variable parameter component", word)
        || is_of("instruction instructions", word)
            && (before.is_empty() || is_of(OF_PROMPT, before) || is_of(NEW, before) || is_number(before))
}

/// Whether a word is a small number, as of a list item.
fn is_number(word: &str) -> bool {
    word.parse::<u8>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_asked_for_by_an_order_whose_object_it_is() {
        for text in [
            "Your task is to propose a new, improved parameter value.",
            "Do not explain. Provide the new instructions.",
            "Not now, revise the prompt.",
            "2. Carefully rewrite the agent's instructions.",
            "Use the tips, then write an improved set of instructions.",
            "Give me three new variations of this prompt.",
            "I wrote 2 different improved prompts.",
            "Improve this.",
            "Please write an improved\nprompt for it.",
            "Rate it\nRewrite the prompt.",
            "Just rewrite the prompt.",
            "Could you help improve this prompt?",
            "Also revise the prompt.",
            "Keep the prompt, or rewrite it.",
            "Propose 5 instructions.",
            "Write optimized instructions.",
            "10. Rewrite the prompt",
            "Rewrite them.",
            "The prompt fails. Edit it.",
            "Make this prompt better.",
        ] {
            assert!(asks_for_prompt(text), "{text}");
        }
        for text in [
            "My updated instructions are: deliver at noon.",
            "You suggested instructions that did not work.",
            "Please update my instructions for delivery.",
            "Please change the prompt delivery date.",
            "Change it, and the delivery instructions.",
            "How do I write a good prompt?",
            "Return the prompt. Never improve it.",
            "Write a new version of the letter.",
            "Generate an answer to the prompt.",
            "Generate an answer using the prompt.",
            "Write a response following the instructions.",
            "Do not simply rewrite the prompt.",
            "Never directly edit the prompt.",
            "Do not edit or rewrite the prompt.",
            "Do not\nrewrite the prompt.",
            "Make sure the new instructions reach me.",
        ] {
            assert!(!asks_for_prompt(text), "{text}");
        }
    }
}
