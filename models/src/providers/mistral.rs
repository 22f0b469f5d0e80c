//! Mistral, by its chat completions API.

use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::MISTRAL;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("https://api.mistral.ai"),
    catalogue: Some("mistral"),
    version: "/v1",
    // It always tells it, and knows no such question.
    usage_on_request: false,
    telemetry_name: "mistral_ai",
    ..Provider::over_http("mistral", "Mistral", Key::Required("MISTRAL_API_KEY"))
};

pub(super) const ACCESS: Access = over_http!(config, chat);

fn config(account: &Account) -> OpenAIConfig {
    OpenAIConfig::with_key(&MISTRAL, account.key()).with_base_url(account.root_without(PROVIDER.version))
}
