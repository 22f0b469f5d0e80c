//! Failing rollouts as text for critic and rewriter, grouped by objective and constraint.
//!
//! Truncation is explicit: what does not fit is counted in the text itself.

use serde::Serialize;

use crate::llm::Message;
use crate::study::metric::Measurements;
use crate::study::workload::Trace;

/// Failing rollouts that show one shortcoming.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Names the objective or the constraint, and in how many examples it is missed.
    pub title: String,
    /// The rollouts.
    pub cases: Vec<Case>,
}

/// One rollout, shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// Id of the example.
    pub example: String,
    /// `metric = value` pairs.
    pub measurements: String,
    /// The conversation and the workload's account of the outcome.
    pub text: String,
}

impl Case {
    /// Shows a rollout in at most `max_characters` characters of text, the beginning and the end
    /// kept and the gap stated. The outcome goes before the conversation, up to half of them.
    pub fn new(example: &str, measurements: &Measurements, trace: &Trace, max_characters: usize) -> Self {
        let measurements = measurements
            .iter()
            .map(|(metric, value)| format!("{metric} = {}", (value * 1000.0).round() / 1000.0))
            .collect::<Vec<_>>()
            .join(", ");
        let mut text = String::new();
        for message in &trace.messages {
            match message {
                Message::System { content } => line(&mut text, "system", content),
                Message::User { content } => line(&mut text, "user", content),
                Message::Tool { content, .. } => line(&mut text, "tool", content),
                Message::Assistant(answer) => {
                    if !answer.text().is_empty() {
                        line(&mut text, "agent", answer.text());
                    }
                    for call in &answer.tool_calls {
                        line(
                            &mut text,
                            "agent calls",
                            &format!("{}({})", call.name, call.arguments),
                        );
                    }
                }
            }
        }
        let outcome = shortened(&trace.outcome, max_characters / 2);
        let left = max_characters - outcome.chars().count().min(max_characters / 2);
        let mut text = shortened(text.trim_end(), left);
        if !outcome.is_empty() {
            text.push_str("\nOutcome: ");
            text.push_str(&outcome);
        }
        Self {
            example: example.to_owned(),
            measurements,
            text,
        }
    }
}

fn line(text: &mut String, who: &str, what: &str) {
    text.push_str(who);
    text.push_str(": ");
    text.push_str(what.trim());
    text.push('\n');
}

/// `text`, or its beginning and end around a note on how much is left out.
pub fn shortened(text: &str, max_characters: usize) -> String {
    let total = text.chars().count();
    if total <= max_characters {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_characters / 2).collect();
    let tail_length = max_characters - max_characters / 2;
    let tail: String = text.chars().skip(total - tail_length).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        total - max_characters
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_much_is_left_out() {
        assert_eq!(shortened("abcdefghij", 4), "ab\n[… 6 characters left out …]\nij");
        assert_eq!(shortened("äöü", 3), "äöü");
    }

    #[test]
    fn shows_calls_answers_and_outcome() {
        let trace = Trace {
            messages: vec![
                Message::user("hi"),
                Message::assistant("hello"),
                Message::tool("1", "{}"),
            ],
            outcome: "the order was not cancelled".into(),
            details: serde_json::Value::Null,
        };
        let case = Case::new("7", &[("success".to_owned(), 0.0)].into(), &trace, 100);
        assert_eq!(
            case.text,
            "user: hi\nagent: hello\ntool: {}\nOutcome: the order was not cancelled"
        );
        assert_eq!(case.measurements, "success = 0");
    }
}
