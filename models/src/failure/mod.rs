//! Classification of failed tries: their kind, whether to try again, and what to tell the user.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use capo_core::address::Address;
use capo_core::error_chain::with_causes;
use capo_core::llm::FailureKind;
use http::StatusCode;
use rig_core::ProviderError;
use rig_core::http_client;
use serde_json::Value;

use self::body::Body;
#[cfg(not(target_arch = "wasm32"))]
use crate::batching::Stopped;
use crate::rate_limit;
use crate::secret::Redactor;
use crate::transport::Reply;

mod body;

/// What a refusal is about, where a test of the model must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// There is no such model.
    Model,
    /// The answer did not end within the tokens it was allowed.
    AnswerLength,
}

/// A failed try, not yet redacted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) retryable: bool,
    /// Whether fewer calls should be under way: the provider asked for that, or is out of reach.
    pub(crate) slow_down: bool,
    /// Whether the key itself was refused, as it will be every time.
    pub(crate) key_refused: bool,
    /// How long the provider asked to wait.
    pub(crate) wait: Option<Duration>,
    /// The status that came back; none without a reply.
    pub(crate) status: Option<StatusCode>,
    /// What the refusal is about, if that is known and one of these.
    pub(crate) about: Option<About>,
    /// The words of the provider, or of the system when there was no reply.
    pub(crate) said: Option<String>,
    /// What happened, to follow the model's name: `HTTP 500: …`.
    pub(crate) message: String,
}

impl Failure {
    fn new(kind: FailureKind, retryable: bool, message: impl Into<String>) -> Self {
        Self {
            kind,
            retryable,
            slow_down: false,
            key_refused: false,
            wait: None,
            status: None,
            about: None,
            said: None,
            message: message.into(),
        }
    }

    /// No answer within the time allowed.
    pub(crate) fn timeout(seconds: f64) -> Self {
        let message = format!("no answer within {seconds} s; raise `timeout_seconds` if that is too short");
        Self::new(FailureKind::Timeout, true, message)
    }

