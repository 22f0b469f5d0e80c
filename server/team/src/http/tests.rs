//! Routes, in a team whose members have all roles.

mod archives;
mod bounds;
mod certificates;
mod data_sets;
mod issuer;
mod metrics;
mod oidc;
mod prompts;
mod routes;
mod runs;
mod strangers;
mod trainings;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::sessions::NO_NAME;
use super::*;
use crate::fixture::{self, DAY, NOW, STUDY};
use crate::secret::sha256;
use crate::store::{Actor, AddedDataSet, AddedRun, AddedVersion, Identity, Invited, Member, REFUSALS};
use crate::trainings::tests::by_shell;
use capo_api::{Role, Scope};

/// A table that the project has as a data set.
const ROWS: &str = "question,answer\nwhat is one and one?,two\nwhat is one and two?,three\n";
const PASSWORD: &str = "correct horse battery staple";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Not signed in.
    Nobody,
    /// A member with another project.
    Stranger,
    Viewer,
    Editor,
    /// Of the project.
    Admin,
    /// Of the server.
    Root,
    /// A program of the server's administrator that may only read, and one that may write.
    Reader,
    Writer,
}

const ALL: [Who; 8] = [
    Who::Nobody,
    Who::Stranger,
    Who::Viewer,
    Who::Editor,
    Who::Admin,
    Who::Root,
    Who::Reader,
    Who::Writer,
];

/// A server with a project `alpha`, in which people have all roles.
struct Team {
    router: Router,
    server: Server,
    store: Store,
    clock: Arc<AtomicI64>,
    set_up: SetUp,
    master: MasterKey,
    secrets: Vec<(Who, Secret)>,
    ids: [(&'static str, String); 12],
    folder: tempfile::TempDir,
    /// Where folders of trainings lie.
    trainings: tempfile::TempDir,
}

fn by(name: &str) -> Actor {
    fixture::by(name, NOW)
}

impl Team {
    /// A server without members.
    async fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path()).await.unwrap();
        Self::over(store, folder).await
    }

    async fn over(store: Store, folder: tempfile::TempDir) -> Self {
        let clock = Arc::new(AtomicI64::new(NOW));
        let set_up = SetUp::new();
        let master = MasterKey::new();
        assert!(store.is_master(&master).await.unwrap());
        let trainings = tempfile::tempdir().unwrap();
        let now = clock.clone();
        let model = axum::routing::any(async || axum::Json(json!({})));
        let settings = Settings {
            set_up: Some(set_up.clone()),
            master: Some(master.clone()),
            files: Some(Files::in_folder(folder.path()).unwrap()),
            trainings: Some(by_shell("cat; exit 3", trainings.path())),
            models: Some(Router::new().route("/v1/{*rest}", model)),
            ..Settings::default()
        };
        let server = Server::new(store.clone(), move || now.load(Relaxed), settings).unwrap();
        Self {
            router: router(server.clone(), None),
            server,
            store,
            clock,
            set_up,
            master,
            secrets: Vec::new(),
            ids: Default::default(),
            folder,
            trainings,
        }
    }

    async fn new() -> Self {
        Self::filled(Self::empty().await).await
    }

    /// The same over an empty store of either kind.
    async fn on(store: Store) -> Self {
        Self::filled(Self::over(store, tempfile::tempdir().unwrap()).await).await
    }

    /// Another one over the store of this one, as if nothing had happened there.
    async fn anew(self) -> Self {
        self.store.empty().await;
        Self::on(self.store).await
    }

