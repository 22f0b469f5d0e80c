//! Providers of models: one file and one line below for each provider.

use std::rc::Rc;

use capo_core::control::Control;
use capo_core::llm::Llm;
use futures::future::LocalBoxFuture;
use rig_core::catalog::Catalog;
use rig_core::model::ModelList;
use rig_core::operation::{Completion, Embedding};
use rig_core::providers::registry::ProviderId;
use rig_core::{DynModel, ProviderError};

use crate::effort::ReasoningEffort;
use crate::limiter::Limiter;
use crate::prices::Price;
use crate::secret::Secret;
use crate::transport::Recorder;

/// Declares the providers, in the order in which they are listed to people.
///
/// Two lists come of it: what only names providers, as a page's form does, links none of the code
/// that reaches them.
macro_rules! providers {
    ($($provider:ident),* $(,)?) => {
        $(mod $provider;)*

        /// Every provider, in the order they are listed to people.
        pub static PROVIDERS: &[Provider] = &[$($provider::PROVIDER),*];

        /// How each of them is reached, in the same order.
        static ACCESS: &[Access] = &[$($provider::ACCESS),*];
    };
}

/// How a provider is reached that has nothing of its own but the library's `$config` of an account: `$answer` of its client
/// makes models, and there are some that make vectors.
macro_rules! over_http {
    ($config:ident, $answer:ident) => {
        Access::Http {
            connect: |account, model, http| $config(account).connect(http).$answer(model).erase(),
            embed: Some(|account, model, http| $config(account).connect(http).embedding(model, None).erase()),
            list: |account, http| {
                let client = $config(account).connect(http);
                Box::pin(async move { client.list_models().await })
            },
            browser_headers: &[],
        }
    };
}

providers![
    openai,
    anthropic,
    gemini,
    mistral,
    openrouter,
    ollama,
    openai_compatible,
    simulated,
    local,
];

/// The provider of models on this machine.
pub const LOCAL: &str = local::PROVIDER.name;

/// The provider of simulated models.
pub const SIMULATED: &str = simulated::PROVIDER.name;

/// A provider: what it is called and what it needs. Those of [`PROVIDERS`] are all there are.
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Provider {
    /// The name in studies.
    pub name: &'static str,
    /// The name on screens and in sentences.
    pub title: &'static str,
    /// Which key it takes.
    pub key: Key,
    /// Where its API is, unless a study says otherwise. `None` where only the study can know, and
    /// for models that run in this process.
    pub base_url: Option<&'static str>,
    /// The model asked when a study names none.
    pub model: Option<&'static str>,
    /// What the provider library's catalogue of models (from models.dev) calls it; `None` where
    /// the catalogue does not know its models.
    pub catalogue: Option<&'static str>,
    /// Whether it samples by a request's seed. Elsewhere the seed is not sent.
    pub seeds: bool,
    /// Whether its answers say what they cost.
    pub reports_cost: bool,
    /// What tokens cost in its batches, as a share of the listed price; `None` where it takes no batches.
    pub batch_price: Option<f64>,
    /// Whether it has models that make vectors.
    pub embeds: bool,
    /// Whether its models run in this process, without a network.
    pub in_process: bool,
    /// The API that it speaks.
    pub api: Api,
    /// The version in the paths of its API, which a base URL may leave out, with a slash before it; empty where base URLs
    /// hold it.
    pub version: &'static str,
    /// The field of a request in `OpenAI`'s API that bounds the tokens of an answer.
    pub max_tokens: &'static str,
    /// Whether a streamed answer tells its usage only where that is asked for.
    pub usage_on_request: bool,
    /// Its name in OpenTelemetry's conventions for generative AI.
    pub telemetry_name: &'static str,
    /// Where a study's table of it begins, of a server whose address only the study can know.
    pub usual_url: Option<&'static str>,
    /// How a server of one's own is started so that it answers the pages of an origin; `None` for services.
    pub allow_origin: Option<fn(&str) -> String>,
    /// Of one that refuses turns without the thoughts that came with them, whether its models think unless they are told
    /// otherwise; `None` where turns need no thoughts.
    pub(crate) keeps_thoughts: Option<bool>,
    /// Whether a model takes thinking tokens instead of an effort.
    pub(crate) takes_budget: fn(&Self, &str, ReasoningEffort) -> bool,
    /// How the names of its models begin of which nobody needs to ask whether they think: they do not.
    pub(crate) without_thinking: &'static [&'static str],
    /// The highest temperature.
    pub(crate) max_temperature: f64,
    /// Whether it takes a temperature of a model that is told how hard to think.
    pub(crate) thinks_at_temperature: bool,
}

/// The APIs that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `OpenAI`'s chat completions, as most do.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
}

