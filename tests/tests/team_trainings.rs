//! Trainings of rewriters on a team server, which is killed in their midst.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod team_server;

#[path = "team_server/bucket.rs"]
mod bucket;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bucket::Bucket;
use capo_tests::journal::{events, of_kind};
use capo_tests::program::{Server, command, run, wait_until};
use serde_json::{Value, json};
use team_server::{Answer, PASSWORD, ask, create_user, enter, made, serving, token};
use tempfile::TempDir;

const STUDY: &str = r#"
[study]
name = "small desk"
method = "METHOD"
rounds = 2

[workload]
kind = "desk"
optimize = 6
evaluate = 4

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
threshold = 0.3

# Every other text is another length: rewrites by a model that can hardly write differ in reward, whatever they ask for.
[[constraint]]
metric = "prompt_length"
threshold = 0.05

[models.agent]
provider = "simulated"
"#;

/// Long enough to be killed in its midst.
const SETTINGS: &str = r"
[sft]
epochs = 200
batch = 4
learning_rate = 3e-3
evaluate_every = 10
patience = 0

[grpo]
learning_rate = 1e-3

[drawing]
max_new_tokens = 60
";

const TRAININGS: &str = "/api/projects/help-desk/trainings";

/// The secret of the key by which the project asks models.
const SECRET: &str = "sk-of-the-team";

/// A server with one member, who has a project, a token, and a run of theirs in the project.
struct Team {
    folder: TempDir,
    server: Option<Server>,
    /// Serves models that the project may ask with a shared key.
    models: Server,
    token: String,
    run: String,
}

/// Serves what is kept in a folder.
fn plainly(data: &Path) -> Command {
    serving(data, "127.0.0.1:0")
}

impl Team {
    fn new(serve: impl FnOnce(&Path) -> Command) -> Self {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data");
        create_user(&data, &["ada", "--admin"], PASSWORD).expect_code(0);
        let server = Server::start(&mut serve(&data));
        let cookie = enter(&server, "ada");
        let project = json!({ "name": "help-desk", "title": "Help desk" });
        made(&server, &cookie, "/api/projects", &project);
        let models = Server::simulate(&[]);
        let settings = json!({
            "provider": "openai-compatible", "base_url": models.base_url, "private_host": true,
            "projects": ["help-desk"], "models": [{ "name": "sim-medium" }],
        });
        let key = json!({ "name": "shared", "settings": settings, "secret": SECRET });
        made(&server, &cookie, "/api/keys", &key);
        let token = token(&server, &cookie);
        let mut team = Self {
            folder,
            server: Some(server),
            models,
            token,
            run: String::new(),
        };
        std::fs::write(team.file("study.toml"), STUDY.replace("METHOD", "capo")).unwrap();
        let searched = team.capo("optimize study.toml --journal run.jsonl");
        assert!(matches!(searched, Some(0 | 2)));
        assert_eq!(
            team.capo("runs push run.jsonl --project help-desk --name here"),
            Some(0)
        );
        let runs = team.ask("GET", "/api/runs", &Value::Null).body;
        runs["runs"][0]["id"].as_str().unwrap().clone_into(&mut team.run);
        team
    }

