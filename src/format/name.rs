//! Names and small counts in sentences.

use capo_core::ids::CandidateId;

/// The first six hex digits of a prompt's id.
pub fn id(candidate: &CandidateId) -> String {
    let mut digits = candidate.short();
    digits.truncate(6);
    digits
}

/// A metric's name as a title: `human_requests` is "Human requests".
pub fn label(metric: &str) -> String {
    capitalized(&phrase(metric))
}

/// The same words as the beginning of a line.
pub fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

/// A metric's name within a sentence: `human_requests` is "human requests".
pub fn phrase(metric: &str) -> String {
    metric.replace('_', " ")
}

/// Counts up to twelve in words, larger ones in digits.
pub fn number_word(number: usize) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    match WORDS.get(number) {
        Some(word) => (*word).to_owned(),
        None => super::count(number as u64),
    }
}

/// The word for a place in a row, from 1: "first"; beyond the twelfth "13th".
pub fn ordinal(place: usize) -> String {
    const WORDS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    if let Some(word) = place.checked_sub(1).and_then(|index| WORDS.get(index)) {
        return (*word).to_owned();
    }
    let ending = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
}

/// A count in words with its noun, which takes an s but for one: "three rounds", "no rounds".
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number_word(number))
}

/// Words joined as in a sentence: "a", "a and b", "a, b and c".
pub fn listed<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_words() {
        assert_eq!(id(&CandidateId::of("abc")), "ba7816");
        assert_eq!(label("human_requests"), "Human requests");
        assert_eq!(label(""), "");
        assert_eq!(phrase("excess_tools"), "excess tools");
    }

    #[test]
    fn small_counts_are_words() {
        assert_eq!(counted(1, "round"), "one round");
        assert_eq!(counted(0, "round"), "no rounds");
        assert_eq!(counted(1200, "rollout"), "1,200 rollouts");
        assert_eq!(
            [1, 12, 13, 21, 112].map(ordinal),
            ["first", "twelfth", "13th", "21st", "112th"]
        );
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a"]), "a");
    }
}