    /// An answer came that cannot be used; another one may be.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Malformed, true, message)
    }

    /// An answer came that cannot be used, and another one could not either.
    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Malformed, false, message)
    }

    /// The request cannot be sent as it is.
    pub(crate) fn refused_here(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Provider, false, message)
    }

    /// Reads what `error` and the recorded `reply` say. `base_url` is for messages, `variable`
    /// names the key in use, `now` is time since 1970, and `redactor` cleans what is cut.
    pub(crate) fn read(
        error: &ProviderError,
        reply: &Reply,
        base_url: &str,
        variable: Option<&str>,
        now: Duration,
        redactor: &Redactor,
    ) -> Self {
        let body = Body::read(&reply.body);
        let status = match reply.status {
            // Gateways pass an upstream's failure on inside a reply of their own.
            Some(status) if status.is_success() => body.status.unwrap_or(status),
            Some(status) => status,
            None => return Self::unsent(error, base_url),
        };
        let mut failure = if status.is_success() {
            Self::no_answer(status, error, reply, redactor)
        } else {
            Self::by_status(status, &body, variable)
        };
        failure.wait = rate_limit::wait(&reply.headers, now).or(body.wait);
        failure.status = Some(status);
        failure.about = body.about(status);
        failure.said = body.message;
        failure
    }

    /// There was no reply at all.
    fn unsent(error: &ProviderError, base_url: &str) -> Self {
        #[cfg(not(target_arch = "wasm32"))]
        if let ProviderError::Http(error) = error
            && let http_client::Error::Instance(error) = &**error
            && let Some(Stopped(why)) = error.downcast_ref::<Stopped>()
        {
            return Self::new(FailureKind::Stopped, false, why);
        }
        match error {
            ProviderError::Http(_) | ProviderError::Truncated => {
                let cause = match error {
                    ProviderError::Http(error) => match &**error {
                        http_client::Error::Instance(error) => with_causes(error.as_ref()),
                        error => with_causes(error),
                    },
                    error => with_causes(error),
                };
                let hint = if cfg!(target_arch = "wasm32") {
                    " (in a browser also when the server does not allow pages to call it, see \
                     docs/providers.md)"
                } else {
                    ""
                };
                if let Some(rest) = base_url
                    .strip_prefix("https://")
                    .filter(|_| speaks_no_tls(&cause) && is_near(base_url))
                {
                    let said = format!("this address does not speak TLS; did you mean `http://{rest}`?");
                    return Self {
                        said: Some(said.clone()),
                        ..Self::new(
                            FailureKind::Unreachable,
                            false,
                            format!("cannot reach {base_url}: {said}"),
                        )
                    };
                }
                let message = format!("cannot reach {base_url}{hint}: {cause}");
                Self {
                    slow_down: true,
                    said: Some(cause),
                    ..Self::new(FailureKind::Unreachable, true, message)
                }
            }
            error => Self::refused_here(format!("the request cannot be made: {}", with_causes(error))),
        }
    }

    /// The reply is a success, but no answer.
    fn no_answer(status: StatusCode, error: &ProviderError, reply: &Reply, redactor: &Redactor) -> Self {
        let what = if let Some(why) = &reply.refused {
            why.clone()
        } else if matches!(error, ProviderError::Http(_)) {
            "the answer broke off before its end".to_owned()
        } else if reply.body.trim_ascii().is_empty() {
            "the answer is empty".to_owned()
        } else {
            let begins = excerpt(&reply.body, redactor);
            match (serde_json::from_slice::<Value>(&reply.body), error) {
                (Err(_), _) => {
                    format!("not with JSON, as a model's server does; the answer begins: {begins}")
                }
                (Ok(_), ProviderError::Response(why) | ProviderError::Provider(why)) => {
                    format!("the answer cannot be used ({why}); it begins: {begins}")
                }
                (Ok(_), _) => format!("this is no answer of a model: {begins}"),
            }
        };
        Self::malformed(format!("HTTP {}, but {what}", status.as_u16()))
    }

    fn by_status(status: StatusCode, body: &Body, variable: Option<&str>) -> Self {
        let said = body.message.as_deref().unwrap_or("no message");
        let code = status.as_u16();
        let plain = format!("HTTP {code}: {said}");
        if matches!(code, 400 | 413 | 422) && body.is_about_context() {
            let message = format!("the request does not fit the model's context: {said}");
            return Self::new(FailureKind::ContextLength, false, message);
        }
        if code == 401 || body.refuses_key() {
            // What the provider says here may quote a part of the key.
            let what = match variable {
                Some(variable) => format!("the key in {variable} was refused; check it"),
                None => "a key is needed; name its variable with `api_key_env`".to_owned(),
            };
            return Self {
                key_refused: true,
                ..Self::new(FailureKind::Authentication, false, format!("HTTP {code}: {what}"))
            };
        }
        if code == 403 && !body.is_about_content() {
            let key = variable.map_or_else(String::new, |name| format!(" for the key in {name}"));
            let message = format!("HTTP 403: not allowed{key}: {said}");
            return Self::new(FailureKind::Authentication, false, message);
        }
        match code {
            429 if body.is_about_money() => Self::new(FailureKind::Provider, false, plain),
            429 | 529 => Self {
                slow_down: true,
                ..Self::new(FailureKind::RateLimit, true, plain)
            },
            502 | 503 => Self {
                slow_down: true,
                ..Self::new(FailureKind::Provider, true, plain)
            },
            408 | 504 => Self::new(FailureKind::Timeout, true, plain),
            300..=399 => {
                let message =
                    format!("HTTP {code}: redirects are not followed; write the final address as `base_url`");
                Self::new(FailureKind::Provider, false, message)
            }
            // 409: two requests met; 425: too early. Both pass.
            409 | 425 | 500..=599 => Self::new(FailureKind::Provider, true, plain),
            _ => Self::new(FailureKind::Provider, false, plain),
        }
    }
}

