//! A message: what happened, with its sign.

use leptos::prelude::*;

/// "!" in a ring when machinery failed, "i" in one for news that need no hurry. Read out once.
#[component]
pub fn Message(
    /// What happened, in a sentence.
    #[prop(into)]
    what: String,
    /// Whether it is news and no failure.
    #[prop(optional)]
    info: bool,
    /// What was kept, what to do.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let role = if info { "status" } else { "alert" };
    view! {
        <div class="msg" class:info=info role=role>
            <b>{what}</b>
            {children.map(|children| children())}
        </div>
    }
}

/// That something could not be read, with a button that tries again.
#[component]
pub fn TryAgain(
    /// Why, in a sentence.
    what: String,
    #[prop(into)] again: Callback<()>,
) -> impl IntoView {
    view! {
        <Message what>
            <div class="row">
                <button type="button" on:click=move |_| again.run(())>
                    "Try again"
                </button>
            </div>
        </Message>
    }
}
