//! `OpenRouter`, which reports what each call cost.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::OPENROUTER;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("https://openrouter.ai/api/v1"),
    catalogue: Some("openrouter"),
    reports_cost: true,
    keeps_thoughts: Some(false),
    ..Provider::over_http("openrouter", "OpenRouter", Key::Required("OPENROUTER_API_KEY"))
};

pub(super) const ACCESS: Access = over_http!(config, chat);

fn config(account: &Account) -> OpenAIConfig {
    OpenAIConfig::with_key(&OPENROUTER, account.key()).with_base_url(&account.base_url)
}
