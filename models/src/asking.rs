//! Parameters of every request to a study's model, and what its provider refuses of them.

use capo_core::llm::{ChatRequest, Message};
use futures::FutureExt;
use rig_core::ProviderError;
use rig_core::catalog::Sampling;
use rig_core::completion::{CompletionRequest, GenerationOptions, Reasoning};
use serde_json::Value;

use crate::conversation::{self, Turns};
use crate::effort::ReasoningEffort;
use crate::providers::{Access, Account};
use crate::reasoning::{known, never_thinks, reasoning};
use crate::spec::ModelSpec;
use crate::transport::Recorder;

impl ModelSpec {
    /// Reads one table.
    ///
    /// # Errors
    ///
    /// Says which key is unknown (with the nearest known one), which value is out of range, or what the provider
    /// would refuse at every call.
    pub fn parse(table: &Value) -> Result<Self, String> {
        let spec = Self::read(table)?;
        if spec.temperature.is_some() || spec.reasoning_effort.is_some() {
            check(&spec)?;
        }
        Ok(spec)
    }
}

/// What every request of a client carries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking {
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) reasoning: Option<Reasoning>,
    /// Whether the provider samples by seed.
    pub(crate) seeds: bool,
    /// Whether the provider refuses turns without the thoughts that came with them.
    pub(crate) keeps_turns: bool,
}

impl Asking {
    /// What a table asks of its model.
    pub(crate) fn of(spec: &ModelSpec, model: &str) -> Self {
        let provider = spec.provider.get();
        let reasoning = spec
            .reasoning_effort
            .map(|effort| reasoning(provider, model, effort));
        let thinks = reasoning.map(|reasoning| reasoning != Reasoning::Off);
        Self {
            temperature: spec.temperature,
            max_tokens: spec.max_tokens.map(|tokens| u64::from(tokens.get())),
            reasoning,
            seeds: provider.seeds,
            keeps_turns: provider
                .keeps_thoughts
                .is_some_and(|usual| thinks.unwrap_or(usual)),
        }
    }
}

/// The library's request for a conversation.
///
/// # Errors
///
/// As [`conversation::request`].
pub(crate) fn asked(asking: &Asking, chat: &ChatRequest, turns: &Turns) -> Result<CompletionRequest, String> {
    let mut options = GenerationOptions::new();
    options.reasoning = asking.reasoning;
    options.seed = chat
        .seed
        .filter(|_| asking.seeds)
        .map(conversation::portable_seed);
    let request = conversation::request(chat, turns)?
        .temperature(asking.temperature)
        .max_tokens(asking.max_tokens)
        .options(options);
    Ok(request)
}

/// Refuses a temperature that the model does not take.
fn check_temperature(spec: &ModelSpec, model: &str) -> Result<(), String> {
    let provider = spec.provider.get();
    let Some(temperature) = spec.temperature else {
        return Ok(());
    };
    let remedy = match known(provider, model).and_then(|known| known.sampling) {
        Some(Sampling::Never) => "leave it out",
        Some(Sampling::ReasoningOff) if spec.reasoning_effort != Some(ReasoningEffort::None) => {
            "leave it out, or write reasoning_effort = \"none\""
        }
        _ if temperature > provider.max_temperature => {
            return Err(format!(
                "`temperature` is from 0 to {} at {}",
                provider.max_temperature, provider.title
            ));
        }
        _ => return Ok(()),
    };
    Err(format!(
        "{}/{model} takes no `temperature`; {remedy}",
        provider.name
    ))
}

/// Refuses what the provider would refuse at every call, by making a request that is not sent.
fn check(spec: &ModelSpec) -> Result<(), String> {
    let provider = spec.provider.get();
    let (Access::Http { connect, .. }, Some(model)) = (provider.access(), &spec.model) else {
        return Ok(());
    };
    let effort = spec
        .reasoning_effort
        .filter(|effort| *effort != ReasoningEffort::None);
    if !provider.thinks_at_temperature && spec.temperature.is_some() && effort.is_some() {
        return Err(format!(
            "{} takes no `temperature` beside `reasoning_effort`; leave one of the two out",
            provider.title
        ));
    }
    if effort.is_some() && never_thinks(provider, model) {
        return Err(format!(
            "`reasoning_effort` is not possible with {}/{model}: the model does not reason",
            provider.name
        ));
    }
    check_temperature(spec, model)?;
    let account = Account {
        price: None,
        key: None,
        variable: None,
        base_url: provider.base_url.unwrap_or("http://localhost").to_owned(),
    };
    let question = ChatRequest::new(vec![Message::user("?")]);
    let asking = Asking::of(spec, model);
    // Providers count thinking among the tokens of an answer.
    if let (Some(Reasoning::Budget { tokens }), Some(most)) = (asking.reasoning, asking.max_tokens)
        && u64::from(tokens) >= most
    {
        return Err(format!(
            "`reasoning_effort` is not possible with {}/{model}: it stands for {tokens} tokens, which must be below \
             `max_tokens`",
            provider.name
        ));
    }
    let request = asked(&asking, &question, &Turns::default())?;
    let made = connect(&account, model, Recorder::nowhere())
        .call(request)
        .now_or_never();
    let Some(Err(ProviderError::UnsupportedOption(refusal))) = made else {
        return Ok(());
    };
    let key = match &*refusal.option {
        "reasoning" => "reasoning_effort",
        option => option,
    };
    Err(format!(
        "`{key}` is not possible with {}/{model}: {}",
        provider.name, refusal.reason
    ))
}
