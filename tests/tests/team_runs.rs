//! Runs on a team server, from the command line.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;
mod told_runs;

use std::path::PathBuf;
use std::process::Command;

use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Ended, Running, Server, command, run, wait_until};
use serde_json::{Value, json};
use team_server::{PASSWORD, ask, create_user, enter, made, serving, token};
use tempfile::TempDir;

/// Some seconds long, so that it can be told something in its midst.
const STUDY: &str = r#"
[study]
name = "small desk"
seed = 3
rounds = 4

[workload]
kind = "desk"
optimize = 12
evaluate = 6

[prompt]
file = "prompt.md"

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
relative_to_seed = 0.8

[models.agent]
provider = "simulated"
latency = 0.015
"#;

const PROMPT: &str = "You are a customer service agent. Help the customer with their request.\n";

/// A server with one member, who has a project and a token, and a folder for their study.
struct Team {
    folder: TempDir,
    server: Option<Server>,
    address: String,
    token: String,
}

impl Team {
    fn new() -> Self {
        Self::with(&[])
    }

    /// The same with further arguments of the server.
    fn with(arguments: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        create_user(&data, &["ada", "--admin"], PASSWORD).expect_code(0);
        let server = Server::start(serving(&data, "127.0.0.1:0").args(arguments));
        let cookie = enter(&server, "ada");
        let project = json!({ "name": "help-desk", "title": "Help desk" });
        made(&server, &cookie, "/api/projects", &project);
        let token = token(&server, &cookie);
        std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
        std::fs::write(folder.path().join("prompt.md"), PROMPT).unwrap();
        Self {
            address: server.base_url.trim_start_matches("http://").to_owned(),
            server: Some(server),
            folder,
            token,
        }
    }

    /// Asks as a program of the member does.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", self.token);
        let answer = ask(self.server(), method, path, &[("authorization", &bearer)], body);
        (answer.status, answer.body)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Kills the server without a word, and starts it anew in the same place.
    fn kill_and_start(&mut self) {
        self.server.take().unwrap().kill();
        let mut again = serving(&self.file("data"), &self.address);
        self.server = Some(Server::start(&mut again));
    }

    /// A command of the member, on this server where it is about one.
    fn command(&self, line: &str) -> Command {
        let mut command = command(line.split_whitespace());
        command
            .current_dir(self.folder.path())
            .env("CAPO_TOKEN", &self.token)
            .env("CAPO_REMOTE", &self.server().base_url);
        command
    }

    fn capo(&self, line: &str) -> Ended {
        let ended = run(&mut self.command(line));
        assert!(!ended.stdout.contains(&self.token) && !ended.stderr.contains(&self.token));
        ended
    }

    /// The runs, the latest first.
    fn runs(&self) -> Vec<Value> {
        let listed = self.capo("runs --json").expect_code(0).json();
        listed["runs"].as_array().unwrap().clone()
    }

    /// Waits until something holds of the latest run.
    fn wait_for(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        wait_until(what, || self.runs().first().is_some_and(&holds));
    }

    /// A run on this machine, with its exit code.
    fn local(&self) -> (Option<i32>, Value) {
        let ended = self.capo("optimize study.toml --journal local.jsonl --json");
        assert!(matches!(ended.code, Some(0 | 2)), "{}", ended.stderr);
        (ended.code, ended.json())
    }
}

/// The study with its prompt in it, as the API takes it.
fn with_prompt() -> String {
    STUDY.replace("file = \"prompt.md\"", &format!("text = {:?}", PROMPT.trim()))
}

/// What two runs of one study come to, wherever they were made.
fn result(summary: &Value) -> Value {
    json!([
        summary["status"],
        summary["best"],
        summary["multipliers"],
        summary["rounds"],
        summary["evaluation"]
    ])
}

fn is_past_a_round(run: &Value) -> bool {
    run["progress"]["by_round"]
        .as_array()
        .is_some_and(|rounds| rounds.len() > 1)
}

