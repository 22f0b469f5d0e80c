//! The APIs that providers serve, and which of their endpoints are passed on.

use capo_models::providers::{Api, Provider};
use http::Method;
use serde_json::json;

use crate::problem::{METHOD_NOT_ALLOWED, NO_SUCH_ENDPOINT, Problem, QUERY_NOT_ALLOWED};

/// The API that a provider serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Gemini,
}

/// What is asked of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Chat,
    Responses,
    Embeddings,
    Messages,
    Generate,
    GenerateStream,
    EmbedBatch,
    Models,
}

/// A request's endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Route {
    pub(crate) operation: Operation,
    /// What follows the API's version.
    pub(crate) path: String,
    /// The model, empty where the path names none.
    pub(crate) model: String,
}

impl Operation {
    /// Its name in OpenTelemetry's conventions for generative AI.
    pub(crate) fn well_known(self) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Responses | Self::Messages => Some("chat"),
            Self::Generate | Self::GenerateStream => Some("generate_content"),
            Self::Embeddings | Self::EmbedBatch => Some("embeddings"),
            Self::Models => None,
        }
    }

    /// Whether the answer is text that the model writes.
    pub(crate) fn generates(self) -> bool {
        !matches!(self, Self::Embeddings | Self::EmbedBatch | Self::Models)
    }

    /// Refuses query parameters that the endpoint does not need, above all those that carry keys.
    pub(crate) fn check_query(self, query: Option<&str>) -> Result<(), Problem> {
        let is_known = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or_default();
            is_word_of("after_id limit pageSize pageToken", name) && is_plain(value, b"-._~%=")
        };
        let is_allowed = match self {
            // Without it Gemini streams a JSON array, which few clients read.
            Self::GenerateStream => query == Some("alt=sse"),
            Self::Models => query.is_none_or(|query| query.split('&').all(is_known)),
            _ => query.is_none(),
        };
        let detail = "the query has parameters that are not passed on, or lacks the alt=sse of a stream";
        is_allowed
            .then_some(())
            .ok_or_else(|| Problem::new(QUERY_NOT_ALLOWED, detail))
    }
}

impl Dialect {
    /// What a provider speaks; `None` for models in this process.
    pub(crate) fn of(provider: &Provider) -> Option<Self> {
        (!provider.in_process).then_some(match provider.api {
            Api::OpenAi => Self::OpenAi,
            Api::Anthropic => Self::Anthropic,
            Api::Gemini => Self::Gemini,
        })
    }

    /// Every endpoint that is passed on. Paths lie below the API's version; `{model}` is the name of a model.
    fn endpoints(self) -> &'static [(&'static str, Operation)] {
        use Operation::{
            Chat, EmbedBatch, Embeddings, Generate, GenerateStream, Messages, Models, Responses,
        };
        match self {
            Self::OpenAi => &[
                ("POST chat/completions", Chat),
                ("POST responses", Responses),
                ("POST embeddings", Embeddings),
                ("GET models", Models),
            ],
            Self::Anthropic => &[("POST messages", Messages), ("GET models", Models)],
            Self::Gemini => &[
                ("POST models/{model}:generateContent", Generate),
                ("POST models/{model}:streamGenerateContent", GenerateStream),
                ("POST models/{model}:batchEmbedContents", EmbedBatch),
                ("GET models", Models),
            ],
        }
    }

    /// The endpoint of a path, which may begin with the API's version or leave it out.
    pub(crate) fn route(self, method: &Method, path: &str) -> Result<Route, Problem> {
        let version = if self == Self::Gemini { "v1beta/" } else { "v1/" };
        let path = path.strip_prefix(version).unwrap_or(path);
        let detail = "only what asks for answers, embeddings and the list of models is passed on";
        let mut refused = Problem::new(NO_SUCH_ENDPOINT, detail);
        for &(endpoint, operation) in self.endpoints() {
            let (allow, pattern) = endpoint.split_once(' ').unwrap_or_default();
            let Some(model) = fits(pattern, path) else {
                continue;
            };
            if allow == method.as_str() {
                let (path, model) = (path.to_owned(), model.to_owned());
                return Ok(Route {
                    operation,
                    path,
                    model,
                });
            }
            let detail = format!("this endpoint is asked with {allow}");
            refused = Problem::new(METHOD_NOT_ALLOWED, detail).with(json!({ "allow": allow }));
        }
        Err(refused)
    }
}

/// The model's name in a path that fits a pattern, empty if the pattern has none. The name is one plain segment, so
/// that no path leads elsewhere upstream.
fn fits<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{model}") else {
        return (pattern == path).then_some("");
    };
    let model = path.strip_prefix(before)?.strip_suffix(after)?;
    (is_plain(model, b"-._") && !model.is_empty() && !model.starts_with('.')).then_some(model)
}

fn is_plain(text: &str, others: &[u8]) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

/// Whether a list of names, with white space between them, has this one.
pub(crate) fn is_word_of(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|word| word == name)
}

/// The key's id and the provider's path in the path of a request, `/api/proxy/{key}/{path…}`, as it came over HTTP:
/// not percent-decoded and without the query.
///
/// ```
/// use capo_gateway::split_path;
///
/// assert_eq!(split_path("/api/proxy/team/v1/messages"), Some(("team", "v1/messages")));
/// assert_eq!(split_path("/api/proxy/team"), None);
/// ```
pub fn split_path(path: &str) -> Option<(&str, &str)> {
    let (key, path) = path.strip_prefix("/api/proxy/")?.split_once('/')?;
    (!key.is_empty()).then_some((key, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_endpoints_of_the_dialect_alone() {
        let route = |dialect: Dialect, path: &str| {
            let route = dialect.route(&Method::POST, path);
            route.map(|route| route.path).map_err(|problem| problem.status)
        };
        let (openai, anthropic, gemini) = (Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini);
        assert_eq!(route(openai, "chat/completions").unwrap(), "chat/completions");
        assert_eq!(route(openai, "v1/embeddings").unwrap(), "embeddings");
        assert_eq!(route(anthropic, "v1/messages").unwrap(), "messages");
        let path = "models/gemini-2.5-pro:generateContent";
        assert_eq!(route(gemini, &format!("v1beta/{path}")).unwrap(), path);
        assert_eq!(route(openai, "models"), Err(405));
        for path in
            "messages v1/v1/embeddings files chat/completions/ /chat/completions ../v1/chat/completions
            chat%2fcompletions messages/batches models/:generateContent models/..:generateContent
            models/a/../b:generateContent models/a%2fb:generateContent models/a?key=b:generateContent"
                .split_whitespace()
        {
            let dialect = if path.starts_with("mod") { gemini } else { openai };
            assert_eq!(route(dialect, path), Err(404), "{path}");
        }
    }

    #[test]
    fn queries_are_refused_unless_the_endpoint_needs_them() {
        let allows = |operation: Operation, query: &str| operation.check_query(Some(query)).is_ok();
        assert!(allows(Operation::Models, "pageSize=50&pageToken=a-b%3D"));
        assert!(allows(Operation::GenerateStream, "alt=sse"));
        assert!(Operation::GenerateStream.check_query(None).is_err());
        for query in [
            "key=s",
            "limit=1&key=s",
            "limit",
            "limit=1&",
            "limit=a#b",
            "limit=a/b",
            "alt=sse",
            "",
        ] {
            assert!(!allows(Operation::Models, query), "{query}");
            assert!(!allows(Operation::Chat, query), "{query}");
        }
    }
}
