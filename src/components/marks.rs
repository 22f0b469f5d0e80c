//! Feasibility in words and shapes, never in colour alone.

use leptos::prelude::*;

/// Of what [`Gate`] speaks.
const OF: &str = "on the search examples";

/// A disc and "feasible", or a diamond and "not feasible": of the search's examples, which its title says, and what stands
/// around it.
#[component]
pub fn Gate(
    /// Whether every threshold holds.
    feasible: bool,
) -> impl IntoView {
    if feasible {
        view! { <span class="gate is-f" title=OF><span class="m f"></span>"feasible"</span> }
    } else {
        view! { <span class="gate is-i" title=OF><span class="m i"></span>"not feasible"</span> }
    }
}

/// The same of held-out examples: "holds" or "does not hold".
#[component]
pub fn HeldOutGate(
    /// Whether the threshold holds there.
    holds: bool,
) -> impl IntoView {
    if holds {
        view! { <span class="gate is-f"><span class="m f"></span>"holds"</span> }
    } else {
        view! { <span class="gate is-i"><span class="m i"></span>"does not hold"</span> }
    }
}
