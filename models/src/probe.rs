//! Whether a model answers, before a run depends on it.

use std::num::NonZeroU32;
use std::time::Duration;

use capo_core::llm::{ChatRequest, FailureKind, Message, Role};
use http::{HeaderValue, StatusCode};
use indexmap::IndexMap;
use serde_json::Value;

use crate::builder::{Builder, Built};
use crate::client::Client;
use crate::embedder::table_of_vectors;
use crate::error::BuildError;
use crate::failure::{About, Failure};
use crate::providers::Provider;
use crate::reasoning::thinks_within_a_budget;
use crate::secret::Keys;
use crate::spec::ModelSpec;

/// Tokens an answer may have. Enough for a word; reasoning that needs more is cut, which is an
/// answer all the same.
const MAX_TOKENS: NonZeroU32 = NonZeroU32::new(16).expect("not 0");

/// How long the list of models is waited for, when there is no such model.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The most names suggested in place of one that does not exist.
const SUGGESTIONS: usize = 3;

/// A model that answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Provider and model, as a run calls it.
    pub model: String,
    /// How long the answer took, in seconds.
    pub seconds: f64,
}

/// Why a model does not answer, in sentences for a screen. Keys are in none of them.
///
/// `provider` is how a sentence begins: the provider's name, or the server's address for one that
/// has no name. `host` is where the request was sent, with the port if one is stated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProbeError {
    /// The table is wrong, or its key is not there. Nothing was sent.
    #[error(transparent)]
    Table(#[from] BuildError),
    /// The key was sent and refused.
    #[error(
        "{provider} refused the key ({status}). Check that it was copied whole and is still active.{}",
        .message.as_ref().map(|message| format!(" It says: {message}")).unwrap_or_default()
    )]
    #[expect(missing_docs, reason = "see the enumeration")]
    KeyRefused {
        provider: String,
        host: String,
        /// 401 or 403; Gemini says 400.
        status: u16,
        /// What the provider says of a key that it knows but that may not do this.
        message: Option<String>,
    },
    /// No key was sent, but one is wanted.
    #[error("{provider} wants a key (401). Give one, then test again.")]
    #[expect(missing_docs, reason = "see the enumeration")]
    KeyWanted { provider: String, host: String },
    /// The provider has no such model for this key.
    #[error(
        "{provider} has no model \"{model}\"{}.{}",
        if *.with_key { " for this key" } else { "" },
        if .nearest.is_empty() { String::new() } else { format!(" Nearest: {}.", .nearest.join(", ")) }
    )]
    #[expect(missing_docs, reason = "see the enumeration")]
    NoSuchModel {
        provider: String,
        host: String,
        /// The model asked for.
        model: String,
        /// Whether a key was sent, which decides what models there are.
        with_key: bool,
        /// Models there are with names like it, the nearest first; empty when there is none, or
        /// the provider does not say what models it has.
        nearest: Vec<String>,
    },
    /// Too many requests for now.
    #[error(
        "{provider} asked to wait ({status}{}). Nothing was counted as a score.",
        .wait.map(|wait| format!(", Retry-After {} s", wait.as_secs_f64().ceil())).unwrap_or_default()
    )]
    #[expect(missing_docs, reason = "see the enumeration")]
    RateLimited {
        provider: String,
        host: String,
        /// 429; Anthropic says 529 when it is overloaded.
        status: u16,
        /// How long it asked to wait, if it said so where this program can read it.
        wait: Option<Duration>,
    },
    /// Any other error of the provider.
    #[error("{provider} answered with an error ({status}): {message}")]
    #[expect(missing_docs, reason = "see the enumeration")]
    Refused {
        provider: String,
        host: String,
        /// The HTTP status, not a success.
        status: u16,
        /// What it said.
        message: String,
    },
    /// An answer that is none of a model: there is something else at this address.
    #[error("{host} answered ({status}), but not as a model does: {message}")]
    #[expect(missing_docs, reason = "see the enumeration")]
    Unreadable {
        host: String,
        /// The HTTP status, a success.
        status: u16,
        /// What is wrong with the answer.
        message: String,
    },
    /// No answer in the time that the table allows.
    #[error("{provider} did not answer within {seconds} s. It may still be loading the model; test again.")]
    #[expect(missing_docs, reason = "see the enumeration")]
    TimedOut {
        provider: String,
        host: String,
        /// The time allowed.
        seconds: f64,
    },
    /// No HTTP answer at all: there is no network, nobody at the address, or, in a page, a server
    /// that does not let it read the answer (CORS), which look the same from here.
    #[error("No answer came from {host}: {message}")]
    #[expect(missing_docs, reason = "see the enumeration")]
    Unreachable {
        host: String,
        /// What the system says.
        message: String,
    },
}