    async fn filled(mut team: Self) -> Self {
        let store = &team.store;
        let root = store.set_up(&by("root"), "root", "kept").await.unwrap();
        let mut member = async |who: Who, name: &str| -> Member {
            let member = store.add_member(&by("root"), name, "kept", false).await.unwrap();
            let secret = Secret::new("");
            store.sign_in(&by(name), &member, &secret, "test").await.unwrap();
            team.secrets.push((who, secret));
            member
        };
        let stranger = member(Who::Stranger, "sam").await;
        member(Who::Viewer, "vera").await;
        member(Who::Editor, "ed").await;
        let ada = member(Who::Admin, "ada").await;
        let alpha = store
            .add_project(&by("ada"), &ada, "alpha", "Alpha")
            .await
            .unwrap();
        store
            .add_project(&by("sam"), &stranger, "beta", "Beta")
            .await
            .unwrap();
        for (name, role) in [("vera", Role::Viewer), ("ed", Role::Editor)] {
            store
                .set_role(&by("ada"), &alpha, name, Some(role))
                .await
                .unwrap();
        }
        let record = json!({
            "id": "openai", "provider": "openai", "projects": [alpha.id], "models": [{ "name": "gpt-*" }],
        });
        let key = serde_json::from_value(record).unwrap();
        store
            .add_key(&by("root"), &key, "sk-1", &team.master)
            .await
            .unwrap();
        let secret = Secret::new("");
        let session = store.sign_in(&by("root"), &root, &secret, "test").await.unwrap();
        team.secrets.push((Who::Root, secret));
        let identity = Identity {
            issuer: "https://id.example.org".into(),
            subject: "1".into(),
            label: "root@example.org".into(),
        };
        store.link(&by("root"), &root, &identity).await.unwrap();
        let identities = store.identities(&root).await.unwrap();
        let mut token = String::new();
        for (who, scope) in [(Who::Reader, Scope::Read), (Who::Writer, Scope::Write)] {
            let secret = Secret::new("capo_");
            let made = store
                .add_token(&by("root"), &root, &secret, "ci", scope, NOW + DAY)
                .await;
            token = made.unwrap().id;
            team.secrets.push((who, secret));
        }
        let invited = Invited::Server { is_admin: false };
        let server = store
            .invite(&by("root"), &root, &Secret::new(""), invited, NOW + DAY)
            .await
            .unwrap();
        let open = Secret::new("");
        store
            .invite(&by("root"), &root, &open, invited, NOW + DAY)
            .await
            .unwrap();
        let added = AddedRun {
            name: "First".into(),
            study: STUDY.into(),
            method: "capo".into(),
            objective: "success".into(),
            stage: Some(capo_api::RunStage::Paused),
            ..AddedRun::default()
        };
        let run = store.add_run(&by("ada"), &alpha, &ada, added).await.unwrap();
        let (learned, training) = trainings::added(&team, &alpha, &ada).await;
        let text = AddedVersion {
            text: "Greet the customer.".into(),
            ..AddedVersion::default()
        };
        let (version, _) = store
            .add_prompt_version(&by("ada"), &alpha, "greeting", &text)
            .await
            .unwrap();
        let prompt = store.prompt(&alpha, "greeting").await.unwrap();
        store
            .move_label(&by("ada"), &prompt, "candidate", Some(1), None)
            .await
            .unwrap();
        let object = store.begin_file(&alpha, NOW).await.unwrap();
        let files = Files::in_folder(team.folder.path()).unwrap();
        files.write(&object, ROWS.into()).await.unwrap();
        let sha256 = sha256(ROWS.as_bytes());
        let size = ROWS.len() as u64;
        store
            .put_file(&by("ed"), &alpha, &sha256, size, &object)
            .await
            .unwrap();
        let added = AddedDataSet {
            name: "rows.csv".into(),
            kind: capo_api::DataKind::Csv,
            sha256: sha256.clone(),
            rows: 2,
            columns: vec!["question".into(), "answer".into()],
            first: Vec::new(),
        };
        let data = store.add_data_set(&by("ed"), &alpha, &added).await.unwrap();
        let invited = Invited::Project(&alpha, Role::Viewer);
        let project = store
            .invite(&by("ada"), &ada, &Secret::new(""), invited, NOW + DAY)
            .await
            .unwrap();
        team.ids = [
            ("SESSION", session.id),
            ("IDENTITY", identities[0].id.clone()),
            ("TOKEN", token),
            ("INVITATION", server.id),
            ("TO-PROJECT", project.id),
            ("SECRET", open.reveal().to_owned()),
            ("RUN", run.id),
            ("SEEN", version.fingerprint),
            ("FILE", sha256),
            ("DATA", data.id),
            ("LEARNED", learned),
            ("TRAINING", training.id),
        ];
        team
    }

