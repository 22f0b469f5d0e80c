//! The bar above all pages.

use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_location;

use super::address::use_page;
use super::keys::{KeysShown, TabKeys};
use super::theme::Theme;
use crate::storage::runs_of_report;
use crate::team::{Asking, Server, Standing, Team};

/// Brand, pages, who is signed in where people can be, the keys this tab holds, the theme.
#[component]
pub fn Top() -> impl IntoView {
    let theme = expect_context::<Theme>();
    let keys = expect_context::<TabKeys>();
    let KeysShown(shown) = expect_context();
    let held = move || match keys.names() {
        names if names.is_empty() => ": none in this tab".to_owned(),
        names => format!(": {} (this tab only)", names.join(", ")),
    };
    let team = expect_context::<Team>();
    let standing = team.standing();
    let with_team = Memo::new(move |_| standing.with(Standing::is_server) && team.has_accounts());
    let asking = Asking::default();
    view! {
        <header class="top" class:with-team=with_team>
            <A href="/" attr:class="brand">
                <Mark/>
                "Capo"
            </A>
            <nav aria-label="Main">
                <ul>
                    <PageLink href="/study" under="/study" name="New study"/>
                    <PageLink href="/runs" under="/run" name="Runs"/>
                    <PageLink href="/dynamics" under="/dynamics" name="Constraint dynamics"/>
                    <Show when=move || with_team.get()>
                        <PageLink href="/team" under="/team" name="Team"/>
                    </Show>
                </ul>
            </nav>
            <Account standing asking/>
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
        {move || {
            asking.refused.get().map(|why| view! { <p class="banner offline" role="alert">{why}</p> })
        }}
    }
}

/// The same of a report: where several runs of it are compared, and the theme.
#[component]
pub fn ReportTop() -> impl IntoView {
    let theme = expect_context::<Theme>();
    let runs = runs_of_report();
    let compared = (runs.len() > 1).then(|| {
        let address = format!("/compare?runs={}", runs.join(","));
        view! {
            <nav aria-label="Main">
                <ul>
                    <PageLink href=address under="/compare" name="All runs"/>
                </ul>
            </nav>
        }
    });
    view! {
        <header class="top">
            <span class="brand">
                <Mark/>
                "Capo"
            </span>
            {compared}
            <div class="aside">
                <button type="button" on:click=move |_| theme.turn()>
                    "Theme: " {move || theme.get().name()}
                </button>
            </div>
        </header>
    }
}

#[component]
fn PageLink(#[prop(into)] href: String, under: &'static str, name: &'static str) -> impl IntoView {
    let page = use_page();
    let current = move || page.with(|page| page.starts_with(under)).then_some("page");
    view! {
        <li>
            <A href=href attr:aria-current=current>
                {name}
            </A>
        </li>
    }
}

/// Who is signed in, and the way out, or the way in.
#[component]
fn Account(standing: Memo<Standing>, asking: Asking) -> impl IntoView {
    let (page, search) = (use_page(), use_location().search);
    let sign_out = move |_| {
        asking.send(
            async |server: Server| server.sign_out().await,
            move |()| asking.team.left(),
        );
    };
    let sign_in = move || match (page.get(), search.get()) {
        (page, search) if page == "/sign-in" => format!("{page}?{search}"),
        (page, search) if search.is_empty() => door(&page),
        (page, search) => door(&format!("{page}?{search}")),
    };
    move || match standing.get() {
        Standing::SignedIn(myself) => {
            let name = myself.name.clone();
            let name = if asking.team.has_accounts() {
                view! {
                    <A href="/team/account" attr:class="hide-s" attr:title="Your account">
                        {name}
                    </A>
                }
                .into_any()
            } else {
                view! { <span class="hide-s">{name}</span> }.into_any()
            };
            view! {
                <div class="account">
                    {name}
                    <button
                        type="button"
                        aria-disabled=move || asking.disabled()
                        on:click=sign_out
                    >
                        "Sign out"
                        <span class="sr">" " {myself.name}</span>
                    </button>
                </div>
            }
            .into_any()
        }
        Standing::SignedOut => view! {
            <div class="account">
                <A href=sign_in>"Sign in"</A>
            </div>
        }
        .into_any(),
        Standing::Unknown | Standing::Unreached(_) | Standing::NoServer | Standing::NotSetUp => ().into_any(),
    }
}

/// Where one signs in and comes back from.
fn door(from: &str) -> String {
    format!("/sign-in?return={}", js_sys::encode_uri_component(from))
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
