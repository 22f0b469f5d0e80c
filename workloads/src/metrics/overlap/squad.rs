//! Words as the evaluation of SQuAD 1.1 and 2.0 counts them (Rajpurkar et al. 2016, `evaluate-v2.0.py`).

use regex::Captures;

use super::super::length::WORD_RUN;
use super::super::whitespace;
use super::{f_measure, shared};

/// The words of a text in lower case, without ASCII punctuation and then without the words a, an, the.
pub(super) fn words(text: &str) -> Vec<String> {
    let text: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !c.is_ascii_punctuation())
        .collect();
    let text = WORD_RUN.replace_all(&text, |word: &Captures<'_>| match &word[0] {
        "a" | "an" | "the" => " ".to_owned(),
        other => other.to_owned(),
    });
    whitespace::words(&text).map(str::to_owned).collect()
}

pub(super) fn f1(answer: &[String], reference: &[String]) -> f64 {
    f_measure(
        shared(reference.iter(), answer.iter()),
        answer.len(),
        reference.len(),
    )
}
