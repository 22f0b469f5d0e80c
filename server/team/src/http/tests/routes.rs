//! Every route, asked by everybody who may be there.

use serde_json::{Value, json};

use super::{ALL, PASSWORD, STUDY, Team, Who};
use crate::http::openapi;
use crate::store::Store;
use crate::store::tests::on_each_database;

/// A route with what everybody gets, in the order of [`ALL`].
type Row = (&'static str, &'static str, Value, [u16; 8]);

/// All routes, each with what everybody gets, in the order of [`ALL`], and with what is sent. Who is not signed in gets 401,
/// who has no role in a project 404, who has too small a one 403; tokens do nothing that concerns accounts. `read` is what
/// those get who may read in a project, `edit` what everybody gets where its editors get this.
const ROUTES: &str = r#"
GET    200                             /healthz
GET    200                             /readyz
GET    200                             /api
POST   409                             /api/set-up {"secret": "x", "name": "eve", "password": "PASSWORD"}
POST   401                             /api/session {"name":"eve","password":"wrong password"}
DELETE 401 204 204 204 204 204 403 403 /api/session
GET    401 200 200 200 200 200 403 403 /api/sessions
DELETE 401 404 404 404 404 204 403 403 /api/sessions/SESSION
# This team has no issuer; what one says has tests of its own.
POST   404                             /api/oidc/request {"to": "sign-in"}
POST   404                             /api/oidc/response {"code": "x", "state": "x"}
GET    401 200 200 200 200 200 403 403 /api/identities
DELETE 401 404 404 404 404 204 403 403 /api/identities/IDENTITY
GET    401 200 200 200 200 200 403 403 /api/tokens
POST   401 201 201 201 201 201 403 403 /api/tokens {"name": "laptop", "scope": "write", "days": 30}
DELETE 401 404 404 404 404 204 403 403 /api/tokens/TOKEN
PUT    401 403 403 403 403 403 403 403 /api/password {"old": "not it", "new": "PASSWORD"}
GET    401 403 403 403 403 200 200 200 /api/members
POST   201                             /api/members {"secret": "SECRET", "name": "eve", "password": "PASSWORD"}
PATCH  401 403 403 403 403 200 403 403 /api/members/vera {"is_disabled": true}
GET    401 403 403 403 403 200 403 403 /api/invitations
POST   401 403 403 403 403 201 403 403 /api/invitations {}
DELETE 401 403 403 403 403 204 403 403 /api/invitations/INVITATION
GET    401 403 403 403 403 200 200 200 /api/audit
GET    401 200 200 200 200 200 200 200 /api/projects
POST   401 201 201 201 201 201 403 201 /api/projects {"name": "gamma", "title": "Gamma"}
GET    401 404 200 200 200 200 200 200 /api/projects/alpha
PATCH  401 404 403 403 200 200 403 200 /api/projects/alpha {"title": "Other"}
DELETE 401 404 403 403 204 204 403 403 /api/projects/alpha
GET    401 404 200 200 200 200 200 200 /api/projects/alpha/members
PUT    401 404 403 403 204 204 403 403 /api/projects/alpha/members/sam {"role": "viewer"}
DELETE 401 404 204 403 204 204 403 403 /api/projects/alpha/members/vera
GET    401 404 403 403 200 200 403 403 /api/projects/alpha/invitations
POST   401 404 403 403 201 201 403 403 /api/projects/alpha/invitations {"role": "editor"}
DELETE 401 404 403 403 204 204 403 403 /api/projects/alpha/invitations/TO-PROJECT
GET    401 404 403 403 200 200 200 200 /api/projects/alpha/audit
GET    401 404 403 403 200 200 200 200 /api/projects/alpha/export
# What is none has tests of its own.
POST   401 422 422 422 422 422 403 422 /api/projects/import
GET    401 404 200 200 200 200 200 200 /api/projects/alpha/keys
GET    401 403 403 403 403 200 200 200 /api/keys
POST   401 403 403 403 403 204 403 403 /api/keys {"name": "other", "settings": "SETTINGS", "secret": "sk-1"}
PUT    401 403 403 403 403 204 403 403 /api/keys/openai {"settings": "SETTINGS"}
DELETE 401 403 403 403 403 204 403 403 /api/keys/openai
PUT    401 403 403 403 403 204 403 403 /api/limits/member/vera {"usd": 5.0, "requests": 100}
GET    401 403 403 403 403 200 200 200 /api/limits
GET    401 403 403 403 403 200 200 200 /api/usage
GET    401 200 200 200 200 200 200 200 /api/runs
GET    read                            /api/runs/RUN
PATCH  edit 200                        /api/runs/RUN {"name": "Second"}
DELETE edit 204                        /api/runs/RUN
POST   edit 200                        /api/runs/RUN/orders {"order": "stop"}
# It has no journal yet.
POST   edit 422                        /api/runs/RUN/branches {"name": "Branch", "round": 0, "start": false}
GET    read                            /api/runs/RUN/journal
GET    read                            /api/runs/RUN/events
POST   edit 201                        /api/projects/alpha/runs {"name": "Second", "study": "STUDY"}
POST   edit 422                        /api/projects/alpha/journals?name=Mine {"event": "round"}
GET    read                            /api/projects/alpha/files/FILE
GET    read                            /api/projects/alpha/files/FILE/content
PUT    edit 200                        /api/projects/alpha/files/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
GET    read                            /api/projects/alpha/data
POST   edit 201                        /api/projects/alpha/data {"name": "other.csv", "sha256": "FILE"}
GET    read                            /api/projects/alpha/data/DATA
GET    read                            /api/projects/alpha/data/DATA/content
DELETE edit 204                        /api/projects/alpha/data/DATA
GET    read                            /api/projects/alpha/certificates
GET    read                            /api/projects/alpha/prompts
GET    read                            /api/projects/alpha/prompts/greeting
DELETE 401 404 403 403 204 204 403 403 /api/projects/alpha/prompts/greeting
GET    read                            /api/projects/alpha/prompts/greeting/versions
POST   edit 201                        /api/projects/alpha/prompts/greeting/versions {"text": "Greet the customer by name."}
GET    read                            /api/projects/alpha/prompts/greeting/labels/candidate
# What only people may move has a test of its own.
PUT    edit 200                        /api/projects/alpha/prompts/greeting/labels/canary {"version": 1, "seen": "SEEN", "was": 0}
DELETE edit 204                        /api/projects/alpha/prompts/greeting/labels/candidate
GET    read                            /api/projects/alpha/prompts/greeting/labels/candidate/history
GET    read                            /api/projects/alpha/trainings
POST   edit 201                        /api/projects/alpha/trainings {"name": "Second", "kind": "sft", "start": {"from": "fresh"}, "runs": ["LEARNED"], "study": "STUDY"}
GET    read                            /api/projects/alpha/trainings/TRAINING
DELETE edit 204                        /api/projects/alpha/trainings/TRAINING
POST   edit 200                        /api/projects/alpha/trainings/TRAINING/orders {"order": "stop"}
GET    read                            /api/projects/alpha/trainings/TRAINING/events
GET    read                            /api/projects/alpha/trainings/TRAINING/checkpoints
GET    read                            /api/projects/alpha/trainings/TRAINING/checkpoints/2
GET    401 200 200 200 200 200 200 200 /api/models/v1/models
GET    401 200 200 200 200 200 200 200 /api/models/v1/models/desk
POST   401 200 200 200 200 200 403 200 /api/models/v1/chat/completions {}
"#;

