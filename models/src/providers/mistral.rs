//! Mistral, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::MISTRAL;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "mistral",
    title: "Mistral",
    key: Key::Required("MISTRAL_API_KEY"),
    base_url: Some("https://api.mistral.ai"),
    model: None,
    catalogue: Some("mistral"),
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
    OpenAIConfig::with_key(&MISTRAL, account.key()).with_base_url(account.root_without("/v1"))
}
