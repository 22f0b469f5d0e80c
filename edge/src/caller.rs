//! Authentication at the edge: a program with a token, or a browser that has the token in a cookie, where no page reads
//! it.

use capo_api::{Credentials, Myself, Role};
use capo_gateway::token;
use http::HeaderMap;
use worker::{Response, Url};

use crate::configuration::{Configuration, Member, hash};
use crate::refusal::Refusal;

/// A member who asks.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) name: &'a str,
    pub(crate) member: &'a Member,
    /// Whether a cookie says who they are, which a browser sends for other pages, too.
    is_browser: bool,
}

impl<'a> Caller<'a> {
    /// The member of a token or, without one, of a cookie; `None` where there is neither.
    ///
    /// # Errors
    /// When the token is nobody's.
    pub(crate) fn known(
        configuration: &'a Configuration,
        headers: &HeaderMap,
        url: &Url,
    ) -> Result<Option<Self>, Refusal> {
        let sent = token(headers);
        let found = sent
            .or_else(|| cookie(headers, url))
            .and_then(|token| configuration.member(token));
        if sent.is_some() && found.is_none() {
            return Err(Refusal::unknown_token());
        }
        Ok(found.map(|(name, member)| Self {
            name,
            member,
            is_browser: sent.is_none(),
        }))
    }

    /// The member of a request that must come from one.
    ///
    /// # Errors
    /// When it does not, or a browser would change something on behalf of another page.
    pub(crate) fn of(
        configuration: &'a Configuration,
        headers: &HeaderMap,
        url: &Url,
        method: &str,
    ) -> Result<Self, Refusal> {
        let caller = Self::known(configuration, headers, url)?.ok_or_else(Refusal::signed_out)?;
        if method != "GET" {
            caller.may_change(headers, url)?;
        }
        Ok(caller)
    }

    /// Refuses a browser that asks on behalf of another page.
    pub(crate) fn may_change(self, headers: &HeaderMap, url: &Url) -> Result<(), Refusal> {
        if self.is_browser && !is_own_page(headers, url) {
            return Err(Refusal::cross_origin());
        }
        Ok(())
    }

    pub(crate) fn myself(self) -> Myself {
        Myself {
            name: self.name.to_owned(),
            is_admin: self.member.is_admin,
            has_password: false,
        }
    }
}

impl Member {
    /// Refuses who has a lesser role in a project; who has none does not learn that there is `what`.
    pub(crate) fn require(&self, project: &str, role: Role, what: &str) -> Result<Role, Refusal> {
        let has = self.projects.get(project).ok_or_else(|| Refusal::no_such(what))?;
        if *has >= role {
            return Ok(*has);
        }
        Err(Refusal::forbidden(&format!(
            "This takes the role {} in the project, and yours is {}.",
            role.as_str(),
            has.as_str()
        )))
    }
}

/// The network that a request comes from, as Cloudflare says.
pub(crate) fn network(headers: &HeaderMap) -> String {
    let address = headers
        .get("cf-connecting-ip")
        .and_then(|value| value.to_str().ok());
    let address = address.unwrap_or_default();
    address
        .parse()
        .map_or_else(|_| address.to_owned(), capo_gateway::network)
}

/// By what a request is counted: the hash of the token that it has, whether that is known or not, else its network.
pub(crate) fn counted(headers: &HeaderMap, url: &Url, network: &str) -> String {
    let presented = token(headers).or_else(|| cookie(headers, url));
    presented.map_or_else(|| network.to_owned(), hash)
}

/// Whether a request comes from this worker's page. Browsers say where one comes from that would change something.
fn is_own_page(headers: &HeaderMap, url: &Url) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (text("origin"), text("sec-fetch-site")) {
        (Some(origin), _) => origin == url.origin().ascii_serialization(),
        (None, site) => matches!(site, Some("same-origin" | "none")),
    }
}

/// The name of the cookie. Over HTTPS no other host of the domain can set one of this name.
fn cookie_name(url: &Url) -> &'static str {
    if url.scheme() == "https" {
        "__Host-capo_token"
    } else {
        "capo_token"
    }
}

fn cookie<'a>(headers: &'a HeaderMap, url: &Url) -> Option<&'a str> {
    let name = cookie_name(url);
    let cookies = headers.get("cookie")?.to_str().ok()?.split(';');
    let mut pairs = cookies.filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(named, _)| *named == name).map(|(_, value)| value)
}

/// Signs a browser in with a member's name and, in place of a password, their token.
///
/// # Errors
/// When they do not belong together, or another page asks.
pub(crate) fn sign_in(
    configuration: &Configuration,
    headers: &HeaderMap,
    url: &Url,
    credentials: &Credentials,
) -> Result<Response, Refusal> {
    if headers.contains_key("origin") && !is_own_page(headers, url) {
        return Err(Refusal::cross_origin());
    }
    let token = credentials.password.trim();
    let found = configuration.member(token);
    let (name, member) = found
        .filter(|(name, _)| *name == credentials.name.as_str())
        .ok_or_else(Refusal::wrong_token)?;
    let caller = Caller {
        name,
        member,
        is_browser: true,
    };
    let response = Response::from_json(&caller.myself())?.with_status(201);
    keep(&response, url, token, 31_536_000)?;
    Ok(response)
}

/// Signs a browser out.
pub(crate) fn sign_out(url: &Url) -> Result<Response, Refusal> {
    let response = Response::empty()?.with_status(204);
    keep(&response, url, "", 0)?;
    Ok(response)
}

/// Has the browser keep the token for so many seconds.
fn keep(response: &Response, url: &Url, token: &str, seconds: u32) -> Result<(), Refusal> {
    let secure = if url.scheme() == "https" { "; Secure" } else { "" };
    let name = cookie_name(url);
    let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    Ok(response.headers().set("set-cookie", &cookie)?)
}
