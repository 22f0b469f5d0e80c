//! `capo prompts`.

use axum::response::Response;
use serde_json::{Value, json};

use crate::stub::{Stub, document, problem};
use crate::{ID, Place, detail, run, with};

const PROMPTS: &str = "/api/projects/desk/prompts";

fn version(number: u64, text: &str) -> Value {
    json!({
        "name": "greeting", "version": number, "text": text, "sha256": "ab12", "fingerprint": format!("seen-{number}"),
        "labels": [], "created_by": "ada", "created_at": "2026-11-26T08:00:00Z",
    })
}

fn told(number: u64) -> Value {
    let of = |mean: f64| json!({ "mean": mean, "standard_error": 0.0, "n": 40 });
    let finding = json!({
        "test": "binomial", "verdict": "certified", "threshold": 0.3, "mean": 0.1, "examples": 60, "p": 0.0123,
        "upper": 0.25, "simultaneous": 0.25,
    });
    let evidence = json!({
        "study": "desk", "status": "feasible", "objective": "success", "thresholds": { "human_requests": 0.3 },
        "evaluation": { "success": of(0.75), "human_requests": of(0.125) },
        "seed_evaluation": { "success": of(0.5), "human_requests": of(0.625) },
        "feasibility": { "search": true, "held_out": true, "certified": "certified" }, "holds": true,
        "certificate": {
            "candidate": "ab".repeat(32), "verdict": "certified", "confidence": 0.95, "reserve": 60, "examples": 60,
            "ended": true, "constraints": { "human_requests": finding },
        },
    });
    with(
        with(version(number, "Hello.\n"), "run", json!(ID)),
        "evidence",
        evidence,
    )
}

/// A server with a prompt of two versions, on whose first the label `candidate` is.
fn server() -> Stub {
    Stub::start(|asked, _| {
        let (method, path) = asked.line.split_once(' ').unwrap();
        if path == "/api/projects" {
            let of = |name: &str, role: &str| json!({ "name": name, "title": name, "created_at": "2026-11-26T08:00:00Z", "role": role });
            return Some(document(
                200,
                &json!([of("desk", "editor"), of("other", "viewer")]),
            ));
        }
        if path.starts_with("/api/runs") {
            return Some(document(200, &detail(run("ended", 9, 0))));
        }
        answer(method, path.strip_prefix(PROMPTS)?, &asked.body)
    })
}

fn answer(method: &str, path: &str, body: &[u8]) -> Option<Response> {
    let placed = |version: u64| json!({ "label": "candidate", "version": version, "moved_by": "ada", "moved_at": "2026-11-26T08:00:00Z" });
    Some(match (method, path) {
        ("GET", "") => document(
            200,
            &json!([{ "name": "greeting", "labels": { "candidate": 1 }, "newest": 2, "touched_at": "2026-11-26T08:00:00Z" }]),
        ),
        ("GET", "/greeting" | "/greeting?version=2") => document(200, &told(2)),
        ("GET", "/greeting?label=candidate") => document(200, &version(1, "Hi\u{1b}.")),
        ("GET", "/greeting/labels/candidate") => document(200, &placed(1)),
        ("PUT", "/greeting/labels/candidate") => document(200, &placed(2)),
        ("PUT", "/greeting/labels/production") => problem(
            403,
            "The label production is moved by a person who is signed in: do it on the server's page.",
        ),
        ("POST", "/greeting/versions") => {
            let asked: Value = serde_json::from_slice(body).unwrap();
            document(
                201,
                &if asked["run"].is_null() {
                    version(3, "Hey.")
                } else {
                    told(3)
                },
            )
        }
        _ => return None,
    })
}

