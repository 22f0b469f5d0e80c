//! The keys a run needs to go on and this tab does not hold.

use leptos::prelude::*;

use crate::frame::keys::TabKeys;
use crate::keys::Destination;
use crate::live::{Phase, Run};
use crate::servers;

/// A field for each key that is missing, as long as the run does not go on.
#[component]
pub fn RunKeys(
    /// Of which run.
    run: Run,
) -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let rests = Memo::new(move |_| {
        let over = run.read(|folded| {
            folded.state.finished().is_some_and(|finished| {
                use capo_core::journal::Status;
                matches!(finished.status, Status::Feasible | Status::Infeasible)
            })
        });
        !over
            && matches!(
                run.phase.get(),
                Phase::Resting | Phase::Paused(_) | Phase::Failed(_) | Phase::Unreadable(_)
            )
    });
    // A field stays while somebody types in it: what was missing once is asked for until the run goes on.
    let wanted = Memo::new(move |last: Option<&Vec<Destination>>| {
        if !rests.get() {
            return Vec::new();
        }
        let mut wanted = run.wanted(&keys.get());
        for to in last.into_iter().flatten() {
            if !wanted.contains(to) {
                wanted.push(to.clone());
            }
        }
        wanted.sort();
        wanted
    });
    view! {
        <Show when=move || wanted.with(|wanted| !wanted.is_empty())>
            <div class="msg info" role="group" aria-label="Keys">
                <b>"To go on, this run needs a key."</b>
                <p>"It stays in this tab and goes to the server named only."</p>
                <div class="row loose">
                    <For each=move || wanted.get() key=Clone::clone let(to)>
                        <KeyField to/>
                    </For>
                </div>
            </div>
        </Show>
    }
}

#[component]
fn KeyField(to: Destination) -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let label = format!("Key for {}", to.server());
    let plain = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
    let id = format!("key-{}-{}", to.variable, to.origin)
        .chars()
        .map(plain)
        .collect::<String>();
    let open = servers::is_unencrypted(&to.origin).then(|| {
        view! { <span class="note">"This server is called unencrypted: others on the way could read the key."</span> }
    });
    let typed = move |event: web_sys::Event| keys.set(&to, event_target_value(&event).trim());
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <input id=id type="password" autocomplete="off" on:input=typed/>
            {open}
        </div>
    }
}
