//! An HTTP endpoint: the request is POSTed, the response is the body of a 2xx.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use capo_core::address::Address;
use capo_core::error_chain::with_causes;
use capo_core::http_headers::{is_header_name, is_secret_header};
use capo_core::llm::FailureKind;
use capo_core::workload::RolloutError;
use futures::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value};

use super::Party;
use super::transport::{Answer, Beside, MOST_BYTES, Secrets, Unanswered, failed, too_large, variable};
use crate::files::Sources;
use crate::settings::DefinitionError;

/// How a failure begins of which nobody at the address knows.
pub(crate) const NO_ANSWER: &str = "no answer: ";

/// How long one try waits for a connection; the time an answer may take is for the work on it.
#[cfg(not(target_arch = "wasm32"))]
const CONNECT: Duration = Duration::from_secs(10);

/// An HTTP endpoint.
pub(crate) struct Endpoint {
    party: Party,
    /// What messages call it, with scheme, host and path.
    pub(super) who: String,
    address: Address,
    /// Header → value, for those written in the study.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Header → environment variable.
    headers_env: Vec<(HeaderName, String)>,
    bearer_env: Option<String>,
    beside: Beside,
    client: OnceCell<reqwest::Client>,
}

impl Endpoint {
    pub(crate) fn read(
        party: &Party,
        endpoint: &str,
        headers: &BTreeMap<String, String>,
        headers_env: &BTreeMap<String, String>,
        bearer_env: Option<&str>,
        sources: &Sources<'_>,
    ) -> Result<Self, DefinitionError> {
        let address = address(endpoint)?;
        let headers = headers
            .iter()
            .map(|(header, value)| Ok((header_name(header, "headers")?, check_header(header, value)?)))
            .collect::<Result<_, DefinitionError>>()?;
        let named = bearer_env
            .into_iter()
            .chain(headers_env.values().map(String::as_str));
        let beside = sources.variables(named);
        let headers_env = headers_env
            .iter()
            .map(|(header, variable)| Ok((header_name(header, "headers_env")?, variable.clone())))
            .collect::<Result<_, DefinitionError>>()?;
        Ok(Self {
            party: party.clone(),
            who: party.called(&format!("{}{}", address.origin(), address.path())),
            address,
            headers,
            headers_env,
            bearer_env: bearer_env.map(str::to_owned),
            beside,
            client: OnceCell::new(),
        })
    }

    /// Host and port, the port only where one is stated.
    pub(super) fn host(&self) -> &str {
        self.address.host()
    }

    /// Posts a request and reads the answer.
    pub(super) async fn exchange(&self, request: String) -> Result<Answer, Unanswered> {
        let (headers, secrets) = self.headers().map_err(Unanswered::Refused)?;
        let sent = self
            .client()
            .map_err(Unanswered::Refused)?
            .post(self.address.as_str())
            .headers(headers)
            .body(request)
            .send()
            .await;
        let response = sent.map_err(|error| {
            let reached = !never_connected(&error);
            let error = self.unreachable(error);
            if reached {
                Unanswered::Failed(error)
            } else {
                Unanswered::NotNow { asked: None, error }
            }
        })?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = self.body(response).await.map_err(Unanswered::Failed)?;
        if status.is_success() {
            return Ok(Answer { bytes: body, secrets });
        }
        let error = self.refused(status, retry_after.as_deref(), &secrets.tail(&body));
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            let asked = retry_after.as_deref().and_then(waiting_time);
            return Err(Unanswered::NotNow { asked, error });
        }
        if status.is_server_error() {
            return Err(Unanswered::Failed(error));
        }
        Err(Unanswered::Refused(error))
    }

    fn headers(&self) -> Result<(HeaderMap, Secrets), RolloutError> {
        let mut secrets = Secrets::default();
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let from_environment = |name: &str, setting: &str, prefix: &str, secrets: &mut Secrets| {
            let value = variable(name, &self.party.setting(setting), &self.beside)
                .map_err(|problem| failed(FailureKind::Authentication, false, &self.who, problem))?;
            secrets.add(&value);
            let mut value = HeaderValue::try_from(format!("{prefix}{value}")).map_err(|_| {
                failed(
                    FailureKind::Authentication,
                    false,
                    &self.who,
                    format!(
                        "the environment variable {name} holds characters no HTTP header can (a line break?)"
                    ),
                )
            })?;
            value.set_sensitive(true);
            Ok::<_, RolloutError>(value)
        };
        for (header, name) in &self.headers_env {
            headers.insert(
                header.clone(),
                from_environment(name, "headers_env", "", &mut secrets)?,
            );
        }
        if let Some(name) = &self.bearer_env {
            let value = from_environment(name, "bearer_env", "Bearer ", &mut secrets)?;
            headers.insert(reqwest::header::AUTHORIZATION, value);
        }
        Ok((headers, secrets))
    }

    /// The client, made at the first request: reading the system's certificates takes a while, and
    /// a study that is only looked at needs none.
    fn client(&self) -> Result<&reqwest::Client, RolloutError> {
        if self.client.get().is_none() {
            let client = self.configured().build().map_err(|error| {
                failed(
                    FailureKind::Tool,
                    false,
                    &self.who,
                    format!("no HTTP client: {}", with_causes(&error)),
                )
            })?;
            let _ = self.client.set(client);
        }
        self.client
            .get()
            .ok_or_else(|| failed(FailureKind::Tool, false, &self.who, "no HTTP client"))
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "the native one reads the address")]
    fn configured(&self) -> reqwest::ClientBuilder {
        reqwest::Client::builder()
    }

    /// Without redirects, which would turn the POST into a GET and could carry secret headers to
    /// another host, and without a proxy for this machine's own addresses.
    #[cfg(not(target_arch = "wasm32"))]
    fn configured(&self) -> reqwest::ClientBuilder {
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT);
        if self.address.is_here() {
            builder.no_proxy()
        } else {
            builder
        }
    }

    async fn body(&self, response: reqwest::Response) -> Result<Vec<u8>, RolloutError> {
        let (mut body, mut chunks) = (Vec::new(), pin!(response.bytes_stream()));
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| self.unreachable(error))?);
            if body.len() > MOST_BYTES {
                return Err(too_large(&self.who));
            }
        }
        Ok(body)
    }

    fn unreachable(&self, error: reqwest::Error) -> RolloutError {
        let reason = with_causes(&error.without_url());
        failed(
            FailureKind::Tool,
            true,
            &self.who,
            format!("{NO_ANSWER}{reason}; is it running and reachable?"),
        )
    }

    fn refused(&self, status: StatusCode, retry_after: Option<&str>, tail: &str) -> RolloutError {
        let wait = retry_after
            .map(|wait| format!("; it asks to wait {wait}"))
            .unwrap_or_default();
        let says = format!("HTTP {status}; it says: {tail}{wait}");
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let names: Vec<&str> = self
                    .headers_env
                    .iter()
                    .map(|(_, name)| name)
                    .chain(&self.bearer_env)
                    .map(String::as_str)
                    .collect();
                let hint = match names.as_slice() {
                    [] => "name an environment variable with headers_env or bearer_env".to_owned(),
                    names => format!("check the environment variable {}", names.join(", ")),
                };
                failed(
                    FailureKind::Authentication,
                    false,
                    &self.who,
                    format!("{says}; {hint}"),
                )
            }
            StatusCode::TOO_MANY_REQUESTS => failed(
                FailureKind::RateLimit,
                true,
                &self.who,
                format!(
                    "{says}; lower {} if this goes on",
                    self.party.setting("concurrency")
                ),
            ),
            status if status.is_redirection() => failed(
                FailureKind::Tool,
                false,
                &self.who,
                format!(
                    "HTTP {status}: redirects are not followed; name the final address in {}",
                    self.party.setting("endpoint")
                ),
            ),
            status => failed(FailureKind::Tool, status.is_server_error(), &self.who, says),
        }
    }
}

