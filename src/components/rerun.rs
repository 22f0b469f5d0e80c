//! Another run like one that there is.

use capo_core::study::Study;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use crate::frame::handover::{Handed, Handover};
use crate::live::{Begun, Run, Runs};

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
            let begun = match (runs.begun(run).await, change) {
                (Ok(mut begun), Some(change)) => {
                    begun.study = change.run(begun.study);
                    Ok(Handed::Run(Box::new(begun)))
                }
                (Ok(begun), None) => Ok(Handed::Run(Box::new(begun))),
                // What the study is changed from is known without the server.
                (Err(why), Some(change)) => changed(run, change).ok_or(why),
                (Err(why), None) => Err(why),
            };
            // The page may be left by then.
            if busy.try_set(false).is_some() {
                return;
            }
            match begun {
                Ok(begun) => {
                    handed.set(Some(begun));
                    navigate("/study", NavigateOptions::default());
                }
                Err(why) => failed.set(Some(why)),
            }
        });
    };
    view! {
        <button type="button" aria-disabled=move || busy.get().then_some("true") on:click=open>
            {move || if busy.get() { "Opening…" } else { words }}
        </button>
        {move || failed.get().map(|why| view! { <p class="note is-i" role="alert">{why}</p> })}
    }
}

/// The study that the journal of a run names, changed; none where it cannot be written.
fn changed(run: Run, change: Callback<Study, Study>) -> Option<Handed> {
    let study = run.peek(|folded| folded.state.study().map(|event| event.study.clone()))?;
    let study = change.run(study);
    study.to_toml().ok()?;
    let begun = Begun {
        study,
        files: <_>::default(),
        no_text: Vec::new(),
        project: untrack(|| run.server()).map(|server| server.project),
    };
    Some(Handed::Run(Box::new(begun)))
}
