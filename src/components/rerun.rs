//! Another run like one that there is.

use capo_core::study::Study;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use crate::frame::handover::{Handed, Handover};
use crate::live::{Run, Runs};

/// A button that opens New study with what a run was started with: its study, its data files, and where it ran.
#[component]
pub fn Rerun(
    /// Of which run.
    run: Run,
    /// What the button says.
    words: &'static str,
    /// What is changed of the study on the way.
    #[prop(optional)]
    change: Option<Callback<Study, Study>>,
) -> impl IntoView {
    let (runs, Handover(handed)) = (expect_context::<Runs>(), expect_context());
    let navigate = use_navigate();
    let failed = RwSignal::new(None::<String>);
    let busy = RwSignal::new(false);
    let open = move |_| {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        failed.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            let begun = runs.begun(run).await;
            // The page may be left by then.
            if busy.try_set(false).is_some() {
                return;
            }
            match begun {
                Ok(mut begun) => {
                    if let Some(change) = change {
                        begun.study = change.run(begun.study);
                    }
                    handed.set(Some(Handed::Run(Box::new(begun))));
                    navigate("/study", NavigateOptions::default());
                }
                Err(why) => failed.set(Some(why)),
            }
        });
    };
    view! {
        <button type="button" aria-disabled=move || busy.get().then_some("true") on:click=open>
            {words}
        </button>
        {move || failed.get().map(|why| view! { <p class="note is-i" role="alert">{why}</p> })}
    }
}
