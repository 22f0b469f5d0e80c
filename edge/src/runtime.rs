//! What the runtime says, in the words of this crate.

use http::HeaderMap;
use worker::{Date, Headers};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub(crate) fn now() -> u64 {
    Date::now().as_millis()
}

/// Headers as the gate reads them, without those of other characters than ASCII, for which it has no use.
pub(crate) fn plain(headers: &Headers) -> HeaderMap {
    let pairs = headers.entries();
    pairs
        .filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)))
        .collect::<Vec<(http::HeaderName, http::HeaderValue)>>()
        .into_iter()
        .collect()
}