    /// Has a server with a folder of its own, and the same database, in the place of this one.
    fn elsewhere(&mut self, serve: impl FnOnce(&Path) -> Command) {
        self.server.take().unwrap().stop();
        let (data, folder) = (self.file("data"), self.file("elsewhere"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(data.join("master.key"), folder.join("master.key")).unwrap();
        let database = format!("sqlite:{}", data.join("capo.db").display());
        self.server = Some(Server::start(serve(&folder).args(["--database", &database])));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command(line.split_whitespace());
        command
            .current_dir(self.folder.path())
            .env("CAPO_TOKEN", &self.token)
            .env("CAPO_REMOTE", &self.server().base_url);
        command
    }

    fn capo(&self, line: &str) -> Option<i32> {
        let ended = run(&mut self.command(line));
        if !matches!(ended.code, Some(0 | 2)) {
            println!("{line}: {}", ended.stderr);
        }
        ended.code
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let token = format!("Bearer {}", self.token);
        ask(self.server(), method, path, &[("authorization", &token)], body)
    }

    /// Starts a training, of all weights unless that is changed.
    fn start(&self, kind: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut new = json!({
            "name": kind, "kind": kind, "runs": [self.run], "settings": SETTINGS, "full": true,
            "start": { "from": "fresh", "vocabulary": 600, "hidden": 32, "layers": 1, "context": 1600 },
        });
        change(&mut new);
        let started = self.ask("POST", TRAININGS, &new);
        assert_eq!(started.status, 201, "{}", started.body);
        started.body["id"].as_str().unwrap().to_owned()
    }

    /// A training, not asked for more often than a server bears.
    fn training(&self, id: &str) -> Value {
        std::thread::sleep(Duration::from_millis(100));
        self.ask("GET", &format!("{TRAININGS}/{id}"), &Value::Null).body
    }

    fn done(&self, id: &str) -> Value {
        wait_until("the training is done", || {
            let now = self.training(id);
            assert_ne!(now["state"], "failed", "{now}");
            now["state"] == "done"
        });
        self.training(id)
    }

    /// The lines of a log up to number `last`, as who watches gets them.
    fn log(&self, id: &str, last: u64) -> Vec<Value> {
        let url = format!("{}{TRAININGS}/{id}/events", self.server().base_url);
        let token = format!("Bearer {}", self.token);
        let mut answer = ureq::get(url).header("authorization", token).call().unwrap();
        let mut lines = Vec::new();
        let mut event = String::new();
        for line in BufReader::new(answer.body_mut().as_reader()).lines() {
            let line = line.unwrap();
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event);
            } else if let (Some(data), "line") = (line.strip_prefix("data: "), event.as_str()) {
                lines.push(serde_json::from_str(data).unwrap());
            }
            if lines.len() as u64 == last {
                break;
            }
        }
        lines
    }

    /// A checkpoint, fetched and unpacked.
    fn fetched(&self, id: &str, step: u64) -> PathBuf {
        let url = format!("{}{TRAININGS}/{id}/checkpoints/{step}", self.server().base_url);
        let token = format!("Bearer {}", self.token);
        let mut answer = ureq::get(url).header("authorization", token).call().unwrap();
        let archive = self.file("checkpoint.tar");
        let mut file = std::fs::File::create(&archive).unwrap();
        std::io::copy(&mut answer.body_mut().as_reader(), &mut file).unwrap();
        let unpacked = Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .current_dir(self.folder.path())
            .status();
        assert!(unpacked.unwrap().success());
        self.file(&format!("rewriter-{}-{step}", &id[..8]))
    }
}

#[test]
fn a_rewriter_learns_on_a_server_that_is_killed() {
    let mut team = Team::new(plainly);
    let sft = team.start("sft", |_| {});
    wait_until("a checkpoint and more", || {
        team.training(&sft)["lines"].as_u64().unwrap() > 14
    });
    assert_eq!(
        team.training(&sft)["state"],
        "running",
        "it is not over when the server is killed"
    );
    team.server.take().unwrap().kill();
    team.server = Some(Server::start(&mut plainly(&team.file("data"))));
    let done = team.done(&sft);
    let log = team.log(&sft, done["lines"].as_u64().unwrap());
    let steps: BTreeSet<u64> = of_kind(&log, "step")
        .iter()
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    let last = *steps.last().unwrap();
    assert_eq!(steps.len() as u64, last, "each step stands there");
    let loss = |step: u64| {
        let of = of_kind(&log, "step")
            .into_iter()
            .find(|line| line["step"] == step);
        of.unwrap()["loss"].as_f64().unwrap()
    };
    assert!(loss(last) < loss(1));
    // Steps that were made again came to the same.
    for line in of_kind(&log, "step") {
        assert_eq!(line["loss"], json!(loss(line["step"].as_u64().unwrap())));
    }

    let checkpoints = team
        .ask("GET", &format!("{TRAININGS}/{sft}/checkpoints"), &Value::Null)
        .body;
    let counts = checkpoints
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["counts"] == true)
        .unwrap();
    assert_eq!(
        (&counts["step"], &counts["is_adapter"]),
        (&json!(last), &json!(false)),
        "{checkpoints}"
    );
    let policy = team.fetched(&sft, last);
    let merged = format!("rewriter merge {} --out merged", policy.display());
    assert_eq!(team.capo(&merged), Some(0));
    assert!(team.file("merged/model.safetensors").is_file());

    // What it came to learns on, in a search of its own that everybody may look at, and that asks models as runs do.
    let asks = format!(
        "provider = \"openai-compatible\"\nbase_url = \"{}\"\nmodel = \"sim-medium\"",
        team.models.base_url
    );
    let study = STUDY.replace("METHOD", "dcapo");
    let grpo = team.start("grpo", |new| {
        new["study"] = json!(study.replace("provider = \"simulated\"", &asks));
        new["start"] = json!({ "from": "training", "training": sft });
        new["runs"] = json!([]);
    });
    let done = team.done(&grpo);
    let search = done["run"].as_str().unwrap();
    let shown = team.ask("GET", &format!("/api/runs/{search}"), &Value::Null).body;
    assert_eq!(shown["stage"], "ended", "{shown}");
    assert_eq!(shown["progress"]["by_round"].as_array().unwrap().len(), 3);
    assert_eq!(
        team.capo(&format!("runs pull {search} --journal grpo.jsonl")),
        Some(0)
    );
    assert_eq!(team.capo("journal verify grpo.jsonl"), Some(0));
    assert_eq!(of_kind(&events(&team.file("grpo.jsonl")), "learned").len(), 2);

    let used = team.ask("GET", "/api/usage?days=1", &Value::Null).body;
    assert!(used[0]["requests"].as_u64().unwrap() > 0, "{used}");

    // It rewrites the prompts of another run, in the server.
    let study = study
        + &format!(
            "\n[models.rewriter]\nprovider = \"local\"\nmodel = \"training:{grpo}\"\nmax_tokens = 60\n"
        );
    std::fs::write(team.file("rewritten.toml"), study).unwrap();
    assert!(matches!(
        team.capo("optimize rewritten.toml --remote --project help-desk"),
        Some(0 | 2)
    ));

    let deleted = team.ask("DELETE", &format!("{TRAININGS}/{sft}"), &Value::Null);
    assert_eq!(deleted.status, 204);
    assert!(!team.file(&format!("data/trainings/{sft}")).exists());
}

