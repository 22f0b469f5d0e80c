//! Pause, resume, stop, branch, rerun.

use capo_core::journal::Status;
use capo_core::reading::measured::is_no_search;
use capo_core::reading::progress::Progress;
use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;
use leptos_router::components::A;

use crate::components::{
    BranchDialog, Deferred, Icon, PAUSE, PLAY, PushToTeam, RaiseDialog, Rerun, close_dialog, open_dialog,
    use_forbidden,
};
use crate::frame::keys::TabKeys;
use crate::frame::shortcuts::use_shortcut;
use crate::live::{Ordered, Pause, Phase, Run, Runs};
use crate::storage::RunRecord;
use crate::team::Team;

/// What the run asks for next, beside pausing and stopping one that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// It stands in the middle: going on.
    Resume,
    /// Its budget is spent: more of it.
    Raise,
    /// It went its whole way: its result.
    Result,
    /// Its journal is of no search, and nobody here knows what else it was to measure.
    Nothing,
}

impl Next {
    fn after(ended: Option<Status>) -> Self {
        match ended {
            Some(Status::Feasible | Status::Infeasible) => Self::Result,
            Some(Status::Budget) => Self::Raise,
            Some(Status::Stopped | Status::Failed) | None => Self::Resume,
        }
    }
}

/// The buttons of a run's header.
#[component]
pub(super) fn Actions(run: Run) -> impl IntoView {
    let (runs, keys) = (expect_context::<Runs>(), expect_context::<TabKeys>());
    let stop = NodeRef::<Dialog>::new();
    let branching = RwSignal::new(false);
    let raised = RwSignal::new(None);
    if run.is_on_server() {
        // One's role may have changed since.
        expect_context::<Team>().read_projects();
    }
    let forbidden = use_forbidden(run);
    let is_forbidden = Memo::new(move |_| forbidden.with(Option::is_some));
    let running = Memo::new(move |_| matches!(run.phase.get(), Phase::Running | Phase::Queued(_)));
    // Calls under way may take long; giving them up does not.
    let pausing = Memo::new(move |_| run.phase.get() == Phase::Pausing);
    let busy = Memo::new(move |_| {
        is_forbidden.get() || matches!(run.phase.get(), Phase::Pausing | Phase::Opening(..))
    });
    let elsewhere = Memo::new(move |_| run.phase.get() == Phase::InAnotherTab);
    let next = Memo::new(move |_| {
        let is_no_search = run.check().is_none() && run.read(|folded| is_no_search(&folded.state));
        if is_no_search {
            Next::Nothing
        } else {
            Next::after(run.status())
        }
    });
    let is_piloted = Memo::new(move |_| run.is_piloted());
    let has_rounds = Memo::new(move |_| run.read(|folded| !folded.state.rounds().is_empty()));
    let resume = move || {
        runs.resume(&run.id(), &keys.now());
    };
    use_shortcut("p", "pause or resume the run", move || {
        match run.phase.get_untracked() {
            _ if is_forbidden.get_untracked() => {}
            Phase::Running | Phase::Queued(_) => run.pause(Pause::Asked),
            // The whole study is more than a key should begin.
            _ if is_piloted.get_untracked() => {}
            Phase::Paused(_) | Phase::Resting | Phase::Failed(_) if next.get_untracked() == Next::Resume => {
                resume();
            }
            _ => {}
        }
    });
    use_shortcut("b", "branch from a round", move || {
        if has_rounds.get_untracked() && !is_forbidden.get_untracked() {
            branching.set(true);
        }
    });
    let ask = move |_| match run.phase.get_untracked() {
        // There is nothing to lose.
        Phase::Queued(_) if !run.is_on_server() => run.pause(Pause::Stopped),
        _ => open_dialog(stop),
    };
    let goes_on = move || match next.get() {
        Next::Resume => view! {
            <button type="button" class="primary" disabled=move || busy.get() on:click=move |_| resume()>
                <Icon path=PLAY/>
                {move || if is_piloted.get() { "Run the whole study" } else { "Resume" }}
            </button>
        }
        .into_any(),
        Next::Raise => view! {
            <button
                type="button"
                class="primary"
                disabled=move || busy.get()
                on:click=move |_| raised.set(listed(run))
            >
                "Raise the budget…"
            </button>
        }
        .into_any(),
        Next::Result => view! {
            <A href=format!("/run/{}/result", run.id()) attr:class="button primary">
                "See the result"
            </A>
        }
        .into_any(),
        Next::Nothing => {
            view! { <p class="note">"Prompts were measured here, and nothing was searched."</p> }.into_any()
        }
    };
    view! {
        <div class="row actions">
            <Show
                when=move || running.get() || pausing.get()
                fallback=move || (!elsewhere.get()).then(goes_on)
            >
                <button
                    type="button"
                    disabled=move || pausing.get() || is_forbidden.get()
                    on:click=move |_| run.pause(Pause::Asked)
                >
                    <Icon path=PAUSE/>
                    "Pause"
                </button>
                <button type="button" disabled=move || is_forbidden.get() on:click=ask>
                    <Icon path="M1.5 1.5h9v9h-9z"/>
                    "Stop"
                </button>
            </Show>
            // There from the start, so that nothing moves when it can be pressed.
            <button
                type="button"
                disabled=move || is_forbidden.get() || !has_rounds.get()
                title=move || (!has_rounds.get()).then_some("Once a round has closed")
                on:click=move |_| branching.set(true)
            >
                <Icon path="M2.4 0v12M2.4 8.6C2.4 5 9.4 6.6 9.4 2" stroke="1.5">
                    <circle cx="9.4" cy="2" r="1.9"/>
                </Icon>
                "Branch…"
            </button>
            <Rerun run words="Rerun with changes…"/>
            <Deferred>
                <PushToTeam run/>
            </Deferred>
            {move || forbidden.get().map(|why| view! { <p class="note">{why}</p> })}
            {move || {
                run.not_done(Ordered::Course).map(|why| view! { <p class="note is-i" role="alert">{why}</p> })
            }}
        </div>
        <Deferred>
            <StopDialog run node=stop/>
            <BranchDialog run asked=branching/>
            <RaiseDialog raised/>
        </Deferred>
    }
}