    /// A request as the page or a program makes it, ids of this team in place of their names.
    fn request(&self, who: Who, method: &Method, path: &str, body: &Value) -> Request<Body> {
        let fill = |text: &str| {
            let fill = |text: String, (name, id): &(&str, String)| text.replace(name, id);
            self.ids
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .fold(text.to_owned(), fill)
        };
        let mut request = Request::builder()
            .method(method)
            .uri(fill(path))
            .header("host", "localhost:8787");
        let secret = self.secrets.iter().find(|(of, _)| *of == who);
        request = match (who, secret) {
            (Who::Reader | Who::Writer, Some((_, secret))) => {
                request.header("authorization", format!("Bearer {}", secret.reveal()))
            }
            (_, Some((_, secret))) => request
                .header("cookie", format!("{}={}", caller::COOKIE, secret.reveal()))
                .header("origin", "http://localhost:8787"),
            (_, None) => request.header("origin", "http://localhost:8787"),
        };
        if body.is_null() {
            return request.body(Body::empty()).unwrap();
        }
        let request = request.header("content-type", "application/json");
        request.body(Body::from(fill(&body.to_string()))).unwrap()
    }

    async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn ask(&self, who: Who, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = method.parse().unwrap();
        let response = self.send(self.request(who, &method, path, &body)).await;
        let status = response.status().as_u16();
        (status, document(response).await)
    }
}

async fn document(response: Response) -> Value {
    // Who watches a run waits for what comes.
    let kind = response.headers().get("content-type");
    if kind.is_some_and(|kind| kind == "text/event-stream") {
        return Value::Null;
    }
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// The session's cookie that an answer sets.
fn cookie(response: &Response) -> String {
    let set = response.headers()["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_link_of_the_start_makes_one_administrator() {
    let team = Team::empty().await;
    let (_, about) = team.ask(Who::Nobody, "GET", "/api", Value::Null).await;
    assert_eq!(
        (&about["is_set_up"], &about["member"]),
        (&json!(false), &Value::Null)
    );
    let link = team.set_up.link("http://localhost:8787/");
    let secret = link.strip_prefix("http://localhost:8787/set-up#").unwrap();
    let first =
        |secret: &str, password: &str| json!({ "secret": secret, "name": "Ada", "password": password });
    let (guessed, _) = team
        .ask(Who::Nobody, "POST", "/api/set-up", first("guess", PASSWORD))
        .await;
    let (weak, problem) = team
        .ask(Who::Nobody, "POST", "/api/set-up", first(secret, "password123"))
        .await;
    assert_eq!((guessed, weak), (403, 422), "{problem}");
    let post = Method::POST;
    let made = team
        .send(team.request(Who::Nobody, &post, "/api/set-up", &first(secret, PASSWORD)))
        .await;
    assert_eq!(made.status(), 201);
    let set = made.headers()["set-cookie"].to_str().unwrap();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"),
        "{set}"
    );
    let mut about = team.request(Who::Nobody, &Method::GET, "/api", &Value::Null);
    about
        .headers_mut()
        .insert("cookie", cookie(&made).parse().unwrap());
    let about = document(team.send(about).await).await;
    assert_eq!(
        about["member"],
        json!({ "name": "ada", "is_admin": true, "has_password": true })
    );
    let (again, _) = team
        .ask(Who::Nobody, "POST", "/api/set-up", first(secret, PASSWORD))
        .await;
    assert_eq!(again, 409);
}

#[tokio::test]
async fn signing_in_again_makes_a_new_secret_and_out_ends_it() {
    let team = Team::empty().await;
    let hash = password::hash(PASSWORD);
    team.store.set_up(&by("ada"), "ada", &hash).await.unwrap();
    let credentials = json!({ "name": "ADA ", "password": PASSWORD });
    let request = || {
        let mut request = team.request(Who::Nobody, &Method::POST, "/api/session", &credentials);
        let planted = format!("{}=planted", caller::COOKIE);
        request.headers_mut().insert("cookie", planted.parse().unwrap());
        request
    };
    let (one, two) = (team.send(request()).await, team.send(request()).await);
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (201, 201));
    let (one, two) = (cookie(&one), cookie(&two));
    assert!(one != two && !one.contains("planted"));
    let with = |cookie: &str, method: Method, path: &str| {
        let mut request = team.request(Who::Nobody, &method, path, &Value::Null);
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        request
    };
    let out = team.send(with(&one, Method::DELETE, "/api/session")).await;
    assert_eq!(out.status(), 204);
    assert_eq!(
        team.send(with(&one, Method::GET, "/api/projects")).await.status(),
        401
    );
    assert_eq!(
        team.send(with(&two, Method::GET, "/api/projects")).await.status(),
        200
    );
    let sessions = document(team.send(with(&two, Method::GET, "/api/sessions")).await).await;
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    assert_eq!(sessions[0]["is_current"], true);
}

