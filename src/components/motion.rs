//! What moves by itself.

use leptos::prelude::window;

/// Whether somebody asked for less motion: playing is stepping then.
pub fn less_motion() -> bool {
    let query = window().match_media("(prefers-reduced-motion: reduce)");
    query.ok().flatten().is_some_and(|query| query.matches())
}
