//! Signing in at an OpenID Connect issuer, and the identities by which one does.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use capo_api::{IdentityShown, Myself, OIDC_RETURN, OidcRedirect, OidcRequest, OidcResponse};

use super::Server;
use super::caller::{Caller, Visitor};
use super::extract::{Json, Path, moment};
use super::problem::Refusal;
use super::sessions::{attempted, enter, myself, of_address, refused};
use crate::oidc::{Flow, Oidc, OidcError, Person};
use crate::secret::{Secret, is_same, sha256};
use crate::store::{LinkedIdentity, Member, SignsInBy, StoreError};

/// How long somebody may take at the issuer.
const PATIENCE: Duration = Duration::from_mins(10);

/// The cookie of a browser that is at the issuer, as [`super::caller::COOKIE`].
const COOKIE: &str = "capo_oidc";
const SECURE_COOKIE: &str = "__Host-capo_oidc";

/// How much of what somebody is known by at the issuer is kept of who is refused, in characters.
const MOST_OF_LABEL: usize = 100;

impl Server {
    fn oidc(&self) -> Result<&Oidc, Refusal> {
        let oidc = self.0.oidc.as_ref();
        oidc.ok_or_else(|| Refusal::missing("way to sign in"))
    }

    fn oidc_cookie(&self) -> &'static str {
        if self.is_secure() { SECURE_COOKIE } else { COOKIE }
    }

    /// The page to which the issuer sends people back: at the public URL, else at the address that they see here.
    fn return_page(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        if let Some(url) = &self.0.public_url {
            return Ok(format!("{url}{OIDC_RETURN}"));
        }
        let scheme = if self.is_secure() { "https" } else { "http" };
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host =
            host.ok_or_else(|| Refusal::unreadable(StatusCode::BAD_REQUEST, "The request names no host."))?;
        Ok(format!("{scheme}://{host}{OIDC_RETURN}"))
    }
}

/// What a browser has begun: its secret, from which all follows that the issuer is told, and what it is for.
struct Begun {
    secret: Secret,
    wish: OidcRequest,
}

impl Begun {
    /// What this browser has begun last.
    fn of(server: &Server, jar: &CookieJar) -> Option<Self> {
        let mut parts = jar.get(server.oidc_cookie())?.value().split('.');
        let (wish, secret, invitation) = (parts.next()?, parts.next()?, parts.next());
        let wish = match (wish, invitation) {
            ("sign-in", None) => OidcRequest::SignIn,
            ("link", None) => OidcRequest::Link,
            ("join", Some(secret)) => OidcRequest::Join {
                secret: secret.to_owned(),
            },
            _ => return None,
        };
        Some(Self {
            secret: Secret::presented(secret),
            wish,
        })
    }

    fn cookie(&self, server: &Server) -> Cookie<'static> {
        let secret = self.secret.reveal();
        let value = match &self.wish {
            OidcRequest::SignIn => format!("sign-in.{secret}"),
            OidcRequest::Link => format!("link.{secret}"),
            OidcRequest::Join { secret: invitation } => format!("join.{secret}.{invitation}"),
        };
        Cookie::build((server.oidc_cookie(), value))
            .path("/")
            .http_only(true)
            .secure(server.is_secure())
            .same_site(SameSite::Lax)
            .max_age(PATIENCE.try_into().expect("ten minutes"))
            .build()
    }

    /// What the issuer is told. Of what links an identity to an account the session is a part: nobody can begin it for
    /// somebody else, whatever cookies they could put into a browser.
    fn flow(&self, session: Option<&str>, redirect: String) -> Flow {
        let (secret, session) = (self.secret.reveal(), session.unwrap_or_default());
        let derived = |what: &str| sha256(format!("{what} {secret} {session}").as_bytes());
        Flow {
            state: derived("state"),
            nonce: derived("nonce"),
            verifier: derived("verifier"),
            redirect,
        }
    }
}

