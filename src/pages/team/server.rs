//! The server: who has an account on it, which keys it shares, and what was done.

use capo_api::{MemberChange, MemberShown, Myself, NewInvitation};
use leptos::prelude::*;

use super::audit::AuditLog;
use super::form::Refused;
use super::guard::TeamPage;
use super::invitations::Invitations;
use super::keys::Keys;
use super::list::{List, Listing, when};
use crate::components::Message;
use crate::team::{Asking, Server};

/// For administrators of the server.
#[component]
pub fn ServerPage() -> impl IntoView {
    let show = |myself: Myself| {
        if myself.is_admin {
            decisions(myself).into_any()
        } else {
            view! { <Message what="This page is for administrators of the server." info=true/> }.into_any()
        }
    };
    view! { <TeamPage title="Server" show/> }
}

fn decisions(myself: Myself) -> impl IntoView {
    let is_admin = RwSignal::new(false);
    let list = async |server: Server| server.invitations().await;
    let make = async move |server: Server| {
        let is_admin = is_admin.get_untracked();
        server.invite(&NewInvitation { is_admin }).await
    };
    let withdraw = async |server: Server, id: String| server.withdraw_invitation(&id).await;
    let read = async |server: Server, before| server.audit(before).await;
    let change = move |event| is_admin.set(event_target_checked(&event));
    view! {
        <Members myself/>
        <Invitations list make withdraw>
            <label class="choice">
                <input type="checkbox" prop:checked=move || is_admin.get() on:change=change/>
                <span>"To administer the server"</span>
            </label>
        </Invitations>
        <Keys/>
        <AuditLog read/>
    }
}

#[component]
fn Members(myself: Myself) -> impl IntoView {
    let key = |member: &MemberShown| member.name.clone();
    let listing = Listing::new(key, async |server: Server| server.members().await);
    let cells = move |member: MemberShown| {
        let asking = Asking::default();
        let (name, since) = (member.name.clone(), when(member.created_at.clone()));
        let is_me = name == myself.name;
        let member = listing.row(member);
        let switch = move |label: String,
                           is_on: fn(&MemberShown) -> bool,
                           change: fn(bool) -> MemberChange| {
            let checked = move || {
                // What was refused is taken back.
                asking.refused.track();
                member.with(is_on)
            };
            let turn = move |event| {
                let change = change(event_target_checked(&event));
                let name = member.with_untracked(|member| member.name.clone());
                let request = async move |server: Server| server.change_member(&name, &change).await;
                asking.send(request, move |MemberShown { name, is_admin, .. }| {
                    if is_me {
                        asking.team.entered(Myself {
                            name,
                            is_admin,
                            has_password: myself.has_password,
                        });
                    }
                });
            };
            view! { <label class="hit"><input type="checkbox" aria-label=label prop:checked=checked on:change=turn/></label> }
        };
        let administers = switch(
            format!("{name} administers the server"),
            |member| member.is_admin,
            |is_on| MemberChange {
                is_admin: Some(is_on),
                is_disabled: None,
            },
        );
        let signs_in = (!is_me).then(|| {
            switch(
                format!("{name} may sign in"),
                |member| member.disabled_at.is_none(),
                |is_on| MemberChange {
                    is_admin: None,
                    is_disabled: Some(!is_on),
                },
            )
        });
        let barred = move || {
            let at = member.with(|member| member.disabled_at.clone());
            at.map(|at| view! { "not since " {when(at)} })
        };
        let name = format!("{name}{}", if is_me { " (you)" } else { "" });
        let administers = view! { {administers} <Refused asking/> };
        let signs_in = view! { {signs_in} {barred} };
        vec![
            name.into_any(),
            since,
            administers.into_any(),
            signs_in.into_any(),
        ]
    };
    let columns = &["Name", "Since", "Administers the server", "May sign in"];
    view! { <List id="members" title="Members" listing columns empty="None." cells/> }
}
