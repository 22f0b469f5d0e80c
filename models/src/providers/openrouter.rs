//! `OpenRouter`, which reports what each call cost.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::OPENROUTER;

use super::{Access, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "openrouter",
    key: Key::Required("OPENROUTER_API_KEY"),
    base_url: Some("https://openrouter.ai/api/v1"),
    model: None,
    catalogue: Some("openrouter"),
    seeds: true,
    reports_cost: true,
    access: Access::Http {
        connect: |account, model, http| {
            let config = OpenAIConfig::with_key(&OPENROUTER, account.key()).with_base_url(&account.base_url);
            config.connect(http).chat(model).erase()
        },
        browser_headers: &[],
    },
};