/// The run as the list of runs would show it now.
fn listed(run: Run) -> Option<RunRecord> {
    let record = run.record.get_untracked()?;
    Some(RunRecord {
        progress: run.peek(|folded| Progress::of(&folded.state)),
        ..record
    })
}

/// Asks once; the safe answer has the focus.
#[component]
fn StopDialog(run: Run, node: NodeRef<Dialog>) -> impl IntoView {
    let close = move || close_dialog(node);
    let stop = move |event: SubmitEvent| {
        event.prevent_default();
        close();
        run.pause(Pause::Stopped);
    };
    view! {
        <dialog node_ref=node aria-labelledby="stop-title">
            <form on:submit=stop>
                <header>
                    <h2 id="stop-title">"Stop this run?"</h2>
                </header>
                <p>
                    {if run.is_on_server() {
                        "The server stops it for everybody. "
                    } else {
                        "It stops within two seconds. Calls that are not answered by then are given up and counted \
                         by an estimate. "
                    }}
                    {if untrack(|| run.check()).is_some() {
                        "What was measured is kept. "
                    } else {
                        "The best prompt so far is kept, without held-out figures. "
                    }} "The run can be resumed later; what was answered is not paid again."
                </p>
                <footer>
                    <button type="button" autofocus on:click=move |_| close()>
                        "Keep running"
                    </button>
                    <button type="submit">"Stop"</button>
                </footer>
            </form>
        </dialog>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_depends_on_how_it_ended() {
        assert_eq!(Next::after(None), Next::Resume);
        assert_eq!(Next::after(Some(Status::Stopped)), Next::Resume);
        assert_eq!(Next::after(Some(Status::Budget)), Next::Raise);
        assert_eq!(Next::after(Some(Status::Infeasible)), Next::Result);
    }
}