pub(super) fn table() -> Vec<Row> {
    let rows = ROUTES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(row).collect()
}

/// What else names something that belongs to a project, mostly in what is sent.
pub(super) fn naming() -> Vec<Row> {
    let asks_rewriter =
        format!("{STUDY}\n[models.rewriter]\nprovider = \"local\"\nmodel = \"training:TRAINING\"\n");
    let start = json!({ "from": "training", "training": "TRAINING", "step": 2 });
    let rows = [
        ("GET", "/api/runs?project=alpha", Value::Null),
        ("PUT", "/api/projects/alpha/files/FILE", Value::Null),
        (
            "POST",
            "/api/projects/alpha/runs",
            json!({ "name": "Second", "study": STUDY, "files": { "rows.csv": "FILE" } }),
        ),
        (
            "POST",
            "/api/projects/alpha/runs",
            json!({ "name": "Second", "study": asks_rewriter }),
        ),
        (
            "POST",
            "/api/projects/alpha/journals?name=Mine&files=%7B%22rows.csv%22:%22FILE%22%7D",
            Value::Null,
        ),
        (
            "POST",
            "/api/projects/alpha/prompts/greeting/versions",
            json!({ "run": "LEARNED" }),
        ),
        (
            "POST",
            "/api/projects/alpha/trainings",
            json!({ "name": "Third", "kind": "grpo", "start": start, "study": STUDY }),
        ),
    ];
    let row = |(method, path, body)| (method, path, body, [0; 8]);
    rows.into_iter().map(row).collect()
}

