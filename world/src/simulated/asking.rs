//! Whether words ask for a prompt to be made or changed.

use super::text::sentences;

/// Verbs that ask by themselves, with "it" for the prompt, too.
const BETTERING: &str = "improve rewrite revise refine optimize optimise enhance shorten";
/// Verbs that ask by themselves.
const MAKING: &str = "write update modify change edit adjust generate create propose produce craft draft compose \
                      design suggest";
/// Verbs that ask where what is handed over is new; "I wrote an improved prompt:" waits for it.
const HANDING: &str = "provide return send give output wrote";
const NEW: &str = "new better improved revised refined updated shortened";
/// What a verb that asks follows; a comma stands at both ends of a sentence, too.
const LEADING: &str = ", to please you me let must should will and then now 1 2 3 4 5 6 7 8 9";
/// Behind these something else is named.
const ASIDE: &str = "to for that how of on about in by from with not";
const VERSIONS: &str = "version versions variant variants variation variations";
/// What is prompt, as in "the prompt delivery".
const SWIFT: &str = "delivery shipping refund reply response answer service";
/// The words before "instructions" with which a prompt is meant, as it is not by "delivery instructions" or "my".
const OF_PROMPT: &str = "a an the this these those our your its best current original existing initial seed old basic \
                         system two three single different final complete general detailed concise clearer task agent \
                         assistant model predictor following of";
/// Words after a verb among which its object is looked for.
const REACH: usize = 8;

/// Whether a word is one of some.
pub(super) fn is_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Whether a text asks for a prompt to be made or changed.
pub(super) fn asks_for_prompt(text: &str) -> bool {
    sentences(text).iter().any(|sentence| {
        let said = sentence.words.iter().map(|word| word.text.as_str());
        let words: Vec<&str> = [","].into_iter().chain(said).chain([","]).collect();
        (1..words.len()).any(|at| is_order(words[at - 1], &words[at..]))
    })
}

/// Whether words begin with a verb that asks, and its object is a prompt.
fn is_order(before: &str, words: &[&str]) -> bool {
    let verb = words[0];
    let (betters, hands) = (is_of(BETTERING, verb), is_of(HANDING, verb));
    let asks = is_of(LEADING, before) || before.ends_with("ly") || verb == "wrote";
    if !asks || !(betters || hands || is_of(MAKING, verb)) {
        return false;
    }
    if betters && matches!(words, [_, "it", ..] | [_, "this", ",", ..]) {
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
        is_new |= is_of(NEW, word);
        let is_prompt = means_prompt(before, word) && !is_of(SWIFT, next);
        if is_new && (is_prompt || is_of(VERSIONS, word) && next != "of") {
            return true;
        }
    }
    false
}

/// Whether a word means a prompt, with the one before it on its line; both are in lower case.
pub(super) fn means_prompt(before: &str, word: &str) -> bool {
    is_of("prompt prompts variable parameter component", word)
        || is_of("instruction instructions", word)
            && (before.is_empty() || is_of(OF_PROMPT, before) || is_of(NEW, before))
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
        ] {
            assert!(!asks_for_prompt(text), "{text}");
        }
    }
}
