//! Google Gemini, by the `generateContent` API.

use rig_core::providers::gemini::GeminiConfig;

use super::{Access, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "gemini",
    key: Key::Required("GEMINI_API_KEY"),
    base_url: Some("https://generativelanguage.googleapis.com"),
    model: None,
    catalogue: Some("gcp.gemini"),
    seeds: true,
    reports_cost: false,
    access: Access::Http {
        connect: |account, model, http| {
            let config = GeminiConfig::new(account.key()).with_base_url(account.root_without("/v1beta"));
            config.connect(http).completion(model).erase()
        },
        browser_headers: &[],
    },
};