/// Whether what came back over a connection was no TLS at all, in the words of the library that speaks it.
fn speaks_no_tls(cause: &str) -> bool {
    cause.contains("InvalidContentType")
}

/// Whether a server is on this machine or in a network of one's own, where many speak no TLS. A provider in the
/// internet does; what came back was then of something in between, and may pass.
fn is_near(base_url: &str) -> bool {
    let Ok(address) = Address::parse(base_url) else {
        return false;
    };
    let host = address.host();
    if let Some((v6, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return v6.parse().is_ok_and(|address: Ipv6Addr| {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        });
    }
    let name = host.split(':').next().unwrap_or_default();
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return address.is_loopback() || address.is_private() || address.is_link_local();
    }
    // A name without a dot is known in its own network alone.
    let ends = [".localhost", ".local", ".internal", ".lan"];
    !name.contains('.') || ends.iter().any(|end| name.ends_with(end))
}

/// The most characters of a body in a message.
const LONGEST_EXCERPT: usize = 200;

/// The beginning of a body, on one line and without keys.
pub(crate) fn excerpt(body: &[u8], redactor: &Redactor) -> String {
    // Cleaned before it is cut: of a key cut in half, the half would no longer be found.
    let text = redactor.clean(&String::from_utf8_lossy(body));
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn read(status: u16, body: &str) -> Failure {
        let reply = Reply {
            status: Some(StatusCode::from_u16(status).unwrap()),
            body: body.to_owned().into(),
            ..Reply::default()
        };
        let error = ProviderError::Response("x".to_owned());
        Failure::read(
            &error,
            &reply,
            "http://h",
            Some("A_KEY"),
            Duration::ZERO,
            &Redactor::default(),
        )
    }

    #[test]
    fn no_half_of_a_key_survives_where_a_body_is_cut() {
        let redactor = Redactor::new([&Secret::new("sk-0123456789")]);
        for before in [LONGEST_EXCERPT, 600, 8 * LONGEST_EXCERPT] {
            let body = format!("{}sk-0123456789 and more", "x".repeat(before - 6));
            assert!(!excerpt(body.as_bytes(), &redactor).contains("sk-"), "{before}");
            // White space goes, so that what stands behind much of it is shown.
            let body = format!("{}sk-0123456789 and more", " ".repeat(before - 6));
            assert!(!excerpt(body.as_bytes(), &redactor).contains("sk-"), "{before}");
        }
    }

    #[test]
    fn an_address_in_a_network_of_ones_own_may_be_meant_without_tls() {
        for url in [
            "https://127.0.0.1:8000/v1",
            "https://localhost:8000/v1",
            "https://[::1]:8000",
            "https://192.168.1.4:8000",
            "https://10.0.0.2",
            "https://172.20.0.2",
            "https://[fd00::1]",
            "https://gpu-box:8000/v1",
            "https://gpu-box.local/v1",
        ] {
            assert!(is_near(url), "{url}");
        }
        for url in [
            "https://api.openai.com/v1",
            "https://8.8.8.8",
            "https://[2001:4860:4860::8888]",
        ] {
            assert!(!is_near(url), "{url}");
        }
    }

    #[test]
    fn which_statuses_are_tried_again() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            assert!(read(status, "").retryable, "{status}");
        }
        for status in [400, 401, 402, 403, 404, 405, 413, 422] {
            assert!(!read(status, "").retryable, "{status}");
        }
        for status in [429, 502, 503, 529] {
            assert!(read(status, "").slow_down, "{status}");
        }
        assert!(!read(500, "").slow_down);
    }

    #[test]
    fn kinds() {
        assert_eq!(read(429, "").kind, FailureKind::RateLimit);
        assert_eq!(read(529, "").kind, FailureKind::RateLimit);
        assert_eq!(read(408, "").kind, FailureKind::Timeout);
        assert_eq!(read(500, "").kind, FailureKind::Provider);
        assert_eq!(read(200, "{").kind, FailureKind::Malformed);
        assert_eq!(read(403, "").kind, FailureKind::Authentication);
        assert!(read(401, "").key_refused && !read(403, "").key_refused);
    }

    #[test]
    fn a_refused_key_is_named_by_its_variable_and_not_quoted() {
        let failure = read(401, r#"{"error":{"message":"Incorrect key: sk-abc***f"}}"#);
        assert_eq!(failure.kind, FailureKind::Authentication);
        assert_eq!(
            failure.message,
            "HTTP 401: the key in A_KEY was refused; check it"
        );
    }

    #[test]
    fn a_spent_account_is_not_a_rate_limit() {
        let body = r#"{"error":{"code":"insufficient_quota","message":"check your plan"}}"#;
        let failure = read(429, body);
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Provider, false));
    }

    #[test]
    fn geminis_quota_by_the_minute_is_a_rate_limit_with_a_wait_of_its_own() {
        // The words of a spent account, without its code: it says the same for every quota.
        let failure = read(
            429,
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details.","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36.5s"}]}}"#,
        );
        assert_eq!((failure.kind, failure.retryable), (FailureKind::RateLimit, true));
        assert_eq!(failure.wait, Some(Duration::from_millis(36_500)));
    }

    #[test]
    fn geminis_refused_key_is_one_though_its_status_is_400() {
        let failure = read(
            400,
            r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key.","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
        );
        assert_eq!(failure.kind, FailureKind::Authentication);
        assert!(
            failure.message.contains("the key in A_KEY was refused"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn a_moderated_request_is_not_a_refused_key() {
        // 403, with the reasons under `metadata`: the next request may pass.
        let failure = read(
            403,
            r#"{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
        );
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Provider, false));
        assert_eq!(failure.message, "HTTP 403: Your input was flagged");
    }

    #[test]
    fn long_requests_as_each_provider_says_it() {
        for body in [
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#,
            r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request exceeds the available context size"}}"#,
        ] {
            let failure = read(400, body);
            assert_eq!(failure.kind, FailureKind::ContextLength, "{body}");
            assert!(!failure.retryable);
        }
        assert_eq!(read(400, r#"{"error":"bad tool"}"#).kind, FailureKind::Provider);
    }

    #[test]
    fn messages_are_found_wherever_they_are() {
        for body in [
            r#"{"error":{"message":"m1"}}"#,
            r#"{"error":"m1"}"#,
            r#"{"message":"m1"}"#,
            r#"{"detail":"m1"}"#,
            r#"[{"error":{"message":"m1"}}]"#,
            "\n m1 \n more",
        ] {
            assert_eq!(read(500, body).message, "HTTP 500: m1", "{body}");
        }
        assert_eq!(read(500, "").message, "HTTP 500: no message");
        let detail = r#"{"detail":[{"msg":"field required"}]}"#;
        assert!(read(422, detail).message.contains("field required"));
    }

    #[test]
    fn a_model_that_is_not_there_as_each_provider_says_it() {
        for (status, body) in [
            (
                404,
                r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}"#,
            ),
            (
                403,
                r#"{"error":{"message":"Project `p` does not have access to model `m`","code":"model_not_found"}}"#,
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
            ),
            (
                404,
                r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"Invalid model: m","type":"invalid_model","code":"1500"}"#,
            ),
            (
                400,
                r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
            ),
            (
                404,
                r#"{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error"}}"#,
            ),
        ] {
            assert_eq!(read(status, body).about, Some(About::Model), "{body}");
        }
        for (status, body) in [
            (404, "404 page not found"),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 4096 tokens."}}"#,
            ),
            (500, r#"{"error":{"message":"model not found"}}"#),
        ] {
            assert_eq!(read(status, body).about, None, "{body}");
        }
    }

    #[test]
    fn a_failure_inside_a_successful_reply_counts_as_what_it_is() {
        let failure = read(200, r#"{"error":{"code":429,"message":"upstream is busy"}}"#);
        assert_eq!((failure.kind, failure.retryable), (FailureKind::RateLimit, true));
    }
}