fn row(line: &'static str) -> Row {
    let (expected, sent) = line.split_at(line.find('/').unwrap());
    let (path, body) = sent.split_once(' ').unwrap_or((sent, "null"));
    let settings = json!({ "provider": "openai", "projects": ["alpha"], "models": [{ "name": "gpt-*" }] });
    let body = body
        .replace("\"SETTINGS\"", &settings.to_string())
        .replace("\"PASSWORD\"", &json!(PASSWORD).to_string())
        .replace("\"STUDY\"", &json!(STUDY).to_string());
    let mut words = expected.split_whitespace();
    let method = words.next().unwrap();
    let expected = match &words.collect::<Vec<_>>()[..] {
        ["read"] => [401, 404, 200, 200, 200, 200, 200, 200],
        ["edit", status] => {
            let status = status.parse().unwrap();
            [401, 404, 403, status, status, status, 403, status]
        }
        [status] => [status.parse().unwrap(); 8],
        each => std::array::from_fn(|place| each[place].parse().unwrap()),
    };
    (method, path, serde_json::from_str(&body).unwrap(), expected)
}

/// Whether a path with its ids is one of a route.
fn is_of(path: &str, pattern: &str) -> bool {
    let path: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
    let pattern: Vec<&str> = pattern.split('/').collect();
    let is_part = |(part, pattern): (&&str, &&str)| pattern.starts_with('{') || part == pattern;
    path.len() == pattern.len() && path.iter().zip(&pattern).all(is_part)
}

/// Whether the document has a status among the answers to a request.
fn declares(document: &Value, method: &str, path: &str, status: u16) -> bool {
    let routes = document["paths"].as_object().unwrap().iter();
    let mut routes = routes.filter(|(pattern, _)| is_of(path, pattern));
    routes.any(|(_, operations)| {
        let answers = &operations[method.to_lowercase()]["responses"];
        let kinds = [status.to_string(), format!("{}XX", status / 100)];
        kinds.iter().any(|kind| answers[kind].is_object())
    })
}

on_each_database!(everybody_gets_from_every_route_what_they_may);
async fn everybody_gets_from_every_route_what_they_may(store: Store) {
    let described = serde_json::to_value(openapi()).unwrap();
    let mut team = Team::on(store).await;
    for (method, path, body, expected) in table() {
        for (who, expected) in ALL.into_iter().zip(expected) {
            let (status, document) = team.ask(who, method, path, body.clone()).await;
            if method != "GET" && (status < 400 || path == "/api/session") {
                team = team.anew().await;
            }
            assert_eq!(status, expected, "{method} {path} by {who:?}: {document}");
            assert!(
                declares(&described, method, path, status),
                "{method} {path}: {status} is not in the document"
            );
            if status >= 400 {
                assert_eq!(document["status"], status, "a problem document: {document}");
                assert!(
                    document["detail"]
                        .as_str()
                        .is_some_and(|detail| !detail.is_empty())
                );
            }
        }
    }
}

on_each_database!(a_zero_character_breaks_nothing);
async fn a_zero_character_breaks_nothing(store: Store) {
    let described = serde_json::to_value(openapi()).unwrap();
    let team = Team::on(store).await;
    let names = "alpha candidate canary greeting openai sam vera".split(' ');
    let ids = team.ids.iter().map(|(name, _)| *name);
    for name in ids.chain(names) {
        for (method, path, body, _) in table().into_iter().chain(naming()) {
            // In an address, too, a document of JSON has it escaped.
            let there = path.replace(&format!("%22{name}"), r"%22%5Cu0000");
            let there = there.replace(name, "%00");
            let plain = (path.to_owned(), body.to_string());
            let sent = plain.1.replace(name, r"\u0000");
            for request in [(there, plain.1.clone()), (path.to_owned(), sent)] {
                if request == plain {
                    continue;
                }
                let (there, sent) = request;
                let body = serde_json::from_str(&sent).unwrap();
                let (status, document) = team.ask(Who::Root, method, &there, body).await;
                assert!(
                    status < 500 && declares(&described, method, &there, status),
                    "{method} {there} {sent}: {status} {document}"
                );
            }
        }
    }
}

#[test]
fn the_table_has_all_routes() {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut described: Vec<(String, String)> = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        described.extend(
            operations
                .as_object()
                .unwrap()
                .keys()
                .map(|method| (method.to_uppercase(), path.clone())),
        );
    }
    let matches = |method: &str, pattern: &str| {
        let mut rows = table().into_iter();
        rows.any(|(of, path, ..)| of == method && is_of(path, pattern))
    };
    for (method, path) in &described {
        assert!(matches(method, path), "{method} {path} is not in the table");
    }
    assert_eq!(described.len(), table().len());
}