#[test]
fn a_text_is_written_as_it_is_kept() {
    let (stub, place) = (server(), Place::new());
    let url = &stub.url;
    let ended = place.capo(&format!("prompts get greeting --project desk --remote {url}"));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "Hello.\n"),
        "{}",
        ended.stderr
    );
    let ended = place.capo(&format!(
        "prompts get greeting --label candidate --project desk --output out.txt --remote {url}"
    ));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
    assert_eq!(
        std::fs::read_to_string(place.path("out.txt")).unwrap(),
        "Hi\u{1b}."
    );
    let ended = place.capo(&format!(
        "prompts get greeting --label production --project desk --output out.txt --remote {url}"
    ));
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert_eq!(
        std::fs::read_to_string(place.path("out.txt")).unwrap(),
        "Hi\u{1b}.",
        "it stays"
    );
    for (line, said) in [
        (
            "get greeting",
            "say which project with --project; you may fetch prompts in desk, other",
        ),
        ("get ../greeting --project desk", "a prompt's name has"),
        ("get greeting --label a/b --project desk", "a label has"),
        (
            "get greeting --label candidate --version 1",
            "cannot be used with",
        ),
    ] {
        let ended = place.capo(&format!("prompts {line} --remote {url}"));
        assert!(
            ended.code == 64 && ended.stderr.contains(said),
            "{line}: {ended:?}"
        );
    }
}

#[test]
fn prompts_are_listed_and_shown_with_their_numbers() {
    let (stub, place) = (server(), Place::new());
    let capo = |line: &str| place.capo(&format!("prompts {line} --project desk --remote {}", stub.url));
    let listed = capo("list").stdout;
    assert!(
        listed.contains("greeting") && listed.contains("candidate 1"),
        "{listed}"
    );
    let json: Value = serde_json::from_str(&capo("list --json").stdout).unwrap();
    assert_eq!(json[0]["newest"], 2);
    let shown = capo("show greeting").stdout;
    for part in [
        "greeting version 2",
        ID,
        "The prompt is certified",
        "0.300",
        "0.625",
        "0.125",
        "certified at 95 % on n = 60",
        "Hello.",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = capo("show greeting --label candidate").stdout;
    assert!(shown.contains("No run speaks for it."), "{shown}");
    let json: Value = serde_json::from_str(&capo("show greeting --json").stdout).unwrap();
    assert_eq!(json["evidence"]["holds"], true);
}

#[test]
fn versions_are_added_and_labels_moved_by_who_may() {
    let (stub, place) = (server(), Place::new());
    // Only one project is there in which one may.
    let capo = |line: &str| {
        let ended = place.capo(&format!("prompts {line} --remote {}", stub.url));
        let asked = stub.asked().last().cloned().unwrap();
        (
            ended,
            asked.line.clone(),
            serde_json::from_slice(&asked.body).unwrap_or(Value::Null),
        )
    };
    let (ended, line, body) = capo("add greeting --file prompt.md --note shorter");
    assert_eq!(line, format!("POST {PROMPTS}/greeting/versions"), "{ended:?}");
    let text = "You are a customer service agent. Help the customer.";
    assert_eq!(body, json!({ "text": text, "note": "shorter" }));
    assert!(ended.stdout.contains("greeting version 3"), "{ended:?}");
    let (ended, _, body) = capo(&format!("add greeting --run {ID} --candidate ab12cd34"));
    assert_eq!(body, json!({ "run": ID, "candidate": "ab12cd34" }), "{ended:?}");
    assert!(ended.stdout.contains("On the held-out examples"), "{ended:?}");
    let (ended, line, body) = capo("label greeting candidate 2");
    assert_eq!(
        line,
        format!("PUT {PROMPTS}/greeting/labels/candidate"),
        "{ended:?}"
    );
    assert_eq!(body, json!({ "version": 2, "seen": "seen-2", "was": 1 }));
    assert!(
        ended.stdout.ends_with("candidate is on version 2, it was on 1\n"),
        "{ended:?}"
    );
    let (ended, _, body) = capo("label greeting production 2");
    assert_eq!(body["was"], 0);
    assert!(
        ended.code == 1 && ended.stderr.contains("do it on the server's page"),
        "{ended:?}"
    );
    for line in [
        "add greeting",
        "add greeting --file prompt.md --run 0123456",
        "add greeting --file prompt.md --candidate ab12cd",
    ] {
        assert_eq!(capo(line).0.code, 64, "{line}");
    }
    assert_eq!(capo("add greeting --file none.md").0.code, 64);
}
