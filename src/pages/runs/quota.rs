//! The storage quota of this page, and how much of it is used.

use js_sys::Reflect;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

use crate::format;

/// Bytes kept, and bytes that may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stored {
    used: f64,
    allowed: f64,
}

/// What the browser says; `None` when it does not.
pub(super) async fn stored() -> Option<Stored> {
    let estimate = web_sys::window()?.navigator().storage().estimate().ok()?;
    let estimate = JsFuture::from(estimate).await.ok()?;
    let bytes = |name: &str| Reflect::get(&estimate, &JsValue::from_str(name)).ok()?.as_f64();
    Some(Stored {
        used: bytes("usage")?,
        allowed: bytes("quota")?,
    })
}

/// "6 runs, 18.4 MB of about 2.1 GB this browser allows."
pub(super) fn sentence(runs: usize, stored: Option<Stored>) -> String {
    let runs = if runs == 1 {
        "1 run".to_owned()
    } else {
        format!("{} runs", format::count(runs as u64))
    };
    match stored {
        Some(stored) => format!(
            "{runs}, {} of about {} this browser allows.",
            bytes(stored.used),
            bytes(stored.allowed)
        ),
        None => format!("{runs}."),
    }
}

/// One decimal in the largest unit of at least 1, megabytes at least: "18.4 MB".
fn bytes(count: f64) -> String {
    let mega = count / 1e6;
    if mega >= 1000.0 {
        format!("{} GB", format::decimals(mega / 1000.0, 1))
    } else {
        format!("{} MB", format::decimals(mega, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_counted_in_megabytes_and_gigabytes() {
        let stored = Stored {
            used: 18.4e6,
            allowed: 2.13e9,
        };
        assert_eq!(
            sentence(6, Some(stored)),
            "6 runs, 18.4 MB of about 2.1 GB this browser allows."
        );
        assert_eq!(sentence(1, None), "1 run.");
    }
}
