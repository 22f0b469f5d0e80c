//! The caller of the proxy, and on whose account.

use http::header::{self, HeaderMap};

use crate::check::Caller;
use crate::key::SharedKey;
use crate::problem::{PROJECT_NOT_NAMED, Problem};

/// What every personal token begins with.
pub const TOKEN: &str = "capo_";

/// The header that names the project on whose account a program asks; needed where a key is shared with several of the
/// caller's.
pub const PROJECT: &str = "x-capo-project";

/// A project of a member's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Its id.
    pub id: &'a str,
    /// What [`PROJECT`] calls it.
    pub name: &'a str,
    /// Whether the member's role in it is one that runs models.
    pub may_run: bool,
}

/// What stands behind `Authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(secret)
}

/// A personal token, in the headers in which clients of any provider send a key. Another key there is none of ours: a page
/// that asks through the proxy sends one that means nothing, beside its cookie.
pub fn token(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let sent = [bearer(headers), text("x-api-key"), text("x-goog-api-key")];
    let mut sent = sent.into_iter().flatten().map(str::trim);
    sent.find(|secret| secret.starts_with(TOKEN))
}

impl Caller {
    /// A member with no project, who is told no more than that there is no such key.
    pub fn without_project() -> Self {
        Self {
            project: String::new(),
            may_run: true,
        }
    }

    /// A member who asks with a key, on the account of the project that is named, else of the only one that shares the key
    /// and in which they run models; `None` without any that does.
    ///
    /// # Errors
    /// When several do and none is named.
    pub fn paying<'a>(
        memberships: impl IntoIterator<Item = Membership<'a>>,
        key: &SharedKey,
        named: Option<&str>,
    ) -> Result<Option<Self>, Problem> {
        let fits = |place: &Membership<'_>| match named {
            Some(named) => named == place.name,
            None => key.is_shared_with(place.id),
        };
        let mut fitting: Vec<_> = memberships.into_iter().filter(fits).collect();
        // Of several those in which a member runs nothing are not meant, unless there are no others.
        fitting.sort_by_key(|place| !place.may_run);
        let running = fitting.iter().filter(|place| place.may_run).count();
        fitting.truncate(running.max(1));
        match fitting.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(Self {
                project: one.id.to_owned(),
                may_run: one.may_run,
            })),
            _ => {
                let detail = format!(
                    "this key is shared with several of your projects; name one with the header {PROJECT}"
                );
                Err(Problem::new(PROJECT_NOT_NAMED, detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_found_where_any_providers_client_sends_a_key() {
        let found = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            token(&headers).map(str::to_owned)
        };
        for (name, value) in [
            ("authorization", "bearer capo_1"),
            ("x-api-key", "capo_1"),
            ("x-goog-api-key", " capo_1 "),
        ] {
            assert_eq!(found(name, value).as_deref(), Some("capo_1"), "{name}");
        }
        assert_eq!(found("authorization", "Bearer none"), None);
        assert_eq!(found("authorization", "Basic capo_1"), None);
    }

    #[test]
    fn the_project_that_pays_is_named_or_the_only_one() {
        let key = json!({ "id": "k", "provider": "openai", "projects": ["a", "b"], "models": [] });
        let key: SharedKey = serde_json::from_value(key).unwrap();
        let place = |id, may_run| Membership {
            id,
            name: id,
            may_run,
        };
        let paying = |places: &[Membership<'_>], named| {
            let caller = Caller::paying(places.iter().copied(), &key, named);
            caller.map(|caller| caller.map(|caller| (caller.project, caller.may_run)))
        };
        let [a, b, other] = [place("a", true), place("b", true), place("other", true)];
        assert_eq!(paying(&[a, other], None).unwrap(), Some(("a".into(), true)));
        assert_eq!(paying(&[a, b], Some("b")).unwrap(), Some(("b".into(), true)));
        assert_eq!(paying(&[a, b], None).unwrap_err().status, 422);
        assert_eq!(
            paying(&[place("a", false), b], None).unwrap(),
            Some(("b".into(), true))
        );
        let viewer = [place("a", false), place("b", false)];
        assert_eq!(paying(&viewer, None).unwrap(), Some(("a".into(), false)));
        // What is named need not share the key: the gate says what is missing.
        assert_eq!(
            paying(&[a, other], Some("other")).unwrap(),
            Some(("other".into(), true))
        );
        assert_eq!(paying(&[other], None).unwrap(), None);
        assert_eq!(paying(&[a], Some("b")).unwrap(), None);
    }
}
