//! Files that a page hands to whoever looks at it.

use gloo_timers::callback::Timeout;
use js_sys::{Array, JsString};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Blob, BlobPropertyBag, HtmlAnchorElement, Url};

/// How long a browser may take to begin a download, in milliseconds.
const UNTIL_BEGUN: u32 = 60_000;

/// Offers a file put together from `parts` in order, without joining them in memory first.
///
/// # Errors
/// When the browser makes no file of them, in words.
pub fn download(name: &str, kind: &str, parts: impl Iterator<Item = String>) -> Result<(), String> {
    let refused = |_| format!("This browser made no file of {name}.");
    let parts: Array = parts.map(|part| JsString::from(part.as_str())).collect();
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&parts, &options).map_err(refused)?;
    let address = Url::create_object_url_with_blob(&blob).map_err(refused)?;
    let link = document().create_element("a").map_err(refused)?;
    let link: HtmlAnchorElement = link.unchecked_into();
    link.set_href(&address);
    link.set_download(name);
    link.click();
    Timeout::new(UNTIL_BEGUN, move || {
        // Fails for no address.
        let _ = Url::revoke_object_url(&address);
    })
    .forget();
    Ok(())
}
