//! State in the page's address: the prompt, the other side of the diff, the open trace.

use std::fmt::Write;

use capo_core::workload::Split;
use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use leptos_router::params::ParamsMap;

/// The diff's other side when nothing is compared with.
pub(super) const NOTHING: &str = "none";
/// The diff's other side that an address without one means.
pub(super) const PARENT: &str = "parent";
/// The seed prompt as the diff's other side.
pub(super) const SEED: &str = "seed";

/// An address of the candidates page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// Id of the run.
    pub run: String,
    /// The selected prompt, whole or the beginning of its id; none for the best.
    pub candidate: Option<String>,
    /// `parent`, `seed`, `none` or an id; none for the parent.
    pub against: Option<String>,
    /// The open trace.
    pub trace: Option<TraceAddress>,
}

/// The part of an address that names a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceAddress {
    /// Id of the example.
    pub example: String,
    /// Its workload; none for the first that has such an example.
    pub workload: Option<String>,
    pub split: Split,
    /// Which rollout of the prompt on it, from 0.
    pub repeat: u32,
    /// The prompt, when it is not the selected one.
    pub of: Option<String>,
    /// Whether all prompts are listed instead of one conversation.
    pub everyone: bool,
}

impl TraceAddress {
    /// The first rollout of the selected prompt on an example.
    pub(super) fn first(example: String, workload: Option<String>, split: Split) -> Self {
        Self {
            example,
            workload,
            split,
            repeat: 0,
            of: None,
            everyone: false,
        }
    }

    fn read(query: &ParamsMap) -> Option<Self> {
        Some(Self {
            example: query.get("trace")?,
            workload: query.get("workload"),
            split: match query.get_str("split") {
                Some("evaluate") => Split::Evaluate,
                _ => Split::Optimize,
            },
            repeat: query
                .get_str("repeat")
                .and_then(|repeat| repeat.parse().ok())
                .unwrap_or(0),
            of: query.get("of"),
            everyone: query.get_str("prompts") == Some("all"),
        })
    }
}

impl Address {
    /// The address shown now.
    pub(super) fn of_now() -> Memo<Self> {
        let (params, query) = (use_params_map(), use_query_map());
        Memo::new(move |_| {
            query.with(|query| {
                params.with(|params| Self {
                    run: params.get("run").unwrap_or_default(),
                    candidate: params.get("candidate").filter(|candidate| !candidate.is_empty()),
                    against: query.get("against"),
                    trace: TraceAddress::read(query),
                })
            })
        })
    }

    /// The same page with another prompt selected, and no trace open.
    pub(super) fn select(&self, candidate: &str) -> Self {
        Self {
            candidate: Some(candidate.to_owned()),
            against: self
                .against
                .clone()
                .filter(|against| matches!(against.as_str(), SEED | NOTHING)),
            trace: None,
            run: self.run.clone(),
        }
    }

    /// The same with its prompt named, if it names none.
    pub(super) fn pinned(&self, candidate: &str) -> Option<Self> {
        self.candidate.is_none().then(|| Self {
            candidate: Some(candidate.to_owned()),
            ..self.clone()
        })
    }

    /// The same with another side of the diff.
    pub(super) fn compare(&self, against: &str) -> Self {
        Self {
            against: Some(against.to_owned()).filter(|against| against != PARENT),
            ..self.clone()
        }
    }

    /// The same with another trace open, or none.
    pub(super) fn open(&self, trace: Option<TraceAddress>) -> Self {
        Self {
            trace,
            ..self.clone()
        }
    }

    /// As it stands in links.
    pub(super) fn href(&self) -> String {
        let mut href = format!("/run/{}/candidate", escaped(&self.run));
        if let Some(candidate) = &self.candidate {
            href += "/";
            href += &escaped(candidate);
        }
        let mut sign = '?';
        let mut add = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = write!(href, "{sign}{key}={}", escaped(value));
            sign = '&';
        };
        if let Some(against) = &self.against {
            add("against", against);
        }
        if let Some(trace) = &self.trace {
            add("trace", &trace.example);
            add("repeat", &trace.repeat.to_string());
            add(
                "split",
                match trace.split {
                    Split::Optimize => "optimize",
                    Split::Evaluate => "evaluate",
                },
            );
            if let Some(workload) = &trace.workload {
                add("workload", workload);
            }
            if let Some(of) = &trace.of {
                add("of", of);
            }
            if trace.everyone {
                add("prompts", "all");
            }
        }
        href
    }
}

/// A text as part of an address (RFC 3986: all but unreserved characters as percent signs and digits).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // As above.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            run: "18f".into(),
            candidate: Some("c95e03".into()),
            against: Some("seed".into()),
            trace: Some(TraceAddress::first("a&b 1".into(), None, Split::Evaluate)),
        }
    }

    #[test]
    fn an_address_names_prompt_diff_and_trace() {
        assert_eq!(
            address().href(),
            "/run/18f/candidate/c95e03?against=seed&trace=a%26b%201&repeat=0&split=evaluate"
        );
        let nothing = Address {
            run: "18f".into(),
            ..Address::default()
        };
        assert_eq!(nothing.href(), "/run/18f/candidate");
    }

    #[test]
    fn an_address_without_a_prompt_is_given_one_and_keeps_the_rest() {
        let open = Address {
            candidate: None,
            ..address()
        };
        let pinned = open.pinned("095d71").unwrap();
        assert_eq!(pinned.candidate.as_deref(), Some("095d71"));
        assert_eq!((&pinned.trace, &pinned.against), (&open.trace, &open.against));
        assert_eq!(pinned.pinned("c95e03"), None);
    }

    #[test]
    fn another_prompt_closes_the_trace_and_keeps_what_still_means_something() {
        let selected = address().select("095d71");
        assert_eq!(selected.href(), "/run/18f/candidate/095d71?against=seed");
        let compared = address().open(None).compare("a08346").select("095d71");
        assert_eq!(compared.href(), "/run/18f/candidate/095d71");
        assert_eq!(address().compare(PARENT).against, None);
    }
}
