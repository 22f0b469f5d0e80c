//! Pages by which one comes in: by name and password, or by a link with a secret.

use capo_api::{FirstAdmin, MemberName, NewMember, OidcRequest};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};

use super::form::{Field, Form, Line, NewPassword, NewPasswordFields, named};
use super::guard::without_server;
use super::issuer::AtIssuer;
use super::sign_in::SignInForm;
use crate::components::{Message, page_title};
use crate::team::{Asking, Server, Standing, Team, way_back};

/// Signs in and goes on to the page that the address asks for.
#[component]
pub fn SignInPage() -> impl IntoView {
    page_title(|| "Sign in".into());
    let standing = expect_context::<Team>().standing();
    let (query, navigate) = (use_query_map(), use_navigate());
    Effect::new(move |_| {
        if matches!(standing.get(), Standing::SignedIn(_)) {
            let asked = query.with_untracked(|query| query.get("return").unwrap_or_default());
            navigate(way_back(&asked), in_place());
        }
    });
    view! {
        <div class="page-head">
            <h1>"Sign in"</h1>
        </div>
        {move || match standing.get() {
            Standing::SignedOut => view! { <SignInForm/> }.into_any(),
            other => without_server(&other).into_any(),
        }}
    }
}

/// In place of the page shown: nobody goes back to it.
pub(super) fn in_place() -> NavigateOptions {
    NavigateOptions {
        replace: true,
        ..NavigateOptions::default()
    }
}

/// Who comes by a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The first administrator.
    FirstAdmin,
    /// Somebody who is invited.
    Invited,
}

/// Makes the first administrator.
#[component]
pub fn SetUpPage() -> impl IntoView {
    view! { <Door who=Who::FirstAdmin/> }
}

/// Makes the account of who is invited.
#[component]
pub fn InvitationPage() -> impl IntoView {
    view! { <Door who=Who::Invited/> }
}

#[component]
fn Door(who: Who) -> impl IntoView {
    let title = match who {
        Who::FirstAdmin => "Set up this server",
        Who::Invited => "Make your account",
    };
    page_title(|| title.to_owned());
    let standing = expect_context::<Team>().standing();
    let secret = use_secret();
    let refused = move |what: &'static str| {
        view! {
            <Message what info=true>
                <p>
                    <A href="/team">"Projects"</A>
                </p>
            </Message>
        }
        .into_any()
    };
    view! {
        <div class="page-head">
            <h1>{title}</h1>
        </div>
        {move || {
            let standing = standing.get();
            match (closed(who, &standing), secret.get()) {
                (Some(why), _) => refused(why),
                (None, Some(secret)) if opens(who, &standing) => view! { <Account who secret/> }.into_any(),
                (None, None) if opens(who, &standing) => {
                    let what = "The link was cut short, or its page was loaded anew: its secret is missing. Follow it again.";
                    view! { <Message what/> }.into_any()
                }
                (None, _) => without_server(&standing).into_any(),
            }
        }}
    }
}

/// Whether accounts are made this way now.
fn opens(who: Who, standing: &Standing) -> bool {
    match who {
        Who::FirstAdmin => *standing == Standing::NotSetUp,
        Who::Invited => *standing == Standing::SignedOut,
    }
}

/// Why none is made here, though there is a server with members.
fn closed(who: Who, standing: &Standing) -> Option<&'static str> {
    match (who, standing) {
        (Who::FirstAdmin, Standing::SignedOut | Standing::SignedIn(_)) => {
            Some("This server is set up already. Sign in, or ask an administrator for an invitation.")
        }
        (Who::Invited, Standing::SignedIn(_)) => Some(
            "You have an account and are signed in. An invitation makes another account: sign out first to follow it. \
             To take part in one more project, have an admin of it add you by your name.",
        ),
        _ => None,
    }
}

/// What stands behind `#` in the address. It is taken out of the address at once, so that the browser keeps it nowhere.
fn use_secret() -> RwSignal<Option<String>> {
    let (location, navigate) = (use_location(), use_navigate());
    let found = move |hash: &String| {
        let found = hash.trim_start_matches('#');
        (!found.is_empty()).then(|| found.to_owned())
    };
    let secret = RwSignal::new(location.hash.with_untracked(found));
    Effect::new(move |_| {
        if let Some(found) = location.hash.with(found) {
            secret.set(Some(found));
            let path = location.pathname.get_untracked();
            let whole = NavigateOptions {
                resolve: false,
                scroll: false,
                ..in_place()
            };
            navigate(&path, whole);
        }
    });
    secret
}

/// Name and password of a new account.
#[component]
fn Account(who: Who, secret: String) -> impl IntoView {
    let asking = Asking::default();
    let navigate = use_navigate();
    let (name, new_password) = (Line::default(), NewPassword::default());
    let join = OidcRequest::Join {
        secret: secret.clone(),
    };
    let at_issuer = (who == Who::Invited).then(|| view! { <AtIssuer words="Join with" request=join/> });
    let submit = move || {
        let (Some(name), Some(password)) = (name.read(named::<MemberName>), new_password.read()) else {
            return;
        };
        let (secret, team, navigate) = (secret.clone(), asking.team, navigate.clone());
        let enter = async move |server: Server| {
            let myself = match who {
                Who::FirstAdmin => {
                    server
                        .set_up(&FirstAdmin {
                            secret,
                            name,
                            password,
                        })
                        .await?
                }
                Who::Invited => {
                    server
                        .follow_invitation(&NewMember {
                            secret,
                            name,
                            password,
                        })
                        .await?
                }
            };
            team.entered(myself);
            navigate("/team", in_place());
            Ok(())
        };
        asking.send(enter, |()| ());
    };
    let words = match who {
        Who::FirstAdmin => ("Set up", "Setting up…"),
        Who::Invited => ("Make the account", "Making it…"),
    };
    view! {
        <section class="plate door" aria-label="Your account">
            {at_issuer}
            <Form asking words primary=true submit>
                <Field
                    id="name"
                    label="Name"
                    line=name
                    autocomplete="username"
                    note="What you will sign in with: 2 to 64 letters (a to z), digits or . _ - @ +"
                />
                <NewPasswordFields password=new_password/>
            </Form>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use capo_api::Myself;

    use super::*;

    #[test]
    fn each_link_opens_at_its_time_only() {
        let here = Standing::SignedIn(Myself {
            name: "ada".into(),
            is_admin: true,
            has_password: true,
        });
        for (standing, first, invited) in [
            (Standing::NotSetUp, true, false),
            (Standing::SignedOut, false, true),
            (here, false, false),
            (Standing::Unknown, false, false),
            (Standing::NoServer, false, false),
        ] {
            assert_eq!(opens(Who::FirstAdmin, &standing), first, "{standing:?}");
            assert_eq!(opens(Who::Invited, &standing), invited, "{standing:?}");
            assert!(!opens(Who::FirstAdmin, &standing) || closed(Who::FirstAdmin, &standing).is_none());
            assert!(!opens(Who::Invited, &standing) || closed(Who::Invited, &standing).is_none());
        }
    }
}
