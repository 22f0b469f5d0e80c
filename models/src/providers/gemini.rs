//! Google Gemini, by the `generateContent` API.

use rig_core::providers::gemini::GeminiConfig;

use super::{Access, Account, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "gemini",
    title: "Gemini",
    key: Key::Required("GEMINI_API_KEY"),
    base_url: Some("https://generativelanguage.googleapis.com"),
    model: None,
    catalogue: Some("gcp.gemini"),
    seeds: true,
    reports_cost: false,
    in_process: false,
};

pub(super) const ACCESS: Access = Access::Http {
    connect: |account, model, http| config(account).connect(http).completion(model).erase(),
    embed: Some(|account, model, http| config(account).connect(http).embedding(model, None).erase()),
    list: |account, http| {
        let client = config(account).connect(http);
        Box::pin(async move { client.list_models().await })
    },
    browser_headers: &[],
};

fn config(account: &Account) -> GeminiConfig {
    GeminiConfig::new(account.key()).with_base_url(account.root_without("/v1beta"))
}
