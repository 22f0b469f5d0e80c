//! Whether the answer matches a regular expression, and what a group of it holds.

use capo_core::metric::MetricSpec;
use capo_core::workload::RolloutError;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DefinitionError, Evaluator, Family, Finding, Rule, Sample, shown, whitespace};
use crate::files::Sources;

/// 1 if the answer matches `pattern`, and, with `expected`, if the captured text is the expected
/// one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The metric's name in this study.
    pub name: String,
    /// A regular expression in the syntax of the Rust crate `regex` (no look-around, no
    /// back-references); `(?i)` ignores case, `(?s)` lets `.` match line breaks.
    pub pattern: String,
    /// Template of the text the group must hold; without it a match is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The capture group compared with `expected`, by number or name; the first group if there is
    /// one, else the whole match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Which of several matches counts.
    #[serde(default)]
    pub occurrence: Occurrence,
    /// Measure 1 − value, a cost.
    #[serde(default)]
    pub invert: bool,
}

/// A capture group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a name or a whole number")]
pub enum Group {
    /// By position; 0 is the whole match.
    Number(usize),
    /// By name.
    Name(String),
}

/// Which of several matches counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Occurrence {
    /// The first.
    First,
    /// The last.
    #[default]
    Last,
}

struct Matcher {
    regex: Regex,
    group: usize,
    occurrence: Occurrence,
    compare: bool,
}

impl Rule for Matcher {
    fn measure(&self, sample: &Sample<'_>) -> Result<Finding, RolloutError> {
        let mut matches = self.regex.captures_iter(sample.answer);
        let captures = match self.occurrence {
            Occurrence::First => matches.next(),
            Occurrence::Last => matches.last(),
        };
        let Some(captures) = captures else {
            return Ok(Finding::new(
                0.0,
                format!("the pattern matches nothing in {}", shown(sample.answer)),
            ));
        };
        if !self.compare {
            return Ok(Finding::new(1.0, ""));
        }
        let Some(captured) = captures.get(self.group) else {
            let note = format!("the group captures nothing in {}", shown(&captures[0]));
            return Ok(Finding::new(0.0, note));
        };
        let captured = captured.as_str();
        let expected = sample.expected();
        let equal = whitespace::strip(captured) == whitespace::strip(expected);
        Ok(Finding::holds(
            equal,
            format!("expected {}, got {}", shown(expected), shown(captured)),
        ))
    }
}

impl Pattern {
    fn group_number(&self, regex: &Regex) -> Result<usize, DefinitionError> {
        let groups = regex.captures_len() - 1;
        match &self.group {
            None => Ok(groups.min(1)),
            Some(Group::Number(number)) if *number <= groups => Ok(*number),
            Some(Group::Number(number)) => Err(DefinitionError::new(
                "group",
                format!("there is no group {number}; the pattern has {groups}"),
            )),
            Some(Group::Name(name)) => regex
                .capture_names()
                .position(|group| group == Some(name))
                .ok_or_else(|| {
                    DefinitionError::new("group", format!("the pattern has no group named `{name}`"))
                }),
        }
    }
}

