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
    usual_url: Some("http://localhost:8000/v1"),
    allow_origin: Some(|origin| {
        format!(
            "For vLLM add --allowed-origins '[\"{origin}\"]', for Ollama set OLLAMA_ORIGINS={origin}; other servers have a \
             setting for allowed origins."
        )
    }),
    ..Provider::over_http("openai-compatible", "OpenAI-compatible server", Key::None)
};

pub(super) const ACCESS: Access = over_http!(config, chat);

fn config(account: &Account) -> OpenAIConfig {
    OpenAIConfig::with_key(&PLAIN, account.key()).with_base_url(&account.base_url)
}
