//! A team at the edge whose members have runs there.

use std::path::Path;
use std::process::Command;

use capo_gateway::cases::KEY;
use capo_tests::journal::events;
use capo_tests::program::{Ended, Server, command, run, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::edge_worker::{Edge, Team, ask, text, token};

/// A team of two projects, with members of each role, and one key for one of them.
pub(crate) struct Here {
    team: Team,
    folder: TempDir,
    edge: Option<Edge>,
}

impl Here {
    pub(crate) fn new(provider: &str, model: &str) -> Self {
        Self::with(provider, model, json!({}))
    }

    /// The same with further variables of the worker.
    pub(crate) fn with(provider: &str, model: &str, variables: Value) -> Self {
        let mut team = Team {
            more: serde_json::from_value(variables).unwrap(),
            ..Team::default()
        };
        for (name, project, role) in [
            ("ada", "sums", "editor"),
            ("vera", "sums", "viewer"),
            ("otto", "other", "editor"),
        ] {
            team.member(name, json!({ "projects": { project: role } }));
            team.projects.insert(project.to_owned(), json!({}));
        }
        let key = json!({
            "provider": "openai-compatible", "base_url": provider, "private_host": true, "secret": "TEAM_KEY",
            "projects": ["sums"], "models": [{ "name": model }],
        });
        team.keys.insert("stub".to_owned(), key);
        let folder = TempDir::new().unwrap();
        let edge = Some(team.start(folder.path()));
        Self { team, folder, edge }
    }

    pub(crate) fn edge(&self) -> &Server {
        self.edge.as_ref().unwrap()
    }

    pub(crate) fn kill_and_start(&mut self) {
        self.edge.take().unwrap().kill();
        self.edge = Some(self.team.start(self.folder.path()));
    }

    /// A command of ada's, in a folder.
    pub(crate) fn command(&self, folder: &Path, line: &str) -> Command {
        let mut command = command(line.split_whitespace());
        command
            .current_dir(folder)
            .env("CAPO_TOKEN", token("ada"))
            .env("CAPO_REMOTE", &self.edge().base_url);
        command
    }

    pub(crate) fn capo(&self, folder: &Path, line: &str) -> Ended {
        let ended = run(&mut self.command(folder, line));
        assert!(!ended.stdout.contains(&token("ada")) && !ended.stderr.contains(&token("ada")));
        ended
    }

    /// Starts the study of a folder and returns the run's id.
    pub(crate) fn start(&self, folder: &Path) -> String {
        let started = self.capo(folder, "optimize study.toml --remote --project sums --detach");
        started.expect_code(0).stdout.trim_end().to_owned()
    }

    /// Asks as a program of a member does, or of nobody.
    pub(crate) fn ask(&self, member: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", token(member));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let headers = &headers[usize::from(member.is_empty())..];
        let (status, body) = text(ask(self.edge(), method, path, headers, &body));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) fn shown(&self, id: &str) -> Value {
        self.ask("ada", "GET", &format!("/api/runs/{id}"), &Value::Null).1
    }

    /// Waits for a round, each of which may take a minute.
    pub(crate) fn wait_past(&self, id: &str, rounds: usize) {
        for past in 1..=rounds {
            wait_until("a round", || is_past(&self.shown(id), past));
        }
    }

    /// Kills the runtime past a round of a run, which is not over then.
    pub(crate) fn kill_past(&mut self, id: &str, rounds: usize) {
        self.wait_past(id, rounds);
        assert_eq!(self.shown(id)["stage"], "running");
        self.kill_and_start();
    }

    /// Waits for a stage, for a minute from each line of the journal on.
    pub(crate) fn wait_for(&self, id: &str, stage: &str) {
        let mut shown = self.shown(id);
        while shown["stage"] != stage {
            assert!(shown["stage"] != "failed", "{shown}");
            let lines = shown["lines"].clone();
            wait_until(stage, || {
                shown = self.shown(id);
                shown["lines"] != lines || shown["stage"] == stage || shown["stage"] == "failed"
            });
        }
    }

    /// The journal of a run, which is verified.
    pub(crate) fn pull(&self, folder: &Path, id: &str) -> Vec<Value> {
        let name = format!("{id}.jsonl");
        self.capo(folder, &format!("runs pull {id} --journal {name}"))
            .expect_code(0);
        self.capo(folder, &format!("journal verify {name}"))
            .expect_code(0);
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(!text.contains(KEY) && !text.contains(&token("ada")));
        events(&folder.join(name))
    }
}

fn is_past(run: &Value, rounds: usize) -> bool {
    let by_round = run["progress"]["by_round"].as_array();
    by_round.is_some_and(|by_round| by_round.len() > rounds)
}