impl Family for Pattern {
    fn reference(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    fn spec(&self) -> MetricSpec {
        let explanation = match self.expected {
            Some(_) => "What the pattern captures in the answer is the expected text.",
            None => "The answer matches the pattern.",
        };
        MetricSpec::objective(&self.name, explanation).two_valued()
    }

    fn compile(&self, _sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        let regex = Regex::new(&self.pattern)
            .map_err(|error| DefinitionError::new("pattern", told(&self.pattern, &error)))?;
        if self.group.is_some() && self.expected.is_none() {
            return Err(DefinitionError::new("group", "has no use without `expected`"));
        }
        let group = self.group_number(&regex)?;
        Ok(Evaluator::rule(Matcher {
            regex,
            group,
            occurrence: self.occurrence,
            compare: self.expected.is_some(),
        }))
    }
}

/// What is wrong with a pattern, and where in it.
fn told(pattern: &str, error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(most) = error {
        return format!("grows beyond {most} bytes; repeat less in it, or less often");
    }
    // After the pattern with marks below it.
    let told = error.to_string();
    match told.rsplit_once("error: ") {
        Some((marked, why)) => {
            let place = place(pattern, marked).unwrap_or_default();
            format!("does not read{place}: {}", why.trim_end())
        }
        None => format!("does not read: {told}"),
    }
}

/// Where the last marks stand below a pattern: a line alone is shown after four spaces, one of several after its number, a
/// colon and a space.
fn place(pattern: &str, marked: &str) -> Option<String> {
    let lines: Vec<&str> = marked.lines().collect();
    let is_marks = |line: &&str| line.contains('^') && line.chars().all(|letter| matches!(letter, ' ' | '^'));
    let marks = lines.iter().rposition(is_marks)?;
    let before = lines[marks].trim_end_matches('^').len();
    if !pattern.contains('\n') {
        return Some(format!(" at column {}", before - 3));
    }
    let (number, _) = lines[marks - 1].split_once(": ")?;
    let column = before - number.len() - 1;
    Some(format!(" at line {}, column {column}", number.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compile, measure};

    #[test]
    fn a_match_is_enough_without_an_expected_text() {
        let definition = r#"{"type": "regex", "name": "m", "pattern": "(?i)^dear \\w+"}"#;
        assert_eq!(measure(definition, "DEAR Ann, …", "").value, 1.0);
        assert_eq!(measure(definition, "Hi Ann", "").value, 0.0);
    }

    #[test]
    fn the_last_match_is_compared_unless_the_first_is_asked_for() {
        let last = r#"{"type": "regex", "name": "m", "pattern": "Answer: (\\w+)", "expected": "{{ a }}"}"#;
        let first = r#"{"type": "regex", "name": "m", "pattern": "Answer: (?<x>\\w+)", "group": "x", "occurrence": "first", "expected": "{{ a }}"}"#;
        let answer = "Answer: A. No, wait. Answer: B";
        assert_eq!(measure(last, answer, "B").value, 1.0);
        assert_eq!(measure(first, answer, "B").value, 0.0);
        assert_eq!(measure(first, answer, "A").value, 1.0);
    }

    #[test]
    fn a_group_that_takes_no_part_in_the_match_holds_nothing() {
        let definition = r#"{"type": "regex", "name": "m", "pattern": "yes(, because (.*))?", "group": 2, "expected": "{{ a }}"}"#;
        assert_eq!(measure(definition, "yes", "").value, 0.0);
        assert_eq!(measure(definition, "yes, because ", "").value, 1.0);
    }

    #[test]
    fn impossible_patterns_and_groups_are_refused() {
        for (definition, problem) in [
            (
                r#"{"type": "regex", "name": "m", "pattern": "(a"}"#,
                "does not read at column 1: unclosed group",
            ),
            (
                r#"{"type": "regex", "name": "m", "pattern": "a\nb(c"}"#,
                "does not read at line 2, column 2: unclosed group",
            ),
            (
                r#"{"type": "regex", "name": "m", "pattern": "(a{1000}){1000}"}"#,
                "grows beyond 10485760 bytes",
            ),
            (
                r#"{"type": "regex", "name": "m", "pattern": "(a)", "group": 2, "expected": "x"}"#,
                "there is no group 2; the pattern has 1",
            ),
            (
                r#"{"type": "regex", "name": "m", "pattern": "(a)", "group": "y", "expected": "x"}"#,
                "no group named `y`",
            ),
            (
                r#"{"type": "regex", "name": "m", "pattern": "(a)", "group": 1}"#,
                "no use without `expected`",
            ),
        ] {
            let error = format!("{:?}", compile(definition).err().unwrap());
            assert!(error.contains(problem), "{error}");
        }
    }
}
