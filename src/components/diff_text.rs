//! Two texts in one, or one of them with what the other has not.

use leptos::prelude::*;

use crate::diff::{Change, PromptDiff, Segment};

/// What was taken out struck through, what was added underlined.
#[component]
pub fn DiffText(
    diff: PromptDiff,
    /// Which of its parts are left out, so that one of the two texts stands alone.
    #[prop(optional, into)]
    without: Option<Change>,
) -> impl IntoView {
    let shown = |Segment { change, text }| match change {
        Change::Equal => text.into_any(),
        Change::Deleted => view! { <del>{text}</del> }.into_any(),
        Change::Inserted => view! { <ins>{text}</ins> }.into_any(),
    };
    let kept = diff
        .segments
        .into_iter()
        .filter(|segment| Some(segment.change) != without);
    kept.map(shown).collect_view()
}
