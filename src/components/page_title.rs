//! The title of the tab.

use leptos::prelude::*;

/// Names the tab after what it shows, as long as the caller lives.
pub fn page_title(title: impl Fn() -> String + 'static) {
    Effect::new(move |_| document().set_title(&format!("{} · Capo", title())));
}
