//! Branching: another run from a round of this one.

use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use super::{Message, close_dialog};
use crate::live::{Run, Runs};

/// Asks after which round, and starts the run.
#[component]
pub fn BranchDialog(
    /// Of which run.
    run: Run,
    /// Set to open the dialog; nothing opens before a round has closed.
    asked: RwSignal<bool>,
) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let navigate = use_navigate();
    let node = NodeRef::<Dialog>::new();
    let typed = RwSignal::new(String::new());
    let failed = RwSignal::new(None::<String>);
    let busy = RwSignal::new(false);
    let reached = Memo::new(move |_| run.read(|folded| folded.state.rounds().len() as u32));
    Effect::new(move |_| {
        let (true, Some(dialog)) = (asked.get(), node.get()) else {
            return;
        };
        let last = reached.get_untracked();
        if last == 0 {
            return asked.set(false);
        }
        typed.set(last.to_string());
        failed.set(None);
        // Fails only when it is open already.
        let _ = dialog.show_modal();
    });
    let close = move || close_dialog(node);
    let branch = move |event: SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let round = match round(&typed.get_untracked(), reached.get_untracked()) {
            Ok(round) => round,
            Err(message) => return failed.set(Some(message)),
        };
        busy.set(true);
        failed.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            let branched = runs.branch(run, round).await;
            // As above.
            let _ = busy.try_set(false);
            match branched {
                Ok(branched) => {
                    close();
                    navigate(&format!("/run/{}", branched.id()), NavigateOptions::default());
                }
                Err(message) => {
                    let _ = failed.try_set(Some(message));
                }
            }
        });
    };
    view! {
        <dialog node_ref=node aria-labelledby="branch-title" on:close=move |_| asked.set(false)>
            <form on:submit=branch novalidate>
                <header>
                    <h2 id="branch-title">"Branch from a round"</h2>
                </header>
                <p>
                    "A new run that shares everything up to the end of this round and pays for nothing of it again. \
                     Steer it to see what another threshold or multiplier would have done."
                </p>
                <div class="field">
                    <label for="branch-round">"After round"</label>
                    <input
                        id="branch-round"
                        type="number"
                        min="1"
                        max=move || reached.get()
                        autofocus
                        prop:value=move || typed.get()
                        on:input=move |event| typed.set(event_target_value(&event))
                    />
                </div>
                {move || failed.get().map(|what| view! { <Message what/> })}
                <footer>
                    <button type="button" on:click=move |_| close()>
                        "Cancel"
                    </button>
                    <button type="submit" aria-disabled=move || busy.get().then_some("true")>
                        {move || if busy.get() { "Branching…" } else { "Branch" }}
                    </button>
                </footer>
            </form>
        </dialog>
    }
}

/// The round that was typed, if it has closed.
fn round(typed: &str, closed: u32) -> Result<u32, String> {
    let round = typed
        .trim()
        .parse()
        .ok()
        .filter(|round| (1..=closed).contains(round));
    round.ok_or_else(|| match closed {
        0 => "No round has closed yet. Wait for the first.".to_owned(),
        1 => "Only round 1 has closed: type 1.".to_owned(),
        last => format!("Type a round that has closed, 1 to {last}."),
    })
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn only_rounds_that_have_closed_are_branched_from() {
        assert_eq!(round(" 3 ", 3), Ok(3));
        assert!(round("4", 3).unwrap_err().contains("1 to 3"));
        assert!(round("", 1).unwrap_err().contains("type 1"));
        assert!(round("1", 0).unwrap_err().contains("No round"));
    }
}
