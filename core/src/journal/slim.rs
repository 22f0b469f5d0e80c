//! Journal lines without traces.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::value::RawValue;

/// What stands in place of a trace.
const NOTHING: &str = r#"{"messages":[]}"#;

/// A line with an empty trace, if it has one, that says so: all that the fold over a journal needs, and `verify` unless
/// earlier runs paid for some of it. A line that is no JSON object stays as it is; whoever parses it says what is wrong.
pub fn slim(line: &str) -> Cow<'_, str> {
    if !line.contains(r#""trace""#) {
        return Cow::Borrowed(line);
    }
    let Ok(mut fields) = serde_json::from_str::<IndexMap<Cow<'_, str>, &RawValue>>(line) else {
        return Cow::Borrowed(line);
    };
    let Some(trace) = fields.get_mut("trace") else {
        return Cow::Borrowed(line);
    };
    let (Ok(nothing), Ok(says_so)) = (serde_json::from_str(NOTHING), serde_json::from_str("true")) else {
        return Cow::Borrowed(line);
    };
    *trace = nothing;
    fields.insert(Cow::Borrowed("without_trace"), says_so);
    serde_json::to_string(&fields).map_or(Cow::Borrowed(line), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_trace_goes() {
        let line = r#"{"event":"rollout","example":"a \"trace\"","trace":{"messages":[{"role":"user","content":"x"}]},"usage":{"agent":1e-3}}"#;
        let without = slim(line);
        assert_eq!(
            without,
            r#"{"event":"rollout","example":"a \"trace\"","trace":{"messages":[]},"usage":{"agent":1e-3},"without_trace":true}"#
        );
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
