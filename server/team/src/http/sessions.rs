//! Signing in and out.

use axum::extract::State;
use axum::http::StatusCode;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use capo_api::{Credentials, FirstAdmin, Myself, SessionShown};

use super::Server;
use super::caller::{Caller, Visitor, cookie_name};
use super::extract::{Json, Path, moment};
use super::problem::Refusal;
use crate::password;
use crate::secret::{Secret, is_same};
use crate::store::{Member, Millis, StoreError};

/// Attempts that cost no wait: at one name from one network, and at any from one network, where many people may be.
const OF_NAME: i64 = 5;
const OF_ADDRESS: i64 = 30;

/// In place of a name that nobody has.
pub(super) const NO_NAME: &str = "nobody's name";

/// Makes the first administrator and signs them in.
#[utoipa::path(
    post, path = "/api/set-up", operation_id = "set_up", request_body = FirstAdmin,
    responses((status = 201, body = Myself))
)]
pub(super) async fn set_up(
    State(server): State<Server>,
    visitor: Visitor,
    jar: CookieJar,
    Json(first): Json<FirstAdmin>,
) -> Result<(StatusCode, CookieJar, Json<Myself>), Refusal> {
    if server.store().is_set_up().await? {
        return Err(StoreError::SetUp.into());
    }
    let expected = server.0.set_up.as_ref().map(|set_up| set_up.0.reveal());
    if !expected.is_some_and(|secret| is_same(secret.as_bytes(), first.secret.as_bytes())) {
        return Err(Refusal::forbidden(
            "This is not the secret of the link that the server printed at its last start.",
        ));
    }
    let name = first.name.as_str().to_owned();
    password::check(&first.password, &name)?;
    let hash = server.hashed(first.password).await?;
    let member = server.store().set_up(&visitor.actor(&name), &name, &hash).await?;
    let jar = enter(&server, &visitor, jar, &member).await?;
    Ok((StatusCode::CREATED, jar, Json(myself(member))))
}

/// Signs a browser in.
#[utoipa::path(
    post, path = "/api/session", operation_id = "sign_in", request_body = Credentials,
    responses((status = 201, body = Myself))
)]
pub(super) async fn sign_in(
    State(server): State<Server>,
    visitor: Visitor,
    jar: CookieJar,
    Json(credentials): Json<Credentials>,
) -> Result<(StatusCode, CookieJar, Json<Myself>), Refusal> {
    let name = credentials.name.as_str().to_owned();
    let of_name = format!("{name} from {}", visitor.network());
    let keys = [(of_name, OF_NAME), of_address(&visitor)];
    attempted(&server, &keys, visitor.at).await?;
    let found = server.store().credentials(&name).await?;
    // Who has mistaken the fields has typed a password there.
    let known = if found.is_some() { &name } else { NO_NAME };
    let (member, kept) = found.map_or((None, None), |(member, kept)| (Some(member), kept));
    let is_right = server
        .hashing(move || password::verify(&credentials.password, kept.as_deref()))
        .await?;
    let Some(member) = member.filter(|member| is_right && member.disabled_at.is_none()) else {
        refused(&server, &visitor, known).await?;
        return Err(Refusal::wrong_password());
    };
    server.store().forget_attempts(&keys[0].0, true).await?;
    server.store().forget_attempts(&keys[1].0, false).await?;
    let jar = enter(&server, &visitor, jar, &member).await?;
    Ok((StatusCode::CREATED, jar, Json(myself(member))))
}

/// Notes that somebody, whoever it was, was not let in under a name.
pub(super) async fn refused(server: &Server, visitor: &Visitor, name: &str) -> Result<(), StoreError> {
    tracing::warn!(name, address = visitor.address, "a sign-in was refused");
    let nobody = visitor.actor("not signed in");
    server.store().record_refusal(&nobody, name).await
}

/// By what attempts from somewhere are counted, and how many cost no wait.
pub(super) fn of_address(visitor: &Visitor) -> (String, i64) {
    (format!("from {}", visitor.network()), OF_ADDRESS)
}

/// Counts an attempt to sign in under each key, unless one of them has to wait.
pub(super) async fn attempted(server: &Server, keys: &[(String, i64)], at: Millis) -> Result<(), Refusal> {
    for (key, free) in keys {
        if let Some(wait) = server.store().attempt(key, *free, at).await? {
            return Err(Refusal::throttled((wait as u64).div_ceil(1000)));
        }
    }
    Ok(())
}

/// Signs this browser out.
#[utoipa::path(
    delete, path = "/api/session", operation_id = "sign_out", security(("session" = [])), responses((status = 204))
)]
pub(super) async fn sign_out(
    State(server): State<Server>,
    caller: Caller,
    jar: CookieJar,
) -> Result<(StatusCode, CookieJar), Refusal> {
    caller.in_person()?;
    let session = caller.session().ok_or_else(Refusal::signed_out)?;
    server
        .store()
        .end_session(&caller.actor(), &caller.member, session)
        .await?;
    Ok((
        StatusCode::NO_CONTENT,
        jar.remove(
            Cookie::build(cookie_name(&server))
                .path("/")
                .secure(server.is_secure()),
        ),
    ))
}

/// The browsers in which one is signed in.
#[utoipa::path(
    get, path = "/api/sessions", operation_id = "sessions", security(("session" = [])),
    responses((status = 200, body = Vec<SessionShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<SessionShown>>, Refusal> {
    caller.in_person()?;
    let sessions = server.store().sessions(&caller.member, caller.visitor.at).await?;
    let shown = sessions.into_iter().map(|session| SessionShown {
        is_current: caller.session() == Some(&session.id),
        id: session.id,
        created_at: moment(session.created_at),
        seen_at: moment(session.seen_at),
        expires_at: moment(session.expires_at),
        address: session.address,
        browser: session.browser,
    });
    Ok(Json(shown.collect()))
}

/// Signs one of one's browsers out.
#[utoipa::path(
    delete, path = "/api/sessions/{id}", operation_id = "end_session", params(("id" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn end(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.in_person()?;
    server
        .store()
        .end_session(&caller.actor(), &caller.member, &id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn myself(member: Member) -> Myself {
    Myself {
        name: member.name,
        is_admin: member.is_admin,
        has_password: member.has_password,
    }
}

/// Starts a session, always one of a new secret: a cookie that somebody else put into the browser opens nothing.
pub(super) async fn enter(
    server: &Server,
    visitor: &Visitor,
    jar: CookieJar,
    member: &Member,
) -> Result<CookieJar, Refusal> {
    let secret = Secret::new("");
    let actor = visitor.actor(&member.name);
    server
        .store()
        .sign_in(&actor, member, &secret, &visitor.browser)
        .await?;
    let cookie = Cookie::build((cookie_name(server), secret.reveal().to_owned()))
        .path("/")
        .http_only(true)
        .secure(server.is_secure())
        .same_site(SameSite::Lax)
        .permanent();
    Ok(jar.add(cookie))
}
