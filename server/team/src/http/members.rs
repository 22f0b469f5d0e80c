//! Members of the server, and invitations to it.

use axum::extract::State;
use axum::http::StatusCode;
use axum_extra::extract::CookieJar;
use capo_api::{
    InvitationMade, InvitationShown, MemberChange, MemberShown, Myself, NewInvitation, NewMember,
    PasswordChange,
};

use super::caller::{Caller, Visitor};
use super::extract::{Json, Path, moment};
use super::problem::Refusal;
use super::{Server, sessions};
use crate::password;
use crate::secret::Secret;
use crate::store::{Invitation, Invited, Member, Millis, StoreError};

/// How long an invitation can be followed.
const INVITED_FOR: Millis = 7 * 24 * 60 * 60 * 1000;

fn shown(member: Member) -> MemberShown {
    MemberShown {
        name: member.name,
        is_admin: member.is_admin,
        created_at: moment(member.created_at),
        disabled_at: member.disabled_at.map(moment),
    }
}

/// All members of the server.
#[utoipa::path(
    get, path = "/api/members", operation_id = "members", security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<MemberShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<MemberShown>>, Refusal> {
    caller.as_admin()?;
    let members = server.store().members().await?;
    Ok(Json(members.into_iter().map(shown).collect()))
}

/// Makes a member an administrator of the server, or none; lets them sign in, or not.
#[utoipa::path(
    patch, path = "/api/members/{name}", operation_id = "change_member", params(("name" = String, Path)),
    request_body = MemberChange, security(("session" = [])), responses((status = 200, body = MemberShown))
)]
pub(super) async fn change(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
    Json(change): Json<MemberChange>,
) -> Result<Json<MemberShown>, Refusal> {
    caller.as_admin_in_person()?;
    if change.is_admin.is_none() && change.is_disabled.is_none() {
        return Err(Refusal::invalid("Say `is_admin` or `is_disabled`."));
    }
    let changed = server
        .store()
        .change_member(&caller.actor(), &name, change.is_admin, change.is_disabled)
        .await?;
    Ok(Json(shown(changed)))
}

/// Replaces one's password. All other browsers are signed out.
#[utoipa::path(
    put, path = "/api/password", operation_id = "set_password", request_body = PasswordChange,
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn set_password(
    State(server): State<Server>,
    caller: Caller,
    Json(change): Json<PasswordChange>,
) -> Result<StatusCode, Refusal> {
    caller.in_person()?;
    let name = caller.member.name.clone();
    let found = server.store().credentials(&name).await?;
    let kept = found.and_then(|(_, kept)| kept);
    let old = change.old;
    if !server
        .hashing(move || password::verify(&old, kept.as_deref()))
        .await?
    {
        return Err(Refusal::forbidden("This is not your present password."));
    }
    password::check(&change.new, &name)?;
    let hash = server.hashed(change.new).await?;
    server
        .store()
        .set_password(&caller.actor(), &caller.member, &hash, caller.session())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn open(invitation: Invitation) -> InvitationShown {
    InvitationShown {
        id: invitation.id,
        role: invitation.role,
        is_admin: invitation.is_admin,
        invited_by: invitation.invited_by,
        created_at: moment(invitation.created_at),
        expires_at: moment(invitation.expires_at),
    }
}

/// Makes an invitation, whatever it is to.
pub(super) async fn invited(
    server: &Server,
    caller: &Caller,
    to: Invited<'_>,
) -> Result<(StatusCode, Json<InvitationMade>), Refusal> {
    let secret = Secret::new("");
    let expires_at = caller.visitor.at + INVITED_FOR;
    let invitation = server
        .store()
        .invite(&caller.actor(), &caller.member, &secret, to, expires_at)
        .await?;
    let made = InvitationMade {
        invitation: open(invitation),
        link: format!("/invitation#{}", secret.reveal()),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// The open invitations to the server.
#[utoipa::path(
    get, path = "/api/invitations", operation_id = "invitations", security(("session" = [])),
    responses((status = 200, body = Vec<InvitationShown>))
)]
pub(super) async fn invitations(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<InvitationShown>>, Refusal> {
    caller.as_admin_in_person()?;
    let invitations = server.store().invitations(None, caller.visitor.at).await?;
    Ok(Json(invitations.into_iter().map(open).collect()))
}

/// Invites somebody to the server, without a project.
#[utoipa::path(
    post, path = "/api/invitations", operation_id = "invite", request_body = NewInvitation,
    security(("session" = [])), responses((status = 201, body = InvitationMade))
)]
pub(super) async fn invite(
    State(server): State<Server>,
    caller: Caller,
    Json(new): Json<NewInvitation>,
) -> Result<(StatusCode, Json<InvitationMade>), Refusal> {
    caller.as_admin_in_person()?;
    let is_admin = new.is_admin;
    invited(&server, &caller, Invited::Server { is_admin }).await
}

/// Takes an invitation to the server back.
#[utoipa::path(
    delete, path = "/api/invitations/{id}", operation_id = "withdraw_invitation", params(("id" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn withdraw_invitation(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.as_admin_in_person()?;
    server
        .store()
        .withdraw_invitation(&caller.actor(), None, &id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follows an invitation and signs the new member in.
#[utoipa::path(
    post, path = "/api/members", operation_id = "follow_invitation", request_body = NewMember,
    responses((status = 201, body = Myself))
)]
pub(super) async fn follow_invitation(
    State(server): State<Server>,
    visitor: Visitor,
    jar: CookieJar,
    Json(new): Json<NewMember>,
) -> Result<(StatusCode, CookieJar, Json<Myself>), Refusal> {
    let secret = Secret::presented(&new.secret);
    // Before any password is hashed for whoever asks.
    if !server.store().is_invited(&secret, visitor.at).await? {
        return Err(StoreError::Missing("invitation").into());
    }
    let name = new.name.as_str().to_owned();
    password::check(&new.password, &name)?;
    let hash = server.hashed(new.password).await?;
    let member = server
        .store()
        .follow_invitation(&visitor.actor(&name), &secret, &name, hash.as_str())
        .await?;
    let jar = sessions::enter(&server, &visitor, jar, &member).await?;
    Ok((StatusCode::CREATED, jar, Json(sessions::myself(member))))
}
