//! Signing in at an OpenID Connect issuer: the way there, and the page on which one comes back.

use capo_api::{Myself, OIDC_RETURN, OidcRedirect, OidcRequest, OidcResponse};
use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};

use super::doors::in_place;
use super::form::Refused;
use super::guard::without_server;
use crate::components::{Message, page_title};
use crate::team::{Asking, Server, Standing, way_back};

/// Under which this tab remembers where it goes on to.
const RETURN: &str = "capo.return";

/// A button that leads to the issuer, where the server knows one.
#[component]
pub(super) fn AtIssuer(
    /// What the button says before the issuer's name.
    words: &'static str,
    /// What one goes there for.
    request: OidcRequest,
) -> impl IntoView {
    let asking = Asking::default();
    let (location, query) = (use_location(), use_query_map());
    let from = move || match location.pathname.get_untracked() {
        path if path == "/sign-in" => query.with_untracked(|query| query.get("return").unwrap_or_default()),
        path => match location.search.get_untracked() {
            search if search.is_empty() => path,
            search => format!("{path}?{search}"),
        },
    };
    let go = move |_| {
        let request = request.clone();
        let ask = async move |server: Server| server.oidc_request(&request).await;
        asking.send(ask, move |OidcRedirect { url }| {
            if let Some(session) = session_storage() {
                // Without it, one comes back to the projects.
                let _ = session.set_item(RETURN, &from());
            }
            // A browser that does not leave shows the same page, and the button can be pressed again.
            let _ = window().location().assign(&url);
        });
    };
    let name = move || asking.team.issuer().unwrap_or_default();
    view! {
        <Show when=move || asking.team.issuer().is_some()>
            <div class="stack close">
                <Refused asking/>
                <div class="row">
                    <button type="button" aria-disabled=move || asking.disabled() on:click=go.clone()>
                        {words}
                        " "
                        {name}
                    </button>
                </div>
            </div>
        </Show>
    }
}

/// Hands what the issuer gave to the server, and goes on to where one came from.
#[component]
pub fn ReturnPage() -> impl IntoView {
    page_title(|| "Sign in".into());
    let asking = Asking::default();
    let standing = asking.team.standing();
    let (query, navigate) = (use_query_map(), use_navigate());
    let part = move |name: &str| query.with_untracked(|query| query.get(name));
    let brought = part("code")
        .zip(part("state"))
        .map(|(code, state)| OidcResponse { code, state });
    let missing = brought.is_none().then(|| without(part("error").as_deref()));
    let brought = StoredValue::new(brought);
    Effect::new(move |_| {
        // What is known of the server by then would come after who has signed in.
        if !standing.with(Standing::is_server) {
            return;
        }
        let Some(response) = brought.try_update_value(Option::take).flatten() else {
            return;
        };
        // The browser keeps the code nowhere.
        navigate(OIDC_RETURN, in_place());
        let navigate = navigate.clone();
        let ask = async move |server: Server| server.oidc_response(&response).await;
        asking.send(ask, move |myself: Myself| {
            asking.team.entered(myself);
            navigate(&remembered(), in_place());
        });
    });
    let back = || view! { <p><A href=remembered()>"Go back"</A></p> };
    view! {
        <div class="page-head">
            <h1>"Sign in"</h1>
        </div>
        {move || {
            let standing = standing.get();
            match (missing.clone().or_else(|| asking.refused.get()), standing.is_server()) {
                (Some(what), _) => Some(view! { <Message what>{back()}</Message> }.into_any()),
                (None, true) => Some(view! { <p class="empty">"Asking the server."</p> }.into_any()),
                (None, false) => without_server(&standing),
            }
        }}
    }
}

/// Why one comes back with nothing; `error` as the issuer says it in the address, where anybody could write anything.
fn without(error: Option<&str>) -> String {
    let is_code = |error: &&str| {
        error
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    match error.filter(is_code) {
        Some("access_denied") => "The identity provider did not let you through, or you turned back.".into(),
        Some(error) => format!("The identity provider did not let you through ({error})."),
        None => {
            "Nothing came back from the identity provider, or this page was loaded anew. Begin again.".into()
        }
    }
}

/// Where this tab goes on to.
fn remembered() -> String {
    let kept = session_storage().and_then(|session| session.get_item(RETURN).ok()?);
    way_back(&kept.unwrap_or_default()).to_owned()
}

fn session_storage() -> Option<web_sys::Storage> {
    window().session_storage().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn only_codes_of_the_address_are_shown() {
        assert!(without(Some("login_required")).contains("(login_required)"));
        let foreign = without(Some("<b>Call this number"));
        assert_eq!(foreign, without(None));
    }
}
