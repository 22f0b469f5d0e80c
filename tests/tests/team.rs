//! `capo serve` and `capo admin`, as whoever runs the server uses them.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use capo_tests::program::{Server, capo, command, run};
use serde_json::{Value, json};
use team_server::{PASSWORD, ask, create_user};
use tempfile::TempDir;

/// Serves on a port of its own.
fn serving(folder: &Path) -> Command {
    team_server::serving(folder, "127.0.0.1:0")
}

#[test]
fn a_server_is_set_up_by_its_link_and_keeps_what_it_knows_when_it_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&mut serving(folder.path()));
    let line = server.next_line();
    let link = line.strip_prefix("make the first administrator at ").unwrap();
    let (page, secret) = link.split_once('#').unwrap();
    assert_eq!(page, format!("{}/set-up", server.base_url));
    let none = Value::Null;
    assert_eq!(ask(&server, "GET", "/api/projects", &[], &none).status, 401);
    let first = json!({ "secret": secret, "name": "ada", "password": PASSWORD });
    let made = ask(&server, "POST", "/api/set-up", &[], &first);
    assert_eq!(made.status, 201, "{}", made.body);
    let cookie = made.cookie.unwrap();
    let origin = server.base_url.clone();
    let in_page = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let project = json!({ "name": "help-desk", "title": "Help desk" });
    assert_eq!(
        ask(&server, "POST", "/api/projects", &in_page, &project).status,
        201
    );
    let new = json!({ "name": "ci", "scope": "read", "days": 30 });
    let token = ask(&server, "POST", "/api/tokens", &in_page, &new).body["secret"].clone();
    server.kill();

    // No other link is printed, and everybody is still signed in.
    let server = Server::start(&mut serving(folder.path()));
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    for headers in [("cookie", cookie.as_str()), ("authorization", bearer.as_str())] {
        let projects = ask(&server, "GET", "/api/projects", &[headers], &none);
        assert_eq!(projects.body[0]["name"], "help-desk", "{}", projects.body);
    }
    let again = ask(&server, "POST", "/api/set-up", &[], &first);
    assert_eq!(again.status, 409, "{}", again.body);
    server.stop();
    // What is kept opens nothing.
    let database = std::fs::read(folder.path().join("capo.db")).unwrap();
    for secret in [
        PASSWORD,
        secret,
        token.as_str().unwrap(),
        cookie.split_once('=').unwrap().1,
    ] {
        let secret = secret.as_bytes();
        assert!(!database.windows(secret.len()).any(|bytes| bytes == secret));
    }
}

#[test]
fn an_account_is_made_from_the_servers_machine_while_it_runs() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&mut serving(folder.path()));
    let made = create_user(folder.path(), &["Ada", "--admin"], PASSWORD).expect_code(0);
    assert_eq!(made.stdout, "made the account ada, who administers the server\n");
    let credentials = json!({ "name": "ada", "password": PASSWORD });
    let entered = ask(&server, "POST", "/api/session", &[], &credentials);
    assert_eq!((entered.status, &entered.body["is_admin"]), (201, &json!(true)));
    create_user(folder.path(), &["ada"], PASSWORD)
        .expect_code(1)
        .expect_error(&["already a member"]);
    create_user(folder.path(), &["bea"], "password123")
        .expect_code(64)
        .expect_error(&["easily guessed"]);
    create_user(folder.path(), &["no name"], PASSWORD)
        .expect_code(64)
        .expect_error(&["2 to 64 letters"]);
}

#[test]
fn its_own_models_answer_who_has_a_token() {
    let folder = TempDir::new().unwrap();
    create_user(folder.path(), &["ada", "--admin"], PASSWORD).expect_code(0);
    let server = Server::start(&mut serving(folder.path()));
    let credentials = json!({ "name": "ada", "password": PASSWORD });
    let cookie = ask(&server, "POST", "/api/session", &[], &credentials)
        .cookie
        .unwrap();
    let origin = server.base_url.clone();
    let in_page = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let token = |scope: &str| {
        let new = json!({ "name": scope, "scope": scope, "days": 1 });
        let made = ask(&server, "POST", "/api/tokens", &in_page, &new);
        format!("Bearer {}", made.body["secret"].as_str().unwrap())
    };
    let (writes, reads) = (token("write"), token("read"));
    let at = |headers: &[(&str, &str)], method: &str, path: &str, body: &Value| {
        ask(&server, method, &format!("/api/models/v1/{path}"), headers, body)
    };
    let with = |token: &str, body: &Value| at(&[("authorization", token)], "POST", "chat/completions", body);
    let question = json!({
        "model": "sim-small",
        "seed": 7,
        "messages": [{ "role": "user", "content": "Where is my order?" }],
    });
    let first = with(&writes, &question);
    assert_eq!(first.status, 200, "{}", first.body);
    let said = |answer: &Value| answer["choices"][0]["message"].clone();
    assert_eq!(said(&first.body), said(&with(&writes, &question).body));
    let listed = at(&[("authorization", &reads)], "GET", "models", &Value::Null);
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 3);
    let unknown = json!({ "model": "large", "messages": question["messages"] });
    assert_eq!(with(&writes, &unknown).body["error"]["code"], "model_not_found");

    assert_eq!(with(&reads, &question).status, 403);
    assert_eq!(with("Bearer capo_made_up", &question).status, 401);
    assert_eq!(at(&[], "GET", "models", &Value::Null).status, 401);
    let elsewhere = [
        ("cookie", cookie.as_str()),
        ("origin", "https://elsewhere.example"),
    ];
    assert_eq!(at(&elsewhere, "POST", "chat/completions", &question).status, 403);
    assert_eq!(
        at(&[("authorization", &writes)], "GET", "files", &Value::Null).status,
        404
    );
}

