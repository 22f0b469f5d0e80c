//! Ollama on this or another machine, by its OpenAI-compatible API.

use rig_core::providers::ollama::OllamaConfig;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "ollama",
    title: "Ollama",
    key: Key::Optional("OLLAMA_API_KEY"),
    base_url: Some("http://localhost:11434"),
    model: None,
    catalogue: None,
    seeds: true,
    reports_cost: false,
    batch_price: None,
    embeds: true,
    in_process: false,
};

pub(super) const ACCESS: Access = Access::Http {
    connect: |account, model, http| config(account).connect(http).completion(model).erase(),
    embed: Some(|account, model, http| config(account).connect(http).embedding(model, None).erase()),
    list: |account, http| {
        let client = config(account).connect(http);
        Box::pin(async move { client.list_models().await })
    },
    browser_headers: &[],
};

fn config(account: &Account) -> OllamaConfig {
    OllamaConfig::new()
        .with_base_url(account.root_without("/v1"))
        .with_api_key(account.key())
}
