//! `capo embed`: the vectors that examples are split by, from a model on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};

const KEY: &str = "sk-vectors-0123456789";

/// What customers want; the vectors of a text are read off it.
const WISHES: [(&str, [f64; 3]); 3] = [
    ("cancel the flight and get the money back", [1.0, 0.0, 0.0]),
    ("add two bags and a suitcase", [0.9, 0.1, 0.0]),
    ("move to business class with a window seat", [0.0, 0.0, 2.0]),
];

/// The texts of each request. More than `most` requests are refused.
#[derive(Clone)]
struct Asked {
    texts: Arc<Mutex<Vec<Vec<String>>>>,
    most: usize,
}

async fn vectors(
    State(asked): State<Asked>,
    Json(request): Json<Value>,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let texts: Vec<String> = serde_json::from_value(request["input"].clone()).unwrap();
    let vector = |text: &String| {
        let wish = WISHES.iter().find(|(wish, _)| text.contains(wish));
        wish.map_or([0.0; 3], |(_, vector)| *vector)
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "object": "embedding", "index": index, "embedding": vector(text) }))
        .collect();
    let mut all = asked.texts.lock().unwrap();
    if all.len() == asked.most {
        let problem = json!({ "error": { "message": "no more today" } });
        return Err((StatusCode::BAD_REQUEST, Json(problem)));
    }
    all.push(texts);
    Ok(Json(json!({
        "object": "list",
        "model": "acme-1",
        "data": data,
        "usage": { "prompt_tokens": 1_000, "total_tokens": 1_000 },
    })))
}

/// A model that answers so many requests, and its address.
fn serve(most: usize) -> (String, Asked) {
    let asked = Asked {
        texts: Arc::default(),
        most,
    };
    let app = axum::Router::new()
        .route("/v1/embeddings", post(vectors))
        .with_state(asked.clone());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    (address, asked)
}

/// A folder with a study over an airline of `tasks` customers.
fn place(tasks: usize, base_url: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: String| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let ids: Vec<String> = (0..tasks).map(|number| number.to_string()).collect();
    let tasks: Vec<Value> = ids
        .iter()
        .zip(WISHES.iter().cycle())
        .map(|(id, (wish, _))| {
            let instructions = format!("You want to {wish}. You are number {id}.");
            json!({ "id": id, "user_scenario": { "instructions": instructions } })
        })
        .collect();
    let airline = "tau2/domains/airline";
    write(
        &format!("{airline}/db.json"),
        json!({ "flights": {}, "users": {}, "reservations": {} }).to_string(),
    );
    write(&format!("{airline}/policy.md"), "Be kind.".to_owned());
    write(&format!("{airline}/tasks.json"), json!(tasks).to_string());
    write(
        &format!("{airline}/split_tasks.json"),
        json!({ "base": ids }).to_string(),
    );
    write(
        "tau2/user_simulator/simulation_guidelines.md",
        "Be brief.".to_owned(),
    );
    write(
        "study.toml",
        format!(
            r#"
[study]
name = "shifted airline"

[workload]
kind = "tau2"
domain = "airline"
data = "tau2"
split = "cluster-shift"
clusters = 2
embeddings = "vectors.jsonl"

[prompt]
text = "You are a customer service agent."

[objective]
metric = "success"

[models.agent]
provider = "simulated"

[models.embeddings]
provider = "openai-compatible"
model = "acme-1"
base_url = "{base_url}"
api_key_env = "VECTORS_KEY"
price = {{ input = 2.0, output = 0.0 }}
"#
        ),
    );
    place
}

/// Runs `capo` with the words of a line: exit code, standard output and standard error.
fn capo(place: &tempfile::TempDir, line: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_capo"))
        .args(line.split_whitespace())
        .current_dir(place.path())
        .env("VECTORS_KEY", KEY)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!stdout.contains(KEY) && !stderr.contains(KEY));
    (output.status.code().unwrap(), stdout, stderr)
}

