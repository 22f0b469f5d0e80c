//! A stub's script: an agent that solves word problems better or worse by its system prompt, and
//! a rewriter that edits the prompt.
//!
//! Three sentences matter. Working in steps makes answers right and long, checking makes them
//! right and longer still, being brief makes them short and a little less often right. So under a
//! limit on length, a good prompt needs the right mix, and a search has something to find. Every
//! answer is a function of the question alone, so two runs that ask the same get the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::Value;

use crate::program::read;
use crate::stub::{Answer, Question};

const STEPS: &str = "Work step by step.";
const CHECK: &str = "Check every figure before you answer.";
const BRIEF: &str = "Keep the solution brief.";

/// Characters of an answer that works in steps without being brief.
pub const LONG: usize = 400;

/// Plays agent, critic and rewriter on the problems of a data file.
#[derive(Debug, Clone)]
pub struct Arithmetic {
    /// Right answers by problem.
    gold: HashMap<String, String>,
}

impl Arithmetic {
    /// The problems of JSON lines with `question` and `answer`, the answer ending in
    /// `#### NUMBER`.
    ///
    /// # Panics
    /// When the file does not have that form.
    pub fn from_jsonl(file: &Path) -> Self {
        let gold = read(file)
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).expect("a line of JSON");
                let answer = row["answer"].as_str().expect("a text `answer`");
                let (_, gold) = answer.rsplit_once("#### ").expect("an answer after ####");
                (
                    row["question"].as_str().expect("a text `question`").to_owned(),
                    gold.trim().to_owned(),
                )
            })
            .collect();
        Self { gold }
    }

    /// A script for a [`Stub`](crate::stub::Stub) that never fails.
    pub fn script(self) -> impl Fn(&Question, u64) -> Answer + Send + Sync + 'static {
        move |question, _| self.answer(question)
    }

    /// The same with failures: one request in five, by chance, fails in one of five ways.
    pub fn faulty_script(self) -> impl Fn(&Question, u64) -> Answer + Send + Sync + 'static {
        const FAULTS: [Answer; 5] = [
            Answer::Error(429, Some(0)),
            Answer::Error(500, None),
            Answer::Error(503, None),
            Answer::Malformed,
            Answer::Empty,
        ];
        move |question, before| {
            let fault = (luck(&(question.without_tools(), before)) * 5.0 * FAULTS.len() as f64) as usize;
            FAULTS
                .get(fault)
                .cloned()
                .unwrap_or_else(|| self.answer(question))
        }
    }

    /// The answer to a question.
    pub fn answer(&self, question: &Question) -> Answer {
        Answer::Text(if question.is_rewrite() {
            rewrite(question)
        } else if question.is_critique() {
            "Wrong answers lack working; long ones hold too much of it.".into()
        } else {
            self.solve(question)
        })
    }

    fn solve(&self, question: &Question) -> String {
        let says = |sentence: &str| question.system.contains(sentence);
        let mut chance = 0.3;
        let mut length = 60;
        for (sentence, gain, factor) in [(STEPS, 0.35, LONG / 60), (CHECK, 0.25, 2)] {
            if says(sentence) {
                chance += gain;
                length *= factor;
            }
        }
        if says(BRIEF) {
            chance -= 0.1;
            length /= 4;
        }
        let gold = self
            .gold
            .iter()
            .find(|(problem, _)| question.user.contains(problem.as_str()));
        let gold = gold.map_or("unknown", |(_, gold)| gold);
        let answer = if luck(&(&question.user, question.seed)) < chance {
            gold
        } else {
            "-1"
        };
        format!(
            "{}\n#### {answer}",
            "Let us see. ".repeat(length.div_ceil(12)).trim_end()
        )
    }
}

/// Adds a sentence that matters, or drops one, by chance.
fn rewrite(question: &Question) -> String {
    let parent = question
        .user
        .split("## Current system prompt")
        .nth(1)
        .and_then(|rest| rest.split("<prompt>").nth(1))
        .and_then(|rest| rest.split("</prompt>").next())
        .map_or("", str::trim);
    let sentence = [STEPS, CHECK, BRIEF][(luck(&question.without_tools()) * 3.0) as usize];
    let child = if parent.contains(sentence) {
        parent.replace(sentence, "").trim().to_owned()
    } else {
        format!("{parent} {sentence}")
    };
    format!("Here it is.\n<prompt>\n{child}\n</prompt>")
}

/// Uniform in [0, 1), by what it is for alone.
pub fn luck(of: &impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}
