//! Notices of a run: what a person must know before anything else.

use capo_core::journal::Status;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Message, date_and_time};
use crate::download::{file_name, offer_journal};
use crate::live::{Pause, Phase, Run};
use crate::storage::is_report;
use crate::studies;

/// Failures of the run or the browser, pauses, what was left out, and that models are simulated.
#[component]
pub fn RunNotices(
    /// Of which run.
    run: Run,
) -> impl IntoView {
    let simulated = Memo::new(move |_| {
        run.read(|folded| {
            folded
                .state
                .study()
                .is_some_and(|started| studies::is_simulated(&started.study))
        })
    });
    let failed = move || match run.phase.get() {
        Phase::Failed(message) | Phase::Unreadable(message) => Some(message),
        _ => None,
    };
    let ended = move || {
        let resting = run.phase.get() == Phase::Resting;
        let reason = run.read(|folded| {
            let finished = folded.state.finished();
            let failed = finished.filter(|ended| ended.status == Status::Failed)?;
            Some(failed.reason.clone().unwrap_or_default())
        });
        reason.filter(|_| resting)
    };
    let on_server = run.is_on_server();
    let waits = move || match run.phase.get() {
        Phase::Queued(_) if !on_server => {
            let words = "It starts when one of the runs that were begun with it has ended or is paused, but not while \
                         there is no network for it or a key of theirs is refused.";
            Some(words.to_owned())
        }
        Phase::Queued(None) => Some("It waits on the server, and starts when a worker is free.".to_owned()),
        Phase::Queued(Some(start)) => {
            let at = date_and_time(&js_sys::Date::new(&start.into()));
            Some(format!("It waits on the server, and starts on {at}."))
        }
        _ => None,
    };
    let paused = move || match run.phase.get() {
        Phase::Paused(Pause::Asked | Pause::Stopped) if run.read(|folded| folded.lines() == 0) => {
            Some("It has not begun yet. Resume begins it.")
        }
        Phase::Paused(Pause::Asked) => Some("Paused. Calls under way were finished and counted."),
        Phase::Paused(Pause::NoNetwork) => Some("No network. Paused; goes on by itself when it returns."),
        Phase::Paused(Pause::Stopped) if run.check().is_some() => {
            Some("Stopped. What was measured is kept; the run can be resumed.")
        }
        Phase::Paused(Pause::Stopped) => {
            Some("Stopped. The best prompt so far is kept; the run can be resumed.")
        }
        Phase::Pausing if on_server && run.stops() => Some("The server was told to stop it."),
        Phase::Pausing if run.stops() => {
            Some("Stopping: calls that are not answered within two seconds are given up.")
        }
        Phase::Pausing => Some("Pausing: calls under way are being finished."),
        _ => None,
    };
    let out_of_reach = move || {
        let waits = run.phase.get() == Phase::Paused(Pause::Unreachable);
        waits.then(|| {
            run.read(|folded| folded.state.finished()?.reason.clone())
                .unwrap_or_default()
        })
    };
    let refused = move || {
        run.refused
            .get()
            .filter(|_| !on_server)
            .map(|refused| refused.reason)
    };
    let not_mirrored = move || {
        run.refused
            .get()
            .filter(|_| on_server)
            .map(|refused| refused.reason)
    };
    let not_offered = RwSignal::new(None::<String>);
    let offer = move |_| {
        spawn_local(async move {
            let offered = offer_journal(run, &file_name(&run.name(), None)).await;
            not_offered.set(offered.err());
        });
    };
    view! {
        <div class="notices">
            {move || {
                failed()
                    .map(|message| {
                        view! {
                            <Message what="The run broke off.">
                                <p>{message}</p>
                            </Message>
                        }
                    })
            }}
            {move || {
                ended()
                    .map(|reason| {
                        view! {
                            <Message what="The run was ended by a failure.">
                                <p>{reason}</p>
                                {(!is_report())
                                    .then(|| view! { <p>{run.what_is_kept()} " Resume to try again."</p> })}
                            </Message>
                        }
                    })
            }}
            {move || {
                refused()
                    .map(|reason| {
                        view! {
                            <Message what=refused_words(run)>
                                <p>
                                    {if run.has_lost() {
                                        "What was answered in this tab, at most the newest 256 MiB of it, lies in its \
                                         memory and is lost when it is closed or reloaded: download the journal."
                                    } else {
                                        "What was answered since lies in the memory of this tab and is lost when it is \
                                         closed or reloaded: download the journal."
                                    }} " (" {reason} ")"
                                </p>
                                <div class="row">
                                    <button type="button" on:click=offer>
                                        "Download journal"
                                    </button>
                                </div>
                                {move || not_offered.get().map(|message| view! { <p>{message}</p> })}
                            </Message>
                        }
                    })
            }}
            <Show when=move || run.phase.get() == Phase::InAnotherTab>
                <Message what="This run goes on in another tab of this browser." info=true>
                    <p>"It is shown here as it goes. Pause, stop or steer it in that tab."</p>
                </Message>
            </Show>
            {move || {
                not_mirrored()
                    .map(|reason| {
                        view! {
                            <Message what="This browser will not store more." info=true>
                                <p>"The run is on the server, and is shown from there. (" {reason} ")"</p>
                            </Message>
                        }
                    })
            }}
            <Show when=move || run.is_cut_off()>
                <Message
                    what="The connection to the server is lost. What came before is shown; it connects again by itself."
                    info=true
                />
            </Show>
            {move || waits().map(|what| view! { <Message what info=true/> })}
            {move || paused().map(|words| view! { <Message what=words info=true/> })}
            {move || {
                out_of_reach()
                    .map(|reason| {
                        view! {
                            <Message
                                what="Paused: a model cannot be reached, though this device has a network."
                                info=true
                            >
                                <p>"The run tries again by itself, later each time, and when the network changes."</p>
                                <p class="note">{reason}</p>
                                <button type="button" class="link" on:click=move |_| run.wait_no_more()>
                                    "Stop trying"
                                </button>
                            </Message>
                        }
                    })
            }}
            <For each=move || run.notes.get() key=Clone::clone let(note)>
                <Message what=note info=true/>
            </For>
            <Show when=move || simulated.get()>
                <p class="simulated">
                    <span class="tag solid">"Simulated models, not a real agent."</span>
                </p>
            </Show>
        </div>
    }
}

fn refused_words(run: Run) -> &'static str {
    if run.has_lost() {
        "The stored data of this page were deleted."
    } else {
        "This browser will not store more."
    }
}
