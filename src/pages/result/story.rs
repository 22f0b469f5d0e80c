//! The history of the best prompt, rewrite by rewrite.

use leptos::prelude::*;

use crate::components::{DiffText, Plate, Words};
use crate::diff::PromptDiff;
use crate::format::counted;
use crate::live::Run;
use crate::run::story::Step;

/// Every rewrite that led to the best prompt: what the critic said, which words changed, what that did.
#[component]
pub(super) fn StoryPlate(
    run: Run,
    /// The rewrites, the first one first.
    steps: Memo<Vec<Step>>,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let many = move || {
        steps.with(|steps| {
            let start = run.peek(|folded| Some(steps.first()?.begins_with(&folded.state)));
            let rewrites = counted(steps.len(), "rewrite");
            format!("{rewrites} from {}", start.unwrap_or_default())
        })
    };
    let each = move || {
        let steps = steps.get();
        let last = steps.len().saturating_sub(1);
        let view = |(place, step): (usize, Step)| {
            let begins_open = place == 0 || place == last;
            view! { <StepView run step begins_open/> }
        };
        steps.into_iter().enumerate().map(view).collect_view()
    };
    view! {
        <Show when=move || steps.with(|steps| !steps.is_empty())>
            <Plate
                letter
                title=|| {
                    view! { "How it came to be " <span class="unit">"figures on the examples of each round"</span> }
                }
                beside=move || view! { <span class="now quiet">{many}</span> }
            >
                <div class="stack">{each}</div>
            </Plate>
        </Show>
    }
}

#[component]
fn StepView(run: Run, step: Step, begins_open: bool) -> impl IntoView {
    let Step {
        heading,
        said,
        figures,
        ..
    } = step.clone();
    let said = if said.is_empty() {
        "No feedback led to it.".to_owned()
    } else {
        format!("The critic: {said}")
    };
    // Made when it is first looked at: of many long prompts all would take long.
    let diff = RwSignal::new(None::<PromptDiff>);
    let make = move || {
        if diff.with_untracked(Option::is_none) {
            diff.set(run.peek(|folded| step.diff(&folded.state)));
        }
    };
    if begins_open {
        make();
    }
    let changed = move || {
        diff.with(|diff| {
            diff.as_ref()
                .map_or("What it changed".to_owned(), PromptDiff::words)
        })
    };
    let text = move || diff.get().map(|diff| view! { <DiffText diff/> });
    view! {
        <div>
            <dl class="feedback">
                <div>
                    <dt>
                        <Words sentence=heading/>
                    </dt>
                    <dd>{said}</dd>
                </div>
            </dl>
            <details class="fold" open=begins_open on:toggle=move |_| make()>
                <summary>{changed}</summary>
                <div class="prompt inset">{text}</div>
            </details>
            <p class="reading">{figures}</p>
        </div>
    }
}
