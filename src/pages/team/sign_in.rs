//! Signing in.

use capo_api::{Credentials, MemberName, OidcRequest};
use leptos::prelude::*;

use super::form::{Field, Form, Line, named, password};
use super::issuer::AtIssuer;
use crate::team::{Asking, Server};

/// Name and password, or the issuer; where there are no accounts, name and token.
#[component]
pub(super) fn SignInForm() -> impl IntoView {
    let asking = Asking::default();
    let (name, secret) = (Line::default(), Line::default());
    let submit = move || {
        let (Some(name), Some(password)) = (name.read(named::<MemberName>), secret.read(password)) else {
            return;
        };
        let team = asking.team;
        let sign_in = async move |server: Server| {
            let myself = server.sign_in(&Credentials { name, password }).await?;
            team.entered(myself);
            Ok(())
        };
        asking.send(sign_in, |()| ());
    };
    let words = move || {
        if asking.team.has_accounts() {
            "Password"
        } else {
            "Token"
        }
    };
    view! {
        <section class="plate door" aria-label="Sign in">
            <AtIssuer words="Sign in with" request=OidcRequest::SignIn/>
            <Form asking words=("Sign in", "Signing in…") primary=true submit>
                <Field id="name" label="Name" line=name autocomplete="username"/>
                <Field id="password" label=words() line=secret kind="password" autocomplete="current-password"/>
            </Form>
        </section>
    }
}