#[test]
fn a_search_on_a_server_that_is_killed_ends_as_one_here() {
    let mut team = Team::new();
    let (code, local) = team.local();
    let mut search = team.command("optimize study.toml --remote --json");
    let watching = Running::start_piped(&mut search);
    team.wait_for("a round", is_past_a_round);
    assert_eq!(
        team.runs()[0]["stage"],
        "running",
        "it is not over when the server is killed"
    );
    team.kill_and_start();
    let watched = watching.finish();
    assert_eq!(watched.code, code, "{}", watched.stderr);
    assert_eq!(result(&watched.json()), result(&local));

    let runs = team.runs();
    let id = runs[0]["id"].as_str().unwrap();
    assert_eq!((runs.len(), &runs[0]["stage"]), (1, &json!("ended")));
    let again = team.capo(&format!("watch {} --json", &id[..8]));
    assert_eq!(
        (again.code, again.json()),
        (code, watched.json()),
        "{}",
        again.stderr
    );
    let table = team.capo("runs list --project help-desk").expect_code(0).stdout;
    assert!(
        table.contains(&id[..8]) && table.contains("small desk"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let lasts = runs[0]["times"].as_array().unwrap().last().unwrap()[1].as_f64();
    let lasts = format!("{:.0} s", lasts.unwrap());
    assert!(table.contains("duration") && table.contains(&lasts), "{table}");

    team.capo(&format!("runs pull {id} --journal pulled.jsonl"))
        .expect_code(0);
    team.capo("journal verify pulled.jsonl").expect_code(0);
    let [pulled, local] = ["pulled.jsonl", "local.jsonl"].map(|name| events(&team.file(name)));
    assert_eq!(outcome(&pulled), outcome(&local));
    team.capo(&format!("runs pull {id} --journal pulled.jsonl"))
        .expect_code(1)
        .expect_error(&["is there already"]);

    team.capo("projects export help-desk desk.tar").expect_code(0);
    for (line, said) in [
        ("projects export help-desk desk.tar", "is there already"),
        ("projects export other other.tar", "no such project"),
        ("projects import desk.tar", "already a project of this name"),
    ] {
        team.capo(line).expect_code(1).expect_error(&[said]);
    }
    assert!(!team.file("other.tar").exists());
    team.capo("projects import desk.tar --name again").expect_code(0);
    let table = team.capo("runs list --project again").expect_code(0).stdout;
    assert!(table.contains("small desk"), "{table}");
}

#[test]
fn a_test_of_a_prompt_that_was_made_here_is_pushed_and_listed_there() {
    let team = Team::new();
    let constraint = "metric = \"excess_tools\"\nrelative_to_seed = 0.8";
    let study = STUDY.replace(constraint, "metric = \"human_requests\"\nthreshold = 0.3");
    let study = study.replace("evaluate = 6", "evaluate = 60");
    std::fs::write(team.file("tested.toml"), study).unwrap();
    let none = team.capo("prompts certificates").expect_code(0);
    assert_eq!(none.stdout, "no certificates\n");
    let tested =
        team.capo("certify tested.toml --prompt prompt.md --examples 40 --journal tested.jsonl --json");
    assert!(matches!(tested.code, Some(0 | 2)), "{}", tested.stderr);
    team.capo("runs push tested.jsonl --name tested").expect_code(0);
    let listed = team.capo("prompts certificates --json").expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["run_name"], "tested");
    for field in ["candidate", "verdict", "confidence", "examples", "constraints"] {
        assert_eq!(listed[0]["certificate"][field], tested.json()[field], "{field}");
    }
    let table = team.capo("prompts certificates").expect_code(0).stdout;
    assert!(
        table.contains("at 95 % on n = ") || table.contains("not decided"),
        "{table}"
    );
}

#[test]
fn a_run_is_paused_steered_resumed_and_branched() {
    let team = Team::new();
    let started = team.capo("optimize study.toml --remote --project help-desk --name first --detach");
    let id = started.clone().expect_code(0).stdout.trim_end().to_owned();
    team.wait_for("a round", is_past_a_round);
    team.capo(&format!("runs pause {id}")).expect_code(0);
    team.wait_for("a pause", |run| run["stage"] == "paused");
    let watched = team.capo(&format!("watch {id}")).expect_code(3);
    assert!(
        watched.stderr.contains(&format!("capo runs resume {id}")),
        "{}",
        watched.stderr
    );
    team.capo(&format!("runs steer {id} --threshold excess_tool=0.5"))
        .expect_code(64)
        .expect_error(&["excess_tools"]);
    team.capo(&format!("runs steer {id} --threshold excess_tools=0.9"))
        .expect_code(0);
    team.capo(&format!("runs resume {id}")).expect_code(0);
    let watched = team.capo(&format!("watch {id} --json"));
    assert!(matches!(watched.code, Some(0 | 2)), "{}", watched.stderr);
    team.capo(&format!("runs pull {id} --journal first.jsonl"))
        .expect_code(0);
    team.capo("journal verify first.jsonl").expect_code(0);
    let first = events(&team.file("first.jsonl"));
    let steers = of_kind(&first, "steer");
    let steered = |steer: &&Value| steer["thresholds"]["excess_tools"] == 0.9;
    assert!(steers.iter().any(steered), "{steers:?}");

    team.capo(&format!(
        "runs branch {id} --round 1 --name stricter --threshold excess_tools=0.1 --paused"
    ))
    .expect_code(0);
    let branch = team.runs()[0].clone();
    assert_eq!(
        (&branch["stage"], &branch["origin"]["run"]),
        (&json!("paused"), &json!(id))
    );
    let branch = branch["id"].as_str().unwrap().to_owned();
    team.capo(&format!("runs resume {branch}")).expect_code(0);
    let watched = team.capo(&format!("watch {branch} --json"));
    assert!(matches!(watched.code, Some(0 | 2)), "{}", watched.stderr);
    team.capo(&format!("runs pull {branch} --journal branch.jsonl"))
        .expect_code(0);
    team.capo("journal verify branch.jsonl").expect_code(0);
    let branch = events(&team.file("branch.jsonl"));
    let rounds = |events: &[Value]| of_kind(events, "round").into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(rounds(&branch)[0], rounds(&first)[0]);
}

#[test]
fn a_run_is_told_what_one_at_the_edge_is_and_answers_so() {
    let team = Team::new();
    let ask = |method: &str, path: &str, body: &Value| team.ask(method, path, body);
    told_runs::both_answer_so(&ask, "help-desk", &with_prompt());
}

#[test]
fn a_member_has_as_many_runs_at_a_time_as_at_the_edge() {
    let team = Team::with(&["--runs-per-member", "1"]);
    let ask = |method: &str, path: &str, body: &Value| team.ask(method, path, body);
    told_runs::both_carry_out_one_after_the_other(&ask, "help-desk", &with_prompt());
}

#[test]
fn who_asks_too_often_is_refused_as_at_the_edge() {
    let team = Team::with(&["--rate", "1"]);
    let ask = |method: &str, path: &str, body: &Value| team.ask(method, path, body);
    told_runs::both_refuse_who_asks_too_often(&ask);
}

#[test]
fn a_run_is_stopped_and_goes_on_under_a_larger_budget() {
    let team = Team::new();
    std::fs::write(
        team.file("small.toml"),
        format!("{STUDY}\n[budget]\nrollouts = 40\n"),
    )
    .unwrap();
    let spent = team.capo("optimize small.toml --remote").expect_code(3);
    let id = team.runs()[0]["id"].as_str().unwrap().to_owned();
    let way = format!(
        "capo runs resume {id} --remote {} --study small.toml",
        team.server().base_url
    );
    assert!(spent.stderr.contains(&way), "{}", spent.stderr);
    std::fs::write(
        team.file("small.toml"),
        format!("{STUDY}\n[budget]\nrollouts = 4000\n"),
    )
    .unwrap();
    team.capo(&format!("runs resume {id} --study small.toml"))
        .expect_code(0);
    team.wait_for("work", |run| run["stage"] == "running");
    team.capo(&format!("runs stop {id}")).expect_code(0);
    team.capo(&format!("watch {id}")).expect_code(3);
    assert_eq!(team.runs()[0]["stage"], "ended");
    // Another study is refused, and the run goes on under its own.
    std::fs::write(team.file("other.toml"), STUDY.replace("rounds = 4", "rounds = 5")).unwrap();
    team.capo(&format!("runs resume {id} --study other.toml"))
        .expect_code(64)
        .expect_error(&["another study"]);
    team.capo(&format!("runs resume {id} --study small.toml"))
        .expect_code(0);
    let (code, local) = team.local();
    let watched = team.capo(&format!("watch {id} --json"));
    assert_eq!(watched.code, code, "{}", watched.stderr);
    assert_eq!(result(&watched.json()), result(&local));
}

#[test]
fn a_run_from_here_is_pushed_and_deleted() {
    let team = Team::new();
    let (code, local) = team.local();
    team.capo("runs push local.jsonl --project help-desk --name here")
        .expect_code(0);
    let id = team.runs()[0]["id"].as_str().unwrap().to_owned();
    let watched = team.capo(&format!("watch {id} --json"));
    assert_eq!(watched.code, code, "{}", watched.stderr);
    assert_eq!(result(&watched.json()), result(&local));
    let shown = team.capo(&format!("runs show {id}")).expect_code(0).stdout;
    let duration = shown
        .lines()
        .find(|line| line.trim_start().starts_with("duration"));
    assert!(
        duration.is_some_and(|line| line.trim_end().ends_with('–')),
        "{shown}"
    );
    team.capo(&format!("runs pull {id} --journal back.jsonl"))
        .expect_code(0);
    let [local, back] = ["local.jsonl", "back.jsonl"].map(|name| std::fs::read(team.file(name)).unwrap());
    assert!(local == back, "what is pulled is what was pushed");
    // A journal that somebody changed is not taken.
    let changed = String::from_utf8(local)
        .unwrap()
        .replacen("\"success\":1", "\"success\":0", 1);
    std::fs::write(team.file("changed.jsonl"), changed).unwrap();
    team.capo("runs push changed.jsonl --project help-desk")
        .expect_code(64);
    team.capo(&format!("runs delete {id}")).expect_code(0);
    assert!(team.runs().is_empty());
    team.capo(&format!("watch {id}")).expect_code(1);
}

#[test]
fn a_backup_of_a_run_under_way_goes_on_elsewhere() {
    let mut team = Team::new();
    let (code, local) = team.local();
    team.capo("optimize study.toml --remote --detach").expect_code(0);
    team.wait_for("a round", is_past_a_round);
    team.capo("admin backup copy.db --data data").expect_code(0);
    let whole = team.capo("admin backup with-key.db --data data --with-master-key");
    assert_eq!(team.runs()[0]["stage"], "running", "it was not over yet");
    let whole = whole.expect_code(0);
    assert!(whole.stdout.contains("who has this file"), "{}", whole.stdout);
    team.capo("admin backup copy.db --data data")
        .expect_code(1)
        .expect_error(&["copy.db is there already"]);
    team.capo("admin restore copy.db --data data")
        .expect_code(1)
        .expect_error(&["in use by process"]);
    team.server.take().unwrap().kill();
    let master = std::fs::read_to_string(team.file("data/master.key")).unwrap();
    let holds_master = |name: &str| {
        let bytes = std::fs::read(team.file(name)).unwrap();
        let key = master.trim().as_bytes();
        bytes.windows(key.len()).any(|found| found == key)
    };
    assert!(!holds_master("copy.db") && holds_master("with-key.db"));

    let here = |line: &str| run(command(line.split_whitespace()).current_dir(team.folder.path()));
    here("admin restore copy.db --data data")
        .expect_code(1)
        .expect_error(&["there is a database already"]);
    let keyless = here("admin restore copy.db --data keyless").expect_code(0);
    assert!(
        keyless.stdout.contains("keyless/master.key"),
        "{}",
        keyless.stdout
    );
    std::fs::create_dir(team.file("other")).unwrap();
    std::fs::write(team.file("other/master.key"), "a".repeat(64)).unwrap();
    for backup in ["copy.db", "with-key.db"] {
        here(&format!("admin restore {backup} --data other"))
            .expect_code(1)
            .expect_error(&["other/master.key holds another master key", "move that file away"]);
    }
    let anew = Server::start(&mut serving(&team.file("keyless"), "127.0.0.1:0"));
    let bearer = format!("Bearer {}", team.token);
    let asked = ask(
        &anew,
        "GET",
        "/api/projects",
        &[("authorization", &bearer)],
        &Value::Null,
    );
    assert_eq!(asked.status, 401, "tokens of the backup have ended");
    anew.stop();
    here("admin restore with-key.db --data elsewhere --keep-tokens").expect_code(0);
    assert!(!holds_master("elsewhere/capo.db"));
    assert_eq!(
        std::fs::read_to_string(team.file("elsewhere/master.key")).unwrap(),
        master
    );
    team.server = Some(Server::start(&mut serving(
        &team.file("elsewhere"),
        "127.0.0.1:0",
    )));
    let id = team.runs()[0]["id"].as_str().unwrap().to_owned();
    let watched = team.capo(&format!("watch {id} --json"));
    assert_eq!(watched.code, code, "{}", watched.stderr);
    assert_eq!(result(&watched.json()), result(&local));
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let folder = TempDir::new().unwrap();
    let capo = |line: &str| run(command(line.split_whitespace()).current_dir(folder.path()));
    create_user(&folder.path().join("data"), &["ada", "--admin"], PASSWORD).expect_code(0);
    capo("admin backup whole.db --data data").expect_code(0);
    capo("admin backup nothing.db --data empty")
        .expect_code(1)
        .expect_error(&["there is no database", "--data"]);
    assert!(!folder.path().join("nothing.db").exists());
    let whole = std::fs::read(folder.path().join("whole.db")).unwrap();
    let mut damaged = whole.clone();
    damaged[8192..12288].fill(0xa5);
    for (name, bytes, said) in [
        ("torn.db", &whole[..whole.len() / 2], "damaged"),
        ("damaged.db", &damaged, "damaged"),
        ("empty.db", b"", "no database of a team server"),
        (
            "text.db",
            b"not a database, but long enough for its first page",
            "damaged",
        ),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        capo(&format!("admin restore {name} --data new"))
            .expect_code(1)
            .expect_error(&[name, said]);
    }
    let left = std::fs::read_dir(folder.path().join("new")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    for (line, program) in [
        ("admin backup new.db", "pg_dump --format=custom"),
        ("admin restore whole.db", "pg_restore"),
    ] {
        let postgres = capo(&format!("{line} --database postgres://ada:secret@127.0.0.1/capo"));
        assert!(!postgres.stderr.contains("secret"), "{}", postgres.stderr);
        postgres.expect_code(64).expect_error(&[program, "CAPO_DATABASE"]);
    }
}