#[tokio::test]
async fn guessing_passwords_takes_longer_and_longer() {
    let team = Team::empty().await;
    let hash = password::hash(PASSWORD);
    team.store.set_up(&by("ada"), "ada", &hash).await.unwrap();
    let guess = async |password: &str| {
        let credentials = json!({ "name": "ada", "password": password });
        team.ask(Who::Nobody, "POST", "/api/session", credentials).await
    };
    for _ in 0..6 {
        assert_eq!(guess("wrong").await.0, 401);
    }
    let (status, problem) = guess(PASSWORD).await;
    assert_eq!(
        (status, &problem["retry_after"]),
        (429, &json!(1)),
        "the right one neither"
    );
    team.clock.fetch_add(1000, Relaxed);
    assert_eq!(guess(PASSWORD).await.0, 201);
    for _ in 0..6 {
        assert_eq!(guess("wrong").await.0, 401, "what was forgotten starts anew");
    }
    assert_eq!(guess("wrong").await.0, 429);
    let mistaken = json!({ "name": "hunter-2-is-mine", "password": "ada" });
    assert_eq!(
        team.ask(Who::Nobody, "POST", "/api/session", mistaken).await.0,
        401
    );
    let log = team.store.audit(None, None, 100).await.unwrap();
    let refusals = log.iter().filter(|line| line.action == "session.refuse");
    let named = refusals.map(|line| (line.actor.as_str(), line.subject.as_str()));
    assert_eq!(
        named.collect::<Vec<_>>(),
        [&[("not signed in", NO_NAME)][..], &[("not signed in", "ada"); 12]].concat(),
        "who has to wait leaves no line, and what nobody is called is not kept"
    );
    let refused = by("not signed in");
    for _ in 0..REFUSALS {
        team.store.record_refusal(&refused, "ada").await.unwrap();
    }
    let first = team.store.audit(None, Some(14), 100).await.unwrap();
    let kept: Vec<&str> = first.iter().map(|line| line.action.as_str()).collect();
    assert!(!kept.contains(&"session.refuse") && !kept.is_empty(), "{kept:?}");
}

#[tokio::test]
async fn another_pages_requests_change_nothing() {
    let team = Team::new().await;
    let request = |headers: &[(&'static str, &str)]| {
        let body = json!({ "name": "gamma", "title": "Gamma" });
        let mut request = team.request(Who::Admin, &Method::POST, "/api/projects", &body);
        request.headers_mut().remove("origin");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request
    };
    for foreign in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://localhost:8787.evil.example")],
        &[
            ("origin", "http://localhost:9999"),
            ("sec-fetch-site", "same-site"),
        ],
        &[("sec-fetch-site", "cross-site")],
        &[],
    ] {
        let refused = team.send(request(foreign)).await;
        assert_eq!(refused.status(), 403, "{foreign:?}");
        assert_eq!(document(refused).await["type"], "/problems/origin-not-allowed");
    }
    for own in [
        &[("origin", "http://localhost:8787")][..],
        &[("sec-fetch-site", "same-origin")],
    ] {
        let made = team.send(request(own)).await;
        let status = made.status().as_u16();
        assert!(status == 201 || status == 409, "{own:?}: {status}");
    }
    let mut form = request(&[("origin", "http://localhost:8787")]);
    form.headers_mut()
        .insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(
        team.send(form).await.status(),
        415,
        "what a form can send is no document"
    );
}

