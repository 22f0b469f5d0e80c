//! ROUGE (Lin 2004) as Google's `rouge_score` 0.1.2 has it, without its stemmer.

use std::collections::HashMap;

use super::{f_measure, shared};

/// Runs of a to z and digits, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

pub(super) fn of_words(answer: &[String], reference: &[String]) -> f64 {
    of_grams(answer, reference, 1)
}

pub(super) fn of_pairs(answer: &[String], reference: &[String]) -> f64 {
    of_grams(answer, reference, 2)
}

fn of_grams(answer: &[String], reference: &[String], length: usize) -> f64 {
    let (answer, reference) = (answer.windows(length), reference.windows(length));
    let (given, wanted) = (answer.len(), reference.len());
    f_measure(shared(reference, answer), given, wanted)
}

/// ROUGE-L on the whole text, whatever its lines.
pub(super) fn of_sequence(answer: &[String], reference: &[String]) -> f64 {
    f_measure(longest(answer, reference), answer.len(), reference.len())
}

/// A number for each word, the same for the same word.
fn numbered<'a>(words: &'a [String], numbers: &mut HashMap<&'a str, usize>) -> Vec<usize> {
    let number = |word: &'a String| {
        let next = numbers.len();
        *numbers.entry(word.as_str()).or_insert(next)
    };
    words.iter().map(number).collect()
}

/// The length of the longest common subsequence.
fn longest(answer: &[String], reference: &[String]) -> usize {
    let mut numbers = HashMap::new();
    let (answer, reference) = (numbered(answer, &mut numbers), numbered(reference, &mut numbers));
    // Of the words before one of the reference's, in the answer read so far.
    let mut lengths = vec![0; reference.len() + 1];
    for word in &answer {
        let mut diagonal = 0;
        for (place, other) in reference.iter().enumerate() {
            let above = lengths[place + 1];
            lengths[place + 1] = if word == other {
                diagonal + 1
            } else {
                above.max(lengths[place])
            };
            diagonal = above;
        }
    }
    lengths[reference.len()]
}
