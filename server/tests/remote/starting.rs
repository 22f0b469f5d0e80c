//! `capo optimize --remote`.

use std::sync::Mutex;

use axum::response::Response;
use capo_core::ids::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::stub::{Asked, Stub, document, events, problem};
use crate::{Ended, ID, Place, RUN, STUDY, ended, ended_of_env, result, run, whole};

/// A server with a project for each role, which keeps files and starts runs.
fn starting(projects: &'static [(&'static str, &'static str)]) -> Stub {
    let kept: Mutex<Vec<String>> = Mutex::default();
    Stub::start(move |asked, _| {
        let (method, path) = asked.line.split_once(' ').unwrap();
        if path == "/api/projects" {
            let shown = projects.iter().map(|(name, role)| {
                json!({ "name": name, "title": name, "created_at": "2026-11-26T08:00:00Z", "role": role })
            });
            return Some(document(200, &shown.collect::<Vec<_>>()));
        }
        if let Some(sha256) = path.strip_prefix("/api/projects/desk/files/") {
            return Some(file(&kept, method, sha256, asked));
        }
        match asked.line.as_str() {
            "POST /api/projects/desk/runs" => Some(document(201, &run("queued", 0, 0))),
            line if line == format!("GET /api/runs/{ID}/events?from=0") => Some(events(&whole())),
            _ => None,
        }
    })
}

fn file(kept: &Mutex<Vec<String>>, method: &str, sha256: &str, asked: &Asked) -> Response {
    let mut kept = kept.lock().unwrap();
    let shown = json!({ "sha256": sha256, "size": asked.body.len(), "created_at": "2026-11-26T08:00:00Z" });
    if method == "PUT" {
        assert_eq!(hex(&Sha256::digest(&asked.body)), sha256);
        kept.push(sha256.to_owned());
        return document(201, &shown);
    }
    if kept.iter().any(|known| known == sha256) {
        return document(200, &shown);
    }
    problem(404, "There is no such file.")
}

const TABLE: &str = r#"
[study]
name = "rows"

[workload]
kind = "table"
data = "data/rows.csv"
optimize = 3
evaluate = 2
user = "{{ question }}"

[[workload.metric]]
type = "exact"
name = "correct"
expected = "{{ answer }}"

[prompt]
file = "prompt.md"

[objective]
metric = "correct"

[models.agent]
provider = "openai"
model = "gpt-5-mini"
base_url = "https://api.openai.com/v1"
"#;

const ROWS: &str = "question,answer\n1+1,2\n1+2,3\n1+3,4\n1+4,5\n1+5,6\n";

#[test]
fn a_study_is_sent_with_its_prompt_and_exactly_the_files_that_it_reads() {
    let place = Place::new();
    place.write("table.toml", TABLE);
    std::fs::create_dir(place.path("data")).unwrap();
    place.write("data/rows.csv", ROWS);
    place.write("data/other.csv", ROWS);
    let stub = starting(&[("mine", "viewer"), ("desk", "editor")]);
    let line = format!(
        "optimize table.toml --seed 7 --name Rows --start-at 2027-03-01T22:00:00+01:00 --detach --remote {}",
        stub.url
    );
    for _ in 0..2 {
        let ended = place.capo(&line);
        assert_eq!(
            (ended.code, ended.stdout),
            (0, format!("{ID}\n")),
            "{}",
            ended.stderr
        );
        let words = format!("To watch it, run: capo watch {ID} --remote {}", stub.url);
        assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    }
    let sha256 = hex(&Sha256::digest(ROWS));
    let file = format!("/api/projects/desk/files/{sha256}");
    let start = "POST /api/projects/desk/runs";
    assert_eq!(
        stub.lines(),
        [
            "GET /api/projects",
            &format!("GET {file}"),
            &format!("PUT {file}"),
            start,
            "GET /api/projects",
            &format!("GET {file}"),
            start
        ]
    );
    let new = stub
        .asked()
        .iter()
        .find(|asked| asked.line == start)
        .unwrap()
        .json();
    assert_eq!(
        (&new["name"], &new["start_at"]),
        (&json!("Rows"), &json!("2027-03-01T21:00:00Z"))
    );
    assert_eq!(new["files"], json!({ "data/rows.csv": sha256 }));
    let study: toml::Table = new["study"].as_str().unwrap().parse().unwrap();
    assert_eq!(study["study"]["seed"].as_integer(), Some(7));
    assert_eq!(
        study["prompt"]["text"].as_str(),
        Some("You are a customer service agent. Help the customer.")
    );
}

