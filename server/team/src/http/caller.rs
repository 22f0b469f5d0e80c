//! Authentication and authorisation: who asks, and what they may.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum_extra::extract::CookieJar;
use capo_gateway::network;

use super::Server;
use super::problem::Refusal;
use crate::places::Place;
use crate::secret::Secret;
use crate::store::{Actor, ChargedTo, Member, Millis, Project, Proof, Session, Terms, Token};
use capo_api::{Role, Scope};
use capo_gateway::{Caller as Payer, Limits, Membership, PROJECT, Problem};

/// What the pass begins with by which a run asks models. It opens nothing else.
pub(super) const PASS: &str = "capo_run_";

/// The cookie of a session. Over HTTPS no other host of the domain and no page of plain HTTP can set one of this name.
pub(super) const COOKIE: &str = "capo_session";
const SECURE_COOKIE: &str = "__Host-capo_session";

/// How long after they signed in people may give their account another way in, in milliseconds.
const LATELY: Millis = 30 * 60 * 1000;

/// The name of a session's cookie.
pub(super) fn cookie_name(server: &Server) -> &'static str {
    if server.is_secure() { SECURE_COOKIE } else { COOKIE }
}

/// Somebody who asks from somewhere, signed in or not.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    /// Where the request comes from, without the port.
    pub address: String,
    /// What the browser calls itself.
    pub browser: String,
    pub at: Millis,
}

impl Visitor {
    /// The network that they ask from.
    pub(super) fn network(&self) -> String {
        let address = self.address.parse();
        address.map_or_else(|_| self.address.clone(), network)
    }

    /// Them in the audit log, under a name.
    pub(super) fn actor(&self, name: &str) -> Actor {
        Actor {
            name: name.to_owned(),
            address: self.address.clone(),
            at: self.at,
        }
    }
}

impl Visitor {
    /// Whoever sent a request.
    pub(super) fn of(parts: &Parts, server: &Server) -> Self {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(peer)| peer.ip());
        let address = peer.filter(|_| !server.is_behind_proxy()).or_else(|| {
            // The last entry is the proxy's own word; those before it are the client's.
            let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back()?;
            let last = forwarded.to_str().ok()?.rsplit(',').next()?;
            last.trim().parse().ok()
        });
        let browser = parts.headers.get(header::USER_AGENT);
        let browser = browser.and_then(|value| value.to_str().ok());
        Self {
            address: address
                .or(peer)
                .map_or_else(String::new, |address| address.to_string()),
            browser: browser.unwrap_or_default().to_owned(),
            at: server.now(),
        }
    }
}

impl FromRequestParts<Server> for Visitor {
    type Rejection = Refusal;

    /// Refuses a browser that would change something on behalf of another page.
    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Refusal> {
        if !is_safe(&parts.method) && !is_own_page(&parts.headers, server) {
            return Err(Refusal::cross_origin());
        }
        Ok(Self::of(parts, server))
    }
}

/// A member by what a request has with it, before anything is said of what they may.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) member: Member,
    means: Credential,
}

impl Known {
    /// The member of a token or, without one, of a session; `None` where there is neither or the session has ended.
    ///
    /// # Errors
    /// When the token is unknown, or the database fails.
    pub(super) async fn of(
        headers: &HeaderMap,
        server: &Server,
        visitor: &Visitor,
    ) -> Result<Option<Self>, Refusal> {
        if let Some(secret) = token(headers) {
            let found = server.store().token(&secret, visitor.at).await?;
            let (token, member) = found.ok_or_else(Refusal::unknown_token)?;
            let means = Credential::Token(token);
            return Ok(Some(Self { member, means }));
        }
        let Some(secret) = cookie(headers, server) else {
            return Ok(None);
        };
        let found = server.store().session(&secret, visitor.at).await?;
        Ok(found.map(|(session, member)| Self {
            member,
            means: Credential::Session(session),
        }))
    }

