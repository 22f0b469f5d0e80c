//! Runs on a team server from the command line, against a server in this process that keeps to the API's documents.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod prompts;
mod runs;
mod starting;
mod stub;
mod watching;

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use capo_core::journal::{Event, parse_line};
use serde_json::{Value, json};

use stub::{Say, Stub, TOKEN};

const STUDY: &str = r#"
[study]
name = "small desk"
rounds = 2

[workload]
kind = "desk"
optimize = 6
evaluate = 4

[prompt]
file = "prompt.md"

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
relative_to_seed = 0.8

[models.agent]
provider = "simulated"
"#;

const ID: &str = "0123456789abcdef0123456789abcdef";

/// A folder with a study, in which commands run.
struct Place(tempfile::TempDir);

#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("study.toml", STUDY);
        place.write(
            "prompt.md",
            "You are a customer service agent. Help the customer.\n",
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capo"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .env("CAPO_TOKEN", TOKEN)
            .env_remove("CAPO_REMOTE");
        command
    }

    fn capo(&self, line: &str) -> Ended {
        ended(&mut self.command(line))
    }
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    let ended = Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(
        !ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN),
        "the token is told: {ended:?}"
    );
    ended
}

/// A whole run: its lines, and its first line before thresholds were frozen.
struct Recorded {
    lines: Vec<String>,
    open: String,
    local: (i32, String, Value),
}

static RUN: LazyLock<Recorded> = LazyLock::new(|| {
    let place = Place::new();
    let shown = place.capo("optimize study.toml --journal run.jsonl");
    let json = place.capo("optimize study.toml --journal run.jsonl --json");
    let lines: Vec<String> = std::fs::read_to_string(place.path("run.jsonl"))
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let Event::Study(mut study) = parse_line(&lines[0], 1).unwrap() else {
        panic!("a journal begins with its study");
    };
    assert!(study.study.constraints[0].threshold.take().is_some());
    Recorded {
        open: serde_json::to_string(&Event::Study(study)).unwrap(),
        local: (
            shown.code,
            shown.stdout,
            serde_json::from_str(&json.stdout).unwrap(),
        ),
        lines,
    }
});

/// A run as the server shows it.
fn run(stage: &str, lines: usize, revision: u64) -> Value {
    json!({
        "id": ID, "project": "desk", "name": "small desk", "started_by": "ada", "origin": { "from": "server" },
        "stage": stage, "method": "capo", "objective": "success",
        "created_at": "2026-11-26T08:00:00Z", "touched_at": "2026-11-26T08:01:00Z",
        "lines": lines, "revision": revision,
        "progress": { "best": 0.5, "feasible": true, "rollouts": 120, "usd": 0.25 }, "times": [],
    })
}

fn with(mut run: Value, key: &str, value: Value) -> Value {
    run[key] = value;
    run
}

fn detail(run: Value) -> Value {
    with(
        with(run, "study", json!(STUDY)),
        "files",
        json!({ "rows.csv": "ab12" }),
    )
}

fn ended_of_env(command: &mut Command, stub: &Stub) -> Ended {
    ended(command.env("CAPO_REMOTE", &stub.url))
}

/// A whole run, as it is said at once.
fn whole() -> Vec<Say> {
    let lines = &RUN.lines;
    vec![
        Say::Run(run("ended", lines.len(), 1)),
        Say::Lines(0, lines.clone()),
        Say::Comment,
        Say::Run(run("ended", lines.len(), 1)),
        Say::Silence,
    ]
}

/// What a person is shown of a result, but for where it lies.
fn result(stdout: &str) -> &str {
    stdout.split("\nJournal: ").next().unwrap()
}
