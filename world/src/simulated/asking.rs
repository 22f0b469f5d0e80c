//! Whether words ask for a prompt to be made or changed.

use super::text::sentences;

/// Verbs that ask by themselves, with "it" for the prompt, too.
const BETTERING: &str = "improve rewrite revise refine optimize optimise enhance shorten edit";
/// Verbs that ask by themselves.
const MAKING: &str = "write update modify change adjust generate create propose produce craft draft compose \
                      design suggest";
/// Verbs that ask where what is handed over is new; "I wrote an improved prompt:" waits for it.
const HANDING: &str = "provide return send give output wrote make";
const NEW: &str = "new better improved revised refined updated shortened optimized optimised enhanced \
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
/// Words after a verb among which its object is looked for.
const REACH: usize = 8;

/// Whether a word is one of some.
pub(super) fn is_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Whether a text asks for a prompt to be made or changed.
pub(super) fn asks_for_prompt(text: &str) -> bool {
    sentences(&unwrapped(text)).iter().any(|sentence| {
        let said = sentence.words.iter().map(|word| word.text.as_str());
        let words: Vec<&str> = [","].into_iter().chain(said).chain([","]).collect();
        (1..words.len()).any(|at| is_order(&words[..at], &words[at..]))
    })
}

/// A text with each line that goes on with a small letter joined to the one before.
fn unwrapped(text: &str) -> String {
    let goes_on = |line: &str| line.trim_start().starts_with(char::is_lowercase);
    text.lines()
        .flat_map(|line| [if goes_on(line) { " " } else { "\n" }, line])
        .collect()
}

/// Whether words begin with a verb that asks, and its object is a prompt.
fn is_order(before: &[&str], words: &[&str]) -> bool {
    let verb = words[0];
    let (betters, hands) = (is_of(BETTERING, verb), is_of(HANDING, verb));
    let before = before
        .iter()
        .rfind(|word| !is_of(BETWEEN, word) && !word.ends_with("ly"));
    let asks = before.is_some_and(|word| is_of(LEADING, word) || is_number(word)) || verb == "wrote";
    if !asks || !(betters || hands || is_of(MAKING, verb)) {
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