#[tokio::test]
async fn bad_input_is_refused_with_what_is_wrong() {
    let team = Team::new().await;
    for (path, body, status, said) in [
        (
            "/api/projects",
            json!({ "name": "Gamma!", "title": "x" }),
            422,
            "small letters",
        ),
        (
            "/api/projects",
            json!({ "name": "gamma", "title": "a\nb" }),
            422,
            "one line",
        ),
        ("/api/projects", json!({ "name": "gamma" }), 422, "title"),
        (
            "/api/projects",
            json!({ "name": "gamma", "title": "x", "owner": 1 }),
            422,
            "owner",
        ),
        (
            "/api/projects",
            json!({ "name": "alpha", "title": "x" }),
            409,
            "already a project",
        ),
        (
            "/api/tokens",
            json!({ "name": "x", "scope": "all", "days": 1 }),
            422,
            "scope",
        ),
        (
            "/api/tokens",
            json!({ "name": "x", "scope": "read", "days": 0 }),
            422,
            "1 to 366",
        ),
        (
            "/api/projects/alpha/invitations",
            json!({ "role": "owner" }),
            422,
            "role",
        ),
        ("/api/nothing", json!({}), 404, "address"),
    ] {
        let (got, problem) = team.ask(Who::Admin, "POST", path, body.clone()).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            got == status && detail.contains(said),
            "{path} {body}: {got} {problem}"
        );
    }
    let (status, problem) = team.ask(Who::Admin, "PUT", "/api/projects", Value::Null).await;
    assert_eq!((status, &problem["type"]), (405, &json!("/problems/method")));
    let mut torn = team.request(Who::Admin, &Method::POST, "/api/projects", &json!({}));
    *torn.body_mut() = Body::from("{\"name\": ");
    assert_eq!(team.send(torn).await.status(), 400);
    let mut large = team.request(Who::Admin, &Method::POST, "/api/projects", &json!({}));
    *large.body_mut() = Body::from(vec![b' '; MOST_BODY + 1]);
    assert_eq!(team.send(large).await.status(), 413);
    let (status, _) = team
        .ask(Who::Root, "GET", "/api/audit?before=x", Value::Null)
        .await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn secrets_are_shown_once_and_every_answer_has_its_headers() {
    let team = Team::new().await;
    let new = json!({ "name": "laptop", "scope": "read", "days": 30 });
    let (_, made) = team.ask(Who::Admin, "POST", "/api/tokens", new).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("capo_"));
    let (_, listed) = team.ask(Who::Admin, "GET", "/api/tokens", Value::Null).await;
    assert_eq!(listed[0]["name"], "laptop");
    let kept = Secret::presented(secret);
    for text in [
        listed.to_string(),
        format!("{:?}", team.store.audit(None, None, 500).await.unwrap()),
    ] {
        assert!(!text.contains(secret) && !text.contains(&kept.hash()), "{text}");
    }
    let response = team
        .send(team.request(Who::Admin, &Method::GET, "/api/tokens", &Value::Null))
        .await;
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    assert!(
        !response.headers().contains_key("strict-transport-security"),
        "not without TLS"
    );
}

#[tokio::test]
async fn behind_https_cookies_are_secure() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path()).await.unwrap();
    store
        .set_up(&by("ada"), "ada", &password::hash(PASSWORD))
        .await
        .unwrap();
    let settings = Settings {
        public_url: Some("https://capo.example.org/".into()),
        ..Settings::default()
    };
    let router = router(Server::new(store, || NOW, settings).unwrap(), None);
    let request = Request::post("/api/session")
        .header("host", "127.0.0.1:8787")
        .header("origin", "https://capo.example.org")
        .header("content-type", "application/json")
        .body(Body::from(
            json!({ "name": "ada", "password": PASSWORD }).to_string(),
        ));
    let response = router.oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 201);
    assert!(
        response.headers()["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Secure")
    );
    assert!(response.headers().contains_key("strict-transport-security"));
}

#[tokio::test]
async fn the_api_is_described_for_people_by_files_of_this_server() {
    let team = Team::empty().await;
    let get = async |path: &str| team.send(Request::get(path).body(Body::empty()).unwrap()).await;
    let page = get("/api/docs").await;
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
        "{policy}"
    );
    let bytes = axum::body::to_bytes(page.into_body(), 1 << 20).await.unwrap();
    let page = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(!page.contains("http"), "nothing comes from elsewhere: {page}");
    for (file, kind) in [
        ("swagger-ui.css", "text/css; charset=utf-8"),
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
        ("start.js", "text/javascript; charset=utf-8"),
    ] {
        assert!(page.contains(&format!("/api/docs/{file}")), "{file}");
        let got = get(&format!("/api/docs/{file}")).await;
        assert_eq!(
            (got.status().as_u16(), &got.headers()["content-type"]),
            (200, &kind.parse().unwrap())
        );
    }
    assert_eq!(get("/api/docs/other.js").await.status(), 404);
}

#[tokio::test]
async fn health_needs_nobody() {
    let team = Team::empty().await;
    for path in ["/healthz", "/readyz"] {
        let response = team.send(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200, "{path}");
    }
    team.store.close().await;
    let response = team
        .send(Request::get("/readyz").body(Body::empty()).unwrap())
        .await;
    assert_eq!(response.status(), 503);
}
