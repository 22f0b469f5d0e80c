//! Constraint dynamics: how multipliers respond, for teaching and demonstrating.
//!
//! Both sides are real searches of the built-in help desk on simulated models, each in a worker of
//! its own, on the same random stream; nothing here is drawn that was not measured.

mod address;
mod behaviour;
mod figures;
mod knobs;
mod setting;
mod side;
mod transport;

#[cfg(test)]
mod tests;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};
use leptos_router::params::ParamsMap;

use self::address::LETTERS;
use self::side::{REST, Side, SidePlate};
use self::transport::{Playback, Transport};
use crate::components::page_title;

/// Two settings side by side, round by round.
#[component]
pub fn DynamicsPage() -> impl IntoView {
    page_title(|| "Constraint dynamics".into());
    let query = use_query_map();
    let read = |query: &ParamsMap| address::read(|key| query.get(key));
    let [a, b] = query.with_untracked(read);
    let (a, b) = (Side::new(LETTERS[0], a), Side::new(LETTERS[1], b));
    keep_in_address(a, b);
    // Whoever follows a link to other settings, or goes back to them, stays on this page.
    Effect::new(move |before: Option<()>| {
        let settings = query.with(read);
        if before.is_some() {
            for (side, setting) in [a, b].into_iter().zip(settings) {
                if side.setting.get_untracked() != setting {
                    side.setting.set(setting);
                }
            }
        }
    });
    let playback = Playback::new([a, b]);
    provide_context(playback);
    let shown = Memo::new(move |_| playback.shown.get());
    view! {
        <div class="page-head">
            <div>
                <h1>"Constraint dynamics"</h1>
                <p>
                    "How multipliers respond to a violated, a satisfied and an unattainable threshold. Two \
                     settings search the built-in help desk on the same random stream."
                </p>
            </div>
            <span class="tag solid">"Simulated models, not a real agent"</span>
        </div>
        <Transport/>
        <div class="settings">
            <SidePlate side=a other=b is_first=true shown/>
            <SidePlate side=b other=a is_first=false shown/>
        </div>
    }
}

/// Has the address follow what is turned, once it rests.
fn keep_in_address(a: Side, b: Side) {
    let navigate = use_navigate();
    let rest = StoredValue::new_local(None::<Timeout>);
    Effect::new(move |before: Option<()>| {
        let href = address::href([a.setting.get(), b.setting.get()]);
        let navigate = navigate.clone();
        let keep = move || {
            let options = NavigateOptions {
                replace: true,
                scroll: false,
                ..NavigateOptions::default()
            };
            navigate(&href, options);
        };
        rest.set_value(before.map(|()| Timeout::new(REST, keep)));
    });
}