#[test]
fn a_checkpoint_in_a_bucket_is_another_servers_too() {
    let objects = TempDir::new().unwrap();
    let Some(bucket) = Bucket::new(objects.path()) else {
        return;
    };
    let serve = |data: &Path| bucket.keeps(plainly(data), "s3://capo/team");
    let mut team = Team::new(serve);
    let sft = team.start("sft", |new| {
        new["settings"] = json!(SETTINGS.replace("epochs = 200", "epochs = 2"));
    });
    team.done(&sft);
    let path = format!("{TRAININGS}/{sft}/checkpoints");
    let listed = team.ask("GET", &path, &Value::Null).body;
    let step = listed[0]["step"].as_u64().unwrap();
    let weights = |team: &Team| {
        let policy = team.fetched(&sft, step);
        let weights = std::fs::read(policy.join("model.safetensors")).unwrap();
        std::fs::remove_dir_all(policy).unwrap();
        weights
    };
    let here = weights(&team);
    team.elsewhere(serve);
    assert_eq!(team.ask("GET", &path, &Value::Null).body, listed);
    assert!(weights(&team) == here, "the same from either");
    assert!(!team.file("data/files").exists());

    // It answers, rewrites prompts, and is what another training starts from, though its training is not there.
    let question = json!({
        "model": format!("training:{sft}"), "max_tokens": 8,
        "messages": [{ "role": "user", "content": "Rewrite: Help the customer." }],
    });
    let answer = team.ask("POST", "/api/models/v1/chat/completions", &question);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let study = STUDY.replace("METHOD", "capo")
        + &format!(
            "\n[models.rewriter]\nprovider = \"local\"\nmodel = \"training:{sft}\"\nmax_tokens = 60\n"
        );
    std::fs::write(team.file("rewritten.toml"), study).unwrap();
    assert!(matches!(
        team.capo("optimize rewritten.toml --remote --project help-desk"),
        Some(0 | 2)
    ));
    let next = team.start("sft", |new| {
        new["name"] = json!("next");
        new["settings"] = json!(SETTINGS.replace("epochs = 200", "epochs = 2"));
        new["start"] = json!({ "from": "training", "training": sft });
    });
    team.done(&next);
    assert!(!team.file(&format!("elsewhere/trainings/{sft}")).exists());
}

