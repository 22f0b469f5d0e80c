//! The published graders of GSM8K, as their sources define them.

use std::sync::LazyLock;

use regex::Regex;

use super::Extraction;
use super::value::{digit_value, final_value};
use crate::metrics::whitespace;

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a constant pattern"));
    };
}

pattern!(MARKED, r"#### (-?[0-9.,]+)");
pattern!(RUN, r"-?[0-9.,]+");
pattern!(LM_EVAL_NUMBER, r"-?[$0-9.,]{2,}|-?[0-9]+");
pattern!(COMMA_IN_NUMBER, r"(\d),(\d)");
pattern!(DECIMAL, r"[-+]?(?:\d*\.\d+|\d+)");
pattern!(INTEGER, r"-?\d+");
pattern!(
    COUNT,
    r"(?i)-?\d+|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty)\b"
);
pattern!(COUNT_MARK, r"(?i)####|\banswer\b");

/// Code points of the end of an answer that verl's graders look at.
const VERL_WINDOW: usize = 300;

const COUNT_WORDS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

/// The expected number in a reference: what follows the last `#### `, else all of it; white space
/// at the ends and commas removed.
pub fn gold(reference: &str) -> String {
    let number = reference
        .rsplit_once("#### ")
        .map_or(reference, |(_, number)| number);
    whitespace::strip(number).replace(',', "")
}

/// The text a grader takes for the answer's number; `None` where it finds none.
pub fn extract(extraction: Extraction, answer: &str) -> Option<String> {
    match extraction {
        Extraction::Final => final_value(answer).map(|value| value.to_string()),
        Extraction::Integer => count(answer),
        Extraction::Openai => MARKED.captures(answer).map(|found| found[1].replace(',', "")),
        Extraction::VerlStrict => MARKED
            .captures_iter(end(answer))
            .last()
            .map(|found| found[1].replace(',', "")),
        Extraction::VerlFlexible => {
            let runs: Vec<&str> = RUN.find_iter(end(answer)).map(|run| run.as_str()).collect();
            // Where every run is a lone stop, the first of them remains.
            runs.iter()
                .rev()
                .find(|run| **run != ".")
                .or(runs.first())
                .map(|run| (*run).to_owned())
        }
        Extraction::LmEvalStrict => MARKED.captures(answer).map(|found| found[1].to_owned()),
        Extraction::LmEvalFlexible => LM_EVAL_NUMBER
            .find_iter(answer)
            .last()
            .map(|number| number.as_str().to_owned()),
        Extraction::OpenInstruct => {
            let joined = COMMA_IN_NUMBER.replace_all(answer, "$1$2");
            Some(
                DECIMAL
                    .find_iter(&joined)
                    .last()
                    .map_or(joined.as_ref(), |number| number.as_str())
                    .to_owned(),
            )
        }
        Extraction::GepaExample => INTEGER
            .find_iter(answer)
            .last()
            .map(|number| whole(number.as_str())),
        Extraction::Dspy => Some(dspy(answer)),
    }
}

/// Whether a grader calls an answer correct; `gold` as [`gold`] returns it.
pub fn is_correct(extraction: Extraction, answer: &str, gold: &str) -> bool {
    let Some(found) = extract(extraction, answer) else {
        return false;
    };
    match extraction {
        Extraction::Final => {
            let (found, gold) = (final_value(answer), final_value(gold));
            found
                .zip(gold)
                .is_some_and(|(found, gold)| (found - gold).abs() < 1e-6)
        }
        Extraction::Integer => count(gold).is_some_and(|gold| found == gold),
        Extraction::LmEvalStrict | Extraction::LmEvalFlexible => lm_eval_form(&found) == lm_eval_form(gold),
        Extraction::GepaExample => {
            INTEGER
                .find(gold)
                .is_some_and(|number| number.len() == gold.len())
                && found == whole(gold)
        }
        Extraction::Dspy => found == dspy(gold),
        Extraction::Openai | Extraction::VerlStrict | Extraction::VerlFlexible | Extraction::OpenInstruct => {
            found == gold
        }
    }
}

fn end(answer: &str) -> &str {
    let start = answer
        .char_indices()
        .rev()
        .nth(VERL_WINDOW - 1)
        .map_or(0, |(index, _)| index);
    &answer[start..]
}

