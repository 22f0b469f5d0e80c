//! The worker for Cloudflare's runtime under test, and a program that asks it.

use std::fs;
use std::ops::Deref;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capo_gateway::cases::{KEY, MAX_BODY, key_record};
use capo_gateway::{Limits, NanoUsd};
use capo_tests::program::Server;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// What the worker takes for its own origin.
pub(crate) const ORIGIN: &str = "https://capo.example";

fn named(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.unwrap_or_else(|| panic!("no {variable}; run these tests by `cargo xtask test end-to-end`"))
}

/// What an operator says, put together.
#[derive(Default)]
pub(crate) struct Team {
    pub(crate) members: Map<String, Value>,
    pub(crate) projects: Map<String, Value>,
    pub(crate) keys: Map<String, Value>,
    /// Further variables. Tests ask more often than people do, unless `RATE` is among these.
    pub(crate) more: Map<String, Value>,
}

pub(crate) fn token(member: &str) -> String {
    format!("capo_of-{member}")
}

fn daily(limits: Limits) -> Value {
    json!({ "usd": limits.usd_per_day.map(NanoUsd::usd), "requests": limits.requests_per_day })
}

impl Team {
    pub(crate) fn member(&mut self, name: &str, more: Value) {
        let hash = Sha256::digest(token(name));
        let hash = hash
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let mut member = more;
        member["token_sha256"] = hash.into();
        self.members.insert(name.to_owned(), member);
    }

    /// The cases' key with its project and members, under names that end so, for limits of a member, a project and a key.
    pub(crate) fn case(&mut self, end: &str, base_url: &str, limits: [Limits; 3]) {
        self.more
            .insert("MAX_BODY".to_owned(), MAX_BODY.to_string().into());
        let [of_member, of_project, of_key] = limits.map(daily);
        let [project, other] = ["help-desk", "other"].map(|name| format!("{name}{end}"));
        for (name, project, role) in [
            ("editor", &project, "editor"),
            ("viewer", &project, "viewer"),
            ("outsider", &other, "editor"),
        ] {
            let projects = json!({ project: role });
            self.member(
                &format!("{name}{end}"),
                json!({ "projects": projects, "limits": of_member }),
            );
        }
        let mut key = key_record(base_url);
        key.as_object_mut().unwrap().remove("id");
        key["projects"] = json!([project]);
        key["secret"] = "TEAM_KEY".into();
        key["limits"] = of_key;
        self.keys.insert(format!("team{end}"), key);
        self.projects.insert(project, json!({ "limits": of_project }));
        self.projects.insert(other, json!({}));
    }

    /// The worker for them, with an administrator; what it keeps lies in a folder.
    pub(crate) fn start(&mut self, state: &Path) -> Edge {
        run(&self.vars(), state)
    }

    /// The same with the whole page, which another host has; it is reached under its own address.
    pub(crate) fn start_with_page(&mut self, state: &Path, page: &str) -> Edge {
        launch(json!({ "page": page, "vars": self.vars() }), state)
    }

    fn vars(&mut self) -> Value {
        self.member("root", json!({ "is_admin": true }));
        let mut vars = json!({
            "MEMBERS": self.members, "PROJECTS": self.projects, "KEYS": self.keys, "TEAM_KEY": KEY, "RATE": "0",
        });
        for (name, value) in &self.more {
            vars[name] = value.clone();
        }
        vars
    }
}

/// The worker on its runtime, which would go on if it were killed.
pub(crate) struct Edge(Option<Server>);

impl Deref for Edge {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            server.stop();
        }
    }
}

impl Edge {
    /// Ends it at once, the runtime with it.
    pub(crate) fn kill(mut self) {
        self.0.take().unwrap().kill_group();
    }
}

pub(crate) fn run(vars: &Value, state: &Path) -> Edge {
    // Of the page what the runtime takes: the module of one that is built fast is too large for it.
    let page = state.join("page");
    fs::create_dir_all(&page).unwrap();
    for file in ["index.html", "boot.js"] {
        fs::copy(named("CAPO_PAGE").join(file), page.join(file)).unwrap();
    }
    launch(json!({ "page": page, "upstream": ORIGIN, "vars": vars }), state)
}

fn launch(mut settings: Value, state: &Path) -> Edge {
    settings["build"] = json!(named("CAPO_EDGE"));
    settings["state"] = json!(state.join("objects"));
    settings["port"] = 0.into();
    let mut node = Command::new("node");
    node.arg(named("CAPO_EDGE").parent().unwrap().join("local.cjs"))
        .arg(settings.to_string())
        // What it leaves behind goes with the test.
        .env("TMPDIR", state)
        .env("NODE_PATH", named("CAPO_MINIFLARE"))
        // It has the runtime as a process of its own.
        .process_group(0)
        .stdin(Stdio::null());
    Edge(Some(Server::start(&mut node)))
}

/// What came back, its body not read yet.
pub(crate) type Came = ureq::http::Response<ureq::Body>;

pub(crate) fn ask(server: &Server, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Came {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .allow_non_standard_methods(true)
        .build()
        .into();
    let url = format!("{}{target}", server.base_url);
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if body.is_empty() {
        agent.run(request.body(()).unwrap()).unwrap()
    } else {
        agent.run(request.body(body.to_owned()).unwrap()).unwrap()
    }
}

pub(crate) fn text(came: Came) -> (u16, String) {
    let status = came.status().as_u16();
    if status == 204 {
        // The runtime calls it gzip even so, which nothing is not.
        return (status, String::new());
    }
    (status, came.into_body().read_to_string().unwrap())
}
