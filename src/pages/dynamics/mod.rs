//! Constraint dynamics: how multipliers respond, for teaching and demonstrating.
//!
//! Both sides are real searches of the built-in help desk on simulated models, each in a worker of
//! its own, on the same random stream; nothing here is drawn that was not measured.

mod behaviour;
mod figures;
mod knobs;
mod setting;
mod side;
mod transport;

#[cfg(test)]
mod tests;

use leptos::prelude::*;

use self::setting::SCENES;
use self::side::{Side, SidePlate};
use self::transport::{Playback, Transport};
use crate::components::page_title;

/// Two settings side by side, round by round.
#[component]
pub fn DynamicsPage() -> impl IntoView {
    page_title(|| "Constraint dynamics".into());
    let [a, b] = SCENES[0].settings;
    let (a, b) = (Side::new("A", a), Side::new("B", b));
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
