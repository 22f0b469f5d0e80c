//! Deferred drawing: much to draw, in tasks that are short.

use leptos::prelude::*;

use super::in_turn;

/// Draws its children in a task of their own, after what stands above them: a page of many charts drawn
/// at once would not answer meanwhile.
#[component]
pub fn Deferred(
    /// What is drawn.
    children: ChildrenFn,
) -> impl IntoView {
    let due = RwSignal::new(false);
    in_turn(move || {
        // The page may be left by then.
        let _ = due.try_set(true);
    });
    view! { <Show when=move || due.get()>{children()}</Show> }
}