#[test]
fn what_keeps_a_server_from_starting_is_said() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&mut serving(folder.path()));
    run(&mut serving(folder.path())).expect_code(1).expect_error(&[
        "in use by process",
        server.base_url.trim_start_matches("http://"),
        "--data",
    ]);
    let other = TempDir::new().unwrap();
    let address = server.base_url.trim_start_matches("http://");
    let mut taken = command(["serve", "--api-only", "--addr", address, "--data"]);
    run(taken.arg(other.path()))
        .expect_code(1)
        .expect_error(&[address, "--addr"]);
    let wrong = "mysql://root:secret@localhost/capo";
    let refused = run(serving(other.path()).args(["--database", wrong])).expect_code(1);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    refused.expect_error(&["mysql://root:…@localhost/capo", "sqlite:PATH"]);
    // A port that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let nobody = format!("postgres://capo:secret@127.0.0.1:{port}/capo");
    let refused = run(serving(other.path()).args(["--database", &nobody])).expect_code(1);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    refused.expect_error(&["database"]);
    let mut no_page = command(["serve", "--addr", "127.0.0.1:0", "--page"]);
    run(no_page.arg(other.path()).arg("--data").arg(other.path()))
        .expect_code(1)
        .expect_error(&["index.html"]);
    run(serving(other.path()).args(["--rewriter", "sim-small=runs/desk.grpo"]))
        .expect_code(64)
        .expect_error(&["sim-small", "another name"]);
    run(serving(other.path()).args(["--rewriter", "desk=runs/desk.grpo"]))
        .expect_code(1)
        .expect_error(&["desk", "runs/desk.grpo"]);
    run(serving(other.path()).args(["--public-url", "capo.example.org"]))
        .expect_code(64)
        .expect_error(&["https://capo.example.org"]);
}

#[test]
fn the_platforms_folder_for_data_is_used() {
    let home = TempDir::new().unwrap();
    let mut serve = Command::new(capo());
    serve.args(["serve", "--addr", "127.0.0.1:0", "--api-only"]);
    serve
        .env_clear()
        .env("XDG_DATA_HOME", home.path())
        .env("HOME", home.path());
    let server = Server::start(&mut serve);
    assert!(home.path().join("capo").join("capo.db").is_file());
    server.interrupt();
    server.expect_end(Duration::from_secs(20));
}

#[test]
fn keys_outlive_a_new_master_key_and_a_wrong_one_is_said() {
    let folder = TempDir::new().unwrap();
    create_user(folder.path(), &["bea"], PASSWORD)
        .expect_code(64)
        .expect_error(&["--admin"]);
    create_user(
        folder.path(),
        &["ada", "--admin"],
        "another long password of hers",
    )
    .expect_code(0);
    let mut set = command(["admin", "set-password", "ada", "--data"]);
    let mut child = set
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{PASSWORD}").unwrap();
    assert!(child.wait().unwrap().success());
    let enter = |server: &Server| {
        let credentials = json!({ "name": "ada", "password": PASSWORD });
        let entered = ask(server, "POST", "/api/session", &[], &credentials);
        assert_eq!(entered.status, 201, "{}", entered.body);
        entered.cookie.unwrap()
    };
    let usable = |server: &Server, cookie: &str| {
        ask(server, "GET", "/api/keys", &[("cookie", cookie)], &Value::Null).body[0]["is_usable"].clone()
    };
    let server = Server::start(&mut serving(folder.path()));
    let cookie = enter(&server);
    let origin = server.base_url.clone();
    let settings = json!({ "provider": "openai", "projects": [], "models": [{ "name": "gpt-*" }] });
    let new = json!({ "name": "openai", "settings": settings, "secret": "sk-of-the-team" });
    let in_page = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    assert_eq!(ask(&server, "POST", "/api/keys", &in_page, &new).status, 204);
    assert_eq!(usable(&server, &cookie), true);
    let rotate = || {
        let mut rotate = command(["admin", "rotate-key", "--data"]);
        rotate.arg(folder.path());
        run(&mut rotate)
    };
    rotate().expect_code(1).expect_error(&["in use by process"]);
    server.stop();
    let master = folder.path().join("master.key");
    let before = std::fs::read_to_string(&master).unwrap();
    assert_eq!(
        rotate().expect_code(0).stdout,
        "encrypted 1 key with a new master key\n"
    );
    let after = std::fs::read_to_string(&master).unwrap();
    assert_ne!(before, after);
    let server = Server::start(&mut serving(folder.path()));
    assert_eq!(usable(&server, &cookie), true);
    server.stop();
    // Broken off between the database and the file: the new key stands beside the old one.
    std::fs::rename(&master, folder.path().join("master.key.next")).unwrap();
    std::fs::write(&master, &before).unwrap();
    let server = Server::start(&mut serving(folder.path()));
    assert_eq!(usable(&server, &cookie), true);
    server.stop();
    assert_eq!(std::fs::read_to_string(&master).unwrap(), after);
    // Another one: the server starts, and says so.
    std::fs::write(&master, &before).unwrap();
    let server = Server::start(&mut serving(folder.path()));
    assert_eq!(usable(&server, &cookie), false);
    let refused = ask(&server, "POST", "/api/keys", &in_page, &new);
    assert!(refused.status == 403 || refused.status == 503, "{}", refused.body);
    server.stop();
    rotate().expect_code(1).expect_error(&["master"]);
    let database = std::fs::read(folder.path().join("capo.db")).unwrap();
    assert!(!database.windows(14).any(|bytes| bytes == b"sk-of-the-team"));
}
