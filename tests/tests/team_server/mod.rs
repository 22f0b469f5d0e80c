//! A team server under test, and a program that asks it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use capo_tests::program::{Ended, Server, command};
use serde_json::{Value, json};
use ureq::Agent;

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// Serves what is kept in a folder at an address, without the page.
pub(crate) fn serving(folder: &Path, address: &str) -> Command {
    let mut serve = command(["serve", "--addr", address, "--api-only", "--data"]);
    serve.arg(folder);
    serve
}

/// A client that keeps no cookies, and says what came back whatever it is.
fn client() -> Agent {
    Agent::config_builder().http_status_as_error(false).build().into()
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) cookie: Option<String>,
    pub(crate) body: Value,
}

/// Asks as a program would: without `Origin`.
pub(crate) fn ask(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let url = format!("{}{path}", server.base_url);
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = if body.is_null() {
        client().run(request.body(()).unwrap()).unwrap()
    } else {
        let request = request.header("content-type", "application/json");
        client().run(request.body(body.to_string()).unwrap()).unwrap()
    };
    let cookie = answer
        .headers()
        .get("set-cookie")
        .map(|set| set.to_str().unwrap());
    let cookie = cookie.map(|set| set.split(';').next().unwrap().to_owned());
    let text = answer.body_mut().read_to_string().unwrap();
    Answer {
        status: answer.status().as_u16(),
        cookie,
        body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

/// The cookie of a member who signs in.
pub(crate) fn enter(server: &Server, name: &str) -> String {
    let credentials = json!({ "name": name, "password": PASSWORD });
    let entered = ask(server, "POST", "/api/session", &[], &credentials);
    assert_eq!(entered.status, 201, "{}", entered.body);
    entered.cookie.unwrap()
}

/// What is answered to the page of who has a cookie, where it makes something.
pub(crate) fn made(server: &Server, cookie: &str, path: &str, new: &Value) -> Value {
    let in_page = [("cookie", cookie), ("origin", server.base_url.as_str())];
    let answer = ask(server, "POST", path, &in_page, new);
    assert!(answer.status < 300, "{path}: {}", answer.body);
    answer.body
}

/// A new token with which programs change things.
pub(crate) fn token(server: &Server, cookie: &str) -> String {
    let new = json!({ "name": "test", "scope": "write", "days": 1 });
    let token = made(server, cookie, "/api/tokens", &new);
    token["secret"].as_str().unwrap().to_owned()
}

pub(crate) fn create_user(folder: &Path, arguments: &[&str], password: &str) -> Ended {
    let mut admin = command(["admin", "create-user", "--data"]);
    let child = admin
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    child.wait_with_output().unwrap().into()
}