/// Who links an identity is signed in; of others it does not matter.
fn linking(wish: &OidcRequest, caller: Result<Caller, Refusal>) -> Result<Option<Caller>, Refusal> {
    if *wish != OidcRequest::Link {
        return Ok(None);
    }
    let caller = caller?;
    caller.in_person()?;
    caller.lately()?;
    Ok(Some(caller))
}

/// Begins to sign in at the issuer, to link an identity there, or to follow an invitation by one.
#[utoipa::path(
    post, path = "/api/oidc/request", operation_id = "oidc_request", request_body = OidcRequest,
    responses((status = 200, body = OidcRedirect))
)]
pub(super) async fn request(
    State(server): State<Server>,
    visitor: Visitor,
    caller: Result<Caller, Refusal>,
    headers: HeaderMap,
    jar: CookieJar,
    Json(wish): Json<OidcRequest>,
) -> Result<(CookieJar, Json<OidcRedirect>), Refusal> {
    let oidc = server.oidc()?;
    let caller = linking(&wish, caller)?;
    if let OidcRequest::Join { secret } = &wish
        && !server
            .store()
            .is_invited(&Secret::presented(secret), visitor.at)
            .await?
    {
        return Err(StoreError::Missing("invitation").into());
    }
    let begun = Begun {
        secret: Secret::new(""),
        wish,
    };
    let session = caller.as_ref().and_then(Caller::session);
    let flow = begun.flow(session, server.return_page(&headers)?);
    let url = oidc.page(&flow, visitor.at).await?;
    Ok((jar.add(begun.cookie(&server)), Json(OidcRedirect { url })))
}

/// Ends what was begun, with what the issuer gave the browser: signs in, or links the identity.
#[utoipa::path(
    post, path = "/api/oidc/response", operation_id = "oidc_response", request_body = OidcResponse,
    responses((status = 200, body = Myself))
)]
pub(super) async fn response(
    State(server): State<Server>,
    visitor: Visitor,
    caller: Result<Caller, Refusal>,
    headers: HeaderMap,
    jar: CookieJar,
    Json(response): Json<OidcResponse>,
) -> Result<(CookieJar, Json<Myself>), Refusal> {
    let oidc = server.oidc()?;
    let not_begun = || {
        Refusal::forbidden(format!(
            "This was not begun in this browser, or more than {} minutes ago. Begin again.",
            PATIENCE.as_secs() / 60
        ))
    };
    let begun = Begun::of(&server, &jar).ok_or_else(not_begun)?;
    let caller = linking(&begun.wish, caller)?;
    let session = caller.as_ref().and_then(Caller::session);
    let flow = begun.flow(session, server.return_page(&headers)?);
    if !is_same(response.state.as_bytes(), flow.state.as_bytes()) {
        return Err(not_begun());
    }
    let address = of_address(&visitor);
    attempted(&server, std::slice::from_ref(&address), visitor.at).await?;
    let person = oidc.identify(response.code, &flow, visitor.at).await?;
    let jar = jar.remove(
        Cookie::build(server.oidc_cookie())
            .path("/")
            .secure(server.is_secure()),
    );
    if let Some(caller) = caller {
        let (actor, member) = (caller.actor(), caller.member);
        server.store().forget_attempts(&address.0, false).await?;
        server.store().link(&actor, &member, &person.identity).await?;
        return Ok((jar, Json(myself(member))));
    }
    let member = match &begun.wish {
        OidcRequest::Join { secret } => joined(&server, &visitor, &person, secret).await?,
        OidcRequest::SignIn | OidcRequest::Link => known(&server, oidc, &visitor, &person).await?,
    };
    // Who is refused has to wait as who guesses passwords: each refusal leaves a line.
    server.store().forget_attempts(&address.0, false).await?;
    server
        .store()
        .touch_identity(&person.identity, visitor.at)
        .await?;
    let jar = enter(&server, &visitor, jar, &member).await?;
    Ok((jar, Json(myself(member))))
}

