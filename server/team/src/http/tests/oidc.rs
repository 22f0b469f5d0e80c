//! Signing in at an issuer, on both databases.

use std::collections::HashMap;
use std::sync::Arc;

use openidconnect::ClientId;
use openidconnect::core::{CoreHmacKey, CoreIdToken, CoreJwsSigningAlgorithm};
use openidconnect::url::Url;

use super::issuer::{CALLBACK, Grant, Issuer, Said, first_key, second_key, signed};
use super::*;
use crate::store::tests::on_each;

const CLIENT: &str = "capo";
const CLIENT_SECRET: &str = "only-for-the-issuer";

/// A server whose members sign in at the issuer, too.
struct Place {
    router: Router,
    store: Store,
    clock: Arc<AtomicI64>,
    issuer: Issuer,
}

/// A browser at the issuer.
struct Away {
    cookie: String,
    state: String,
    said: Said,
    challenge: String,
}

impl Place {
    async fn new(store: Store) -> Self {
        let hash = password::hash(PASSWORD);
        store.set_up(&by("root"), "root", &hash).await.unwrap();
        Self::empty(store).await
    }

    /// The same without anybody.
    async fn empty(store: Store) -> Self {
        let issuer = Issuer::start().await;
        let clock = Arc::new(AtomicI64::new(NOW));
        let settings = Settings {
            oidc: Some(OidcSettings {
                issuer: issuer.url.clone(),
                client_id: CLIENT.into(),
                client_secret: Some(Secret::presented(CLIENT_SECRET)),
                name: "Acme".into(),
                domains: vec!["example.org".into()],
            }),
            ..Settings::default()
        };
        let now = clock.clone();
        let server = Server::new(store.clone(), move || now.load(Relaxed), settings).unwrap();
        Self {
            router: router(server, None),
            store,
            clock,
            issuer,
        }
    }

    async fn send(&self, method: &str, path: &str, cookies: &str, body: &Value) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:8787")
            .header("origin", "http://localhost:8787")
            .header("cookie", cookies)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn root(&self) -> Member {
        self.store.member("root").await.unwrap()
    }

    /// A browser in which root is signed in.
    async fn session(&self) -> String {
        let (root, secret) = (self.root().await, Secret::new(""));
        self.store
            .sign_in(&by("root"), &root, &secret, "test")
            .await
            .unwrap();
        format!("{}={}", caller::COOKIE, secret.reveal())
    }

    /// Leaves for the issuer, which will say that this is ada of the right domain.
    async fn leave(&self, wish: Value, cookies: &str) -> Away {
        let response = self.send("POST", "/api/oidc/request", cookies, &wish).await;
        let set = response.headers().get("set-cookie").cloned();
        let (status, document) = (response.status(), document(response).await);
        assert_eq!(status, 200, "{document}");
        let set = set.unwrap().to_str().unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"] {
            assert!(set.contains(part), "{set}");
        }
        let url = Url::parse(document["url"].as_str().unwrap()).unwrap();
        let asked: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(
            (&*asked["code_challenge_method"], &*asked["redirect_uri"]),
            ("S256", CALLBACK)
        );
        assert_eq!(
            (&*asked["response_type"], &*asked["scope"]),
            ("code", "openid email profile")
        );
        assert_eq!(asked["client_id"], CLIENT);
        Away {
            cookie: set.split(';').next().unwrap().to_owned(),
            state: asked["state"].clone(),
            challenge: asked["code_challenge"].clone(),
            said: Said {
                issuer: self.issuer.url.clone(),
                audience: CLIENT,
                subject: "ada",
                nonce: asked["nonce"].clone(),
                until: self.clock.load(Relaxed) + 60_000,
                email: Some("ada@example.org"),
                is_verified: true,
                username: None,
            },
        }
    }

    /// Has a code stand for an id_token.
    fn grant(&self, away: &Away, code: &str, id_token: String) {
        let challenge = away.challenge.clone();
        let grant = Grant { challenge, id_token };
        self.issuer
            .state
            .lock()
            .unwrap()
            .grants
            .insert(code.into(), grant);
    }

    async fn come_back(&self, cookies: &str, code: &str, state: &str) -> Response {
        let body = json!({ "code": code, "state": state });
        self.send("POST", "/api/oidc/response", cookies, &body).await
    }

    /// Comes back with what the issuer says.
    async fn ends(&self, away: &Away, cookies: &str) -> Response {
        self.grant(away, "code", away.said.signed(&first_key()));
        let cookies = format!("{}; {cookies}", away.cookie);
        self.come_back(&cookies, "code", &away.state).await
    }

    /// Signs in as somebody whom the issuer describes.
    async fn enters(&self, describe: impl FnOnce(&mut Said)) -> Response {
        let mut away = self.leave(json!({ "to": "sign-in" }), "").await;
        describe(&mut away.said);
        self.ends(&away, "").await
    }

    async fn names(&self) -> Vec<String> {
        let members = self.store.members().await.unwrap();
        members.into_iter().map(|member| member.name).collect()
    }

    async fn actions(&self) -> Vec<String> {
        let log = self.store.audit(None, None, 100).await.unwrap();
        log.into_iter().rev().map(|entry| entry.action).collect()
    }
}

