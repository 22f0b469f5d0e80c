//! Whether words ask for a prompt to be made or changed.

/// The verbs of making and changing, without their endings; with the first seven "it" is better than before.
const MAKING: &str = "improv rewrit revis refin optimiz optimis enhanc wrot writ updat modify chang edit adjust shorten \
                      generat creat propos produc craft draft compos design suggest";
const ENDINGS: [&str; 7] = ["", "e", "s", "es", "ed", "ing", "ten"];
/// The verbs with which something is handed over, which is asked for where it is new.
const HANDING: &str = "provide return send give output";
const NEW: &str = "new better improved revised updated refined";
const NEGATORS: &str = "not no never without avoid don't don’t cannot nor";
/// Before these, or by them, something other than the prompt is named.
const OTHERWISE: &str = "answer answers response responses reply replies output outputs feedback to for that how of on \
                         about in by from with";
/// The words before "instructions" with which a prompt is meant, as it is not by "delivery instructions".
const OF_PROMPT: &str = "a an the this these those my our your its new better current original existing initial seed old \
                         basic system one two three single different final complete detailed concise clearer task \
                         agent's assistant's model's following";

/// Whether a word is one of some.
pub(super) fn is_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// A word in lower case, and whether it ends a sentence.
type Word = (String, bool);

/// Whether a text asks for a prompt to be made or changed: a verb that is not negated, and soon after it a prompt.
pub(super) fn asks_for_prompt(text: &str) -> bool {
    let words: Vec<Word> = text.split_whitespace().filter_map(word).collect();
    (0..words.len()).any(|at| begins_to_ask(&words, at))
}

fn word(raw: &str) -> Option<Word> {
    let text = raw.trim_matches(|character: char| !character.is_alphanumeric());
    let ends = raw
        .trim_end_matches(['"', '*', '`', ')', '\''])
        .ends_with(['.', '!', '?', ':', ';']);
    (!text.is_empty()).then(|| (text.to_lowercase(), ends))
}

fn begins_to_ask(words: &[Word], at: usize) -> bool {
    let (verb, ends) = &words[at];
    let makes = has_stem(verb, MAKING.split(' '));
    let mut sentence = words[..at].iter().rev().take(3).take_while(|(_, ends)| !ends);
    let asks = makes || is_of(HANDING, verb);
    if *ends || !asks || sentence.any(|(word, _)| is_of(NEGATORS, word)) {
        return false;
    }
    let mut is_new = makes;
    for (place, pair) in words[at..].windows(2).take(5).enumerate() {
        let [(before, _), (word, ends)] = pair else {
            return false;
        };
        if is_of(OTHERWISE, word) {
            return false;
        }
        is_new |= is_of(NEW, word);
        let is_it = place == 0 && (word == "it" || word == "this" && *ends);
        if is_new && (means_prompt(before, word) || is_version(&words[at + 1 + place..]))
            || is_it && has_stem(verb, MAKING.split(' ').take(7))
        {
            return true;
        }
        if *ends {
            return false;
        }
    }
    false
}

fn has_stem<'a>(word: &str, mut stems: impl Iterator<Item = &'a str>) -> bool {
    stems.any(|stem| {
        word.strip_prefix(stem)
            .is_some_and(|ending| ENDINGS.contains(&ending))
    })
}

/// Whether a version is meant of a prompt, or of nothing that is named.
fn is_version(words: &[Word]) -> bool {
    let of_something = !words[0].1 && words.get(1).is_some_and(|(next, _)| next == "of");
    is_of("version versions variant variants", &words[0].0)
        && (!of_something
            || words
                .iter()
                .skip(2)
                .take(4)
                .any(|(word, _)| means_prompt("the", word)))
}

/// Whether a word means a prompt, with the one before it; both are in lower case.
pub(super) fn means_prompt(before: &str, word: &str) -> bool {
    is_of("prompt prompts variable parameter component", word)
        || is_of("instruction instructions", word)
            && (before.is_empty()
                || is_of(OF_PROMPT, before)
                || before.parse::<u8>().is_ok()
                || has_stem(before, MAKING.split(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_asked_for_by_a_verb_and_a_prompt() {
        for text in [
            "Revise the system prompt below.",
            "Your task is to propose a new, improved parameter value.",
            "Do not explain. Provide the new instructions.",
            "Create two variants of this prompt.",
            "Improve this.",
        ] {
            assert!(asks_for_prompt(text), "{text}");
        }
        for text in [
            "Return the prompt. Never improve it.",
            "Write a new version of the letter.",
            "Generate an answer to the prompt.",
            "Improve how the agent reads the prompt.",
            "Change it, and the delivery instructions.",
        ] {
            assert!(!asks_for_prompt(text), "{text}");
        }
    }
}
