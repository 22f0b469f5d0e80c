//! An address that leads nowhere.

use leptos::prelude::*;

use crate::components::AllRuns;

/// Says so, and where to go.
#[component]
pub fn NotFound() -> impl IntoView {
    view! {
        <div class="page-head">
            <div>
                <h1>"There is no such page"</h1>
                <p>
                    "The address may have been cut short. " <AllRuns/>
                </p>
            </div>
        </div>
    }
}