/// The session that an answer begins.
fn session_of(response: &Response) -> Option<String> {
    let set = response.headers().get_all("set-cookie").iter();
    set.filter_map(|set| set.to_str().unwrap().split(';').next())
        .find(|cookie| cookie.starts_with(caller::COOKIE))
        .map(str::to_owned)
}

#[test]
fn a_verified_address_of_the_domain_makes_an_account_once() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let planted = format!("{}=planted", caller::COOKIE);
        let away = place.leave(json!({ "to": "sign-in" }), &planted).await;
        let first = place.ends(&away, &planted).await;
        let session = session_of(&first).unwrap();
        assert!(!session.contains("planted"));
        let ada = document(first).await;
        assert_eq!(
            ada,
            json!({ "name": "ada@example.org", "is_admin": false, "has_password": false })
        );
        let projects = place.send("GET", "/api/projects", &session, &Value::Null).await;
        assert_eq!(projects.status(), 200);
        // The subject counts, whatever address they have by now.
        let again = place
            .enters(|said| said.email = Some("ada@elsewhere.example"))
            .await;
        assert_ne!(session_of(&again), Some(session));
        assert_eq!(document(again).await, ada);
        // And an address that another subject has by now opens nobody's account.
        let other = document(place.enters(|said| said.subject = "other").await).await;
        assert_eq!(other["name"], "ada@example.org-2");
        // Nor does an account's name.
        let root = place.enters(|said| {
            said.subject = "third";
            said.email = Some("+root@EXAMPLE.org");
            said.username = Some("root");
        });
        assert_eq!(document(root.await).await["name"], "+root@example.org");
        assert_eq!(
            place.actions().await[..4],
            [
                "server.set-up",
                "member.create",
                "session.create",
                "session.create"
            ]
        );
        // Who may not sign in may not by this either.
        place
            .store
            .change_member(&by("root"), "ada@example.org", None, Some(true))
            .await
            .unwrap();
        assert_eq!(place.enters(|_| ()).await.status(), 403);
    });
}

/// An id_token that is not what it should be.
type Forged = Box<dyn Fn(&Said) -> String>;