/// Refuses an address or a header with a key in it, whatever else the settings say. An address that is
/// not typed yet holds none.
pub(super) fn check_written(settings: &Map<String, Value>) -> Result<(), DefinitionError> {
    let endpoint = settings.get("endpoint").and_then(Value::as_str);
    if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) {
        address(endpoint)?;
    }
    let headers = settings.get("headers").and_then(Value::as_object);
    for (header, value) in headers.into_iter().flatten() {
        check_header(header, value.as_str().unwrap_or_default())?;
    }
    Ok(())
}

/// The address of an endpoint, which the journal keeps with the study: no key may stand in it.
fn address(endpoint: &str) -> Result<Address, DefinitionError> {
    let bad = |problem: &str| Err(DefinitionError::new("endpoint", problem));
    let address = match Address::parse(endpoint) {
        Ok(address) => address,
        Err(error) => return bad(&error.to_string()),
    };
    if address.has_credentials() {
        return bad(
            "must not hold a password; put it into an environment variable and name that in headers_env",
        );
    }
    if address.has_query_or_fragment() {
        return bad(
            "must not hold a query or fragment: the study is kept in the journal; send a key with headers_env",
        );
    }
    Ok(address)
}

/// The value of a header that the study gives, which must not be a key.
fn check_header(header: &str, value: &str) -> Result<HeaderValue, DefinitionError> {
    let bad = |problem: &str| DefinitionError::new(format!("headers.{header}"), problem);
    let value = HeaderValue::try_from(value).map_err(|_| bad("not a value for an HTTP header"))?;
    if !is_header_name(header) {
        return Err(no_header(header, "headers"));
    }
    if is_secret_header(header) {
        return Err(bad(
            "carries a key; name its environment variable with headers_env",
        ));
    }
    Ok(value)
}

fn header_name(name: &str, setting: &str) -> Result<HeaderName, DefinitionError> {
    HeaderName::try_from(name).map_err(|_| no_header(name, setting))
}

fn no_header(name: &str, setting: &str) -> DefinitionError {
    DefinitionError::new(format!("{setting}.{name}"), "not a name for an HTTP header")
}

/// Whether a request failed before it could be sent.
#[cfg(not(target_arch = "wasm32"))]
fn never_connected(error: &reqwest::Error) -> bool {
    error.is_connect()
}

/// A browser does not tell.
#[cfg(target_arch = "wasm32")]
fn never_connected(_error: &reqwest::Error) -> bool {
    false
}

/// What a `retry-after` header asks for: seconds, or until an HTTP date (RFC 9110 §10.2.3).
fn waiting_time(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    let now = web_time::SystemTime::now()
        .duration_since(web_time::UNIX_EPOCH)
        .unwrap_or_default();
    let date = Duration::try_from_secs_f64(date.as_second() as f64).ok()?;
    Some(date.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        assert_eq!(waiting_time(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(
            waiting_time("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::ZERO)
        );
        assert!(waiting_time("Fri, 31 Dec 2100 23:59:59 GMT") > Some(Duration::from_hours(24)));
        assert_eq!(waiting_time("-1"), None);
        assert_eq!(waiting_time("soon"), None);
    }
}
