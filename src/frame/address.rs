//! Routes: which page an address names.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::live::document_meta;

/// Where this site lies on its host, without a slash at the end.
pub(super) fn base() -> String {
    let base = document_meta("capo-base").unwrap_or_default();
    base.trim_end_matches('/').to_owned()
}

/// The path of the page shown, from where this site lies: "/runs". It goes with the component that asks.
pub(super) fn use_page() -> Memo<String> {
    let (base, path) = (base(), use_location().pathname);
    Memo::new(move |_| path.with(|path| path.strip_prefix(&base).unwrap_or(path).to_owned()))
}
