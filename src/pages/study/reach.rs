//! Why a host was not reached: a page's request that fails does not say, so more is asked.

use capo_models::providers::Provider;
use gloo_net::http::Request;
use web_sys::RequestMode;

/// Why a model's server gave no answer that this page can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreached {
    /// The browser is offline.
    NoNetwork,
    /// The server runs, but does not let pages like this one read its answers.
    NotAllowed,
    /// Nobody answers there.
    Down,
}

impl Unreached {
    /// Finds out by asking the address for an answer that this page need not read.
    pub(super) async fn why(address: &str) -> Self {
        let Some(window) = web_sys::window() else {
            return Self::Down;
        };
        if !window.navigator().on_line() {
            return Self::NoNetwork;
        }
        match Request::get(address).mode(RequestMode::NoCors).send().await {
            Ok(_) => Self::NotAllowed,
            Err(_) => Self::Down,
        }
    }

    /// What happened, and what to do: `origin` is this page's own, `host` the server's.
    pub(super) fn words(self, provider: Option<&Provider>, host: &str, origin: &str) -> (String, String) {
        let allow_origin = provider.and_then(|provider| provider.allow_origin);
        match self {
            Self::NoNetwork => (
                "No network.".into(),
                format!("{host} was not asked. Test again when this device is online."),
            ),
            Self::NotAllowed => (
                "The server did not let this page read its answer (CORS).".into(),
                match allow_origin {
                    Some(start) => format!("It is running. {}", start(origin)),
                    None => format!(
                        "{host} is running, but lets no page ask it directly, or something on the way (a proxy, \
                         an extension) keeps its answer back. Run the study with the command line, or reach the \
                         model through OpenRouter."
                    ),
                },
            ),
            Self::Down => (
                format!("No answer came from {host}."),
                match allow_origin {
                    Some(_) => "Check that the server is running and that the address is right.".into(),
                    None => "Check the address, and whether something on the way (a proxy, an extension) \
                          keeps requests back."
                        .into(),
                },
            ),
        }
    }

    /// Like [`Unreached::words`], for an agent of somebody's own.
    pub(super) fn words_of_agent(self, host: &str, origin: &str) -> (String, String) {
        match self {
            Self::NoNetwork => self.words(None, host, origin),
            Self::NotAllowed => (
                "The server did not let this page read its answer (CORS).".into(),
                format!(
                    "It is running. Have it answer with Access-Control-Allow-Origin: {origin}, and OPTIONS requests \
                     with Access-Control-Allow-Headers: content-type as well."
                ),
            ),
            Self::Down => (
                format!("No answer came from {host}."),
                "Check that the agent is running and that the address is right.".into(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use capo_models::ProviderName;

    use super::*;

    fn provider(name: &str) -> Option<&'static Provider> {
        ProviderName::find(name).map(ProviderName::get)
    }

    #[test]
    fn a_local_server_is_told_which_origin_to_allow() {
        let (what, advice) =
            Unreached::NotAllowed.words(provider("ollama"), "localhost:11434", "http://127.0.0.1:8787");
        assert!(what.ends_with("(CORS)."));
        assert!(advice.contains("OLLAMA_ORIGINS=http://127.0.0.1:8787"));
        let (_, advice) = Unreached::NotAllowed.words_of_agent("localhost:9000", "http://127.0.0.1:8787");
        assert!(advice.contains("Access-Control-Allow-Origin: http://127.0.0.1:8787,"));
        let (_, advice) =
            Unreached::NotAllowed.words(provider("openai-compatible"), "gpu:8000", "https://a.example");
        assert!(advice.contains("--allowed-origins '[\"https://a.example\"]'"));
    }
}
