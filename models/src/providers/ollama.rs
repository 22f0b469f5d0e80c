//! Ollama on this or another machine, by its OpenAI-compatible API.

use rig_core::providers::ollama::OllamaConfig;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("http://localhost:11434"),
    version: "/v1",
    allow_origin: Some(|origin| format!("Start it with OLLAMA_ORIGINS={origin}")),
    ..Provider::over_http("ollama", "Ollama", Key::Optional("OLLAMA_API_KEY"))
};

pub(super) const ACCESS: Access = over_http!(config, completion);

fn config(account: &Account) -> OllamaConfig {
    OllamaConfig::new()
        .with_base_url(account.root_without(PROVIDER.version))
        .with_api_key(account.key())
}
