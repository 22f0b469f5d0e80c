//! Google Gemini, by the `generateContent` API.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Uri};
use rig_core::providers::gemini::GeminiConfig;
use serde_json::{Map, Value};

use super::{Access, Account, Api, Key, Provider};
use crate::conversation::CallIds;
use crate::transport::Recorder;

pub(super) const PROVIDER: Provider = Provider {
    base_url: Some("https://generativelanguage.googleapis.com"),
    catalogue: Some("gcp.gemini"),
    api: Api::Gemini,
    version: "/v1beta",
    telemetry_name: "gcp.gemini",
    // Refuses a tool's answer after a turn without its signature.
    keeps_thoughts: Some(true),
    // Its API takes names in any case, and with what stands before them in its list of models.
    takes_budget: |_, model, _| {
        let name = model.to_ascii_lowercase();
        name.trim_start_matches("models/").starts_with("gemini-2.5-")
    },
    ..Provider::over_http("gemini", "Gemini", Key::Required("GEMINI_API_KEY"))
};

pub(super) const ACCESS: Access = Access::Http {
    connect: |account, model, http| {
        let client = config(account).connect(signed(account, http));
        client.completion(model).erase()
    },
    embed: Some(|account, model, http| {
        let client = config(account).connect(signed(account, http));
        client.embedding(model, None).erase()
    }),
    list: |account, http| {
        let client = config(account).connect(signed(account, http));
        Box::pin(async move { client.list_models().await })
    },
    browser_headers: &[],
};

/// The library puts its key into the URL, which proxies log, so it is given none.
fn config(account: &Account) -> GeminiConfig {
    GeminiConfig::new("").with_base_url(account.root_without(PROVIDER.version))
}

/// The key goes into a header.
fn signed(account: &Account, http: Recorder) -> Recorder {
    let http = http.rewriting(rewrite);
    if account.key().is_empty() {
        return http;
    }
    let mut key = HeaderValue::from_str(account.key()).expect("keys are visible ASCII");
    key.set_sensitive(true);
    http.with_header(HeaderName::from_static("x-goog-api-key"), key)
}

/// The URL loses its empty `key`; ids of tool calls go back where the API gave some; what a tool answered as a JSON
/// object is one.
fn rewrite(parts: &mut Parts, body: Bytes, call_ids: &CallIds) -> Bytes {
    drop_key(parts);
    let Ok(mut request) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    identify(&mut request, "functionCall", &call_ids.called);
    identify(&mut request, "functionResponse", &call_ids.answered);
    for response in parts_named(&mut request, "functionResponse") {
        let text = response
            .get("response")
            .and_then(|response| response["result"].as_str());
        let object = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        if let Some(object) = object {
            response.insert("response".to_owned(), Value::Object(object));
        }
    }
    Bytes::from(request.to_string())
}

fn drop_key(parts: &mut Parts) {
    let Some((path, query)) = parts
        .uri
        .path_and_query()
        .and_then(|whole| whole.as_str().split_once('?'))
    else {
        return;
    };
    let others: Vec<&str> = query
        .split('&')
        .filter(|parameter| !parameter.starts_with("key="))
        .collect();
    let rest = if others.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", others.join("&"))
    };
    let mut uri = parts.uri.clone().into_parts();
    uri.path_and_query = rest.parse().ok();
    if let Ok(uri) = Uri::from_parts(uri) {
        parts.uri = uri;
    }
}

/// Gives the parts of a name their ids, in order.
fn identify(request: &mut Value, name: &str, ids: &[Option<String>]) {
    let parts: Vec<_> = parts_named(request, name).collect();
    if parts.len() != ids.len() {
        return;
    }
    for (part, id) in parts.into_iter().zip(ids) {
        if let Some(id) = id {
            part.entry("id").or_insert_with(|| Value::String(id.clone()));
        }
    }
}

/// The objects of a name among the parts of a request's contents.
fn parts_named<'a>(
    request: &'a mut Value,
    name: &'a str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + 'a {
    let contents = request.get_mut("contents").and_then(Value::as_array_mut);
    let parts = contents
        .into_iter()
        .flatten()
        .filter_map(|content| content.get_mut("parts")?.as_array_mut());
    parts
        .flatten()
        .filter_map(move |part| part.get_mut(name)?.as_object_mut())
}