fn lm_eval_form(number: &str) -> String {
    let plain = number.replace([',', '$'], "");
    let plain = plain
        .rsplit_once("#### ")
        .map_or(plain.as_str(), |(_, number)| number);
    plain.strip_suffix('.').unwrap_or(plain).to_lowercase()
}

/// A whole number in any script's digits as ASCII without leading zeros, of any size.
fn whole(number: &str) -> String {
    let digits: String = number
        .chars()
        .filter_map(digit_value)
        .filter_map(|value| char::from_digit(value, 10))
        .collect();
    let digits = digits.trim_start_matches('0');
    match (digits.is_empty(), number.starts_with('-')) {
        (true, _) => "0".to_owned(),
        (false, true) => format!("-{digits}"),
        (false, false) => digits.to_owned(),
    }
}

fn dspy(answer: &str) -> String {
    let line = whitespace::strip(answer).split('\n').next().unwrap_or_default();
    let word = whitespace::words(line)
        .filter(|word| word.contains(|c| digit_value(c).is_some()))
        .last();
    let before_stop = word.and_then(|word| word.split('.').next()).unwrap_or_default();
    whole(&before_stop.replace('-', ""))
}

fn count(answer: &str) -> Option<String> {
    let marked = COUNT_MARK
        .find_iter(answer)
        .last()
        .and_then(|mark| last_count(&answer[mark.end()..]));
    marked.or_else(|| last_count(answer))
}

fn last_count(text: &str) -> Option<String> {
    let found = COUNT.find_iter(text).last()?.as_str();
    let word = COUNT_WORDS
        .iter()
        .position(|word| word.eq_ignore_ascii_case(found));
    Some(word.map_or_else(|| whole(found), |value| value.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::boxed;
    use super::*;
    use crate::shared;

    const RECORDED: [(Extraction, &str); 8] = [
        (Extraction::Openai, "openai"),
        (Extraction::VerlStrict, "verl_strict"),
        (Extraction::VerlFlexible, "verl_flexible"),
        (Extraction::LmEvalStrict, "lm_eval_strict"),
        (Extraction::LmEvalFlexible, "lm_eval_flexible"),
        (Extraction::OpenInstruct, "open_instruct"),
        (Extraction::GepaExample, "gepa_example"),
        (Extraction::Dspy, "dspy"),
    ];

    #[test]
    fn every_grader_equals_its_recorded_verdicts() {
        let Some(rows) = shared::json_lines("parity/gsm8k.jsonl") else {
            return;
        };
        assert!(rows.len() > 50);
        for row in rows {
            let answer = row["completion"].as_str().unwrap();
            let gold = gold(row["gold_answer"].as_str().unwrap());
            assert_eq!(gold, row["gold"].as_str().unwrap());
            for (extraction, column) in RECORDED {
                let recorded = match &row[column]["extracted"] {
                    Value::String(text) if text == "[invalid]" => None,
                    Value::String(text) => Some(text.clone()),
                    Value::Null => None,
                    number => Some(number.to_string()),
                };
                assert_eq!(
                    extract(extraction, answer),
                    recorded,
                    "{column} extracts from {answer:?}"
                );
                let correct = row[column]["correct"].as_bool().unwrap();
                assert_eq!(
                    is_correct(extraction, answer, &gold),
                    correct,
                    "{column} grades {answer:?} against {gold}"
                );
            }
            // The reference raises an error on \fbox; here its content is the answer.
            match row["last_boxed"].as_str() {
                Some(error) if error.starts_with("ERR") => assert!(boxed(answer).is_some()),
                content => assert_eq!(boxed(answer), content, "{answer:?}"),
            }
        }
    }

    #[test]
    fn every_reference_answer_of_gsm8k_is_correct_under_every_strict_grader() {
        let Some(rows) = shared::json_lines("data/gsm8k/train.jsonl") else {
            return;
        };
        for row in rows {
            let answer = row["answer"].as_str().unwrap();
            for extraction in [Extraction::Final, Extraction::Openai, Extraction::LmEvalStrict] {
                assert!(
                    is_correct(extraction, answer, &gold(answer)),
                    "{extraction:?} {answer:?}"
                );
            }
        }
    }
}
