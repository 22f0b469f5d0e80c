//! `capo serve` and `capo admin`, as whoever runs the server uses them.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/shared_key.rs"]
mod shared_key;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use capo_tests::program::{Ended, Server, capo, command, read, run};
use capo_tests::stub::{Answer, Stub};
use serde_json::{Value, json};
use shared_key::{SECRET, shared_key};
use team_server::{PASSWORD, ask, create_user, enter};
use tempfile::TempDir;
use ureq::Agent;

/// The variable with a master key.
const MASTER: &str = "CAPO_MASTER_KEY";

/// Serves on a port of its own.
fn serving(folder: &Path) -> Command {
    team_server::serving(folder, "127.0.0.1:0")
}

/// The same with a master key in its variable.
fn serving_with(folder: &Path, master: &str) -> Command {
    let mut serve = serving(folder);
    serve.env(MASTER, master);
    serve
}

/// What `capo admin` says of a folder.
fn administer(folder: &Path, change: impl FnOnce(&mut Command) -> &mut Command) -> Ended {
    let mut admin = command(["admin"]);
    run(change(&mut admin).arg("--data").arg(folder))
}

/// The status with which a provider's key is added.
fn add_key(server: &Server, cookie: &str, name: &str) -> u16 {
    let settings = json!({ "provider": "openai", "projects": [], "models": [{ "name": "gpt-*" }] });
    let new = json!({ "name": name, "settings": settings, "secret": SECRET });
    let in_page = [("cookie", cookie), ("origin", server.base_url.as_str())];
    ask(server, "POST", "/api/keys", &in_page, &new).status
}

/// Whether the first key can be used.
fn is_usable(server: &Server, cookie: &str) -> Value {
    ask(server, "GET", "/api/keys", &[("cookie", cookie)], &Value::Null).body[0]["is_usable"].clone()
}

/// Status, content type and text of an address, for a program that sends nothing of its own.
fn fetched(server: &Server, path: &str) -> (u16, String, String) {
    let client: Agent = Agent::config_builder().http_status_as_error(false).build().into();
    let answer = client.get(format!("{}{path}", server.base_url)).call();
    let mut answer = answer.expect("the server answers");
    let kind = answer.headers().get("content-type").cloned();
    let kind = kind.expect("an answer says what it is");
    let text = answer.body_mut().read_to_string().expect("the answer is text");
    let kind = String::from_utf8_lossy(kind.as_bytes()).into_owned();
    (answer.status().as_u16(), kind, text)
}

#[test]
fn a_server_is_set_up_by_its_secret_and_keeps_what_it_knows_when_it_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&mut serving(folder.path()));
    let line = server.next_line();
    // Without the page there is no link to follow.
    let (told, secret) = line.split_once(" and the secret ").unwrap();
    let call = format!("POST {}/api/set-up", server.base_url);
    assert!(
        told.contains("capo admin create-user") && told.contains(&call),
        "{told}"
    );
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

    // No other secret is printed, and everybody is still signed in.
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
    let cookie = enter(&server, "ada");
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
    let server = Server::start(&mut serving(folder.path()));
    let cookie = enter(&server, "ada");
    assert_eq!(add_key(&server, &cookie, "openai"), 204);
    assert_eq!(is_usable(&server, &cookie), true);
    let rotate = || administer(folder.path(), |admin| admin.arg("rotate-key"));
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
    assert_eq!(is_usable(&server, &cookie), true);
    server.stop();
    // Broken off between the database and the file: the new key stands beside the old one.
    std::fs::rename(&master, folder.path().join("master.key.next")).unwrap();
    std::fs::write(&master, &before).unwrap();
    let server = Server::start(&mut serving(folder.path()));
    assert_eq!(is_usable(&server, &cookie), true);
    server.stop();
    assert_eq!(std::fs::read_to_string(&master).unwrap(), after);
    // Another one: the server starts, and says so.
    std::fs::write(&master, &before).unwrap();
    let server = Server::start(&mut serving(folder.path()));
    assert_eq!(is_usable(&server, &cookie), false);
    assert_eq!(add_key(&server, &cookie, "another"), 503);
    server.stop();
    rotate().expect_code(1).expect_error(&["master"]);
    let database = std::fs::read(folder.path().join("capo.db")).unwrap();
    assert!(
        !database
            .windows(SECRET.len())
            .any(|bytes| bytes == SECRET.as_bytes())
    );
}

