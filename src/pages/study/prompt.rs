//! Seed prompts, where the search starts.

use capo_core::metric::prompt_length;
use leptos::prelude::*;

use super::field::TextField;
use super::form::Form;
use super::labels::label;
use super::section::Section;
use crate::format::Quantity;

/// The seed prompt.
#[component]
pub(super) fn PromptSection() -> impl IntoView {
    let form = expect_context::<Form>();
    let length = form.memo(|study| prompt_length(study.prompt.text.as_deref().unwrap_or_default()));
    let lead = move || {
        let length = Quantity::Thousands.value(length.get());
        format!("Where the search starts. {length} characters.")
    };
    view! {
        <Section number=1 title="Seed prompt" lead=move || lead>
            <TextField
                key="prompt.text"
                label=label("prompt.text")
                lines=5
                read=|study| study.prompt.text.clone().unwrap_or_default()
                write=|study, text| {
                    study.prompt.file = None;
                    study.prompt.text = Some(text);
                }
            />
        </Section>
    }
}
