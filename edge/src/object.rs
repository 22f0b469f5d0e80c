//! Objects as others ask them: by HTTP, of which they take the body alone.

use std::io;
use std::iter::{from_fn, once};

use futures::stream::{LocalBoxStream, iter};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use worker::js_sys::JsString;
use worker::wasm_bindgen::JsValue;
use worker::{Method, Request, RequestInit, Response, ResponseBody, Stub};

/// Bytes of lines that are sent at once.
const AT_ONCE: usize = 1 << 18;

/// Lines that are sent along with an order, as they come.
pub(crate) type Lines = LocalBoxStream<'static, io::Result<String>>;

/// Tells an object something, and returns what it answers.
pub(crate) async fn ask(object: &Stub, order: &impl Serialize) -> worker::Result<Response> {
    let order = JsString::from(serde_json::to_string(order)?);
    send(object, Method::Post, "", order.into()).await
}

/// The same with lines along, which nobody holds twice: they may be many.
pub(crate) async fn ask_with(
    object: &Stub,
    order: &impl Serialize,
    lines: Vec<String>,
) -> worker::Result<Response> {
    let mut lines = once(serde_json::to_string(order)?).chain(lines);
    let pieces = from_fn(move || {
        let mut piece = String::new();
        while piece.len() < AT_ONCE
            && let Some(line) = lines.next()
        {
            piece += &line;
            piece.push('\n');
        }
        (!piece.is_empty()).then_some(Ok::<_, worker::Error>(piece))
    });
    match Response::from_stream(iter(pieces))?.into_parts() {
        (_, ResponseBody::Stream(body)) => send(object, Method::Post, "", body.into()).await,
        _ => Err("a stream is no body".into()),
    }
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

/// The same, and the lines along.
pub(crate) async fn order_with<T: DeserializeOwned>(request: &mut Request) -> worker::Result<(T, Lines)> {
    let pieces = request.stream()?;
    let pieces = pieces.map_err(|error| io::Error::other(error.to_string()));
    let mut lines = pieces.into_async_read().lines().boxed_local();
    let order = lines.try_next().await?.unwrap_or_default();
    Ok((serde_json::from_str(&order)?, lines))
}
