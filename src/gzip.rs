//! Compression by the browser's own means.

use js_sys::{Array, Function, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, ReadableWritablePair, Response};

/// The browser's class that unpacks.
const UNPACKS: &str = "DecompressionStream";

/// What every file begins with that gzip packed.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Packs it.
///
/// # Errors
/// What the browser says.
pub async fn packed(file: &Blob) -> Result<Blob, JsValue> {
    through("CompressionStream", file).await
}

/// What gzip packed, as it was; any other file as it is.
///
/// # Errors
/// When the file cannot be read, or is broken.
pub async fn unpacked(file: Blob) -> Result<Blob, JsValue> {
    let start = file.slice_with_f64_and_f64(0.0, MAGIC.len() as f64)?;
    let start = JsFuture::from(start.array_buffer()).await?;
    if Uint8Array::new(&start).to_vec() == MAGIC {
        through(UNPACKS, &file).await
    } else {
        Ok(file)
    }
}

/// Whether this browser unpacks at all.
pub fn unpacks() -> bool {
    // The global object is one, so this does not fail.
    Reflect::has(&js_sys::global(), &UNPACKS.into()).unwrap_or_default()
}

async fn through(class: &str, file: &Blob) -> Result<Blob, JsValue> {
    let class = Reflect::get(&js_sys::global(), &class.into())?.dyn_into::<Function>()?;
    let stream = Reflect::construct(&class, &Array::of1(&"gzip".into()))?;
    // It has the two ends that a pair has.
    let pair = stream.unchecked_into::<ReadableWritablePair>();
    let through = Response::new_with_opt_readable_stream(Some(&file.stream().pipe_through(&pair)))?;
    JsFuture::from(through.blob()?).await?.dyn_into()
}