    /// Whether they may change something: not with a token that only reads.
    pub(super) fn may_write(&self) -> bool {
        !matches!(&self.means, Credential::Token(token) if token.scope < Scope::Write)
    }
}

/// A member who asks a model with a shared key, and on what terms.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) terms: Terms,
    /// Id of the project on whose account it is, where a run asks.
    pub(super) run: Option<String>,
}

/// What pays for a call, and the limits of each.
pub(super) type Account = (ChargedTo, [Limits; 3]);

impl Asking {
    /// Who asks with a key, by the pass of a run, a token or a session; `None` where there is none of these or the session
    /// has ended.
    ///
    /// # Errors
    /// When pass or token are unknown, the token only reads, another page's browser sends the cookie, the member of a run may
    /// no longer sign in, or the database fails.
    pub(super) async fn of(
        headers: &HeaderMap,
        server: &Server,
        key: &str,
        at: Millis,
    ) -> Result<Option<Self>, Refusal> {
        let mut run = None;
        let shown = match token(headers) {
            Some(pass) if pass.reveal().starts_with(PASS) => {
                let holder = server.pass_holder(&pass).ok_or_else(Refusal::unknown_token)?;
                run = Some(holder.project);
                Proof::Member(holder.member)
            }
            Some(secret) => Proof::Token(secret),
            None => match cookie(headers, server) {
                Some(secret) => Proof::Session(secret),
                None => return Ok(None),
            },
        };
        let Some(terms) = server.store().terms(&shown, key, at).await? else {
            return match shown {
                Proof::Token(_) => Err(Refusal::unknown_token()),
                Proof::Session(_) => Ok(None),
                Proof::Member(_) => Err(Refusal::missing("member")),
            };
        };
        // A cookie comes with other pages' requests, too, and some of these say no origin.
        if matches!(shown, Proof::Session(_)) && !is_own_page(headers, server) {
            return Err(Refusal::cross_origin());
        }
        if terms.scope < Scope::Write {
            return Err(Refusal::forbidden(
                "This token may only read, and a call to a model costs something.",
            ));
        }
        Ok(Some(Self { terms, run }))
    }

    /// On whose account they ask, see [`Payer::paying`], and within which limits; a run always on its project's.
    ///
    /// # Errors
    /// When several projects might pay and none is named.
    pub(super) fn paying(&self, headers: &HeaderMap) -> Result<(Payer, Option<Account>), Problem> {
        let Terms { projects, key, .. } = &self.terms;
        let run = self.run.as_ref();
        let projects = projects.iter().filter(|(id, ..)| run.is_none_or(|run| run == id));
        let mut memberships = projects
            .map(|(id, name, role)| Membership {
                id,
                name,
                may_run: *role >= Role::Editor,
            })
            .peekable();
        let named = match run {
            Some(_) => memberships.peek().map(|project| project.name),
            None => headers.get(PROJECT).and_then(|name| name.to_str().ok()),
        };
        let caller = key
            .as_ref()
            .map(|kept| Payer::paying(memberships, &kept.key, named));
        let (Some(kept), Some(caller)) = (key, caller.transpose()?.flatten()) else {
            return Ok((Payer::without_project(), None));
        };
        let payers = ChargedTo {
            key: kept.key.record().id.clone(),
            project: caller.project.clone(),
            member: self.terms.member.clone(),
        };
        let limits = self.terms.limits(&payers);
        Ok((caller, Some((payers, limits))))
    }
}

/// A member who is signed in, or a program that acts for one.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub member: Member,
    pub visitor: Visitor,
    means: Credential,
    /// For as long as they are answered.
    _place: Arc<Place>,
}

/// How a member is known.
#[derive(Debug, Clone)]
enum Credential {
    Session(Session),
    Token(Token),
}

