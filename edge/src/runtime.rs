//! What the runtime says, in the words of this crate.

use http::HeaderMap;
use serde::Deserialize;
use worker::js_sys::{Date as Calendar, Function, Reflect, global};
use worker::wasm_bindgen::JsCast as _;
use worker::{Date, Headers, SqlStorageValue, Url};

use crate::refusal::Refusal;

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

/// A moment, in milliseconds since 1970, as RFC 3339 in UTC.
pub(crate) fn moment(at: u64) -> String {
    Calendar::new(&(at as f64).into()).to_iso_string().into()
}

/// A moment of a document, in milliseconds since 1970; those before it are as long past.
///
/// # Errors
/// That it is none, in words.
pub(crate) fn millis(moment: &str) -> Result<u64, String> {
    capo_hosted::millis(moment).map(|at| u64::try_from(at).unwrap_or(0))
}

/// A whole number, as storage takes it: JavaScript represents all that there are here.
pub(crate) fn number(number: u64) -> SqlStorageValue {
    SqlStorageValue::Integer(number.cast_signed())
}

/// A row that counts.
#[derive(Deserialize)]
pub(crate) struct Count {
    pub(crate) count: u64,
}

/// 32 hexadecimal digits that nobody guesses.
pub(crate) fn random_id() -> worker::Result<String> {
    let crypto = Reflect::get(&global(), &"crypto".into())?;
    let uuid: Function = Reflect::get(&crypto, &"randomUUID".into())?.unchecked_into();
    let uuid = uuid.call0(&crypto)?.as_string().unwrap_or_default();
    Ok(uuid.replace('-', ""))
}

/// What a query says of a name.
///
/// # Errors
/// When it does not read.
pub(crate) fn query<T: std::str::FromStr>(url: &Url, name: &str) -> Result<Option<T>, Refusal> {
    let said = url.query_pairs().find(|(said, _)| said == name);
    let read = said.map(|(_, value)| value.parse());
    read.transpose()
        .map_err(|_| Refusal::unreadable(&format!("`{name}` cannot be read.")))
}
