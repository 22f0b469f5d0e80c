//! A team server behind its address.

use std::io;
use std::time::Duration;

use capo_api::{Answer, Body, Client, ClientError, Method, Transport};
use capo_core::address::{Address, AddressError};
use capo_core::error_chain::with_causes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Request, Response};
use serde::de::DeserializeOwned;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take, with what is sent before.
const ANSWER: Duration = Duration::from_mins(10);
/// How long a stream may be silent: the server says something every 15 seconds.
const SILENCE: Duration = Duration::from_mins(1);

/// Why a server cannot be asked. No word of the token is said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// It reads as no address.
    #[error("the address of the team server {0}")]
    Address(#[from] AddressError),
    /// There is more in it than the server.
    #[error(
        "the address of the team server is scheme, host and port alone, such as https://capo.example.org; \
         the token stands in the variable CAPO_TOKEN"
    )]
    MoreThanServer,
    /// The token would go over the network for everybody to read.
    #[error("{0} is not encrypted, and a token would be read on the way to it; use https://")]
    Unencrypted(String),
    /// No header can hold the token.
    #[error("the variable CAPO_TOKEN holds no token of a team server; one begins with capo_")]
    Token,
    /// There is no client.
    #[error("cannot make connections: {0}")]
    Http(String),
}

/// A team server, asked with somebody's personal token.
#[derive(Debug, Clone)]
pub struct Server {
    origin: String,
    /// For answers, and for streams, which may go on for days but are never silent for long.
    answers: reqwest::Client,
    streams: reqwest::Client,
}

impl Server {
    /// A server by its address, `https` unless it is on this machine.
    ///
    /// # Errors
    /// When the address or the token is none, or the token would go unencrypted over a network.
    pub fn new(url: &str, token: &str) -> Result<Self, AccessError> {
        let address = Address::parse(url)?;
        if address.has_credentials() || address.has_query_or_fragment() || address.path() != "/" {
            return Err(AccessError::MoreThanServer);
        }
        let origin = address.origin();
        if address.is_unencrypted() && !address.is_here() {
            return Err(AccessError::Unencrypted(origin));
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| AccessError::Token)?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let client = |silence| {
            let builder = reqwest::Client::builder()
                .user_agent(concat!("capo/", env!("CARGO_PKG_VERSION")))
                .default_headers(headers.clone())
                // One could carry the token to another host.
                .redirect(Policy::none())
                .connect_timeout(CONNECT)
                .read_timeout(silence);
            // What is not encrypted must not leave this machine.
            let builder = if address.is_here() {
                builder.no_proxy()
            } else {
                builder
            };
            builder
                .build()
                .map_err(|error| AccessError::Http(with_causes(&error)))
        };
        Ok(Self {
            answers: client(ANSWER)?,
            streams: client(SILENCE)?,
            origin,
        })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of a run.
    pub fn address_of(&self, run: &str) -> String {
        format!("{}/api/runs/{run}", self.origin)
    }

    /// A client of its API.
    pub fn client(&self) -> Client<&Self> {
        Client::new(self)
    }

    /// Reads what a path of it streams.
    ///
    /// # Errors
    /// As a request of [`Client`].
    pub async fn stream(&self, path: &str) -> Result<Response, ClientError> {
        let request = self.streams.get(format!("{}{path}", self.origin)).build();
        let response = carried(&self.streams, request)
            .await
            .map_err(ClientError::Unreached)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(answer(response).await.map_err(ClientError::Unreached)?.refusal())
    }

    /// Reads what a path of it holds, whatever that is.
    ///
    /// # Errors
    /// As a request of [`Client`].
    pub async fn bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let read = self.stream(path).await?.bytes().await;
        read.map(Into::into)
            .map_err(|error| ClientError::Unreached(in_words(error)))
    }
}

impl Server {
    /// Sends a path of it what is read as it goes, and reads the answer.
    ///
    /// # Errors
    /// As a request of [`Client`].
    pub async fn upload<A: DeserializeOwned>(
        &self,
        path: &str,
        kind: &'static str,
        pieces: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static,
    ) -> Result<A, ClientError> {
        let request = self
            .answers
            .post(format!("{}{path}", self.origin))
            .header(CONTENT_TYPE, kind)
            .body(reqwest::Body::wrap_stream(futures::stream::iter(pieces)))
            .build();
        let answered = async { answer(carried(&self.answers, request).await?).await };
        answered.await.map_err(ClientError::Unreached)?.document()
    }
}

impl Transport for &Server {
    type Error = String;

    async fn send(&self, method: Method, path: &str, body: Option<Body>) -> Result<Answer, String> {
        let method = match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = self.answers.request(method, format!("{}{path}", self.origin));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, body.kind).body(body.bytes);
        }
        answer(carried(&self.answers, request.build()).await?).await
    }
}

/// What comes back of a request; the error in words, without its address.
async fn carried(client: &reqwest::Client, request: reqwest::Result<Request>) -> Result<Response, String> {
    let response = client
        .execute(request.map_err(in_words)?)
        .await
        .map_err(in_words)?;
    if response.status().is_redirection() {
        return Err(
            "it leads to another address, which is not followed; give the one of the server itself".into(),
        );
    }
    Ok(response)
}

async fn answer(response: Response) -> Result<Answer, String> {
    Ok(Answer {
        status: response.status().as_u16(),
        body: response.text().await.map_err(in_words)?,
    })
}

pub(super) fn in_words(error: reqwest::Error) -> String {
    with_causes(&error.without_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_over_no_network_in_the_open() {
        for url in [
            "https://capo.example.org",
            "https://10.0.0.1:8443/",
            "http://127.0.0.1:8787",
            "http://[::1]:1",
            "http://localhost:8787/",
        ] {
            let server = Server::new(url, "capo_secret").unwrap();
            assert_eq!(server.origin(), url.trim_end_matches('/'));
            assert!(!format!("{server:?}").contains("secret"), "{server:?}");
        }
        for (url, part) in [
            ("http://capo.example.org", "use https://"),
            ("http://192.168.0.2:8787", "use https://"),
            ("capo.example.org", "is no address"),
            ("ftp://capo.example.org", "must begin with"),
            ("https://ada:secret@capo.example.org", "CAPO_TOKEN"),
            ("https://capo.example.org/api", "scheme, host and port"),
            ("https://capo.example.org/?token=secret", "scheme, host and port"),
        ] {
            let message = Server::new(url, "capo_secret").unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains("secret"), "{message}");
        }
        let wrong = Server::new("https://capo.example.org", "capo_secret\n").unwrap_err();
        assert_eq!(wrong, AccessError::Token);
    }
}
