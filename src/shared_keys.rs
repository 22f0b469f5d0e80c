//! Keys that projects share, which this page's own server adds to what is asked through it.

use serde_json::Value;

/// Where the server has models asked, before a key's name.
const PROXY: &str = "/api/proxy/";

/// Names the project that pays, in the headers of a model's table.
pub const PROJECT: &str = "x-capo-project";

/// An address of this page's server in full.
pub fn address(path: &str) -> String {
    format!("{}{path}", origin().unwrap_or_default())
}

/// The name of the shared key with which this page's server has asked what lies at a base URL; none of any other address.
pub fn name(base_url: &str) -> Option<&str> {
    name_at(&origin()?, base_url)
}

/// The same of a server of this origin.
pub fn name_at<'a>(origin: &str, base_url: &'a str) -> Option<&'a str> {
    let name = base_url.strip_prefix(origin)?.strip_prefix(PROXY)?;
    let name = name.split('/').next().unwrap_or_default();
    (!name.is_empty()).then_some(name)
}

/// The name of the shared key that a model's table is asked with; none where it is asked with a key of one's own.
pub fn of_table(table: &Value) -> Option<&str> {
    name(table["base_url"].as_str()?)
}

/// Scheme, host and port of the server that this page or worker came from; none outside a browser.
pub fn origin() -> Option<String> {
    if !cfg!(target_arch = "wasm32") {
        return None;
    }
    let location = js_sys::Reflect::get(&js_sys::global(), &"location".into()).ok()?;
    js_sys::Reflect::get(&location, &"origin".into())
        .ok()?
        .as_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_key_is_known_by_where_this_server_has_it_asked() {
        let name = |base_url| name_at("https://capo.example", base_url);
        assert_eq!(name("https://capo.example/api/proxy/openai"), Some("openai"));
        assert_eq!(name("https://capo.example/api/proxy/openai/v1"), Some("openai"));
        for other in [
            "https://capo.example/api/proxy/",
            "https://capo.example/api/proxies/openai",
            "https://capo.example.org/api/proxy/openai",
            "http://capo.example/api/proxy/openai",
            "/api/proxy/openai",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
