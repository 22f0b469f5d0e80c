//! Objects as others ask them: by HTTP, of which they take the body alone.

use serde::Serialize;
use serde::de::DeserializeOwned;
use worker::js_sys::JsString;
use worker::wasm_bindgen::JsValue;
use worker::{Method, Request, RequestInit, Response, Stub};

/// Tells an object something, and returns what it answers.
pub(crate) async fn ask(object: &Stub, order: &impl Serialize) -> worker::Result<Response> {
    let order = JsString::from(serde_json::to_string(order)?);
    send(object, Method::Post, "", order.into()).await
}

/// Sends an object something under a name.
pub(crate) async fn send(
    object: &Stub,
    method: Method,
    name: &str,
    body: JsValue,
) -> worker::Result<Response> {
    let mut init = RequestInit::new();
    init.with_method(method).with_body(Some(body));
    let request = Request::new_with_init(&format!("http://object/{name}"), &init)?;
    object.fetch_with_request(request).await
}

/// What an object is told.
pub(crate) async fn order<T: DeserializeOwned>(request: &mut Request) -> worker::Result<T> {
    Ok(serde_json::from_str(&request.text().await?)?)
}
