//! Drawings on buttons.

use leptos::prelude::*;

/// Playing, and going on.
pub const PLAY: &str = "M2 0.8L11 6 2 11.2z";
/// Pausing.
pub const PAUSE: &str = "M2 1h3v10H2zM7 1h3v10H7z";

/// A drawing, twelve units wide and high, beside the words of a button.
#[component]
pub fn Icon(
    #[prop(into)] path: Signal<&'static str>,
    /// The width of the path's line where it is not filled.
    #[prop(optional)]
    stroke: Option<&'static str>,
    /// What is drawn beside the path.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <svg viewBox="0 0 12 12" aria-hidden="true">
            <path
                d=move || path.get()
                fill=stroke.map(|_| "none")
                stroke=stroke.map(|_| "currentColor")
                stroke-width=stroke
            />
            {children.map(|children| children())}
        </svg>
    }
}
