//! Vectors of texts that a model made, kept in a file.
//!
//! A provider may give other vectors tomorrow, so a study names a file of them: what is split by them is
//! split the same way for as long as the file stays. The file holds a line for each text: a JSON object
//! with `text`, the SHA-256 of the text in hexadecimal digits, `model`, who made the vector, and `vector`.

use std::collections::BTreeMap;

use capo_core::ids::sha256_hex;
use capo_core::study::suggest;
use serde::{Deserialize, Serialize};

use crate::settings::BuildError;
use crate::vectors::normalized;

/// Vectors of one model, by the text they were made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    model: Option<String>,
    by_hash: BTreeMap<String, Vec<f64>>,
}

/// What a study wants vectors of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The file that keeps the vectors, as the study names it.
    pub file: String,
    /// The texts, each once.
    pub texts: Vec<String>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    model: String,
    vector: Vec<f64>,
}

impl Embeddings {
    /// Reads the file, which `name` names in errors.
    ///
    /// # Errors
    /// The first line that is no such object, has a vector of another length than the others or without a
    /// direction, comes from another model, or repeats a text.
    pub fn parse(name: &str, content: &[u8]) -> Result<Self, BuildError> {
        let content =
            std::str::from_utf8(content).map_err(|_| BuildError::data(name, "is not UTF-8 text"))?;
        let mut embeddings = Self::default();
        for (place, written) in content.lines().enumerate() {
            let wrong = |problem: String| BuildError::line(name, place as u64 + 1, problem);
            let line: Line = serde_json::from_str(written).map_err(|error| {
                let told = suggest(&error.to_string());
                wrong(format!("is no vector of a text: {told}"))
            })?;
            if line.text.len() != 64 || !line.text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong(
                    "`text` must be a SHA-256 in 64 hexadecimal digits".to_owned(),
                ));
            }
            embeddings
                .add(line.text, &line.model, line.vector)
                .map_err(wrong)?;
        }
        Ok(embeddings)
    }

    /// The file's content.
    ///
    /// # Panics
    /// Never: lines are texts and finite numbers.
    pub fn written(&self) -> String {
        let lines = self.by_hash.iter().map(|(text, vector)| {
            let line = Line {
                text: text.clone(),
                model: self.model.clone().unwrap_or_default(),
                vector: vector.clone(),
            };
            serde_json::to_string(&line).expect("texts and finite numbers are JSON") + "\n"
        });
        lines.collect()
    }

    /// Who made the vectors; `None` while there are none.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether there is a vector of this text.
    pub fn has(&self, text: &str) -> bool {
        self.by_hash.contains_key(&sha256_hex(text.as_bytes()))
    }

    /// Adds the vector of a text.
    ///
    /// # Errors
    /// When it does not fit the others, see [`Embeddings::parse`].
    pub fn insert(&mut self, text: &str, model: &str, vector: Vec<f64>) -> Result<(), String> {
        self.add(sha256_hex(text.as_bytes()), model, vector)
    }

    fn add(&mut self, hash: String, model: &str, vector: Vec<f64>) -> Result<(), String> {
        if let Some(other) = self.model.as_deref().filter(|other| *other != model) {
            return Err(format!(
                "a vector of {model} cannot be compared with those of {other} before it"
            ));
        }
        let length = self.by_hash.values().next().map_or(vector.len(), Vec::len);
        if vector.len() != length {
            return Err(format!(
                "a vector of {} numbers among those of {length}",
                vector.len()
            ));
        }
        if !vector.iter().all(|value| value.is_finite()) || vector.iter().all(|value| *value == 0.0) {
            return Err("a vector must be finite and not zero".to_owned());
        }
        if self.by_hash.contains_key(&hash) {
            return Err(format!("a second vector of the text {hash}"));
        }
        self.model = Some(model.to_owned());
        self.by_hash.insert(hash, vector);
        Ok(())
    }

    /// The vectors of the texts, of length 1: near in meaning is then near in distance.
    ///
    /// # Errors
    /// How many texts have none.
    pub(crate) fn of(&self, texts: &[String]) -> Result<Vec<Vec<f64>>, String> {
        let found: Vec<Vec<f64>> = texts
            .iter()
            .filter_map(|text| self.by_hash.get(&sha256_hex(text.as_bytes())))
            .map(|vector| normalized(vector.clone()))
            .collect();
        match texts.len() - found.len() {
            0 => Ok(found),
            missing => Err(format!(
                "the file lacks vectors of {missing} of the {} texts; `capo embed STUDY` adds them",
                texts.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embeddings() -> Embeddings {
        let mut embeddings = Embeddings::default();
        embeddings.insert("bags", "acme/embed-1", vec![3.0, 4.0]).unwrap();
        embeddings
            .insert("seat", "acme/embed-1", vec![0.1, -1e-300])
            .unwrap();
        embeddings
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_bit() {
        let written = embeddings().written();
        assert_eq!(written.lines().count(), 2);
        assert_eq!(
            Embeddings::parse("a.jsonl", written.as_bytes()).unwrap(),
            embeddings()
        );
        assert_eq!(Embeddings::parse("a.jsonl", b"").unwrap(), Embeddings::default());
    }

    #[test]
    fn vectors_are_found_by_text_with_length_1_and_missing_ones_are_counted() {
        let texts = ["seat", "bags", "bags"].map(str::to_owned);
        let vectors = embeddings().of(&texts).unwrap();
        assert_eq!(vectors[1], [0.6, 0.8]);
        assert_eq!(vectors[2], vectors[1]);
        let texts = ["seat", "wifi", "meal"].map(str::to_owned);
        assert_eq!(
            embeddings().of(&texts).unwrap_err(),
            "the file lacks vectors of 2 of the 3 texts; `capo embed STUDY` adds them"
        );
    }

    #[test]
    fn a_line_that_does_not_fit_is_named() {
        let first = embeddings().written().lines().next().unwrap().to_owned();
        let line = |text: &str, model: &str, vector: &str| {
            let text = sha256_hex(text.as_bytes());
            format!(r#"{{"text":"{text}","model":"{model}","vector":{vector}}}"#)
        };
        for (second, problem) in [
            (
                line("wifi", "other", "[1.0,2.0]"),
                "a vector of other cannot be compared with",
            ),
            (
                line("wifi", "acme/embed-1", "[1.0]"),
                "a vector of 1 numbers among those of 2",
            ),
            (
                line("wifi", "acme/embed-1", "[0.0,0.0]"),
                "must be finite and not zero",
            ),
            (
                line("wifi", "acme/embed-1", "[1e999,0.0]"),
                "is no vector of a text",
            ),
            (first.clone(), "a second vector of the text"),
            (String::new(), "is no vector of a text"),
            (
                r#"{"text":"wifi","model":"m","vector":[1.0]}"#.to_owned(),
                "`text` must be a SHA-256",
            ),
        ] {
            let content = format!("{first}\n{second}\n");
            let message = Embeddings::parse("a.jsonl", content.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(message.starts_with("a.jsonl line 2: "), "{message}");
            assert!(message.contains(problem), "{message}");
        }
    }
}
