//! What a person must know about a run before anything else.

use leptos::prelude::*;

use super::Message;
use crate::live::{Pause, Phase, Run};
use crate::studies;

/// Failures of the run or the browser, pauses, and that models are simulated.
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
        Phase::Failed(message) => Some(message),
        _ => None,
    };
    let paused = move || match run.phase.get() {
        Phase::Paused(Pause::Asked) => Some("Paused. Calls under way were finished and counted."),
        Phase::Paused(Pause::NoNetwork) => Some("No network. Paused; goes on by itself when it returns."),
        Phase::Paused(Pause::Stopped) => {
            Some("Stopped. The best prompt so far is kept; the run can be resumed.")
        }
        Phase::Pausing => Some("Pausing: calls under way are being finished."),
        _ => None,
    };
    let refused = move || run.refused.get();
    view! {
        <div class="notices">
            {move || {
                failed()
                    .map(|message| {
                        view! {
                            <Message what="The run cannot go on.">
                                <p>{message}</p>
                                <p>"Everything answered so far is kept."</p>
                            </Message>
                        }
                    })
            }}
            {move || {
                refused()
                    .map(|reason| {
                        view! {
                            <Message what="This browser will not store more.">
                                <p>"The run goes on in memory: download the journal. (" {reason} ")"</p>
                            </Message>
                        }
                    })
            }}
            {move || paused().map(|words| view! { <Message what=words info=true/> })}
            <Show when=move || simulated.get()>
                <p class="simulated">
                    <span class="tag solid">"Simulated models, not a real agent."</span>
                </p>
            </Show>
        </div>
    }
}
