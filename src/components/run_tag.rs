//! The status of a run, in a word or two.

use leptos::prelude::*;

use crate::live::{Pause, Phase, Run};
use crate::run::outcome;
use crate::storage::is_report;

/// The state of a run in this tab, or how it ended.
#[component]
pub fn RunTag(run: Run) -> impl IntoView {
    let on_server = run.is_on_server();
    move || match run.phase.get() {
        Phase::Running if on_server => view! { <span class="live">"running on the server"</span> }.into_any(),
        Phase::Queued(_) if !on_server => view! { <span class="tag plain">"queued"</span> }.into_any(),
        Phase::Queued(None) => view! { <span class="tag plain">"queued on the server"</span> }.into_any(),
        Phase::Queued(Some(_)) => {
            view! { <span class="tag plain">"scheduled on the server"</span> }.into_any()
        }
        Phase::Running => view! { <span class="live">"running"</span> }.into_any(),
        Phase::InAnotherTab => view! { <span class="live">"running in another tab"</span> }.into_any(),
        Phase::Pausing => view! { <span class="tag plain">"pausing"</span> }.into_any(),
        Phase::Paused(Pause::NoNetwork) => {
            view! { <span class="tag alert">"no network, paused"</span> }.into_any()
        }
        Phase::Paused(Pause::Unreachable) => {
            view! { <span class="tag alert">"models out of reach, paused"</span> }.into_any()
        }
        Phase::Paused(Pause::Stopped) => view! { <span class="tag plain">"stopped"</span> }.into_any(),
        Phase::Paused(Pause::Asked) => view! { <span class="tag plain">"paused"</span> }.into_any(),
        Phase::Failed(_) => view! { <span class="tag alert">"broke off"</span> }.into_any(),
        Phase::Unreadable(_) => view! { <span class="tag alert">"cannot be read"</span> }.into_any(),
        Phase::Opening(..) => view! { <span class="tag plain">"opening"</span> }.into_any(),
        Phase::Resting => {
            let ended = run.status();
            let (class, words) = match ended {
                Some(status) => ("tag plain", outcome::ended(status)),
                None if is_report() => ("tag plain", "not ended"),
                None => ("tag alert", "interrupted"),
            };
            view! { <span class=class>{words}</span> }.into_any()
        }
    }
}
