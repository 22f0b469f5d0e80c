//! Feasibility in words and shapes, never in colour alone.

use leptos::prelude::*;

/// A disc and "feasible", or a diamond and "not feasible".
#[component]
pub fn Gate(
    /// Whether every threshold holds.
    feasible: bool,
) -> impl IntoView {
    if feasible {
        view! { <span class="gate is-f"><span class="m f"></span>"feasible"</span> }
    } else {
        view! { <span class="gate is-i"><span class="m i"></span>"not feasible"</span> }
    }
}