#[test]
fn a_master_key_may_stand_in_a_variable_and_a_missing_one_is_said() {
    let folder = TempDir::new().unwrap();
    create_user(folder.path(), &["ada", "--admin"], PASSWORD).expect_code(0);
    let master = "5e".repeat(32);
    let server = Server::start(&mut serving_with(folder.path(), &master));
    let cookie = enter(&server, "ada");
    assert_eq!(add_key(&server, &cookie, "openai"), 204);
    server.stop();
    let server = Server::start(&mut serving_with(folder.path(), &master));
    assert_eq!(is_usable(&server, &cookie), true);
    server.stop();

    // Whatever is wrong, the server starts, and says it.
    let keyless = |serve: &mut Command| {
        let log = folder.path().join("log");
        std::fs::write(&log, "").unwrap();
        let server = Server::start_logged(serve, &log);
        assert_eq!(is_usable(&server, &cookie), false);
        assert_eq!(add_key(&server, &cookie, "another"), 503);
        server.stop();
        read(&log)
    };
    let said = keyless(&mut serving(folder.path()));
    let line = said
        .lines()
        .find(|line| line.contains("the master key is missing"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.contains("keys cannot be used") && line.contains("master.key"),
        "{line}"
    );
    // What another one encrypted would be lost: none is made.
    assert!(!folder.path().join("master.key").exists());

    let says = |serve: &mut Command, parts: &[&str]| {
        let said = keyless(serve);
        for part in parts {
            assert!(said.contains(part), "no {part:?} in: {said}");
        }
        said
    };
    for blank in ["", " "] {
        says(
            &mut serving_with(folder.path(), blank),
            &["the master key is missing"],
        );
    }
    let wrong = [MASTER, "64 hexadecimal digits"];
    let said = says(&mut serving_with(folder.path(), "sesame"), &wrong);
    assert!(!said.contains("sesame"), "{said}");
    let backed_up = administer(folder.path(), |admin| {
        let copy = folder.path().join("copy.db");
        admin.arg("backup").arg(copy).arg("--with-master-key");
        admin.env(MASTER, "sesame")
    });
    backed_up.expect_code(1).expect_error(&wrong);
    let (file, other) = (folder.path().join("other.key"), "6f".repeat(32));
    let both = |key: &str| {
        let mut serve = serving_with(folder.path(), key);
        serve.arg("--master-key-file").arg(&file);
        serve
    };
    says(&mut both(&master), &[MASTER, "other.key is missing"]);
    std::fs::write(&file, &other).unwrap();
    let said = says(&mut both(&master), &[MASTER, "--master-key-file", "other.key"]);
    for secret in [&master, &other] {
        assert!(!said.contains(secret), "{said}");
    }
    std::fs::write(&file, &master).unwrap();
    let server = Server::start(&mut both(&master));
    assert_eq!(is_usable(&server, &cookie), true);
    server.stop();
    let help = run(&mut command(["serve", "--help"])).expect_code(0);
    for said in [MASTER, "[default: 127.0.0.1:8787]"] {
        assert!(help.stdout.contains(said), "{}", help.stdout);
    }
}

#[test]
fn a_master_key_in_a_variable_is_backed_up_and_rotated_in_a_file() {
    let folder = TempDir::new().unwrap();
    let [data, file, copy] = ["data", "key", "copy.db"].map(|name| folder.path().join(name));
    create_user(&data, &["ada", "--admin"], PASSWORD).expect_code(0);
    let master = "5e".repeat(32);
    let server = Server::start(&mut serving_with(&data, &master));
    let cookie = enter(&server, "ada");
    assert_eq!(add_key(&server, &cookie, "openai"), 204);
    server.stop();

    let rotate = |admin: &mut Command| {
        admin.arg("rotate-key").arg("--master-key-file").arg(&file);
    };
    std::fs::write(&file, &master).unwrap();
    let in_variable = administer(&data, |admin| {
        rotate(admin);
        admin.env(MASTER, &master)
    });
    in_variable
        .expect_code(1)
        .expect_error(&[MASTER, "--master-key-file"]);
    assert_eq!(read(&file), master, "nothing is done");
    let in_file = administer(&data, |admin| {
        rotate(admin);
        admin
    });
    assert_eq!(
        in_file.expect_code(0).stdout,
        "encrypted 1 key with a new master key\n"
    );
    let next = read(&file);
    let server = Server::start(&mut serving_with(&data, &next));
    assert_eq!(is_usable(&server, &cookie), true);
    server.stop();

    let backed_up = administer(&data, |admin| {
        admin.arg("backup").arg(&copy).arg("--with-master-key");
        admin.env(MASTER, &next)
    });
    backed_up.expect_code(0);
    let restored = |name: &str, master: Option<&str>| {
        administer(&folder.path().join(name), |admin| {
            admin.envs(master.map(|master| (MASTER, master)));
            admin.arg("restore").arg(&copy)
        })
    };
    restored("other", Some(master.as_str()))
        .expect_code(1)
        .expect_error(&[MASTER, "another master key", "unset it"]);
    restored("in-variable", Some(next.as_str())).expect_code(0);
    assert!(!folder.path().join("in-variable/master.key").exists());
    restored("in-file", None).expect_code(0);
    assert_eq!(read(&folder.path().join("in-file/master.key")), next);
}

#[test]
fn scripts_find_what_they_rely_on() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("page");
    std::fs::create_dir(&page).unwrap();
    let index = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'self'">"#;
    std::fs::write(page.join("index.html"), index).unwrap();
    let serving = |more: &[&str]| {
        let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--data"]);
        serve.arg(folder.path().join("data")).arg("--page").arg(&page);
        serve.args(more);
        Server::start(&mut serve)
    };
    let server = serving(&[]);
    let plain = "text/plain; charset=utf-8";
    for (path, kind, within) in [
        ("/healthz", plain, "ok\n"),
        ("/readyz", plain, "ok\n"),
        ("/api/openapi.json", "application/json", r#""openapi":"3.1"#),
        ("/metrics", "text/plain; version=0.0.4", "capo_runs{"),
        ("/", "text/html; charset=utf-8", index),
    ] {
        let (status, found, text) = fetched(&server, path);
        assert_eq!((status, found.as_str()), (200, kind), "{path}: {text}");
        assert!(text.contains(within), "{path}: {text}");
    }
    assert_eq!(fetched(&server, "/api/projects").0, 401);
    server.stop();

    // A proxy may pass on whoever asks.
    let server = serving(&["--public-url", "https://capo.example.org"]);
    let (status, kind, text) = fetched(&server, "/metrics");
    assert_eq!(
        (status, kind.as_str()),
        (404, "application/problem+json"),
        "{text}"
    );
    let problem: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(problem["type"], "/problems/missing", "{text}");
    server.stop();
}

#[test]
fn a_program_without_the_page_serves_the_api_and_says_so() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--data"]);
    let server = Server::start_logged(serve.arg(folder.path().join("data")), &log);
    assert_eq!(fetched(&server, "/api/projects").0, 401);
    server.stop();
    let said = std::fs::read_to_string(log).unwrap();
    assert!(
        said.contains("without the page") && said.contains("--page DIR"),
        "{said}"
    );
}