/// Which key a provider takes, by the usual name of its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// It answers nobody without one.
    Required(&'static str),
    /// It may have been set up to want one.
    Optional(&'static str),
    /// It has no keys.
    None,
}

/// How a provider is reached.
pub(crate) enum Access {
    /// Over HTTP.
    Http {
        connect: Connect,
        /// `None` where it has no models that make vectors.
        embed: Option<Embed>,
        list: List,
        /// Headers it wants from a page in a browser.
        browser_headers: &'static [(&'static str, &'static str)],
    },
    /// In this process.
    InProcess(fn(Plan<'_>) -> Result<Rc<dyn Llm>, String>),
    /// In this process, opened by who has such models.
    Local,
}

/// Puts a model on a recording HTTP client.
pub(crate) type Connect = fn(&Account, &str, Recorder) -> DynModel<Completion>;

/// Puts a model that makes vectors on a recording HTTP client.
pub(crate) type Embed = fn(&Account, &str, Recorder) -> DynModel<Embedding>;

/// Asks through a recording HTTP client which models there are for this account.
pub(crate) type List = fn(&Account, Recorder) -> LocalBoxFuture<'static, Result<ModelList, ProviderError>>;

/// Where and as whom a provider is asked.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// The key, if there is one.
    pub(crate) key: Option<Secret>,
    /// The variable it came from.
    pub(crate) variable: Option<String>,
    /// The API's root, without a slash at the end.
    pub(crate) base_url: String,
    /// What whoever shares the key says that tokens cost.
    pub(crate) price: Option<Price>,
}

impl Account {
    /// A server that is asked without a key.
    pub(crate) fn without_key(base_url: String) -> Self {
        Self {
            key: None,
            variable: None,
            base_url,
            price: None,
        }
    }

    /// The key for the provider library, empty for none.
    fn key(&self) -> &str {
        self.key.as_ref().map_or("", Secret::expose)
    }

    /// The root without a provider's version at its end, for a library that adds it itself.
    fn root_without(&self, version: &str) -> &str {
        self.base_url.strip_suffix(version).unwrap_or(&self.base_url)
    }
}

/// What a model in this process is made from.
pub(crate) struct Plan<'a> {
    pub(crate) name: String,
    pub(crate) model: &'a str,
    pub(crate) seed: u64,
    /// Real seconds for each simulated one.
    pub(crate) latency: f64,
    pub(crate) limiter: Limiter,
    /// What the study says tokens cost.
    pub(crate) price: Option<Price>,
    /// What interrupts its calls.
    pub(crate) control: Control,
}

impl Provider {
    /// One that is asked over HTTP, samples by a request's seed and has models that make vectors; the rest is nothing unless
    /// its file says so.
    pub(crate) const fn over_http(name: &'static str, title: &'static str, key: Key) -> Self {
        Self {
            name,
            title,
            key,
            base_url: None,
            model: None,
            catalogue: None,
            seeds: true,
            reports_cost: false,
            batch_price: None,
            embeds: true,
            in_process: false,
            api: Api::OpenAi,
            version: "",
            max_tokens: "max_tokens",
            usage_on_request: true,
            telemetry_name: name,
            usual_url: None,
            allow_origin: None,
            keeps_thoughts: None,
            takes_budget: |_, _, _| false,
            without_thinking: &[],
            max_temperature: 2.0,
            thinks_at_temperature: true,
        }
    }

    /// One whose models run in this process.
    const fn in_process(name: &'static str, title: &'static str) -> Self {
        Self {
            in_process: true,
            ..Self::over_http(name, title, Key::None)
        }
    }

    /// Where the paths of its API begin at a base URL, with or without a slash or the version at its end.
    pub fn root(&self, base_url: &str) -> String {
        let base_url = base_url.trim_end_matches('/');
        let host = base_url.strip_suffix(self.version).unwrap_or(base_url);
        format!("{host}{}", self.version)
    }

    /// How it is reached.
    ///
    /// # Panics
    /// For a provider that is none of [`PROVIDERS`].
    pub(crate) fn access(&self) -> &'static Access {
        let place = PROVIDERS.iter().position(|known| known.name == self.name);
        &ACCESS[place.expect("providers are only declared in the list of all")]
    }

    /// How many tokens `model` can read and write in one request, if the catalogue knows: a dated
    /// snapshot counts as its model.
    pub fn context_window(&self, model: &str) -> Option<u32> {
        let provider = ProviderId::catalog(self.catalogue?)?;
        Catalog::builtin().find(provider, model)?.context_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_windows_are_known_where_the_catalogue_knows_them() {
        let window = |provider: &str, model: &str| {
            let provider = PROVIDERS.iter().find(|entry| entry.name == provider);
            provider.and_then(|provider| provider.context_window(model))
        };
        assert_eq!(window("openai", "gpt-4o-mini"), Some(128_000));
        assert_eq!(window("anthropic", "claude-haiku-4-5-20251001"), Some(200_000));
        assert_eq!(window("gemini", "gemini-2.5-flash"), Some(1_048_576));
        assert!(window("mistral", "mistral-small-latest").is_some());
        assert!(window("openrouter", "openai/gpt-5-mini").is_some());
        assert_eq!(window("openai", "gpt-99"), None);
        assert_eq!(window("ollama", "qwen3"), None, "the server decides");
    }

    #[test]
    fn those_in_this_process_are_reached_in_it() {
        for provider in PROVIDERS {
            let inside = matches!(provider.access(), Access::InProcess(_) | Access::Local);
            assert_eq!(provider.in_process, inside, "{}", provider.name);
        }
    }

    #[test]
    fn those_with_models_that_make_vectors_are_asked_for_them() {
        for provider in PROVIDERS {
            let without = matches!(
                provider.access(),
                Access::Http { embed: None, .. } | Access::Local
            );
            assert_eq!(provider.embeds, !without, "{}", provider.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let of = |name: fn(&Provider) -> &'static str| {
            let names: std::collections::HashSet<_> = PROVIDERS.iter().map(name).collect();
            names.len()
        };
        assert_eq!(of(|provider| provider.name), PROVIDERS.len());
        assert_eq!(of(|provider| provider.title), PROVIDERS.len());
    }
}
