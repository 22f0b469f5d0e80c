//! Two prompts in one text.

use leptos::prelude::*;

use crate::diff::{Change, PromptDiff, Segment};

/// What was taken out struck through, what was added underlined.
#[component]
pub fn DiffText(
    /// The difference.
    diff: PromptDiff,
) -> impl IntoView {
    let shown = |Segment { change, text }| match change {
        Change::Equal => text.into_any(),
        Change::Deleted => view! { <del>{text}</del> }.into_any(),
        Change::Inserted => view! { <ins>{text}</ins> }.into_any(),
    };
    diff.segments.into_iter().map(shown).collect_view()
}