#[test]
fn the_page_inside_the_program_is_served() {
    let folder = TempDir::new().unwrap();
    let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--data"]);
    let server = Server::start(serve.arg(folder.path()));
    let built = std::env::var_os("CAPO_PAGE").expect("`cargo xtask test released` names the page");
    let (status, _, text) = fetched(&server, "/");
    assert_eq!((status, text), (200, read(&Path::new(&built).join("index.html"))));
}

#[test]
fn a_log_in_json_is_nothing_else_and_holds_no_secret() {
    let folder = TempDir::new().unwrap();
    create_user(folder.path(), &["ada", "--admin"], PASSWORD).expect_code(0);
    let mut provider = Stub::start(|_, _| Answer::Text("At your door.".into()));
    let log = folder.path().join("log");
    let server = Server::start_logged(serving(folder.path()).args(["--log", "json"]), &log);
    let token = shared_key(&server, &provider.base_url);
    let cookie = enter(&server, "ada");
    let mistaken = "another long password of hers";
    let wrong = json!({ "name": "ada", "password": mistaken });
    assert_eq!(ask(&server, "POST", "/api/session", &[], &wrong).status, 401);
    let bearer = format!("Bearer {token}");
    let question = json!({
        "model": "stub",
        "messages": [{ "role": "user", "content": "Where is my order?" }],
    });
    let call = || {
        let path = "/api/proxy/stub/chat/completions";
        ask(&server, "POST", path, &[("authorization", &bearer)], &question)
    };
    let answered = call();
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert_eq!(
        provider.request_log().authorizations,
        [Some(format!("Bearer {SECRET}"))]
    );
    provider.leave();
    let failed = call();
    assert_eq!(failed.status, 502, "{}", failed.body);
    server.stop();

    let said = read(&log);
    for event in ["a sign-in was refused", "a provider was not reached"] {
        assert!(said.contains(event), "no {event:?} in: {said}");
    }
    let master = read(&folder.path().join("master.key"));
    let session = cookie.split_once('=').unwrap().1;
    for secret in [PASSWORD, mistaken, session, &token, SECRET, master.trim()] {
        assert!(
            !secret.is_empty() && !said.contains(secret),
            "{secret:?} in: {said}"
        );
    }
    for line in said.lines() {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        assert!(parsed.is_ok_and(|value| value.is_object()), "{line}");
    }
}
