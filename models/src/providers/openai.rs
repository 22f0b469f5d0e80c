//! `OpenAI`, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    title: "OpenAI",
    key: Key::Required("OPENAI_API_KEY"),
    base_url: Some("https://api.openai.com/v1"),
    model: None,
    catalogue: Some("openai"),
    seeds: true,
    reports_cost: false,
    batch_price: Some(0.5),
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
    OpenAIConfig::new(account.key()).with_base_url(&account.base_url)
}
