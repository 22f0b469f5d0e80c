//! The plate around a table or a text, under a letter of its page.

use std::cell::Cell;

use leptos::prelude::*;

/// The letter of the plate at `place` of its page, from 0.
pub fn plate_letter(place: usize) -> &'static str {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        .get(place..=place)
        .unwrap_or_default()
}

/// An id that no other element has.
pub fn unique_id(of: &str) -> String {
    thread_local! {
        static LAST: Cell<u32> = const { Cell::new(0) };
    }
    LAST.set(LAST.get() + 1);
    format!("{of}-{}", LAST.get())
}

/// A section whose element has the id `plate-` and its letter, and can take the focus.
#[component]
pub fn Plate(
    /// Its letter on its page.
    #[prop(into)]
    letter: Signal<&'static str>,
    /// What it shows.
    #[prop(into)]
    title: ViewFnOnce,
    /// What stands at the right of the header.
    #[prop(into, optional)]
    beside: ViewFnOnce,
    /// Whether those are buttons, on which the header is centred.
    #[prop(optional)]
    row: bool,
    /// What it is of.
    children: Children,
) -> impl IntoView {
    let id = move || format!("plate-{}", letter.get());
    // A page may have more plates than letters.
    let named = StoredValue::new(unique_id("title"));
    view! {
        <section class="plate" id=id tabindex="-1" aria-labelledby=named.get_value()>
            <header class:row=row>
                <h2 class="pt" id=named.get_value()>
                    <span class="letter" aria-hidden="true">{letter}</span>
                    <span>{title.run()}</span>
                </h2>
                {beside.run()}
            </header>
            {children()}
        </section>
    }
}
