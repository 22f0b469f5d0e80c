//! `OpenRouter`, which reports what each call cost.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::OPENROUTER;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "openrouter",
    title: "OpenRouter",
    key: Key::Required("OPENROUTER_API_KEY"),
    base_url: Some("https://openrouter.ai/api/v1"),
    model: None,
    catalogue: Some("openrouter"),
    seeds: true,
    reports_cost: true,
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
    OpenAIConfig::with_key(&OPENROUTER, account.key()).with_base_url(&account.base_url)
}
