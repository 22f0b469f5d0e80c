//! Pause, resume, stop, branch.

use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::spawn_local;

use crate::frame::keys::TabKeys;
use crate::frame::shortcuts::use_shortcut;
use crate::live::{Pause, Phase, Run, Runs};

/// The buttons of a run's header.
#[component]
pub(super) fn Actions(run: Run) -> impl IntoView {
    let (runs, keys) = (expect_context::<Runs>(), expect_context::<TabKeys>());
    let stop = NodeRef::<Dialog>::new();
    let branch = NodeRef::<Dialog>::new();
    let open = |dialog: NodeRef<Dialog>| {
        if let Some(dialog) = dialog.get() {
            // Fails only when it is open already.
            let _ = dialog.show_modal();
        }
    };
    let running = Memo::new(move |_| matches!(run.phase.get(), Phase::Running));
    let busy = Memo::new(move |_| matches!(run.phase.get(), Phase::Pausing | Phase::Opening(..)));
    // A journal that came from elsewhere may lack its study's data: the worker then says which.
    let over = Memo::new(move |_| {
        use capo_core::journal::Status;
        run.read(|folded| {
            folded
                .state
                .finished()
                .is_some_and(|finished| matches!(finished.status, Status::Feasible | Status::Infeasible))
        })
    });
    let resume = move || {
        runs.resume(&run.id(), &keys.now());
    };
    use_shortcut("p", "pause or resume the run", move || {
        match run.phase.get_untracked() {
            Phase::Running => run.pause(Pause::Asked),
            Phase::Paused(_) | Phase::Resting if !over.get_untracked() => resume(),
            _ => {}
        }
    });
    use_shortcut("b", "branch from a round", move || open(branch));
    let has_rounds = move || run.read(|folded| !folded.state.rounds().is_empty());
    view! {
        <div class="row actions">
            <Show when=move || running.get()>
                <button type="button" on:click=move |_| run.pause(Pause::Asked)>
                    <svg viewBox="0 0 12 12" aria-hidden="true">
                        <path d="M2 1h3v10H2zM7 1h3v10H7z"/>
                    </svg>
                    "Pause"
                </button>
                <button type="button" on:click=move |_| open(stop)>
                    <svg viewBox="0 0 12 12" aria-hidden="true">
                        <path d="M1.5 1.5h9v9h-9z"/>
                    </svg>
                    "Stop"
                </button>
            </Show>
            <Show when=move || !running.get() && !over.get()>
                <button type="button" class="primary" disabled=move || busy.get() on:click=move |_| resume()>
                    <svg viewBox="0 0 12 12" aria-hidden="true">
                        <path d="M2 0.8L11 6 2 11.2z"/>
                    </svg>
                    "Resume"
                </button>
            </Show>
            <Show when=has_rounds>
                <button type="button" on:click=move |_| open(branch)>
                    <svg viewBox="0 0 12 12" aria-hidden="true">
                        <path
                            d="M2.4 0v12M2.4 8.6C2.4 5 9.4 6.6 9.4 2"
                            fill="none"
                            stroke="currentColor"
                            stroke-width="1.5"
                        />
                        <circle cx="9.4" cy="2" r="1.9"/>
                    </svg>
                    "Branch…"
                </button>
            </Show>
        </div>
        <StopDialog run node=stop/>
        <BranchDialog run node=branch/>
    }
}

/// Asks once; the safe answer has the focus.
#[component]
fn StopDialog(run: Run, node: NodeRef<Dialog>) -> impl IntoView {
    let close = move || {
        if let Some(dialog) = node.get_untracked() {
            dialog.close();
        }
    };
    view! {
        <dialog node_ref=node aria-labelledby="stop-title">
            <h2 id="stop-title">"Stop this run?"</h2>
            <p>
                "Calls under way are finished and counted. The best prompt so far is kept, without held-out \
                 figures. The run can be resumed later and pays for nothing twice."
            </p>
            <div class="row">
                <button type="button" autofocus on:click=move |_| close()>
                    "Keep running"
                </button>
                <button
                    type="button"
                    on:click=move |_| {
                        close();
                        run.pause(Pause::Stopped);
                    }
                >
                    "Stop"
                </button>
            </div>
        </dialog>
    }
}

/// Starts another run from a round of this one.
#[component]
fn BranchDialog(run: Run, node: NodeRef<Dialog>) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let navigate = use_navigate();
    let round = RwSignal::new(1_u32);
    let failed = RwSignal::new(None::<String>);
    let reached = Memo::new(move |_| run.read(|folded| folded.state.rounds().len() as u32));
    let close = move || {
        if let Some(dialog) = node.get_untracked() {
            dialog.close();
        }
    };
    let branch = move |_| {
        let navigate = navigate.clone();
        let from = round.get_untracked().clamp(1, reached.get_untracked());
        spawn_local(async move {
            match runs.branch(run, from).await {
                Ok(branched) => {
                    close();
                    navigate(&format!("/run/{}", branched.id()), NavigateOptions::default());
                }
                Err(message) => failed.set(Some(message)),
            }
        });
    };
    view! {
        <dialog node_ref=node aria-labelledby="branch-title">
            <h2 id="branch-title">"Branch from a round"</h2>
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
                    prop:value=move || round.get()
                    on:input=move |event| {
                        if let Ok(value) = event_target_value(&event).parse() {
                            round.set(value);
                        }
                    }
                />
            </div>
            {move || failed.get().map(|message| view! { <p class="error" role="alert">{message}</p> })}
            <div class="row">
                <button type="button" on:click=move |_| close()>
                    "Cancel"
                </button>
                <button type="button" class="primary" on:click=branch>
                    "Branch"
                </button>
            </div>
        </dialog>
    }
}