/// Asks the model of a `[models.ROLE]` table for a word, or for its vector, once. A simulated model is in this
/// process: it answers at once, whatever its `latency`, and is not asked.
///
/// # Errors
/// Why it does not answer.
pub async fn probe(role: Role, table: &Value, keys: &dyn Keys) -> Result<Answered, ProbeError> {
    let wrong = |message| BuildError::Spec { role, message };
    let mut spec = ModelSpec::parse(table).map_err(wrong)?;
    let enough = spec.max_tokens.map_or(MAX_TOKENS, |most| most.min(MAX_TOKENS));
    spec.max_tokens = Some(enough);
    spec.batch = false;
    // A thinking budget does not fit into so few tokens.
    if thinks_within_a_budget(&spec) {
        spec.reasoning_effort = None;
    }
    let (client, list) = match Builder::new(keys).single(role, &spec)? {
        Built::Http(client, list) => (client, list),
        Built::InProcess(model) => {
            let model = model.name().to_owned();
            return Ok(Answered { model, seconds: 0.0 });
        }
    };
    let embed = match role {
        Role::Embeddings => table_of_vectors(&IndexMap::from([(role, table.clone())]))?.1,
        _ => None,
    };
    let (outcome, seconds) = if let Some(embed) = embed {
        let tried = client.send_through(embed, vec!["OK".to_owned()]).await;
        (tried.outcome.map(drop), tried.seconds)
    } else {
        let question = ChatRequest::new(vec![Message::user("Reply with the word OK.")]);
        let tried = client.send(client.request(&question).map_err(wrong)?, 0).await;
        (tried.outcome.map(drop), tried.seconds)
    };
    let failure = match outcome {
        Err(failure) if failure.about != Some(About::AnswerLength) => failure,
        // An answer that was cut short is one, too.
        _ => {
            let model = client.name.clone();
            return Ok(Answered { model, seconds });
        }
    };
    let asked = Asked {
        role,
        provider: spec.provider.get(),
        client: &client,
    };
    if asked.misses_model(&failure) {
        let models = client.models(list, LIST_PATIENCE).await.unwrap_or_default();
        // One that is on the list is there, and was refused for another reason.
        if !models.contains(&client.model) {
            return Err(asked.no_such_model(&models));
        }
    }
    Err(asked.error(&failure))
}

/// Who was asked.
struct Asked<'a> {
    role: Role,
    provider: &'static Provider,
    client: &'a Client,
}

impl Asked<'_> {
    /// Whether the model seems not to be there. A 404 that does not speak of models may be a wrong
    /// address, unless the address is the usual one.
    fn misses_model(&self, failure: &Failure) -> bool {
        let usual = self.provider.base_url == Some(self.client.account.base_url.as_str());
        failure.about == Some(About::Model) || (usual && failure.status == Some(StatusCode::NOT_FOUND))
    }

    fn no_such_model(&self, models: &[String]) -> ProbeError {
        ProbeError::NoSuchModel {
            provider: self.subject(),
            host: self.host(),
            model: self.client.model.clone(),
            with_key: self.with_key(),
            nearest: nearest_to(&self.client.model, models),
        }
    }

    fn error(&self, failure: &Failure) -> ProbeError {
        let (provider, host) = (self.subject(), self.host());
        let clean = |text: &str| self.client.redactor.clean(text);
        let said = failure.said.as_deref().map(clean);
        let Some(status) = failure.status else {
            return match failure.kind {
                FailureKind::Timeout => ProbeError::TimedOut {
                    provider,
                    host,
                    seconds: self.client.timeout.as_secs_f64(),
                },
                // What nobody answered can be asked again; what could not be asked is the table's.
                _ if failure.retryable => ProbeError::Unreachable {
                    host,
                    message: said.unwrap_or_else(|| clean(&failure.message)),
                },
                _ => {
                    let (role, message) = (self.role, clean(&failure.message));
                    BuildError::Spec { role, message }.into()
                }
            };
        };
        let code = status.as_u16();
        match failure.kind {
            FailureKind::Authentication if self.with_key() => ProbeError::KeyRefused {
                provider,
                host,
                status: code,
                // What is said of a key that is wrong may quote a part of it.
                message: said.filter(|_| !failure.key_refused),
            },
            FailureKind::Authentication if failure.key_refused => ProbeError::KeyWanted { provider, host },
            FailureKind::RateLimit => ProbeError::RateLimited {
                provider,
                host,
                status: code,
                wait: failure.wait,
            },
            _ => {
                let frame = format!("HTTP {code}: ");
                let message = failure.message.strip_prefix(&frame).unwrap_or(&failure.message);
                let message = clean(message);
                if status.is_success() {
                    ProbeError::Unreadable {
                        host,
                        status: code,
                        message,
                    }
                } else {
                    ProbeError::Refused {
                        provider,
                        host,
                        status: code,
                        message,
                    }
                }
            }
        }
    }

    /// How a sentence begins. A server that only its address tells from others is called by it.
    fn subject(&self) -> String {
        match self.provider.base_url {
            Some(_) => self.provider.title.to_owned(),
            None => format!("The server at {}", self.host()),
        }
    }

    fn host(&self) -> String {
        self.client.notices.host.clone()
    }

    /// Whether a key was sent, as such or in a header of the study's.
    fn with_key(&self) -> bool {
        let mut headers = self.client.headers.values();
        self.client.account.key.is_some() || headers.any(HeaderValue::is_sensitive)
    }
}

/// The names most like `wanted`, the nearest first: typing errors, and longer names that hold it.
fn nearest_to(wanted: &str, names: &[String]) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = strsim::damerau_levenshtein(&wanted, &lower);
            let typing_error = distance <= 1 + wanted.chars().count() / 3;
            (typing_error || lower.contains(&wanted)).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.into_iter()
        .take(SUGGESTIONS)
        .map(|(_, name)| name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_typing_errors_and_longer_names() {
        let names = [
            "gpt-5",
            "gpt-5-mini",
            "gpt-5-nano",
            "o3",
            "openai/gpt-5-mimi",
            "whisper-1",
        ];
        let names = names.map(str::to_owned);
        assert_eq!(
            nearest_to("gpt-5-mimi", &names),
            ["gpt-5-mini", "gpt-5-nano", "openai/gpt-5-mimi"]
        );
        assert_eq!(nearest_to("claude", &names), [""; 0]);
    }
}
