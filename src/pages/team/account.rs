//! One's own account.

use capo_api::{
    IdentityShown, NewToken, OidcRequest, PasswordChange, Scope, SessionShown, Title, TokenMade, TokenShown,
};
use leptos::prelude::*;

use super::form::{Field, Form, Line, NewPassword, NewPasswordFields, Pick, named, password};
use super::guard::TeamPage;
use super::issuer::AtIssuer;
use super::list::{List, Listing, when};
use super::once::Once;
use super::removal::Removal;
use crate::components::is_past;
use crate::format::{NOTHING, typed};
use crate::team::{Asking, Server, Team, scope_means};

/// Days that a token lives at most.
const MOST_DAYS: u32 = 366;

/// Password, identities, signed-in browsers, tokens.
#[component]
pub fn AccountPage() -> impl IntoView {
    view! {
        <TeamPage
            title="Account"
            show=|myself| {
                let password = myself.has_password.then(|| view! { <Password name=myself.name/> });
                view! { {password} <Identities/> <Sessions/> <Tokens/> }.into_any()
            }
        />
    }
}

#[component]
fn Password(name: String) -> impl IntoView {
    let asking = Asking::default();
    let (old, new) = (Line::default(), NewPassword::default());
    let said = RwSignal::new("");
    let submit = move || {
        said.set("");
        let (Some(present), Some(next)) = (old.read(password), new.read()) else {
            return;
        };
        let change = PasswordChange {
            old: present,
            new: next,
        };
        let request = async move |server: Server| server.set_password(&change).await;
        asking.send(request, move |()| {
            old.clear();
            new.clear();
            said.set("Changed. All other browsers were signed out.");
        });
    };
    view! {
        <section class="plate" aria-labelledby="password">
            <header>
                <h2 class="pt" id="password">"Password of " {name.clone()}</h2>
            </header>
            <Form asking words=("Change the password", "Changing it…") submit>
                // For password managers: whose it is.
                <input type="text" autocomplete="username" hidden readonly value=name/>
                <Field id="old-password" label="Present password" line=old kind="password" autocomplete="current-password"/>
                <NewPasswordFields password=new/>
                <p class="note" role="status">{said}</p>
            </Form>
        </section>
    }
}

/// By which one signs in at the issuer, where the server knows one.
#[component]
fn Identities() -> impl IntoView {
    let team = expect_context::<Team>();
    let key = |identity: &IdentityShown| identity.id.clone();
    let listing = Listing::new(key, async |server: Server| server.identities().await);
    let cells = move |identity: IdentityShown| {
        let gone = listing.without(&identity);
        let id = identity.id;
        let remove = async move |server: Server| server.unlink_identity(&id).await;
        let of = format!("the identity {}", identity.label);
        let consequence = "It opens this account no more, and all other browsers are signed out.";
        let button = view! { <Removal words=("Unlink", "Unlinking…") of consequence remove gone/> };
        let used = identity.seen_at.map_or(NOTHING.into_any(), when);
        let (label, issuer) = (identity.label.into_any(), identity.issuer.into_any());
        vec![label, issuer, when(identity.created_at), used, button.into_any()]
    };
    let columns = &["Identity", "At", "Since", "Last used", ""];
    view! {
        <Show when=move || team.issuer().is_some()>
            <List id="identities" title="Identities to sign in with" listing columns empty="None." cells>
                <AtIssuer words="Link one at" request=OidcRequest::Link/>
            </List>
        </Show>
    }
}

#[component]
fn Sessions() -> impl IntoView {
    let key = |session: &SessionShown| session.id.clone();
    let listing = Listing::new(key, async |server: Server| server.sessions().await);
    let cells = move |session: SessionShown| {
        let gone = listing.without(&session);
        let id = session.id;
        let end = if session.is_current {
            view! { <span class="tag plain">"this browser"</span> }.into_any()
        } else {
            let remove = async move |server: Server| server.end_session(&id).await;
            let (words, of) = (("Sign out", "Signing out…"), "that browser".to_owned());
            view! { <Removal words of consequence="Whoever uses it signs in again." remove gone/> }.into_any()
        };
        let times = [session.created_at, session.seen_at, session.expires_at].map(when);
        let mut cells = vec![session.browser.into_any(), session.address.into_any()];
        cells.extend(times);
        cells.push(end);
        cells
    };
    let columns = &["Browser", "From", "Since", "Last used", "Until", ""];
    view! { <List id="browsers" title="Signed-in browsers" listing columns empty="None." cells/> }
}

#[component]
fn Tokens() -> impl IntoView {
    let key = |token: &TokenShown| token.id.clone();
    let listing = Listing::new(key, async |server: Server| server.tokens().await);
    let cells = move |token: TokenShown| {
        let gone = listing.without(&token);
        let id = token.id;
        let remove = async move |server: Server| server.withdraw_token(&id).await;
        let of = format!("the token {}", token.name);
        let consequence = "Programs that use it are refused from then on.";
        let button = view! { <Removal words=("Withdraw", "Withdrawing…") of consequence remove gone/> };
        let used = token.seen_at.map_or(NOTHING.into_any(), when);
        let expired =
            is_past(&token.expires_at).then(|| view! { <span class="tag plain">"expired"</span> " " });
        let until = view! { {expired} {when(token.expires_at)} };
        let (name, may, made) = (
            token.name.into_any(),
            token.scope.as_str(),
            when(token.created_at),
        );
        vec![
            name,
            may.into_any(),
            made,
            used,
            until.into_any(),
            button.into_any(),
        ]
    };
    let asking = Asking::default();
    let (name, days) = (Line::default(), Line::default());
    days.text.set("90".into());
    let scope = RwSignal::new(Scope::Read);
    let pick = move |picked| scope.set(picked);
    let secret = RwSignal::new(None::<String>);
    let submit = move || {
        secret.set(None);
        let (Some(title), Some(days)) = (name.read(named::<Title>), days.read(days_of)) else {
            return;
        };
        let scope = scope.get_untracked();
        let new = NewToken {
            name: title,
            scope,
            days,
        };
        let request = async move |server: Server| server.add_token(&new).await;
        asking.send(request, move |made: TokenMade| {
            name.clear();
            secret.set(Some(made.secret));
        });
    };
    let columns = &["Name", "May", "Made", "Last used", "Until", ""];
    let empty = "None. A program sends one as Authorization: Bearer TOKEN.";
    view! {
        <List id="tokens" title="Tokens for programs" listing columns empty cells>
            <h3>"Make a token"</h3>
            <Form asking words=("Make the token", "Making it…") primary=true submit>
                <Field id="token-name" label="Name" line=name note="Such as the program that sends it."/>
                <Pick label="May" id="token-scope" all=&Scope::ALL means=scope_means picked=scope pick/>
                <Field id="token-days" label="Days that it lives" line=days/>
            </Form>
            <Once what="Copy the token now. It is not shown again." label="The token" secret/>
        </List>
    }
}

/// How long a token lives.
fn days_of(text: &str) -> Result<u32, String> {
    match typed::whole(text)? {
        Some(days) if (1.0..=f64::from(MOST_DAYS)).contains(&days) => Ok(days as u32),
        _ => Err(format!("Write a number from 1 to {MOST_DAYS}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::days_of;

    #[test]
    fn a_token_lives_a_year_at_most() {
        assert_eq!(days_of(" 90 "), Ok(90));
        for wrong in ["", "0", "367", "1.5", "ever"] {
            assert!(days_of(wrong).is_err(), "{wrong}");
        }
    }
}
