//! The keys a run needs to go on: those this tab does not hold, and those that were refused.

use capo_core::journal::Status;
use leptos::prelude::*;

use crate::format;
use crate::frame::keys::{TabKeys, owner};
use crate::frame::remember::Unlock;
use crate::keys::Destination;
use crate::live::{Phase, Refusal, Run};
use crate::servers;

/// A field for each key that is missing or was refused, as long as the run does not go on.
#[component]
pub fn RunKeys(
    /// Of which run.
    run: Run,
) -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let rests = Memo::new(move |_| {
        let over = matches!(run.status(), Some(Status::Feasible | Status::Infeasible));
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
        wanted.extend(run.refusal().map(|refusal| refusal.asked).unwrap_or_default());
        for to in last.into_iter().flatten() {
            if !wanted.contains(to) {
                wanted.push(to.clone());
            }
        }
        wanted.sort();
        wanted.dedup();
        wanted
    });
    let refused = Memo::new(move |_| {
        let refusal = run.refusal().filter(|_| rests.get())?;
        let servers: Vec<String> = refusal.asked.iter().map(owner).collect();
        (!servers.is_empty()).then(|| refused_words(&format::listed(&servers), &refusal))
    });
    let what = move || match refused.get() {
        Some(what) => what,
        None => "To go on, this run needs a key.".to_owned(),
    };
    let advice = move || {
        let to_do = if refused.with(Option::is_some) {
            "Check that it was copied whole and is still active, or type another; then resume. "
        } else {
            ""
        };
        format!("{to_do}It stays in this tab and goes to the server named only.")
    };
    view! {
        <Show when=move || wanted.with(|wanted| !wanted.is_empty())>
            <div class="msg" class:info=move || refused.with(Option::is_none) role="group" aria-label="Keys">
                <b role="status">{what}</b>
                <p>{advice}</p>
                <Unlock/>
                <div class="row loose">
                    <For each=move || wanted.get() key=Clone::clone let(to)>
                        <KeyField to/>
                    </For>
                </div>
            </div>
        </Show>
    }
}

/// What servers did; why, in their own words, stands above.
fn refused_words(servers: &str, refusal: &Refusal) -> String {
    match (refusal.is_of_key, refusal.was_sent) {
        (true, true) => format!("{servers} refused the key (401)."),
        (true, false) => format!("{servers} wants a key (401)."),
        (false, _) => format!("{servers} did not allow what was asked."),
    }
}

/// The field of the key for a server.
#[component]
pub fn KeyField(
    /// Where it goes.
    to: Destination,
    /// What tells its id from those of other fields for the same key.
    #[prop(default = "key")]
    within: &'static str,
) -> impl IntoView {
    let keys = expect_context::<TabKeys>();
    let label = format!("Key for {}", to.server());
    let plain = |letter: char| if letter.is_alphanumeric() { letter } else { '-' };
    let id = format!("{within}-{}-{}", to.variable, to.origin)
        .chars()
        .map(plain)
        .collect::<String>();
    let open = servers::is_unencrypted(&to.origin).then(|| {
        view! { <span class="note">"This server is called unencrypted: others on the way could read the key."</span> }
    });
    let held = to.clone();
    let key = move || keys.with(|keys| keys.of(&held).unwrap_or_default().to_owned());
    let typed = move |event: web_sys::Event| keys.set(&to, event_target_value(&event).trim());
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <input id=id type="password" autocomplete="off" prop:value=key on:input=typed/>
            {open}
        </div>
    }
}