#[test]
fn what_does_not_hold_lets_nobody_in() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let other = second_key("first");
        let shared = CoreHmacKey::new(CLIENT_SECRET);
        let unsigned = |said: &Said| {
            let token = said.signed(&first_key());
            // {"alg":"none"}
            format!("eyJhbGciOiJub25lIn0.{}.", token.split('.').nth(1).unwrap())
        };
        let by_secret = move |said: &Said| {
            let algorithm = CoreJwsSigningAlgorithm::HmacSha256;
            let token = CoreIdToken::new(said.claims(), &shared, algorithm, None, None);
            token.unwrap().to_string()
        };
        let for_another = |said: &Said| {
            let party = ClientId::new("another".into());
            signed(said.claims().set_authorized_party(Some(party)), &first_key())
        };
        let changed = |change: fn(&mut Said)| {
            move |said: &Said| {
                let mut said = said.clone();
                change(&mut said);
                said.signed(&first_key())
            }
        };
        let tokens: [(&str, Forged, u16); 14] = [
            (
                "another nonce",
                Box::new(changed(|said| said.nonce = "x".into())),
                502,
            ),
            ("expired", Box::new(changed(|said| said.until = NOW)), 502),
            (
                "another audience",
                Box::new(changed(|said| said.audience = "another")),
                502,
            ),
            (
                "another issuer",
                Box::new(changed(|said| said.issuer.push('/'))),
                502,
            ),
            ("unsigned", Box::new(unsigned), 502),
            ("another key", Box::new(move |said| said.signed(&other)), 502),
            ("signed by the client's secret", Box::new(by_secret), 502),
            ("another authorized party", Box::new(for_another), 502),
            ("no token", Box::new(|_| "none".into()), 502),
            (
                "unverified",
                Box::new(changed(|said| said.is_verified = false)),
                403,
            ),
            (
                "another domain",
                Box::new(changed(|said| said.email = Some("ada@example.com"))),
                403,
            ),
            (
                "a longer one",
                Box::new(changed(|said| said.email = Some("ada@notexample.org"))),
                403,
            ),
            (
                "one below",
                Box::new(changed(|said| said.email = Some("ada@x.example.org"))),
                403,
            ),
            (
                "no domain",
                Box::new(changed(|said| said.email = Some("example.org"))),
                403,
            ),
        ];
        let refused = async |what: &str, response: Response, status: u16| {
            assert_eq!(session_of(&response), None, "{what}");
            let problem = document(response).await;
            assert_eq!(problem["status"], status, "{what}: {problem}");
            for secret in ["the-code", CLIENT_SECRET, "access"] {
                assert!(!problem.to_string().contains(secret), "{what}: {problem}");
            }
        };
        let sign_in = json!({ "to": "sign-in" });
        for (what, token, status) in tokens {
            let away = place.leave(sign_in.clone(), "").await;
            place.grant(&away, "the-code", token(&away.said));
            let response = place.come_back(&away.cookie, "the-code", &away.state).await;
            refused(what, response, status).await;
        }
        let (away, other) = (
            place.leave(sign_in.clone(), "").await,
            place.leave(sign_in, "").await,
        );
        place.grant(&away, "the-code", away.said.signed(&first_key()));
        for (what, cookies) in [("another browser", &other.cookie), ("no cookie", &String::new())] {
            refused(what, place.come_back(cookies, "the-code", &away.state).await, 403).await;
        }
        let response = place.come_back(&away.cookie, "the-code", "x").await;
        refused("another state", response, 403).await;
        // A code that was stolen has another verifier.
        let response = place.come_back(&other.cookie, "the-code", &other.state).await;
        refused("another's code", response, 403).await;
        assert_eq!(place.names().await, ["root"]);
        // Nothing was wrong but that; and it serves once.
        let away = place.leave(json!({ "to": "sign-in" }), "").await;
        assert_eq!(place.ends(&away, "").await.status(), 200);
        let response = place.come_back(&away.cookie, "code", &away.state).await;
        refused("a code once more", response, 403).await;
        let foreign = Request::post("/api/oidc/request")
            .header("host", "localhost:8787")
            .header("origin", "https://evil.example")
            .header("content-type", "application/json")
            .body(Body::from(r#"{ "to": "sign-in" }"#));
        let foreign = place.router.clone().oneshot(foreign.unwrap()).await.unwrap();
        refused("another page", foreign, 403).await;
    });
}

#[test]
fn guessing_at_the_issuer_takes_longer_and_longer() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let away = place.leave(json!({ "to": "sign-in" }), "").await;
        let mut last = 0;
        for _ in 0..32 {
            let response = place.come_back(&away.cookie, "guess", &away.state).await;
            last = response.status().as_u16();
        }
        assert_eq!(last, 429);
    });
}

#[test]
fn who_has_no_account_leaves_a_line_and_waits_longer_and_longer() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let enters = async || {
            let entered = place.enters(|said| said.email = Some("eve@elsewhere.example"));
            entered.await.status().as_u16()
        };
        let first = enters().await;
        let log = place.store.audit(None, None, 1).await.unwrap();
        let line = (&*log[0].actor, &*log[0].action, &*log[0].subject);
        assert_eq!(
            (first, line),
            (403, ("not signed in", "session.refuse", "eve@elsewhere.example"))
        );
        let mut last = first;
        for _ in 0..31 {
            last = enters().await;
        }
        assert_eq!(last, 429);
    });
}

#[test]
fn an_invitation_is_followed_by_an_identity() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let invite = async || {
            let secret = Secret::new("");
            let to = Invited::Server { is_admin: true };
            place
                .store
                .invite(&by("root"), &place.root().await, &secret, to, NOW + DAY)
                .await
                .unwrap();
            secret
        };
        let invitation = invite().await;
        let wish = json!({ "to": "join", "secret": invitation.reveal() });
        let join = async |wish: &Value| {
            let mut away = place.leave(wish.clone(), "").await;
            (away.said.email, away.said.username) = (Some("ada@elsewhere.example"), Some("Root"));
            away.said.is_verified = false;
            place.ends(&away, "").await
        };
        let joined = document(join(&wish).await).await;
        assert_eq!(
            joined,
            json!({ "name": "root-2", "is_admin": true, "has_password": false })
        );
        let spent = place.send("POST", "/api/oidc/request", "", &wish).await;
        assert_eq!(spent.status(), 404);
        let again = place.enters(|said| said.is_verified = false).await;
        assert_eq!(document(again).await["name"], "root-2");
        // One identity is one account.
        let second = invite().await;
        let wish = json!({ "to": "join", "secret": second.reveal() });
        assert_eq!(join(&wish).await.status(), 409);
        assert!(place.store.is_invited(&second, NOW).await.unwrap());
        assert_eq!(place.names().await, ["root", "root-2"]);
    });
}

