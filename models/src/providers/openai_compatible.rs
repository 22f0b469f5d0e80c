//! Any other server that speaks `OpenAI`'s chat completions: vLLM, llama.cpp, SGLang, TGI, LM
//! Studio, gateways, `capo simulate`.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::{BodyRewrite, Dialect, LLAMACPP};

use super::{Access, Account, Key, Provider};

/// llama.cpp's dialect is the plainest: a key only if there is one, a seed, a reasoning effort.
/// The rewrite sends a system prompt as one string, not as a list of parts, which is what the
/// simplest servers and chat templates understand. Those that make vectors need not count tokens.
const PLAIN: Dialect = {
    let mut quirks = LLAMACPP.quirks;
    quirks.rewrite = BodyRewrite::Perplexity;
    quirks.embedding.requires_usage = false;
    LLAMACPP.with_quirks(quirks)
};

pub(super) const PROVIDER: Provider = Provider {
    name: "openai-compatible",
    title: "OpenAI-compatible server",
    key: Key::None,
    base_url: None,
    model: None,
    catalogue: None,
    seeds: true,
    reports_cost: false,
    batch_price: None,
    embeds: true,
    in_process: false,
};

pub(super) const ACCESS: Access = Access::Http {
    connect: |account, model, http| config(account).connect(http).chat(model).erase(),
    embed: Some(|account, model, http| config(account).connect(http).embedding(model, None).erase()),
    list: |account, http| {
        let client = config(account).connect(http);
        Box::pin(async move { client.list_models().await })
    },
    browser_headers: &[],
};

fn config(account: &Account) -> OpenAIConfig {
    OpenAIConfig::with_key(&PLAIN, account.key()).with_base_url(&account.base_url)
}
