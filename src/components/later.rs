//! Much to draw, in tasks that are short.

use std::time::Duration;

use leptos::prelude::*;

/// Draws its children in a task of their own, after what stands above them: a page of many charts drawn
/// at once would not answer meanwhile.
#[component]
pub fn Later(
    /// What is drawn.
    children: ChildrenFn,
) -> impl IntoView {
    let due = RwSignal::new(false);
    set_timeout(
        move || {
            // The page may be left by then.
            let _ = due.try_set(true);
        },
        Duration::ZERO,
    );
    view! { <Show when=move || due.get()>{children()}</Show> }
}
