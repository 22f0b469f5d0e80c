//! Every route, asked by everybody who may be there.

use serde_json::{Value, json};

use super::{ALL, PASSWORD, STUDY, Team};
use crate::http::openapi;
use crate::store::Store;
use crate::store::tests::on_each_database;

/// A route with what everybody gets, in the order of [`ALL`].
pub(super) type Row = (&'static str, &'static str, Value, [u16; 8]);

fn settings() -> Value {
    json!({ "provider": "openai", "projects": ["alpha"], "models": [{ "name": "gpt-*" }] })
}

/// All routes. Who is not signed in gets 401, who has no role in a project 404, who has too small a one 403; tokens do
/// nothing that concerns accounts.
pub(super) fn table() -> Vec<Row> {
    let none = Value::Null;
    let wrong = json!({ "name": "eve", "password": "wrong password" });
    vec![
        ("GET", "/healthz", none.clone(), [200; 8]),
        ("GET", "/readyz", none.clone(), [200; 8]),
        ("GET", "/api", none.clone(), [200; 8]),
        (
            "POST",
            "/api/set-up",
            json!({ "secret": "x", "name": "eve", "password": PASSWORD }),
            [409; 8],
        ),
        ("POST", "/api/session", wrong, [401; 8]),
        (
            "DELETE",
            "/api/session",
            none.clone(),
            [401, 204, 204, 204, 204, 204, 403, 403],
        ),
        (
            "GET",
            "/api/sessions",
            none.clone(),
            [401, 200, 200, 200, 200, 200, 403, 403],
        ),
        (
            "DELETE",
            "/api/sessions/SESSION",
            none.clone(),
            [401, 404, 404, 404, 404, 204, 403, 403],
        ),
        // This team has no issuer; what one says has tests of its own.
        ("POST", "/api/oidc/request", json!({ "to": "sign-in" }), [404; 8]),
        (
            "POST",
            "/api/oidc/response",
            json!({ "code": "x", "state": "x" }),
            [404; 8],
        ),
        (
            "GET",
            "/api/identities",
            none.clone(),
            [401, 200, 200, 200, 200, 200, 403, 403],
        ),
        (
            "DELETE",
            "/api/identities/IDENTITY",
            none.clone(),
            [401, 404, 404, 404, 404, 204, 403, 403],
        ),
        (
            "GET",
            "/api/tokens",
            none.clone(),
            [401, 200, 200, 200, 200, 200, 403, 403],
        ),
        (
            "POST",
            "/api/tokens",
            json!({ "name": "laptop", "scope": "write", "days": 30 }),
            [401, 201, 201, 201, 201, 201, 403, 403],
        ),
        (
            "DELETE",
            "/api/tokens/TOKEN",
            none.clone(),
            [401, 404, 404, 404, 404, 204, 403, 403],
        ),
        (
            "PUT",
            "/api/password",
            json!({ "old": "not it", "new": PASSWORD }),
            [401, 403, 403, 403, 403, 403, 403, 403],
        ),
        (
            "GET",
            "/api/members",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 200, 200],
        ),
        (
            "POST",
            "/api/members",
            json!({ "secret": "SECRET", "name": "eve", "password": PASSWORD }),
            [201; 8],
        ),
        (
            "PATCH",
            "/api/members/vera",
            json!({ "is_disabled": true }),
            [401, 403, 403, 403, 403, 200, 403, 403],
        ),
        (
            "GET",
            "/api/invitations",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 403, 403],
        ),
        (
            "POST",
            "/api/invitations",
            json!({}),
            [401, 403, 403, 403, 403, 201, 403, 403],
        ),
        (
            "DELETE",
            "/api/invitations/INVITATION",
            none.clone(),
            [401, 403, 403, 403, 403, 204, 403, 403],
        ),
        (
            "GET",
            "/api/audit",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 200, 200],
        ),
        (
            "GET",
            "/api/projects",
            none.clone(),
            [401, 200, 200, 200, 200, 200, 200, 200],
        ),
        (
            "POST",
            "/api/projects",
            json!({ "name": "gamma", "title": "Gamma" }),
            [401, 201, 201, 201, 201, 201, 403, 201],
        ),
        (
            "GET",
            "/api/projects/alpha",
            none.clone(),
            [401, 404, 200, 200, 200, 200, 200, 200],
        ),
        (
            "PATCH",
            "/api/projects/alpha",
            json!({ "title": "Other" }),
            [401, 404, 403, 403, 200, 200, 403, 200],
        ),
        (
            "DELETE",
            "/api/projects/alpha",
            none.clone(),
            [401, 404, 403, 403, 204, 204, 403, 403],
        ),
        (
            "GET",
            "/api/projects/alpha/members",
            none.clone(),
            [401, 404, 200, 200, 200, 200, 200, 200],
        ),
        (
            "PUT",
            "/api/projects/alpha/members/sam",
            json!({ "role": "viewer" }),
            [401, 404, 403, 403, 204, 204, 403, 403],
        ),
        (
            "DELETE",
            "/api/projects/alpha/members/vera",
            none.clone(),
            [401, 404, 204, 403, 204, 204, 403, 403],
        ),
        (
            "GET",
            "/api/projects/alpha/invitations",
            none.clone(),
            [401, 404, 403, 403, 200, 200, 403, 403],
        ),
        (
            "POST",
            "/api/projects/alpha/invitations",
            json!({ "role": "editor" }),
            [401, 404, 403, 403, 201, 201, 403, 403],
        ),
        (
            "DELETE",
            "/api/projects/alpha/invitations/TO-PROJECT",
            none.clone(),
            [401, 404, 403, 403, 204, 204, 403, 403],
        ),
        (
            "GET",
            "/api/projects/alpha/audit",
            none.clone(),
            [401, 404, 403, 403, 200, 200, 200, 200],
        ),
        (
            "GET",
            "/api/projects/alpha/export",
            none.clone(),
            [401, 404, 403, 403, 200, 200, 200, 200],
        ),
        // What is none has tests of its own.
        (
            "POST",
            "/api/projects/import",
            none.clone(),
            [401, 422, 422, 422, 422, 422, 403, 422],
        ),
        (
            "GET",
            "/api/projects/alpha/keys",
            none.clone(),
            [401, 404, 200, 200, 200, 200, 200, 200],
        ),
        (
            "GET",
            "/api/keys",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 200, 200],
        ),
        (
            "POST",
            "/api/keys",
            json!({ "name": "other", "settings": settings(), "secret": "sk-1" }),
            [401, 403, 403, 403, 403, 204, 403, 403],
        ),
        (
            "PUT",
            "/api/keys/openai",
            json!({ "settings": settings() }),
            [401, 403, 403, 403, 403, 204, 403, 403],
        ),
        (
            "DELETE",
            "/api/keys/openai",
            none.clone(),
            [401, 403, 403, 403, 403, 204, 403, 403],
        ),
        (
            "PUT",
            "/api/limits/member/vera",
            json!({ "usd": 5.0, "requests": 100 }),
            [401, 403, 403, 403, 403, 204, 403, 403],
        ),
        (
            "GET",
            "/api/limits",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 200, 200],
        ),
        (
            "GET",
            "/api/usage",
            none.clone(),
            [401, 403, 403, 403, 403, 200, 200, 200],
        ),
        (
            "GET",
            "/api/runs",
            none.clone(),
            [401, 200, 200, 200, 200, 200, 200, 200],
        ),
        ("GET", "/api/runs/RUN", none.clone(), READ),
        ("PATCH", "/api/runs/RUN", json!({ "name": "Second" }), edit(200)),
        ("DELETE", "/api/runs/RUN", none.clone(), edit(204)),
        (
            "POST",
            "/api/runs/RUN/orders",
            json!({ "order": "stop" }),
            edit(200),
        ),
        // It has no journal yet.
        (
            "POST",
            "/api/runs/RUN/branches",
            json!({ "name": "Branch", "round": 0, "start": false }),
            edit(422),
        ),
        ("GET", "/api/runs/RUN/journal", none.clone(), READ),
        ("GET", "/api/runs/RUN/events", none.clone(), READ),
        (
            "POST",
            "/api/projects/alpha/runs",
            json!({ "name": "Second", "study": STUDY }),
            edit(201),
        ),
        (
            "POST",
            "/api/projects/alpha/journals?name=Mine",
            json!({ "event": "round" }),
            edit(422),
        ),
        ("GET", "/api/projects/alpha/files/FILE", none.clone(), READ),
        (
            "GET",
            "/api/projects/alpha/files/FILE/content",
            none.clone(),
            READ,
        ),
        (
            "PUT",
            concat!(
                "/api/projects/alpha/files/",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            ),
            none.clone(),
            edit(200),
        ),
        ("GET", "/api/projects/alpha/data", none.clone(), READ),
        (
            "POST",
            "/api/projects/alpha/data",
            json!({ "name": "other.csv", "sha256": "FILE" }),
            edit(201),
        ),
        ("GET", "/api/projects/alpha/data/DATA", none.clone(), READ),
        ("GET", "/api/projects/alpha/data/DATA/content", none.clone(), READ),
        ("DELETE", "/api/projects/alpha/data/DATA", none.clone(), edit(204)),
        ("GET", "/api/projects/alpha/certificates", none.clone(), READ),
        ("GET", "/api/projects/alpha/prompts", none.clone(), READ),
        ("GET", "/api/projects/alpha/prompts/greeting", none.clone(), READ),
        (
            "DELETE",
            "/api/projects/alpha/prompts/greeting",
            none.clone(),
            [401, 404, 403, 403, 204, 204, 403, 403],
        ),
        (
            "GET",
            "/api/projects/alpha/prompts/greeting/versions",
            none.clone(),
            READ,
        ),
        (
            "POST",
            "/api/projects/alpha/prompts/greeting/versions",
            json!({ "text": "Greet the customer by name." }),
            edit(201),
        ),
        (
            "GET",
            "/api/projects/alpha/prompts/greeting/labels/candidate",
            none.clone(),
            READ,
        ),
        // What only people may move has a test of its own.
        (
            "PUT",
            "/api/projects/alpha/prompts/greeting/labels/canary",
            json!({ "version": 1, "seen": "SEEN", "was": 0 }),
            edit(200),
        ),
        (
            "DELETE",
            "/api/projects/alpha/prompts/greeting/labels/candidate",
            none.clone(),
            edit(204),
        ),
        (
            "GET",
            "/api/projects/alpha/prompts/greeting/labels/candidate/history",
            none.clone(),
            READ,
        ),
        ("GET", "/api/projects/alpha/trainings", none.clone(), READ),
        (
            "POST",
            "/api/projects/alpha/trainings",
            json!({ "name": "Second", "kind": "sft", "start": { "from": "fresh" }, "runs": ["LEARNED"], "study": STUDY }),
            edit(201),
        ),
        (
            "GET",
            "/api/projects/alpha/trainings/TRAINING",
            none.clone(),
            READ,
        ),
        (
            "DELETE",
            "/api/projects/alpha/trainings/TRAINING",
            none.clone(),
            edit(204),
        ),
        (
            "POST",
            "/api/projects/alpha/trainings/TRAINING/orders",
            json!({ "order": "stop" }),
            edit(200),
        ),
        (
            "GET",
            "/api/projects/alpha/trainings/TRAINING/events",
            none.clone(),
            READ,
        ),
        (
            "GET",
            "/api/projects/alpha/trainings/TRAINING/checkpoints",
            none.clone(),
            READ,
        ),
        (
            "GET",
            "/api/projects/alpha/trainings/TRAINING/checkpoints/2",
            none.clone(),
            READ,
        ),
        // This team has no models of its own.
        ("GET", "/api/models/v1/models", none.clone(), [404; 8]),
        ("GET", "/api/models/v1/models/desk", none, [404; 8]),
        ("POST", "/api/models/v1/chat/completions", json!({}), [404; 8]),
    ]
}

/// What those get who may read in a project.
const READ: [u16; 8] = [401, 404, 200, 200, 200, 200, 200, 200];

/// What everybody gets where editors of a project get this.
fn edit(status: u16) -> [u16; 8] {
    [401, 404, 403, status, status, status, 403, status]
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
