//! Pages for who is signed in, and what stands there for others.

use capo_api::Myself;
use leptos::prelude::*;
use leptos_router::components::A;

use super::sign_in::SignInForm;
use crate::components::{Message, page_title};
use crate::team::{Standing, Team};

/// A page of the team: its title, the way to the others, and what it shows to who is signed in.
#[component]
pub(super) fn TeamPage<S>(#[prop(into)] title: Signal<String>, show: S) -> impl IntoView
where
    S: Fn(Myself) -> AnyView + Send + Sync + 'static,
{
    page_title(move || title.get());
    let team = expect_context::<Team>();
    let standing = team.standing();
    // The way to other projects stands above what is shown, and would move it.
    let is_ready = Memo::new(move |_| team.knows_projects());
    view! {
        <div class="page-head">
            <h1>{title}</h1>
            {move || standing.with(|standing| match standing {
                Standing::SignedIn(myself) if team.has_accounts() => Some(view! { <TeamNav is_admin=myself.is_admin/> }),
                _ => None,
            })}
        </div>
        {move || match standing.get() {
            Standing::SignedIn(_) if !team.has_accounts() => elsewhere().into_any(),
            Standing::SignedIn(_) if !is_ready.get() => without_server(&Standing::Unknown).into_any(),
            Standing::SignedIn(myself) => show(myself),
            Standing::SignedOut => view! { <SignInForm/> }.into_any(),
            other => without_server(&other).into_any(),
        }}
    }
}

/// What stands in place of a page where there are no accounts.
fn elsewhere() -> impl IntoView {
    view! {
        <Message what="Members, projects and keys are configured where this page is hosted." info=true>
            <p>
                <A href="/runs">"Runs"</A>
            </p>
        </Message>
    }
}

/// Projects, one's account, the server.
#[component]
fn TeamNav(is_admin: bool) -> impl IntoView {
    view! {
        <nav class="subnav" aria-label="Team">
            <A href="/team" exact=true>
                "Projects"
            </A>
            <A href="/team/account">"Account"</A>
            {is_admin.then(|| view! { <A href="/team/server">"Server"</A> })}
        </nav>
    }
}

/// What stands in place of a page where nobody can sign in.
pub(super) fn without_server(standing: &Standing) -> Option<AnyView> {
    let team = expect_context::<Team>();
    let retry = matches!(standing, Standing::Unreached(_)).then(|| {
        view! {
            <div class="row">
                <button type="button" on:click=move |_| team.find_out()>
                    "Try again"
                </button>
            </div>
        }
    });
    match (standing, words(standing)) {
        (Standing::Unknown, _) => Some(view! { <p class="empty">"Asking the server."</p> }.into_any()),
        (_, Some((what, then))) => {
            let info = *standing == Standing::NoServer;
            Some(view! { <Message what info><p>{then}</p> {retry}</Message> }.into_any())
        }
        (_, None) => None,
    }
}

/// Why nobody can sign in, and what to do.
fn words(standing: &Standing) -> Option<(String, &'static str)> {
    match standing {
        Standing::Unreached(why) => Some((
            why.clone(),
            "What is kept in this browser is here all the same: studies, runs, their journals.",
        )),
        Standing::NoServer => Some((
            "No team server stands behind this page.".into(),
            "Runs are kept in this browser. A team runs a server for itself by capo serve, which brings this page along.",
        )),
        Standing::NotSetUp => Some((
            "This server has no members yet.".into(),
            "Follow the link that it printed when it was started: it makes the first administrator.",
        )),
        Standing::Unknown | Standing::SignedOut | Standing::SignedIn(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_can_sign_in_the_page_says_why() {
        for standing in [Standing::NoServer, Standing::NotSetUp] {
            assert!(words(&standing).is_some_and(|(what, then)| what.ends_with('.') && then.ends_with('.')));
        }
        let why = "The server was not reached: no answer came.";
        let (what, _) = words(&Standing::Unreached(why.into())).unwrap();
        assert_eq!(what, why);
        assert_eq!(words(&Standing::SignedOut), None);
    }
}
