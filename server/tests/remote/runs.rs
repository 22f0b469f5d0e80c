//! `capo runs`.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use crate::stub::{Asked, Say, Stub, document, events, problem};
use crate::{ID, Place, RUN, STUDY, detail, ended_of_env, run, with};

#[test]
fn runs_are_listed_and_named_by_the_beginning_of_their_ids() {
    let stub = Stub::start(|asked, _| {
        let other = with(
            run("failed", 3, 0),
            "id",
            json!("0123450000000000000000000000ffff"),
        );
        match asked.line.as_str() {
            "GET /api/runs" | "GET /api/runs?project=desk" => Some(document(
                200,
                &json!({ "runs": [run("ended", 9, 0)], "before": ID }),
            )),
            "GET /api/runs?before=0123456789abcdef0123456789abcdef"
            | "GET /api/runs?project=desk&before=0123456789abcdef0123456789abcdef" => {
                Some(document(200, &json!({ "runs": [other] })))
            }
            line if line == format!("GET /api/runs/{ID}") => Some(document(200, &detail(run("ended", 9, 0)))),
            _ => None,
        }
    });
    let place = Place::new();
    let url = &stub.url;
    for line in ["runs", "runs list", "runs --project desk"] {
        let ended = place.capo(&format!("{line} --remote {url}"));
        let rows: Vec<&str> = ended.stdout.lines().collect();
        // The columns that 80 characters do not show beside the others stand below them.
        assert_eq!((ended.code, rows.len()), (0, 7), "{}", ended.stderr);
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:?}");
        assert!(
            rows[1].starts_with("01234567  small desk  desk     ended"),
            "{}",
            rows[1]
        );
    }
    let ended = ended_of_env(&mut place.command("runs list --json"), &stub);
    let listed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(listed["runs"][1]["stage"], "failed");
    let ended = ended_of_env(&mut place.command("runs show 0123456"), &stub);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains(ID) && ended.stdout.contains("rows.csv"),
        "{}",
        ended.stdout
    );
    let ended = place.capo(&format!("runs show {ID} --study --remote {url}"));
    assert_eq!(ended.stdout, STUDY);
    let ended = place.capo(&format!("runs show 012345 --remote {url}"));
    assert_eq!(ended.code, 64);
    assert!(
        ended.stderr.contains("2 runs have ids that begin with 012345"),
        "{}",
        ended.stderr
    );
    let ended = place.capo(&format!("runs show 0123457 --remote {url}"));
    assert!(
        ended.code == 1 && ended.stderr.contains("has no run whose id begins with 0123457"),
        "{ended:?}"
    );
}

#[test]
fn runs_are_told_what_to_do() {
    let stub = Stub::start(|asked, _| {
        let path = asked
            .line
            .strip_prefix("POST /api/runs/")
            .map(|path| &path[ID.len()..]);
        match (path, asked.line.starts_with("DELETE")) {
            (Some("/orders"), _) => match asked.json()["order"].as_str().unwrap() {
                "pause" => Some(problem(409, "The run is not running.")),
                "stop" => Some(document(200, &with(run("running", 9, 0), "wish", json!("stop")))),
                _ => Some(document(200, &run("queued", 9, 0))),
            },
            (Some("/branches"), _) => Some(document(201, &run("paused", 5, 0))),
            (None, true) => Some(StatusCode::NO_CONTENT.into_response()),
            _ => Some(document(200, &detail(run("running", 9, 0)))),
        }
    });
    let place = Place::new();
    let told = |line: &str| {
        let before = stub.asked().len();
        let ended = place.capo(&format!("{line} --remote {}", stub.url));
        let asked = stub.asked()[before..].to_vec();
        let body = asked.iter().find(|asked| !asked.body.is_empty()).map(Asked::json);
        (ended, body.unwrap_or(Value::Null))
    };
    let (ended, _) = told(&format!("runs pause {ID}"));
    assert!(
        ended.code == 1 && ended.stderr.contains("The run is not running."),
        "{ended:?}"
    );
    let (ended, _) = told(&format!("runs stop {ID}"));
    assert_eq!(ended.stdout, "small desk (01234567): running, told to stop\n");
    let (_, body) = told(&format!("runs resume {ID}"));
    assert_eq!(body, json!({ "order": "resume" }));
    let (_, body) = told(&format!("runs resume {ID} --study study.toml --seed 3"));
    let study: toml::Table = body["study"].as_str().unwrap().parse().unwrap();
    assert_eq!(study["study"]["seed"].as_integer(), Some(3));
    let (ended, body) = told(&format!(
        "runs steer {ID} --threshold excess_tools=0.5 --multiplier excess_tools=2"
    ));
    let change =
        json!({ "round": 0, "thresholds": { "excess_tools": 0.5 }, "multipliers": { "excess_tools": 2.0 } });
    assert_eq!(
        (ended.code, body),
        (0, json!({ "order": "steer", "change": change })),
        "{}",
        ended.stderr
    );
    let (ended, body) = told(&format!(
        "runs branch {ID} --round 1 --name stricter --threshold excess_tools=0.2 --paused"
    ));
    let change = json!({ "round": 0, "thresholds": { "excess_tools": 0.2 } });
    assert_eq!(
        body,
        json!({ "name": "stricter", "round": 1, "change": change, "start": false })
    );
    assert!(
        ended.stdout.contains("To start it, run: capo runs resume"),
        "{ended:?}"
    );
    let (ended, _) = told(&format!("runs delete {ID}"));
    assert_eq!(
        ended.stdout,
        format!("deleted small desk ({ID})\n"),
        "{}",
        ended.stderr
    );
}

#[test]
fn journals_are_pushed_and_pulled_whole() {
    let lines = RUN.lines.join("\n") + "\n";
    let journal = lines.clone();
    let stub = Stub::start(move |asked, before| {
        if asked.line.starts_with("POST") {
            return Some(document(201, &run("ended", RUN.lines.len(), 1)));
        }
        if asked.line == format!("GET /api/runs/{ID}/journal?from=0") {
            // The first is cut off.
            let half = &journal[..journal.len() / 2];
            return Some(if before == 0 {
                events(&[Say::Study(half.to_owned())])
            } else {
                journal.clone().into_response()
            });
        }
        Some(document(200, &detail(run("ended", RUN.lines.len(), 1))))
    });
    let place = Place::new();
    place.write("run.jsonl", &format!("{lines}{{\"event\":\"cut off"));
    let ended = place.capo(&format!(
        "runs push run.jsonl --project desk --remote {}",
        stub.url
    ));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let asked = stub.asked().last().unwrap().clone();
    assert_eq!(asked.line, "POST /api/projects/desk/journals?name=small%20desk");
    assert_eq!(asked.body, lines.as_bytes());
    let pull = format!("runs pull {ID} --journal pulled.jsonl --remote {}", stub.url);
    let ended = place.capo(&pull);
    assert!(
        ended.code == 1 && ended.stderr.contains("nothing was written"),
        "{ended:?}"
    );
    assert!(!place.path("pulled.jsonl").exists());
    let ended = place.capo(&pull);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(
        std::fs::read_to_string(place.path("pulled.jsonl")).unwrap(),
        lines
    );
    assert_eq!(place.capo("journal verify pulled.jsonl").code, 0);
    assert_eq!(
        std::fs::read_dir(place.0.path()).unwrap().count(),
        4,
        "nothing is left beside them"
    );
}
