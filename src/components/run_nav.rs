//! The second level of navigation, inside a run.

use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_location;

use crate::live::Run;

/// Live, Candidates, Result.
#[component]
pub fn RunNav(
    /// Of which run.
    run: Run,
) -> impl IntoView {
    let location = use_location();
    let base = format!("/run/{}", run.id());
    let link = move |name: &'static str, href: String| {
        let own = href.clone();
        let current = move || {
            location.pathname.with(|path| {
                let here = match name {
                    "Candidates" => path.contains("/candidate"),
                    _ => path.ends_with(&own),
                };
                here.then_some("page")
            })
        };
        view! {
            <A href=href attr:aria-current=current>
                {name}
            </A>
        }
    };
    view! {
        <nav class="subnav" aria-label="This run">
            {link("Live", base.clone())} {link("Candidates", format!("{base}/candidate"))}
            {link("Result", format!("{base}/result"))}
        </nav>
    }
}