#[test]
fn vectors_are_made_once_and_split_the_tasks() {
    let (address, asked) = serve(9);
    let place = place(30, &address);
    let (code, _, stderr) = capo(&place, "optimize study.toml --dry-run");
    assert_eq!(code, 64, "{stderr}");
    assert!(
        stderr.contains("no file `vectors.jsonl`; `capo embed STUDY` makes it"),
        "{stderr}"
    );

    let (code, stdout, stderr) = capo(&place, "embed study.toml --dry-run");
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("30 of 30 texts, "), "{stdout}");
    assert!(asked.texts.lock().unwrap().is_empty());
    assert!(!place.path().join("vectors.jsonl").exists());

    let (code, stdout, stderr) = capo(&place, "embed study.toml --json");
    assert_eq!(code, 0, "{stderr}");
    let made: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        made,
        json!({
            "model": "openai-compatible/acme-1", "file": "vectors.jsonl", "texts": 30, "missing": 30,
            "characters": made["characters"], "vectors": 30, "calls": 1, "input_tokens": 1000, "usd": 0.002,
        })
    );
    let (code, stdout, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stdout,
        "vectors.jsonl has the vectors of all 30 texts by openai-compatible/acme-1.\n"
    );
    assert_eq!(asked.texts.lock().unwrap().len(), 1);

    // Flights and bags lie together, far from seats, and of every three held-out tasks two are of the former.
    let (code, stdout, stderr) = capo(&place, "optimize study.toml --json");
    assert!([0, 2].contains(&code), "{stderr}");
    let run: Value = serde_json::from_str(&stdout).unwrap();
    assert!(run["usage"]["by_role"].get("embeddings").is_none());
    let journal = std::fs::read_to_string(place.path().join(run["journal"].as_str().unwrap())).unwrap();
    let events = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let searched = events.filter(|event| event["event"] == "rollout" && event["split"] == "optimize");
    let mut kinds: Vec<u64> = searched
        .map(|event| event["example"].as_str().unwrap().parse::<u64>().unwrap() % 3)
        .collect();
    kinds.dedup();
    assert_eq!(kinds, [2], "seats alone");
}

#[test]
fn two_at_once_do_not_write_one_file() {
    let (address, asked) = serve(9);
    let place = place(30, &address);
    let lock = place.path().join("vectors.jsonl.lock");
    let held = std::fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("another `capo embed` is writing vectors.jsonl"),
        "{stderr}"
    );
    assert!(asked.texts.lock().unwrap().is_empty(), "nothing was paid for");

    // As after a crash: the file is there, and nobody holds it.
    drop(held);
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 0, "{stderr}");
    assert!(place.path().join("vectors.jsonl").exists() && !lock.exists());
}

#[test]
fn what_was_paid_for_is_kept_when_the_model_gives_up() {
    let (address, asked) = serve(1);
    let place = place(70, &address);
    let (code, _, stderr) = capo(&place, "embed study.toml --batch 64");
    assert_eq!(code, 1);
    assert!(stderr.contains("no more today"), "{stderr}");
    assert!(
        stderr.contains("64 of 70 vectors are in vectors.jsonl (1,000 tokens, $0.0020 now)"),
        "{stderr}"
    );
    assert_eq!(asked.texts.lock().unwrap().len(), 1);

    let (code, _, stderr) = capo(&place, "optimize study.toml --dry-run");
    assert_eq!(code, 64);
    assert!(
        stderr.contains("the file lacks vectors of 6 of the 70 texts"),
        "{stderr}"
    );

    let (address, asked) = serve(9);
    let study = std::fs::read_to_string(place.path().join("study.toml")).unwrap();
    let line = study.lines().find(|line| line.starts_with("base_url")).unwrap();
    let study = study.replace(line, &format!("base_url = \"{address}\""));
    std::fs::write(place.path().join("study.toml"), &study).unwrap();
    assert_eq!(capo(&place, "embed study.toml").0, 0);
    assert_eq!(asked.texts.lock().unwrap().concat().len(), 6);

    // Vectors for others in the same file, or who made them, do not make it another run.
    assert_eq!(capo(&place, "optimize study.toml --json").0 & 1, 0);
    let more = format!(
        "{{\"text\":\"{}\",\"model\":\"openai-compatible/acme-1\",\"vector\":[1,1,1]}}\n",
        "0".repeat(64)
    );
    let vectors = std::fs::read_to_string(place.path().join("vectors.jsonl")).unwrap();
    std::fs::write(place.path().join("vectors.jsonl"), more + &vectors).unwrap();
    let (without, _) = study.split_once("[models.embeddings]").unwrap();
    std::fs::write(place.path().join("study.toml"), without).unwrap();
    let (code, _, stderr) = capo(&place, "optimize study.toml --json");
    assert_eq!(code & 1, 0, "{stderr}");

    let other = study.replace("acme-1", "acme-2");
    std::fs::write(place.path().join("study.toml"), other).unwrap();
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 64);
    assert!(
        stderr.contains("vectors.jsonl holds vectors of openai-compatible/acme-1"),
        "{stderr}"
    );
}

