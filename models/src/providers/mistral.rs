//! Mistral, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::MISTRAL;

use super::{Access, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "mistral",
    key: Key::Required("MISTRAL_API_KEY"),
    base_url: Some("https://api.mistral.ai"),
    model: None,
    catalogue: Some("mistral"),
    seeds: true,
    reports_cost: false,
    access: Access::Http {
        connect: |account, model, http| {
            let config =
                OpenAIConfig::with_key(&MISTRAL, account.key()).with_base_url(account.root_without("/v1"));
            config.connect(http).chat(model).erase()
        },
        browser_headers: &[],
    },
};
