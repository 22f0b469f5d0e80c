//! The second level of navigation, inside a run.

use leptos::prelude::*;
use leptos_router::components::A;

use crate::live::Run;

/// Live, Candidates, Result.
#[component]
pub fn RunNav(
    /// Of which run.
    run: Run,
) -> impl IntoView {
    let base = format!("/run/{}", run.id());
    // The link of the page shown says so itself; every page of a run begins with the live page's address.
    view! {
        <nav class="subnav" aria-label="This run">
            <A href=base.clone() exact=true>
                "Live"
            </A>
            <A href=format!("{base}/candidate")>"Candidates"</A>
            <A href=format!("{base}/result")>"Result"</A>
        </nav>
    }
}
