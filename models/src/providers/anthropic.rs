//! Anthropic, by its messages API.

use rig_core::providers::anthropic::completion::CacheTtl;
use rig_core::providers::anthropic::wire::AnthropicConfig;

use super::{Access, Account, Api, Key, Provider};
use crate::effort::ReasoningEffort;
use crate::reasoning::takes_budget_alone;

/// The API wants an upper bound on the answer. This one serves models the library does not know,
/// when the study states none.
const MAX_TOKENS: u64 = 8192;

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("https://api.anthropic.com"),
    catalogue: Some("anthropic"),
    seeds: false,
    batch_price: Some(0.5),
    embeds: false,
    api: Api::Anthropic,
    version: "/v1",
    // Claude refuses a tool's answer after a turn without its thoughts.
    keeps_thoughts: Some(false),
    // No Claude has an effort `minimal`.
    takes_budget: |provider, model, effort| {
        effort != ReasoningEffort::Minimal && takes_budget_alone(provider, model)
    },
    // Older than thinking, which came with Claude 3.7. The catalogue lists none of them.
    without_thinking: &[
        "claude-3-5-",
        "claude-3-haiku",
        "claude-3-opus",
        "claude-3-sonnet",
        "claude-2",
        "claude-instant",
    ],
    max_temperature: 1.0,
    thinks_at_temperature: false,
    ..Provider::over_http("anthropic", "Anthropic", Key::Required("ANTHROPIC_API_KEY"))
};

pub(super) const ACCESS: Access = Access::Http {
    connect: |account, model, http| {
        let mut model = config(account).connect(http).completion(model);
        model.wire.default_max_tokens.get_or_insert(MAX_TOKENS);
        // Tools and system prompt are the same in every call of a dialogue, and of a candidate on every example.
        model.wire.static_prefix_cache_ttl = Some(CacheTtl::FiveMinutes);
        model.erase()
    },
    embed: None,
    list: |account, http| {
        let client = config(account).connect(http);
        Box::pin(async move { client.list_models().await })
    },
    browser_headers: &[("anthropic-dangerous-direct-browser-access", "true")],
};

fn config(account: &Account) -> AnthropicConfig {
    AnthropicConfig::new(account.key()).with_base_url(&account.base_url)
}
