//! An address that leads nowhere.

use leptos::prelude::*;
use leptos_router::components::A;

/// Says so, and where to go.
#[component]
pub fn NotFound() -> impl IntoView {
    view! {
        <div class="page-head">
            <div>
                <h1>"There is no such page"</h1>
                <p>
                    "The address may have been cut short. Runs kept in this browser are listed under "
                    <A href="/runs">"Runs"</A> "."
                </p>
            </div>
        </div>
    }
}