/// That a member was shut out.
async fn shut_out(server: &Server, visitor: &Visitor, member: &Member) -> Refusal {
    match refused(server, visitor, &member.name).await {
        Ok(()) => Refusal::forbidden("This account may not sign in any more."),
        Err(error) => error.into(),
    }
}

/// The member whom an identity belongs to, or a new one where the issuer's word is enough.
async fn known(server: &Server, oidc: &Oidc, visitor: &Visitor, person: &Person) -> Result<Member, Refusal> {
    let (store, identity) = (server.store(), &person.identity);
    if let Some(member) = store.identified(identity).await? {
        if member.disabled_at.is_some() {
            return Err(shut_out(server, visitor, &member).await);
        }
        return Ok(member);
    }
    whole(person)?;
    // The first account is that of who set the server up.
    if oidc.may_join(person) && store.is_set_up().await? {
        // Who was shut out does not come in again under another name.
        match store.member(&person.name()).await {
            Ok(member) if member.disabled_at.is_some() => {
                return Err(shut_out(server, visitor, &member).await);
            }
            Ok(_) | Err(StoreError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let name = store.free_name(&person.name()).await?;
        let by = SignsInBy::Identity(identity);
        return Ok(store.add_member(&visitor.actor(&name), &name, by, false).await?);
    }
    let label: String = identity.label.chars().take(MOST_OF_LABEL).collect();
    refused(server, visitor, &label).await?;
    Err(Refusal::forbidden(format!(
        "No account here belongs to {}. Follow an invitation; or, if you have an account, sign in with its password and link \
         this identity on its page.",
        identity.label
    )))
}

/// Of whom nothing is known but what the issuer says, it must have said all.
fn whole(person: &Person) -> Result<(), Refusal> {
    if person.is_whole {
        Ok(())
    } else {
        Err(Refusal::issuer())
    }
}

/// A new member by an invitation.
async fn joined(
    server: &Server,
    visitor: &Visitor,
    person: &Person,
    invitation: &str,
) -> Result<Member, Refusal> {
    whole(person)?;
    let name = server.store().free_name(&person.name()).await?;
    let (actor, secret) = (visitor.actor(&name), Secret::presented(invitation));
    let by = SignsInBy::Identity(&person.identity);
    Ok(server
        .store()
        .follow_invitation(&actor, &secret, &name, by)
        .await?)
}

fn shown(linked: LinkedIdentity) -> IdentityShown {
    IdentityShown {
        id: linked.id,
        issuer: linked.identity.issuer,
        label: linked.identity.label,
        created_at: moment(linked.created_at),
        seen_at: linked.seen_at.map(moment),
    }
}

/// The identities by which one signs in.
#[utoipa::path(
    get, path = "/api/identities", operation_id = "identities", security(("session" = [])),
    responses((status = 200, body = Vec<IdentityShown>))
)]
pub(super) async fn identities(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<IdentityShown>>, Refusal> {
    caller.in_person()?;
    let linked = server.store().identities(&caller.member).await?;
    Ok(Json(linked.into_iter().map(shown).collect()))
}

/// Unlinks one of one's identities, unless nothing else leads into the account. All other browsers are signed out.
#[utoipa::path(
    delete, path = "/api/identities/{id}", operation_id = "unlink_identity", params(("id" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn unlink(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    caller.in_person()?;
    server
        .store()
        .unlink(&caller.actor(), &caller.member, &id, caller.session())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<OidcError> for Refusal {
    fn from(error: OidcError) -> Self {
        match error {
            OidcError::CodeRefused => Self::forbidden(
                "The identity provider does not take this sign-in, or not a second time. Begin again.",
            ),
            OidcError::Unreached(_) | OidcError::Untrusted(_) => {
                tracing::warn!(%error, "the OpenID Connect issuer");
                Self::issuer()
            }
        }
    }
}
