//! `OpenAI`, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;

use super::{Access, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    key: Key::Required("OPENAI_API_KEY"),
    base_url: Some("https://api.openai.com/v1"),
    model: None,
    catalogue: Some("openai"),
    seeds: true,
    reports_cost: false,
    access: Access::Http {
        connect: |account, model, http| {
            let config = OpenAIConfig::new(account.key()).with_base_url(&account.base_url);
            config.connect(http).chat(model).erase()
        },
        browser_headers: &[],
    },
};
