//! The bar above all pages.

use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_location;

use super::keys::{KeysShown, TabKeys};
use super::theme::Theme;

/// Brand, pages, the keys this tab holds, the theme.
#[component]
pub fn Top() -> impl IntoView {
    let theme = expect_context::<Theme>();
    let keys = expect_context::<TabKeys>();
    let KeysShown(shown) = expect_context();
    let held = move || match keys.names() {
        names if names.is_empty() => ": none in this tab".to_owned(),
        names => format!(": {} (this tab only)", names.join(", ")),
    };
    view! {
        <header class="top">
            <A href="/" attr:class="brand">
                <Mark/>
                "Capo"
            </A>
            <nav aria-label="Main">
                <ul>
                    <PageLink href="/study" under="/study" name="New study"/>
                    <PageLink href="/runs" under="/run" name="Runs"/>
                    <PageLink href="/dynamics" under="/dynamics" name="Constraint dynamics"/>
                </ul>
            </nav>
            <div class="aside">
                <button type="button" aria-haspopup="dialog" on:click=move |_| shown.set(true)>
                    "Keys"
                    <span class="hide-s">{held}</span>
                </button>
                <button type="button" on:click=move |_| theme.turn()>
                    "Theme: " {move || theme.get().name()}
                </button>
            </div>
        </header>
    }
}

#[component]
fn PageLink(href: &'static str, under: &'static str, name: &'static str) -> impl IntoView {
    let location = use_location();
    let current = move || {
        location
            .pathname
            .with(|path| path.contains(under))
            .then_some("page")
    };
    view! {
        <li>
            <A href=href attr:aria-current=current>
                {name}
            </A>
        </li>
    }
}

/// The brand's mark: a capo across three strings.
#[component]
fn Mark() -> impl IntoView {
    view! {
        <svg viewBox="0 0 26 20" aria-hidden="true">
            <path d="M0 3.5H26M0 10H26M0 16.5H26" stroke="currentColor" stroke-width="1.2" fill="none"/>
            <path d="M17 0V20" stroke="var(--accent)" stroke-width="3.4"/>
        </svg>
    }
}
