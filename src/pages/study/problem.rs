//! Problems: what is wrong with a draft, and with which of its keys.

use capo_core::study::StudyError;
use capo_models::ProviderName;

use super::labels;

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
                key: within(by_metric(&key), &problem),
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
            "confirm",
        ];
        let start = key.split('.').next().unwrap_or_default();
        if let Some((table, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            // `[workload] optimize = 999 and …`
            let name = rest.split_whitespace().next().unwrap_or_default();
            Self {
                key: format!("{table}.{name}"),
                message: sentence(rest),
            }
        } else if known.contains(&start) {
            Self {
                key: within(key, problem),
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

/// The key within a table that a problem of the table begins with.
fn within(key: String, problem: &str) -> String {
    let named = problem.strip_prefix('`').and_then(|rest| rest.split_once('`'));
    match named {
        Some((name, _)) if matches!(key.as_str(), "method" | "workload" | "study") => format!("{key}.{name}"),
        _ => key,
    }
}

/// The words for a key where a problem names it as `key` or as key = value; other words as they are.
fn worded(problem: &str) -> String {
    // What the command line offers, this page does not.
    let problem = problem.replace(", or `capo evaluate`", "");
    // Of ordinary words only those that mean nothing else where they stand so.
    let name = |word: &str| {
        let is_key =
            word.contains('_') || ["optimize", "evaluate", "parents", "gamma", "beta"].contains(&word);
        if is_key && labels::is_setting(word) {
            labels::placed(&format!("workload.{word}"))
        } else {
            word.to_owned()
        }
    };
    let in_code: Vec<String> = problem.split('`').map(str::to_owned).collect();
    let parts = in_code.iter().enumerate().map(|(place, part)| {
        // A column may be called as a provider is.
        let is_provider = place % 2 == 1 && in_code[place - 1].to_lowercase().ends_with("provider ");
        if let Some(provider) = ProviderName::find(part).filter(|_| is_provider) {
            return provider.get().title.to_owned();
        }
        if place % 2 == 1
            && part
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_')
        {
            return name(part);
        }
        let words: Vec<&str> = part.split(' ').collect();
        let said = words
            .iter()
            .enumerate()
            .filter(|(_, word)| **word != "=")
            .map(|(place, word)| {
                if words.get(place + 1) == Some(&"=") {
                    name(word)
                } else {
                    (*word).to_owned()
                }
            });
        said.collect::<Vec<_>>().join(" ")
    });
    parts.collect()
}

/// With a capital and a full stop, without code marks.
fn sentence(problem: &str) -> String {
    let plain = worded(problem);
    let mut letters = plain.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_stand_at_their_field_in_words() {
        let invalid = |key: &str, problem: &str| {
            let problem = Problem::of(StudyError::Invalid {
                key: key.into(),
                problem: problem.into(),
            });
            (problem.key, problem.message)
        };
        assert_eq!(
            invalid("method", "`parents` and `mask` must be at least 1"),
            (
                "method.parents".into(),
                "Parents per round and mask must be at least 1.".into()
            )
        );
        assert_eq!(
            invalid(
                "study.rounds",
                "0 rounds search nothing; use 1 or more, or `capo evaluate`"
            )
            .1,
            "0 rounds search nothing; use 1 or more."
        );
        let split = Problem::of_text(
            "[workload] optimize = 285000 and evaluate = 40 need 285040 tasks, but the help desk has 285000; lower one of them",
        );
        assert_eq!(split.key, "workload.optimize");
        assert_eq!(
            split.message,
            "Examples to search on 285000 and held out 40 need 285040 tasks, but the help desk has 285000; lower one of them."
        );
        let own = Problem::of_text("workload: there is no metric `my_metric`; there are `my_metric_2`");
        assert_eq!(
            own.message,
            "There is no metric my_metric; there are my_metric_2."
        );
        let wanted = Problem::of_text("models.agent: provider `openai-compatible` needs a `base_url`");
        assert_eq!(
            wanted.message,
            "Provider OpenAI-compatible server needs a base URL."
        );
        let column = Problem::of_text("workload: the rows have no column `gemini`; there are `local`");
        assert_eq!(column.message, "The rows have no column gemini; there are local.");
    }

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
