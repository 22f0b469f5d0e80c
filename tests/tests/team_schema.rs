//! The team server's API, held against its own description: Schemathesis makes requests of the document, sound ones and
//! broken ones, and reads the answers.
//!
//! Of `cargo xtask test --all`, which installs it and names it in `CAPO_SCHEMATHESIS`, and a server of PostgreSQL in
//! `CAPO_TEST_POSTGRES`.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/database.rs"]
mod database;

use std::fs;
use std::process::Command;

use capo_tests::program::Server;
use capo_tests::tools::named;
use database::database_on;
use serde_json::json;
use team_server::{PASSWORD, create_user, enter, made, serving, token};
use tempfile::TempDir;

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// What ends when the server does.
const STREAMS: &[&str] = &["events", "training_events"];

/// How it writes what the document leaves to the formats themselves.
const HOOKS: &str = r#"
import schemathesis

for kind in ("application/x-tar", "application/x-ndjson"):
    schemathesis.serializer.alias(kind, "application/octet-stream")
"#;

const STUDY: &str = r#"
[study]
name = "desk"
rounds = 1

[workload]
kind = "desk"
optimize = 2
evaluate = 2

[prompt]
text = "You are a customer service agent."

[objective]
metric = "success"

[models.agent]
provider = "simulated"

[budget]
rollouts = 20
"#;

/// A server with an administrator, who has a project with a run.
struct Team {
    program: String,
    folder: TempDir,
    server: Server,
    cookie: String,
    token: String,
    run: String,
}

impl Team {
    /// With the database at an address, else one of its own; none where there is no Schemathesis.
    fn new(database: Option<&str>) -> Option<Self> {
        let program = named("CAPO_SCHEMATHESIS")?;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let database = database.map_or_else(Vec::new, |database| vec!["--database", database]);
        create_user(
            &data,
            &[&["ada", "--admin"], database.as_slice()].concat(),
            PASSWORD,
        )
        .expect_code(0);
        let mut serve = serving(&data, "127.0.0.1:0");
        let server = Server::start(serve.args(["--rate", "0"]).args(database));
        let cookie = enter(&server, "ada");
        let token = token(&server, &cookie);
        let project = json!({ "name": "desk", "title": "Desk" });
        made(&server, &cookie, "/api/projects", &project);
        let run = json!({ "name": "First", "study": STUDY });
        let run = made(&server, &cookie, "/api/projects/desk/runs", &run);
        Some(Self {
            program,
            folder,
            server,
            cookie,
            token,
            run: run["id"].as_str().unwrap().to_owned(),
        })
    }

    /// Asks every operation but these, and expects of no answer what the document does not say.
    fn holds(&self, headers: &[String], but: &[&str]) {
        let settings = format!(
            "hooks = \"hooks\"\n[parameters]\n\"path.project\" = \"desk\"\n\"path.run\" = \"{}\"\n",
            self.run
        );
        fs::write(self.folder.path().join("hooks.py"), HOOKS).unwrap();
        fs::write(self.folder.path().join("schemathesis.toml"), settings).unwrap();
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.folder.path())
            .arg("run")
            .arg(format!("{}/api/openapi.json", self.server.base_url))
            .args([
                "--phases",
                "coverage,fuzzing",
                "--max-examples",
                "10",
                "--seed",
                "7",
            ])
            .args(["--generation-database", "none", "--checks", CHECKS])
            // A cookie that it makes up would be one of a browser that comes from elsewhere.
            .args(["--generation-with-security-parameters", "false"])
            .args(["--continue-on-failure", "--no-color"]);
        for header in headers {
            command.args(["--header", header]);
        }
        for operation in STREAMS.iter().chain(but) {
            command.args(["--exclude-operation-id", operation]);
        }
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}\n{error}");
        let tested = said.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
        let tested: usize = tested.unwrap().parse().unwrap();
        assert!(tested > 60, "{said}");
    }
}

#[test]
fn who_is_signed_out_gets_what_the_document_says() {
    let Some(team) = Team::new(None) else { return };
    team.holds(&[], &[]);
    team.server.stop();
}

#[test]
fn a_program_gets_what_the_document_says() {
    let Some(team) = Team::new(None) else { return };
    let token = format!("Authorization: Bearer {}", team.token);
    team.holds(&[token], &["delete_run"]);
    team.server.stop();
}

#[test]
fn who_is_signed_in_gets_what_the_document_says() {
    hold_signed_in(None);
}

#[test]
fn who_is_signed_in_gets_what_the_document_says_of_postgres() {
    if let Some(server) = named("CAPO_TEST_POSTGRES") {
        hold_signed_in(Some(&database_on(&server)));
    }
}

/// Asks as who is signed in, with such a database.
fn hold_signed_in(database: Option<&str>) {
    let Some(team) = Team::new(database) else { return };
    let headers = [
        format!("Cookie: {}", team.cookie),
        format!("Origin: {}", team.server.base_url),
    ];
    // It keeps its session, its project and its run.
    let but = ["sign_out", "end_session", "delete_project", "delete_run"];
    team.holds(&headers, &but);
    team.server.stop();
}