#[test]
fn an_adapter_is_fetched_as_peft_keeps_it() {
    let team = Team::new(plainly);
    let sft = team.start("sft", |new| {
        new["settings"] = json!(SETTINGS.replace("epochs = 200", "epochs = 1"));
        new["full"] = json!(false);
    });
    team.done(&sft);
    let path = format!("{TRAININGS}/{sft}/checkpoints");
    let listed = team.ask("GET", &path, &Value::Null).body;
    assert_eq!(listed[0]["is_adapter"], true, "{listed}");
    let adapter = team.fetched(&sft, listed[0]["step"].as_u64().unwrap());
    for file in ["adapter_config.json", "adapter_model.safetensors"] {
        assert!(adapter.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_rewriter_answers_who_has_its_project_alone() {
    let team = Team::new(plainly);
    let server = team.server();
    let sft = team.start("sft", |new| {
        new["settings"] = json!(SETTINGS.replace("epochs = 200", "epochs = 2"));
    });
    team.done(&sft);
    create_user(&team.file("data"), &["bea"], PASSWORD).expect_code(0);
    let in_page = |name: &str, method: &str, path: &str, body: &Value| {
        let cookie = enter(server, name);
        let headers = [("cookie", cookie.as_str()), ("origin", server.base_url.as_str())];
        let answer = ask(server, method, path, &headers, body);
        assert!(answer.status < 300, "{path}: {}", answer.body);
        answer.body
    };
    in_page(
        "bea",
        "POST",
        "/api/projects",
        &json!({ "name": "other", "title": "Other" }),
    );
    let new = json!({ "name": "test", "scope": "write", "days": 1 });
    let of_bea = in_page("bea", "POST", "/api/tokens", &new)["secret"].clone();
    let of_bea = of_bea.as_str().unwrap();

    let model = format!("training:{sft}");
    let with = |token: &str, method: &str, path: &str, body: &Value| {
        let bearer = format!("Bearer {token}");
        let path = format!("/api/models/v1/{path}");
        ask(server, method, &path, &[("authorization", &bearer)], body)
    };
    let question = |model: &str| {
        json!({
            "model": model, "max_tokens": 8, "seed": 7,
            "messages": [{ "role": "user", "content": "Rewrite: Help the customer." }],
        })
    };
    let asked = |token: &str, model: &str| with(token, "POST", "chat/completions", &question(model));
    let is_listed = |token: &str| {
        let listed = with(token, "GET", "models", &Value::Null).body;
        let models = listed["data"].as_array().unwrap();
        models.iter().any(|listed| listed["id"] == model)
    };
    let answer = asked(&team.token, &model);
    assert_eq!(
        (answer.status, &answer.body["model"]),
        (200, &json!(model)),
        "{}",
        answer.body
    );
    assert!(
        answer.body["choices"][0]["message"]["content"].is_string(),
        "{}",
        answer.body
    );
    assert!(is_listed(&team.token));

    // Who has another project is told what everybody is of a model that is not there.
    let made_up = format!("training:{}", "0".repeat(32));
    let (refused, unknown) = (asked(of_bea, &model), asked(of_bea, &made_up));
    assert_eq!((refused.status, unknown.status), (404, 404), "{}", refused.body);
    assert_eq!(
        refused.body.to_string().replace(&model, &made_up),
        unknown.body.to_string()
    );
    let described = with(of_bea, "GET", &format!("models/{model}"), &Value::Null);
    assert!(
        described.status == 404 && !is_listed(of_bea),
        "{}",
        described.body
    );

    let role = json!({ "role": "viewer" });
    in_page("ada", "PUT", "/api/projects/help-desk/members/bea", &role);
    let answer = asked(of_bea, &model);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(is_listed(of_bea));
}

#[test]
fn a_training_is_stopped_and_resumed() {
    let team = Team::new(plainly);
    let sft = team.start("sft", |new| {
        new["settings"] = json!(SETTINGS.replace("epochs = 200", "epochs = 100000"));
    });
    let order = |order: &str| {
        let path = format!("{TRAININGS}/{sft}/orders");
        let answer = team.ask("POST", &path, &json!({ "order": order }));
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    let at = |state: &str| {
        wait_until(state, || {
            let now = team.training(&sft);
            assert_ne!(now["state"], "failed", "{now}");
            now["state"] == state
        });
    };
    wait_until("a step", || team.training(&sft)["lines"].as_u64().unwrap() > 0);
    order("stop");
    at("stopped");
    let lines = team.training(&sft)["lines"].as_u64().unwrap();
    order("resume");
    wait_until("more steps", || {
        team.training(&sft)["lines"].as_u64().unwrap() > lines
    });
    order("stop");
    at("stopped");
    let log = team.log(&sft, team.training(&sft)["lines"].as_u64().unwrap());
    let steps: Vec<u64> = of_kind(&log, "step")
        .iter()
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=steps.len() as u64).collect();
    assert_eq!(steps, expected, "nothing is done twice");
}
