//! A project whose members may ask a provider with a shared key.

use capo_tests::program::Server;
use serde_json::json;

use crate::team_server::{enter, made, token};

/// The provider's key.
pub(crate) const SECRET: &str = "sk-of-the-team";

/// Signs ada in, who makes the project sums, shares the key stub of a provider with it, and gets the returned token.
pub(crate) fn shared_key(server: &Server, provider: &str) -> String {
    let cookie = enter(server, "ada");
    let project = json!({ "name": "sums", "title": "Sums" });
    made(server, &cookie, "/api/projects", &project);
    let settings = json!({
        "provider": "openai-compatible", "base_url": provider, "private_host": true,
        "projects": ["sums"], "models": [{ "name": "stub" }],
    });
    let key = json!({ "name": "stub", "settings": settings, "secret": SECRET });
    made(server, &cookie, "/api/keys", &key);
    token(server, &cookie)
}
