//! Vectors of texts: near where they share words.

use serde_json::json;

use super::random::hash_text;
use super::text;

/// Numbers in a vector.
const LENGTH: u64 = 256;

/// A JSON list with how often each text has words of each hash. A text without words is one of its own.
pub(super) fn of(texts: &[String]) -> String {
    let vectors = texts.iter().map(|text| {
        let mut vector = vec![0.0; LENGTH as usize];
        let place = |word: &str| (hash_text(word) % LENGTH) as usize;
        for word in text::words(text).iter().filter(|word| word.text != ",") {
            vector[place(&word.text)] += 1.0;
        }
        if vector.iter().all(|count| *count == 0.0) {
            vector[place(text)] = 1.0;
        }
        vector
    });
    json!(vectors.collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_near_and_none_is_nowhere() {
        let texts = ["A red sofa.", "The red SOFA", "Refunds take days", "?!"].map(str::to_owned);
        let vectors: Vec<Vec<f64>> = serde_json::from_str(&of(&texts)).unwrap();
        let product = |one: usize, other: usize| -> f64 {
            vectors[one].iter().zip(&vectors[other]).map(|(a, b)| a * b).sum()
        };
        assert!(product(0, 1) > product(0, 2));
        assert!(product(3, 3) > 0.0);
    }
}