impl FromRequestParts<Server> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Refusal> {
        let known = Known::of(&parts.headers, server, &Visitor::of(parts, server)).await?;
        let known = known.ok_or_else(Refusal::signed_out)?;
        if !is_safe(&parts.method) && !known.may_write() {
            return Err(Refusal::forbidden("This token may only read."));
        }
        Ok(Self {
            visitor: Visitor::from_request_parts(parts, server).await?,
            _place: Arc::new(server.0.bounds.attend(&known.member.id)?),
            member: known.member,
            means: known.means,
        })
    }
}

impl Caller {
    /// Them in the audit log.
    pub(super) fn actor(&self) -> Actor {
        match &self.means {
            Credential::Session(_) => self.visitor.actor(&self.member.name),
            Credential::Token(token) => self
                .visitor
                .actor(&format!("{} (token {})", self.member.name, token.name)),
        }
    }

    /// The id of the session, for who is signed in with a browser.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.means {
            Credential::Session(session) => Some(&session.id),
            Credential::Token(_) => None,
        }
    }

    /// Refuses programs: what concerns accounts is for people who have signed in.
    pub(super) fn in_person(&self) -> Result<(), Refusal> {
        self.in_person_or("What concerns accounts takes a person who is signed in, and no token.")
    }

    /// Refuses programs in these words.
    pub(super) fn in_person_or(&self, words: &str) -> Result<(), Refusal> {
        match self.means {
            Credential::Session(_) => Ok(()),
            Credential::Token(_) => Err(Refusal::forbidden(words)),
        }
    }

    /// Refuses those who signed in too long ago: who finds a browser open is not to make themselves a way in.
    pub(super) fn lately(&self) -> Result<(), Refusal> {
        match &self.means {
            Credential::Session(session) if self.visitor.at - session.created_at <= LATELY => Ok(()),
            _ => Err(Refusal::forbidden(format!(
                "You signed in more than {} minutes ago. Sign out, sign in again, and then link the identity.",
                LATELY / 60_000
            ))),
        }
    }

    /// Refuses all but those who administer the server.
    pub(super) fn as_admin(&self) -> Result<(), Refusal> {
        if self.member.is_admin {
            Ok(())
        } else {
            Err(Refusal::forbidden("This takes an administrator of the server."))
        }
    }

    /// Refuses programs, and all but those who administer the server.
    pub(super) fn as_admin_in_person(&self) -> Result<(), Refusal> {
        self.in_person()?;
        self.as_admin()
    }

    /// The project of a name, for who has at least this role in it. Who has none does not learn that it exists.
    pub(super) async fn project(
        &self,
        server: &Server,
        name: &str,
        role: Role,
    ) -> Result<(Project, Role), Refusal> {
        let (project, has) = server.store().project(&self.member, name).await?;
        if has >= role {
            return Ok((project, has));
        }
        Err(Refusal::forbidden(format!(
            "This takes the role {} in the project, and yours is {}.",
            role.as_str(),
            has.as_str()
        )))
    }
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A personal token, see [`capo_gateway::token`].
fn token(headers: &HeaderMap) -> Option<Secret> {
    capo_gateway::token(headers).map(Secret::presented)
}

/// What a request has to say who sends it, whether that is known or not.
pub(super) fn credential(headers: &HeaderMap, server: &Server) -> Option<Secret> {
    token(headers).or_else(|| cookie(headers, server))
}

/// The secret of the session, if a browser sends one.
fn cookie(headers: &HeaderMap, server: &Server) -> Option<Secret> {
    let jar = CookieJar::from_headers(headers);
    Some(Secret::presented(jar.get(cookie_name(server))?.value()))
}

/// Whether a request that would change something comes from this server's page, or from a program. Browsers say where
/// such a request comes from in `Origin` or `Sec-Fetch-Site`, and no page can keep them from it; what sends neither and
/// no cookie is no browser.
pub(super) fn is_own_page(headers: &HeaderMap, server: &Server) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text("origin") {
        return server.is_own_origin(origin, text("host"));
    }
    match text("sec-fetch-site") {
        Some(site) => matches!(site, "same-origin" | "none"),
        None => cookie(headers, server).is_none(),
    }
}