#[test]
fn who_waits_for_a_model_that_is_not_there_is_told() {
    // Port 1 of loopback is never served.
    let place = place(12, "http://127.0.0.1:1/v1\"\nretries = 1\n# \"");
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 1, "{stderr}");
    let said = "cannot reach 127.0.0.1:1: trying again in 1 s, 2 of 2\n";
    assert!(stderr.contains(said), "{stderr}");
}

#[test]
fn a_vector_without_a_direction_is_named_and_the_others_are_kept() {
    let (address, _) = serve(9);
    let place = place(12, &address);
    let write = |from: &str, to: &str| {
        let path = place.path().join("study.toml");
        let study = std::fs::read_to_string(&path).unwrap();
        assert!(study.contains(from));
        std::fs::write(path, study.replace(from, to)).unwrap();
    };
    write("vectors.jsonl", "kept/here/vectors.jsonl");
    let tasks = place.path().join("tau2/domains/airline/tasks.json");
    let odd = std::fs::read_to_string(&tasks)
        .unwrap()
        .replacen("bags and a suitcase", "cats", 1);
    std::fs::write(&tasks, odd).unwrap();
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 1);
    assert!(
        stderr.contains("must be finite and not zero; it is of the text \"You want to add two cats"),
        "{stderr}"
    );
    assert!(
        stderr.contains("11 of 12 vectors are in kept/here/vectors.jsonl"),
        "{stderr}"
    );
    let kept = std::fs::read_to_string(place.path().join("kept/here/vectors.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 11);
}

#[test]
fn nothing_is_sent_that_could_not_be_used() {
    let (address, asked) = serve(9);
    let place = place(12, &address);
    let path = place.path().join("study.toml");
    let study = std::fs::read_to_string(&path).unwrap();
    for (from, to, problem) in [
        (
            "clusters = 2",
            "clusters = 99",
            "workload.clusters: must be 2 to 4",
        ),
        (
            "\"vectors.jsonl\"",
            "\"\"",
            "workload.embeddings: must name a file",
        ),
        (
            "model = \"acme-1\"",
            "model = \"acme-1\"\nheaders = { Authorization = \"Bearer x\" }",
            "carries a key",
        ),
    ] {
        assert!(study.contains(from));
        std::fs::write(&path, study.replace(from, to)).unwrap();
        for command in ["embed study.toml", "embed study.toml --dry-run"] {
            let (code, _, stderr) = capo(&place, command);
            assert_eq!(code, 64, "{stderr}");
            assert!(stderr.contains(problem), "{stderr}");
        }
    }
    std::fs::write(&path, &study).unwrap();
    let lists = place.path().join("tau2/domains/airline/split_tasks.json");
    std::fs::write(lists, r#"{ "base": ["0", "1", "2", "3", "4", "5", "6", "29"] }"#).unwrap();
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 64);
    assert!(
        stderr.contains("tasks.json of airline has no task `29`"),
        "{stderr}"
    );
    assert!(asked.texts.lock().unwrap().is_empty());
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let (address, _) = serve(0);
    let place = place(12, &address);
    let study = std::fs::read_to_string(place.path().join("study.toml")).unwrap();
    for (from, to, problem) in [
        (
            "embeddings = \"vectors.jsonl\"",
            "",
            "workload.embeddings: is missing",
        ),
        (
            "cluster-shift",
            "drawn",
            "workload.clusters: only split = \"cluster-shift\" makes clusters",
        ),
        (
            "[models.embeddings]",
            "[models.critic]",
            "no model for the role `embeddings`",
        ),
        (
            "kind = \"tau2\"",
            "kind = \"desk\"",
            "workload.kind: \"desk\" wants no vectors of texts",
        ),
    ] {
        assert!(study.contains(from));
        std::fs::write(place.path().join("study.toml"), study.replace(from, to)).unwrap();
        let (code, _, stderr) = capo(&place, "embed study.toml");
        assert_eq!(code, 64, "{stderr}");
        assert!(stderr.contains(problem), "{stderr}");
    }
    std::fs::write(place.path().join("study.toml"), &study).unwrap();
    std::fs::write(place.path().join("vectors.jsonl"), "{}\n").unwrap();
    let (code, _, stderr) = capo(&place, "embed study.toml");
    assert_eq!(code, 64);
    assert!(
        stderr.contains("vectors.jsonl line 1: is no vector of a text"),
        "{stderr}"
    );
}
