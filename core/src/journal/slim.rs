//! Journal lines without conversations.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::value::RawValue;

/// What stands in place of a trace, and of what models answered to an effect that failed.
const EMPTY: [(&str, &str); 3] = [
    ("trace", r#"{"messages":[]}"#),
    ("answers", "[]"),
    ("answer", r#""""#),
];

/// A line with an empty trace that says so, if it has one: all that the fold over a journal needs, and `verify` unless
/// earlier runs paid for some of it. A line that is no JSON object stays as it is; whoever parses it says what is wrong.
pub fn slim(line: &str) -> Cow<'_, str> {
    emptied(line, &EMPTY[..1])
}

/// The same without what models answered to effects that failed, which a run that goes on makes use of.
pub fn without_conversations(line: &str) -> Cow<'_, str> {
    emptied(line, &EMPTY)
}

fn emptied<'a>(line: &'a str, empty: &[(&str, &str)]) -> Cow<'a, str> {
    let has = |(name, _): &(&str, &str)| line.contains(&format!("\"{name}\""));
    if !empty.iter().any(has) {
        return Cow::Borrowed(line);
    }
    let Ok(mut fields) = serde_json::from_str::<IndexMap<Cow<'_, str>, &RawValue>>(line) else {
        return Cow::Borrowed(line);
    };
    let mut is_slimmer = false;
    for (name, empty) in empty {
        if let (Some(field), Ok(empty)) = (fields.get_mut(*name), serde_json::from_str::<&RawValue>(empty)) {
            *field = empty;
            is_slimmer = true;
        }
    }
    if !is_slimmer {
        return Cow::Borrowed(line);
    }
    if let (true, Ok(says_so)) = (fields.contains_key("trace"), serde_json::from_str("true")) {
        fields.insert(Cow::Borrowed("without_trace"), says_so);
    }
    serde_json::to_string(&fields).map_or(Cow::Borrowed(line), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conversations_go() {
        let line = r#"{"event":"rollout","example":"a \"trace\"","trace":{"messages":[{"role":"user","content":"x"}]},"usage":{"agent":1e-3}}"#;
        let without = slim(line);
        assert_eq!(
            without,
            r#"{"event":"rollout","example":"a \"trace\"","trace":{"messages":[]},"usage":{"agent":1e-3},"without_trace":true}"#
        );
        let failure = r#"{"event":"failure","message":"m","answer":"a secret","answers":[{"role":"agent"}]}"#;
        assert_eq!(slim(failure), failure, "the run goes on with it");
        assert_eq!(
            without_conversations(failure),
            r#"{"event":"failure","message":"m","answer":"","answers":[]}"#
        );
        assert_eq!(without_conversations(line), without);
        assert_eq!(slim(&without), without);
    }

    #[test]
    fn other_lines_stay() {
        for line in [
            r#"{"event":"critique","feedback":"the \"trace\" says"}"#,
            r#"{"event":"round","round":0}"#,
            r#"{"event":"rollout","trace":{"#,
        ] {
            assert_eq!(slim(line), line);
        }
    }
}