#[test]
fn identities_are_linked_by_who_is_signed_in_and_one_way_in_stays() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let link = json!({ "to": "link" });
        let out = place.send("POST", "/api/oidc/request", "", &link).await;
        assert_eq!(out.status(), 401);
        let (here, elsewhere) = (place.session().await, place.session().await);
        let away = place.leave(link.clone(), &here).await;
        for (cookies, status) in [("", 401), (&*elsewhere, 403), (&*here, 200), (&*here, 409)] {
            assert_eq!(place.ends(&away, cookies).await.status(), status, "{cookies}");
        }
        let entered = document(place.enters(|said| said.is_verified = false).await).await;
        assert_eq!(entered["name"], "root");
        let list = async |session: &str| {
            let listed = place.send("GET", "/api/identities", session, &Value::Null).await;
            document(listed).await
        };
        let listed = list(&here).await;
        assert_eq!(listed[0]["issuer"], place.issuer.url);
        assert!(listed[0]["seen_at"].is_string());
        let unlink = async |session: &str| {
            let listed = list(session).await;
            let path = format!("/api/identities/{}", listed[0]["id"].as_str().unwrap());
            place
                .send("DELETE", &path, session, &Value::Null)
                .await
                .status()
                .as_u16()
        };
        assert_eq!(unlink(&here).await, 204);
        assert_eq!(list(&here).await, json!([]));
        let ended = place
            .send("GET", "/api/identities", &elsewhere, &Value::Null)
            .await;
        assert_eq!(ended.status(), 401, "other browsers are signed out");
        // Who has no password keeps one.
        let ada = place.enters(|_| ()).await;
        let session = session_of(&ada).unwrap();
        assert_eq!(unlink(&session).await, 409);
        assert_eq!(place.actions().await[..1], ["server.set-up"]);
        let actions = place.actions().await;
        for action in ["identity.link", "identity.unlink"] {
            assert!(actions.contains(&action.to_owned()), "{actions:?}");
        }
    });
}

#[test]
fn an_issuer_may_change_its_keys() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        assert_eq!(place.enters(|_| ()).await.status(), 200);
        place.issuer.sign_with(&second_key("second"));
        let enter = async || {
            let away = place.leave(json!({ "to": "sign-in" }), "").await;
            place.grant(&away, "code", away.said.signed(&second_key("second")));
            place
                .come_back(&away.cookie, "code", &away.state)
                .await
                .status()
                .as_u16()
        };
        assert_eq!(enter().await, 502, "nobody has it asked again and again");
        place.clock.fetch_add(60_000, Relaxed);
        assert_eq!(enter().await, 200);
    });
}

#[test]
fn an_issuer_may_say_who_it_is_when_asked_once_more() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        let enter = async |said: Value| {
            place.issuer.state.lock().unwrap().user_info = said;
            place.enters(|said| said.email = None).await
        };
        let other = json!({ "sub": "eve", "email": "eve@example.org", "email_verified": true });
        assert_eq!(enter(other).await.status(), 502);
        // As some issuers write it.
        let ada = json!({ "sub": "ada", "email": "ada@example.org", "email_verified": "true" });
        assert_eq!(document(enter(ada).await).await["name"], "ada@example.org");
    });
}

#[test]
fn without_the_issuer_passwords_serve() {
    on_each(|store| async move {
        let place = Place::new(store).await;
        place.issuer.state.lock().unwrap().is_down = true;
        let wish = json!({ "to": "sign-in" });
        let refused = place.send("POST", "/api/oidc/request", "", &wish).await;
        let problem = document(refused).await;
        assert_eq!(
            (&problem["status"], &problem["type"]),
            (&json!(502), &json!("/problems/identity-provider"))
        );
        let about = place.send("GET", "/api", "", &Value::Null).await;
        assert_eq!(document(about).await["oidc"], "Acme");
        let credentials = json!({ "name": "root", "password": PASSWORD });
        let entered = place.send("POST", "/api/session", "", &credentials).await;
        assert_eq!(entered.status(), 201);
        assert_eq!(place.send("GET", "/readyz", "", &Value::Null).await.status(), 200);
    });
}

#[test]
fn the_first_account_is_not_the_issuers() {
    on_each(|store| async move {
        let place = Place::empty(store).await;
        assert_eq!(place.enters(|_| ()).await.status(), 403);
        assert!(!place.store.is_set_up().await.unwrap());
    });
}
