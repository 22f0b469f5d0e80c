//! Allow-lists of the HTTP headers that are passed on. Lists say what may pass; everything else stays, above all
//! credentials. And those that every answer of an adapter has.

use capo_models::Secret;
use http::header::{self, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

use crate::dialect::{Dialect, is_word_of};

/// What keeps browsers from doing more with an answer than it is for: neither page nor API is embedded elsewhere, and the
/// page asks for nothing that a browser would have to grant.
pub const PAGE_HEADERS: [(&str, &str); 5] = [
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), \
         midi=(), payment=(), usb=()",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// Of a request; `content-type` and `accept-encoding` are the gateway's own.
const REQUEST: &str = "accept anthropic-version";

/// Anthropic's beta features that `capo-models` uses and that change no price or bound.
const BETAS: &str = "fine-grained-tool-streaming-2025-05-14 thinking-binding-controls-2026-08-01";

/// Of an answer, with all that begins like the provider's limits.
const RESPONSE: &str =
    "content-type mistral-correlation-id request-id retry-after retry-after-ms x-request-id";
const RESPONSE_BEGINS: [&str; 2] = ["anthropic-ratelimit-", "x-ratelimit-"];

/// The headers of a request that go to the provider, with `content-type` and `accept-encoding` as the gateway needs
/// them: JSON, and an answer whose tokens can be read.
pub(crate) fn request_headers(headers: &HeaderMap) -> HeaderMap {
    let mut kept = keep(headers, |name, _| is_word_of(REQUEST, name));
    for value in headers.get_all("anthropic-beta") {
        let betas = value.to_str().unwrap_or_default().split(',').map(str::trim);
        let betas = betas.filter(|beta| is_word_of(BETAS, beta));
        for beta in betas.filter_map(|beta| beta.parse().ok()) {
            kept.append("anthropic-beta", beta);
        }
    }
    kept.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    kept.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    kept
}

/// The headers of an answer that go to the caller: its type, the provider's limits, and the ids by which the provider
/// finds the request again; none that holds the key.
pub fn response_headers(headers: &HeaderMap, key: &Secret) -> HeaderMap {
    let key = key.expose().as_bytes();
    let holds_key = |value: &[u8]| !key.is_empty() && value.windows(key.len()).any(|part| part == key);
    let begins = |name: &str| RESPONSE_BEGINS.iter().any(|begin| name.starts_with(begin));
    keep(headers, |name, value| {
        (is_word_of(RESPONSE, name) || begins(name)) && !holds_key(value)
    })
}

fn keep(headers: &HeaderMap, passes: impl Fn(&str, &[u8]) -> bool) -> HeaderMap {
    let passing = headers
        .iter()
        .filter(|(name, value)| passes(name.as_str(), value.as_bytes()));
    passing
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The header that carries a provider's key.
///
/// # Errors
/// When the key holds characters that no header can.
pub(crate) fn credential(
    dialect: Dialect,
    key: &Secret,
) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
    let (name, prefix) = match dialect {
        Dialect::OpenAi => (header::AUTHORIZATION, "Bearer "),
        Dialect::Anthropic => (HeaderName::from_static("x-api-key"), ""),
        Dialect::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
    };
    let mut value = HeaderValue::try_from(format!("{prefix}{}", key.expose()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers from lines of `name: value`.
    fn map(lines: &str) -> HeaderMap {
        let pairs = lines.lines().map(|line| line.trim().split_once(": ").unwrap());
        pairs
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_known_headers_pass() {
        let sent = "authorization: Bearer s\ncookie: s\naccept: text/event-stream\naccept-encoding: br\nx-api-key: s
            anthropic-version: 2023-06-01\norigin: https://a\nx-forwarded-for: 10.0.0.1\ncontent-type: text/plain
            anthropic-beta: fast-mode-2026-02-01, fine-grained-tool-streaming-2025-05-14";
        let expected = "accept: text/event-stream\nanthropic-version: 2023-06-01\naccept-encoding: identity
            anthropic-beta: fine-grained-tool-streaming-2025-05-14\ncontent-type: application/json";
        assert_eq!(request_headers(&map(sent)), map(expected));
        let answered =
            "content-type: a/b\nset-cookie: s\nretry-after: 3\nlocation: http://a\nx-request-id: of sk-1
            x-ratelimit-remaining-tokens: 5\nopenai-organization: org\naccess-control-allow-origin: *";
        let expected = "content-type: a/b\nretry-after: 3\nx-ratelimit-remaining-tokens: 5";
        let kept = response_headers(&map(answered), &Secret::new("sk-1"));
        assert_eq!(kept, map(expected));
    }

    #[test]
    fn a_key_is_sent_as_its_provider_wants_it() {
        let sent = |dialect| {
            let (name, value) = credential(dialect, &Secret::new("sk-1")).unwrap();
            assert!(value.is_sensitive());
            format!("{name}: {}", value.to_str().unwrap())
        };
        let all = [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini].map(sent);
        let expected = "authorization: Bearer sk-1, x-api-key: sk-1, x-goog-api-key: sk-1";
        assert_eq!(all.join(", "), expected);
        assert!(credential(Dialect::OpenAi, &Secret::new("a\nb")).is_err());
    }

    #[cfg(not(target_arch = "wasm32"))]
    proptest::proptest! {
        /// Headers whose names say that they carry a secret do not pass, in any combination with others, nor does the
        /// key in any header of an answer.
        #[test]
        fn no_secret_passes(names in proptest::collection::vec(
            "(x-|proxy-|goog-|anthropic-)?(api-key|authorization|auth-token|cookie|secret|accept|request-id|version)", 1..12,
        )) {
            let mut headers = HeaderMap::new();
            for name in &names {
                let is_secret = capo_core::http_headers::is_secret_header(name);
                let value = HeaderValue::from_static(if is_secret { "secret" } else { "the key" });
                headers.append(HeaderName::try_from(name).unwrap(), value);
            }
            proptest::prop_assert!(request_headers(&headers).values().all(|value| value != "secret"));
            let answered = response_headers(&headers, &Secret::new("key"));
            proptest::prop_assert!(answered.is_empty(), "{:?}", answered);
        }
    }
}
