//! Pushing a run of this browser to the team's server.

use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::components::A;
use wasm_bindgen_futures::spawn_local;

use super::{Message, Workplace, close_dialog, open_dialog};
use crate::download::journal;
use crate::live::{Phase, Run, Runs};
use crate::team::Team;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
enum Pushed {
    NotYet,
    UnderWay,
    /// It is on the server, at this address of the page.
    There(String),
    Refused(String),
}

/// A button that pushes a run which rests here, for who may run studies in a project.
#[component]
pub fn PushToTeam(run: Run) -> impl IntoView {
    let runs = expect_context::<Runs>();
    let team = expect_context::<Team>();
    let node = NodeRef::<Dialog>::new();
    let pushed = RwSignal::new(Pushed::NotYet);
    let project = RwSignal::new(None::<String>);
    let can = Memo::new(move |_| {
        let rests = matches!(
            run.phase.get(),
            Phase::Resting | Phase::Paused(_) | Phase::Failed(_)
        );
        rests
            // The server would take it for a search.
            && run.check().is_none()
            && team.has_accounts()
            && !run.is_on_server()
            && !team.workplaces().is_empty()
            && run.read(|folded| folded.lines() > 0)
    });
    let open = move |_| {
        pushed.set(Pushed::NotYet);
        open_dialog(node);
    };
    let close = move |_| close_dialog(node);
    let is_under_way = Memo::new(move |_| pushed.get() == Pushed::UnderWay);
    let push = move |event: SubmitEvent| {
        event.prevent_default();
        let workplaces = untrack(|| team.workplaces());
        let first = workplaces.first().map(|first| first.name.clone());
        let Some(project) = project.get_untracked().or(first) else {
            return;
        };
        if is_under_way.get_untracked() {
            return;
        }
        pushed.set(Pushed::UnderWay);
        spawn_local(async move {
            let sent = async { runs.push(&project, run, journal(run).await?).await };
            let came = match sent.await {
                Ok(shown) => Pushed::There(format!("/run/{}", runs.shown(&shown).id())),
                Err(why) => Pushed::Refused(why),
            };
            // The page may be left by then.
            let _ = pushed.try_set(came);
        });
    };
    let outcome = move || match pushed.get() {
        Pushed::NotYet => None,
        Pushed::UnderWay => Some(
            view! { <p class="note" role="status">"The journal is being sent and verified."</p> }.into_any(),
        ),
        Pushed::There(address) => Some(
            view! {
                <Message what="It is on the server." info=true>
                    <A href=address>"Open it there"</A>
                </Message>
            }
            .into_any(),
        ),
        Pushed::Refused(what) => Some(view! { <Message what/> }.into_any()),
    };
    let is_there = Memo::new(move |_| matches!(pushed.get(), Pushed::There(_)));
    let dialog = move || {
        view! {
            <dialog node_ref=node aria-labelledby="push-title">
                <form on:submit=push>
                    <header>
                        <h2 id="push-title">"Push this run to the team"</h2>
                    </header>
                    <p>
                        "The whole journal goes to the server: every prompt, trace and answer. Everybody in the project can \
                         read it, and its editors can go on with it there. It stays in this browser, too."
                    </p>
                    <Workplace id="push-project" label="Project" project/>
                    {outcome}
                    <footer>
                        <button type="button" autofocus on:click=close>
                            {move || if is_there.get() { "Close" } else { "Cancel" }}
                        </button>
                        <Show when=move || !is_there.get()>
                            <button type="submit" aria-disabled=move || is_under_way.get().then_some("true")>
                                {move || if is_under_way.get() { "Pushing…" } else { "Push" }}
                            </button>
                        </Show>
                    </footer>
                </form>
            </dialog>
        }
    };
    view! {
        <Show when=move || can.get()>
            <button type="button" on:click=open>
                "Push to the team…"
            </button>
            {dialog()}
        </Show>
    }
}
