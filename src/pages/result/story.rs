//! Plate G: how the best prompt came to be.

use leptos::prelude::*;

use crate::components::{DiffText, Words};
use crate::format::counted;
use crate::live::Run;
use crate::run::story::{Step, story};

/// Every rewrite from the seed to the best prompt: what the critic said, which words changed, what that did.
#[component]
pub(super) fn StoryPlate(
    run: Run,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let steps = Memo::new(move |_| {
        run.read(|folded| {
            let best = folded.state.finished()?.best?;
            Some(story(&folded.state, best))
        })
        .unwrap_or_default()
    });
    let many = move || counted(steps.with(Vec::len), "rewrite");
    let each = move || {
        let steps = steps.get().into_iter();
        steps.map(|step| view! { <StepView step/> }).collect_view()
    };
    view! {
        <Show when=move || steps.with(|steps| !steps.is_empty())>
            <section
                class="plate"
                id=move || format!("plate-{}", letter.get())
                tabindex="-1"
                aria-labelledby="story-title"
            >
                <header>
                    <h2 class="pt" id="story-title">
                        <span class="letter" aria-hidden="true">{letter}</span>
                        <span>
                            "How it came to be "
                            <span class="unit">"figures on the examples of each round"</span>
                        </span>
                    </h2>
                    <span class="now quiet">{many} " from the seed"</span>
                </header>
                <div class="stack">{each}</div>
            </section>
        </Show>
    }
}

#[component]
fn StepView(step: Step) -> impl IntoView {
    let said = if step.said.is_empty() {
        "No feedback led to it.".to_owned()
    } else {
        format!("The critic: {}", step.said)
    };
    let changed = step.diff.words();
    view! {
        <div>
            <dl class="feedback">
                <div>
                    <dt>
                        <Words sentence=step.heading/>
                    </dt>
                    <dd>{said}</dd>
                </div>
            </dl>
            <details class="fold" open>
                <summary>{changed}</summary>
                <div class="prompt inset">
                    <DiffText diff=step.diff/>
                </div>
            </details>
            <p class="reading">{step.figures}</p>
        </div>
    }
}
