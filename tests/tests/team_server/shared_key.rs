//! A project whose members may ask a provider with a shared key.

use capo_tests::program::Server;
use serde_json::{Value, json};

use crate::team_server::{PASSWORD, ask};

/// The provider's key.
pub(crate) const SECRET: &str = "sk-of-the-team";

/// Signs ada in, who makes the project sums, shares the key stub of a provider with it, and gets the returned token.
pub(crate) fn shared_key(server: &Server, provider: &str) -> String {
    let credentials = json!({ "name": "ada", "password": PASSWORD });
    let cookie = ask(server, "POST", "/api/session", &[], &credentials)
        .cookie
        .unwrap();
    let headers = [("cookie", cookie.as_str()), ("origin", server.base_url.as_str())];
    let made = |path: &str, body: Value| {
        let answer = ask(server, "POST", path, &headers, &body);
        assert!(answer.status < 300, "{path}: {}", answer.body);
        answer.body
    };
    made("/api/projects", json!({ "name": "sums", "title": "Sums" }));
    let settings = json!({
        "provider": "openai-compatible", "base_url": provider, "private_host": true,
        "projects": ["sums"], "models": [{ "name": "stub" }],
    });
    made(
        "/api/keys",
        json!({ "name": "stub", "settings": settings, "secret": SECRET }),
    );
    let token = made(
        "/api/tokens",
        json!({ "name": "test", "scope": "write", "days": 1 }),
    );
    token["secret"].as_str().unwrap().to_owned()
}