#[test]
fn a_search_on_the_server_is_watched_like_one_here() {
    let (place, stub) = (Place::new(), starting(&[]));
    let mut command = place.command("optimize study.toml --project desk --remote");
    let ended = ended_of_env(&mut command, &stub);
    let (code, shown, _) = &RUN.local;
    assert_eq!(
        (ended.code, result(&ended.stdout)),
        (*code, result(shown)),
        "{}",
        ended.stderr
    );
    assert!(!place.path("runs").exists(), "no journal here");
}

#[test]
fn what_is_wrong_is_said_before_the_server_is_asked() {
    let place = Place::new();
    place.write("wrong.toml", &STUDY.replace("rounds = 2", "round = 2"));
    let stub = starting(&[("desk", "admin"), ("pens", "editor")]);
    let url = &stub.url;
    for (line, code, part) in [
        (format!("optimize wrong.toml --remote {url}"), 64, "rounds"),
        (
            format!("optimize study.toml --remote {url} --journal a.jsonl"),
            64,
            "--journal",
        ),
        (
            format!("optimize study.toml --remote {url} --start-at tomorrow"),
            64,
            "RFC 3339",
        ),
        ("optimize study.toml --detach".to_owned(), 64, "--remote"),
        ("optimize study.toml --remote".to_owned(), 64, "CAPO_REMOTE"),
        (
            "optimize study.toml --remote http://capo.example.org".to_owned(),
            64,
            "use https://",
        ),
        ("runs".to_owned(), 64, "CAPO_REMOTE"),
        (format!("watch 0123 --remote {url}"), 64, "first 6 or more"),
        (
            format!("runs resume {ID} --study wrong.toml --remote {url}"),
            64,
            "rounds",
        ),
        (format!("runs steer {ID} --remote {url}"), 64, "--threshold"),
        (
            format!("runs steer {ID} --threshold a=1 --threshold a=2 --remote {url}"),
            64,
            "given twice",
        ),
        (
            format!("runs push gone.jsonl --remote {url}"),
            1,
            "gone.jsonl is not there",
        ),
        (
            format!("runs pull {ID} --journal study.toml --remote {url}"),
            1,
            "is there already",
        ),
    ] {
        let ended = place.capo(&line);
        assert_eq!(ended.code, code, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{line}: {}", ended.stderr);
    }
    let bounds = place.capo(&format!("optimize study.toml --dry-run --json --remote {url}"));
    let bounds: Value = serde_json::from_str(&bounds.stdout).unwrap();
    assert!(
        bounds["rollouts"].is_u64() && bounds["journal"].is_null(),
        "{bounds}"
    );
    assert!(stub.lines().is_empty(), "{:?}", stub.lines());

    let ended = place.capo(&format!("optimize study.toml --remote {url}"));
    assert_eq!(ended.code, 64);
    assert!(
        ended
            .stderr
            .contains("--project; you may start runs in desk, pens"),
        "{}",
        ended.stderr
    );
    let ended = ended_with_token(&place, "capo_another", url);
    assert!(
        ended.code == 1 && ended.stderr.contains("CAPO_TOKEN"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("capo_another"), "{ended:?}");
    let ended = ended_with_token(&place, "", url);
    assert!(
        ended.code == 1 && ended.stderr.contains("CAPO_TOKEN is not set"),
        "{ended:?}"
    );
    let nobody = "http://127.0.0.1:1";
    let ended = place.capo(&format!("runs --remote {nobody}"));
    assert!(
        ended.code == 1 && ended.stderr.contains("is not reached"),
        "{ended:?}"
    );
}

fn ended_with_token(place: &Place, token: &str, url: &str) -> Ended {
    ended(
        place
            .command(&format!("runs --remote {url}"))
            .env("CAPO_TOKEN", token),
    )
}
