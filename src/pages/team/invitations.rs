//! Invitations: links by which people make their accounts.

use std::rc::Rc;

use capo_api::{ClientError, InvitationMade, InvitationShown};
use leptos::prelude::*;

use super::form::Form;
use super::list::{List, Listing, when};
use super::once::Once;
use super::removal::Removal;
use crate::team::{Asking, Server};

/// The open ones, and another; what it is to is chosen in the children.
#[component]
pub(super) fn Invitations<L, M, W>(
    list: L,
    make: M,
    /// Takes the one of an id back.
    withdraw: W,
    children: Children,
) -> impl IntoView
where
    L: AsyncFn(Server) -> Result<Vec<InvitationShown>, ClientError> + 'static,
    M: AsyncFn(Server) -> Result<InvitationMade, ClientError> + Clone + Send + 'static,
    W: AsyncFn(Server, String) -> Result<(), ClientError> + 'static,
{
    let listing = Listing::new(|invitation: &InvitationShown| invitation.id.clone(), list);
    let withdraw = StoredValue::new_local(Rc::new(withdraw));
    let cells = move |invitation: InvitationShown| {
        let gone = listing.without(&invitation);
        let (id, by) = (invitation.id, invitation.invited_by);
        let remove = async move |server: Server| withdraw.get_value()(server, id.clone()).await;
        let to = match invitation.role {
            Some(role) => role.as_str(),
            None if invitation.is_admin => "administrator of the server",
            None => "member of the server",
        };
        let of = format!("the invitation by {by}");
        let consequence = "Its link opens nothing from then on.";
        let button = view! { <Removal words=("Withdraw", "Withdrawing…") of consequence remove gone/> };
        let (made, until) = (when(invitation.created_at), when(invitation.expires_at));
        vec![to.into_any(), by.into_any(), made, until, button.into_any()]
    };
    let asking = Asking::default();
    let secret = RwSignal::new(None::<String>);
    let submit = move || {
        secret.set(None);
        asking.send(make.clone(), move |made: InvitationMade| {
            // What stands in the link leads to this page's own host.
            let host = window().location().origin().unwrap_or_default();
            secret.set(Some(format!("{host}{}", made.link)));
        });
    };
    let columns = &["As", "By", "Made", "Until", ""];
    let what = "Send this link to whom you invite. It serves once, and is not shown again.";
    view! {
        <List id="invitations" title="Open invitations" listing columns empty="None is open." cells>
            <h3>"Invite somebody without an account"</h3>
            <Form asking words=("Make a link", "Making it…") submit>
                {children()}
            </Form>
            <Once what label="Link of the invitation" secret/>
        </List>
    }
}
