//! `OpenAI`, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("https://api.openai.com/v1"),
    catalogue: Some("openai"),
    batch_price: Some(0.5),
    max_tokens: "max_completion_tokens",
    ..Provider::over_http("openai", "OpenAI", Key::Required("OPENAI_API_KEY"))
};

pub(super) const ACCESS: Access = over_http!(config, chat);

fn config(account: &Account) -> OpenAIConfig {
    OpenAIConfig::new(account.key()).with_base_url(&account.base_url)
}
