//! Settings of feedback, which tells the rewriter about the prompts it rewrites.

use capo_core::study::FeedbackForm;
use leptos::prelude::*;

use super::field::{Number, NumberField, Wrong};
use super::form::Form;

/// The forms of feedback: as the study names them, on screen, and what they mean.
const FORMS: [(FeedbackForm, &str, &str, &str); 3] = [
    (
        FeedbackForm::Summary,
        "summary",
        "The critic’s text",
        "A critic reads what went wrong and explains it.",
    ),
    (
        FeedbackForm::Trajectory,
        "trajectory",
        "The failing examples themselves",
        "No critic is asked.",
    ),
    (
        FeedbackForm::None,
        "none",
        "Nothing",
        "For comparison: the rewriter sees the prompt alone.",
    ),
];

/// The `[feedback]` table.
#[component]
pub(super) fn FeedbackFields() -> impl IntoView {
    let form = expect_context::<Form>();
    let chosen = form.memo(|study| study.feedback.form);
    let options = FORMS
        .map(|(own, name, title, _)| {
            view! {
                <option value=name prop:selected=move || chosen.get() == own>
                    {title}
                </option>
            }
        })
        .collect_view();
    let change = move |event| {
        let name = event_target_value(&event);
        if let Some((chosen, ..)) = FORMS.iter().find(|(_, own, ..)| *own == name) {
            form.edit(|draft| draft.study.feedback.form = *chosen);
        }
    };
    let meaning = move || {
        let found = FORMS.iter().find(|(own, ..)| *own == chosen.get());
        found.map(|(.., meaning)| *meaning)
    };
    let cases = Number::new(
        "feedback.cases",
        "Failing examples shown",
        |study| Some(study.feedback.cases as f64),
        |study, value| study.feedback.cases = value.unwrap_or_default() as usize,
    )
    .counted();
    let characters = Number::new(
        "feedback.max_characters",
        "Most characters",
        |study| Some(study.feedback.max_characters as f64),
        |study, value| study.feedback.max_characters = value.unwrap_or_default() as usize,
    )
    .counted();
    view! {
        <details>
            <summary>"What the rewriter is told"</summary>
            <div class="fields wide">
                <div class="field">
                    <label for="f-feedback-form">"Feedback"</label>
                    <select id="f-feedback-form" aria-describedby="f-feedback-form-note" on:change=change>
                        {options}
                    </select>
                    <span class="note" id="f-feedback-form-note">
                        {meaning}
                    </span>
                    <Wrong key="feedback.form"/>
                </div>
                <NumberField
                    number=cases
                    explanation="For the objective and for each constraint."
                />
                <NumberField number=characters explanation="Of evidence in all; what is left out is counted."/>
            </div>
        </details>
    }
}
