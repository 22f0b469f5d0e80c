//! What is wrong with a draft, and with which of its keys.

use capo_core::study::StudyError;

/// What is wrong, and with which key of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// Dotted path, such as `study.rounds`; a constraint's is `constraint.METRIC`.
    pub(super) key: String,
    /// What is wrong and what to do.
    pub(super) message: String,
}

impl Problem {
    /// What the study's own checks say.
    pub(super) fn of(error: StudyError) -> Self {
        match error {
            StudyError::Syntax(message) => Self {
                key: String::new(),
                message,
            },
            StudyError::Invalid { key, problem } => Self {
                key: by_metric(&key),
                message: sentence(&problem),
            },
        }
    }

    /// Whether simulated models would mend it.
    pub(super) fn is_of_models(&self) -> bool {
        self.key.split('.').next() == Some("models")
    }

    /// What building a workload or a forecast says: `KEY: what is wrong`.
    pub(super) fn of_text(text: &str) -> Self {
        let (key, problem) = text.split_once(": ").unwrap_or(("", text));
        let key = by_metric(key.trim_matches('`'));
        if text.starts_with("no model for the role") {
            return Self {
                key: "models".into(),
                message: sentence(text),
            };
        }
        let known = [
            "study",
            "workload",
            "objective",
            "constraint",
            "method",
            "models",
            "budget",
        ];
        let start = key.split('.').next().unwrap_or_default();
        if known.contains(&start) {
            Self {
                key,
                message: sentence(problem),
            }
        } else {
            // It begins with the name of a file.
            Self {
                key: String::new(),
                message: format!("{}.", text.replace('`', "").trim_end_matches('.')),
            }
        }
    }
}

/// `constraint[0] (metric)` as `constraint.metric`; other keys as they are.
fn by_metric(key: &str) -> String {
    let metric = key
        .strip_prefix("constraint[")
        .and_then(|rest| rest.split_once(" (")?.1.strip_suffix(')'));
    metric.map_or_else(|| key.to_owned(), |metric| format!("constraint.{metric}"))
}

/// With a capital and a full stop, without code marks.
fn sentence(problem: &str) -> String {
    let plain = problem.replace('`', "");
    let mut letters = plain.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_workload_find_their_field() {
        let problem = Problem::of_text("workload.evaluate: is more than there are");
        assert_eq!(
            (problem.key.as_str(), problem.message.as_str()),
            ("workload.evaluate", "Is more than there are.")
        );
        assert_eq!(Problem::of_text("rows.csv line 3: not JSON").key, "");
        assert!(Problem::of_text("models.agent: `model` is empty").is_of_models());
    }
}
