//! Runs over HTTP: what is started, told, watched, branched and pushed.

use std::time::Duration;

use axum::body::BodyDataStream;
use capo_core::journal::{Event, parse_line};
use capo_core::llm::FailureKind;
use capo_core::notice::Wait;
use futures::StreamExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::store::tests::on_each_database;
use crate::worker::{WorkerSettings, work};

/// A worker of a team's server, which ends with it.
pub(super) struct Worker(CancellationToken, JoinHandle<std::io::Result<()>>);

impl Worker {
    pub(super) fn of(team: &Team) -> Self {
        let (ending, server) = (CancellationToken::new(), team.server.clone());
        let told = ending.clone();
        let task =
            tokio::spawn(
                async move { work(server, WorkerSettings::default(), told.cancelled_owned()).await },
            );
        Self(ending, task)
    }

    pub(super) async fn end(self) {
        self.0.cancel();
        self.1.await.unwrap().unwrap();
    }
}

impl Team {
    pub(super) async fn start(&self, study: &str) -> String {
        let new = json!({ "name": "Help desk", "study": study });
        let (status, run) = self
            .ask(Who::Editor, "POST", "/api/projects/alpha/runs", new)
            .await;
        assert_eq!(status, 201, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn ended(&self, run: &str) -> Value {
        for _ in 0..1200 {
            let (_, shown) = self
                .ask(Who::Viewer, "GET", &format!("/api/runs/{run}"), Value::Null)
                .await;
            if shown["stage"] == "ended" || shown["stage"] == "failed" {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the run did not end");
    }

    pub(super) async fn journal(&self, run: &str, from: u64) -> Vec<String> {
        let path = format!("/api/runs/{run}/journal?from={from}");
        let request = self.request(Who::Viewer, &Method::GET, &path, &Value::Null);
        let response = self.send(request).await;
        assert_eq!(response.status(), 200);
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 26).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) async fn push(&self, files: &str, body: impl Into<Body>) -> (u16, Value) {
        let path = format!("/api/projects/alpha/journals?name=From%20afar{files}");
        let mut request = self.request(Who::Editor, &Method::POST, &path, &Value::Null);
        *request.body_mut() = body.into();
        let response = self.send(request).await;
        (response.status().as_u16(), document(response).await)
    }

    async fn watch(&self, run: &str, from: u64, last: Option<u64>) -> Watched {
        self.watch_path(&format!("/api/runs/{run}/events?from={from}"), last)
            .await
    }

    pub(super) async fn watch_path(&self, path: &str, last: Option<u64>) -> Watched {
        let mut request = self.request(Who::Viewer, &Method::GET, path, &Value::Null);
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.into());
        }
        let response = self.send(request).await;
        assert_eq!(response.status(), 200);
        Watched {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }
}

/// What somebody who watches gets.
pub(super) struct Watched {
    body: BodyDataStream,
    text: String,
}

impl Watched {
    /// The next event: its name, its id and its data.
    pub(super) async fn next(&mut self) -> Option<(String, Option<u64>, String)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                let found = field("event").map(|name| {
                    let id = field("id").map(|id| id.parse().unwrap());
                    (name, id, field("data").unwrap())
                });
                self.text = rest.to_owned();
                match found {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let piece = tokio::time::timeout(Duration::from_mins(1), self.body.next())
                .await
                .unwrap()?;
            self.text += std::str::from_utf8(&piece.unwrap()).unwrap();
        }
    }

    /// What is told next of whom the run waits for.
    async fn waits(&mut self) -> Option<Wait> {
        loop {
            let (name, _, data) = self.next().await.unwrap();
            if name == "waits" {
                return serde_json::from_str(&data).unwrap();
            }
        }
    }

    /// The lines until the run has ended and all are there, as a client reads them.
    async fn read_to_the_end(&mut self, from: u64) -> Vec<String> {
        let mut lines = Vec::new();
        let mut is_first = true;
        while let Some((name, id, data)) = self.next().await {
            match name.as_str() {
                "line" => {
                    assert_eq!(id, Some(from + lines.len() as u64));
                    lines.push(data);
                }
                "run" => {
                    let run: Value = serde_json::from_str(&data).unwrap();
                    let have = from + lines.len() as u64;
                    assert!(
                        is_first || run["lines"].as_u64().unwrap() <= have,
                        "{have} of {run}"
                    );
                    if run["stage"] == "ended" && run["lines"] == have {
                        return lines;
                    }
                }
                other => assert_eq!(other, "study"),
            }
            is_first = false;
        }
        panic!("the stream ended");
    }
}

on_each_database!(a_run_is_watched_from_any_line_by_many);
async fn a_run_is_watched_from_any_line_by_many(store: Store) {
    let team = Team::on(store).await;
    let run = team.start(STUDY).await;
    let mut early = team.watch(&run, 0, None).await;
    let worker = Worker::of(&team);
    let live = early.read_to_the_end(0).await;
    let shown = team.ended(&run).await;
    worker.end().await;
    assert_eq!(live.len() as u64, shown["lines"].as_u64().unwrap());
    assert_eq!(live, team.journal(&run, 0).await);
    let (middle, last) = (live.len() / 2, live.len() - 1);
    let mut late = team.watch(&run, middle as u64, None).await;
    assert_eq!(late.read_to_the_end(middle as u64).await, live[middle..]);
    // As a browser connects anew, whatever the address says.
    let mut again = team.watch(&run, 0, Some(last as u64 - 1)).await;
    assert_eq!(again.read_to_the_end(last as u64).await, live[last..]);
    assert_eq!(team.journal(&run, last as u64).await, live[last..]);
    assert_eq!(team.journal(&run, 1_000_000).await, Vec::<String>::new());
}

on_each_database!(frozen_thresholds_are_told_to_who_watches);
async fn frozen_thresholds_are_told_to_who_watches(store: Store) {
    let team = Team::on(store).await;
    let study = STUDY.replace("threshold = 0.3", "relative_to_seed = 0.9");
    let run = team.start(&study).await;
    let mut watched = team.watch(&run, 0, None).await;
    let worker = Worker::of(&team);
    let (mut first, mut revision) = (None, 0);
    // As a client has it: the first line that came, or the last that took its place.
    while let Some((name, line, data)) = watched.next().await {
        match name.as_str() {
            "line" if line == Some(0) => first = Some(data),
            "study" => {
                assert!(
                    first.is_some(),
                    "nobody is told of another first line who has none"
                );
                first = Some(data);
            }
            "run" => {
                let run: Value = serde_json::from_str(&data).unwrap();
                revision = run["revision"].as_u64().unwrap();
                if run["stage"] == "ended" {
                    break;
                }
            }
            _ => {}
        }
    }
    worker.end().await;
    let journal = team.journal(&run, 0).await;
    assert_eq!((first.as_ref(), revision), (Some(&journal[0]), 1));
    let Event::Study(study) = parse_line(&journal[0], 1).unwrap() else {
        panic!("{}", journal[0]);
    };
    assert!(study.study.constraints[0].threshold.is_some());
}

on_each_database!(whom_a_run_waits_for_is_told_to_who_watches_and_who_comes_later);
async fn whom_a_run_waits_for_is_told_to_who_watches_and_who_comes_later(store: Store) {
    let team = Team::on(store).await;
    let run = team.start(STUDY).await;
    let (lease, _) = team.store.claim(NOW, NOW + 60_000, 8).await.unwrap().unwrap();
    let mut early = team.watch(&run, 0, None).await;
    for _ in 0..2 {
        assert_eq!(early.next().await.unwrap().0, "run", "nobody is waited for");
    }
    let wait = Wait {
        model: "openai/gpt-5".into(),
        provider: "openai".into(),
        host: "api.openai.com".into(),
        kind: FailureKind::RateLimit,
        message: "HTTP 429".into(),
        seconds: 20.0,
        is_asked: true,
        next_try: Some((2, 6)),
    };
    let waits = Some((wait.clone(), NOW + 20_000));
    team.store.note_waits(&lease, &waits).await.unwrap();
    assert_eq!(early.waits().await, Some(wait.clone()));
    team.clock.store(NOW + 5_000, Relaxed);
    let mut late = team.watch(&run, 0, None).await;
    let seconds = late.waits().await.map(|wait| wait.seconds);
    assert_eq!(seconds, Some(15.0), "so many are left");
    team.store.note_waits(&lease, &None).await.unwrap();
    assert_eq!((early.waits().await, late.waits().await), (None, None));
    assert_eq!(team.journal(&run, 0).await, Vec::<String>::new());
}

on_each_database!(who_may_watch_no_more_is_let_go_when_the_server_ends);
async fn who_may_watch_no_more_is_let_go_when_the_server_ends(store: Store) {
    let team = Team::on(store).await;
    let run = team.start(STUDY).await;
    let mut watched = team.watch(&run, 0, None).await;
    assert_eq!(watched.next().await.unwrap().0, "run");
    assert_eq!(
        watched.next().await.unwrap().0,
        "run",
        "all lines that there are were sent"
    );
    team.server.end();
    assert_eq!(watched.next().await, None);
}

on_each_database!(a_journal_is_pushed_once_it_is_verified_and_branches_off);
async fn a_journal_is_pushed_once_it_is_verified_and_branches_off(store: Store) {
    let team = Team::on(store).await;
    let run = team.start(STUDY).await;
    let worker = Worker::of(&team);
    let ended = team.ended(&run).await;
    let journal = team.journal(&run, 0).await;
    let (status, pushed) = team.push("", journal.join("\n") + "\n").await;
    assert_eq!(
        (status, &pushed["stage"], &pushed["name"]),
        (201, &json!("ended"), &json!("From afar"))
    );
    assert_eq!(
        (&pushed["progress"], &pushed["status"]),
        (&ended["progress"], &ended["status"])
    );
    let id = pushed["id"].as_str().unwrap();
    assert_eq!(team.journal(id, 0).await, journal);
    let altered = journal
        .join("\n")
        .replacen(r#""objective":"#, r#""objective":0.00"#, 1);
    for (body, said) in [
        (altered, "journal line"),
        (String::new(), "empty"),
        ("{\"event\":\"round\"}".into(), "`study` event"),
        ("\u{0}".into(), "not a Capo journal"),
    ] {
        let (status, problem) = team.push("", body).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            status == 422 && detail.contains(said),
            "{said}: {status} {detail}"
        );
    }
    let rows = "question,answer\n";
    let hash = crate::secret::sha256(rows.as_bytes());
    let files = format!("&files=%7B%22rows.csv%22:%22{hash}%22%7D");
    let (status, problem) = team.push(&files, journal.join("\n")).await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("upload it first"),
        "{problem}"
    );
    let file = format!("/api/projects/alpha/files/{hash}");
    let mut request = team.request(Who::Editor, &Method::PUT, &file, &Value::Null);
    *request.body_mut() = Body::from(rows);
    assert_eq!(team.send(request).await.status(), 200);
    let (_, with_data) = team.push(&files, journal.join("\n")).await;
    let path = format!("/api/runs/{}", with_data["id"].as_str().unwrap());
    let (_, detail) = team.ask(Who::Viewer, "GET", &path, Value::Null).await;
    assert_eq!(detail["files"], json!({ "rows.csv": hash }));
    let branch = json!({
        "name": "Stricter", "round": 1, "start": true,
        "change": { "round": 0, "thresholds": { "human_requests": 0.1 } },
    });
    let (status, branched) = team
        .ask(Who::Editor, "POST", &format!("/api/runs/{run}/branches"), branch)
        .await;
    assert_eq!(
        (status, &branched["origin"]),
        (201, &json!({ "from": "branch", "run": run, "round": 1 }))
    );
    let id = branched["id"].as_str().unwrap();
    let ended = team.ended(id).await;
    worker.end().await;
    assert_eq!(ended["error"], Value::Null, "{ended}");
    let lines = team.journal(id, 0).await;
    futures::executor::block_on(capo_core::verify(&lines)).unwrap();
    assert!(lines.iter().any(|line| line.contains(r#""branch":{"from""#)));
    let other = STUDY.replace("seed = 3", "seed = 4");
    let resume = json!({ "order": "resume", "study": other });
    let (status, problem) = team
        .ask(Who::Editor, "POST", &format!("/api/runs/{run}/orders"), resume)
        .await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("another study"),
        "{problem}"
    );
    let none = json!({ "name": "None", "round": 99, "start": true });
    let (status, problem) = team
        .ask(Who::Editor, "POST", &format!("/api/runs/{run}/branches"), none)
        .await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("round 99"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_journal_without_an_end_or_with_a_line_without_one_leaves_nothing() {
    let team = Team::new().await;
    let runs = async || team.ask(Who::Viewer, "GET", "/api/runs", Value::Null).await.1;
    let before = runs().await;
    let piece = Bytes::from(vec![b'\n'; 4 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
    let (status, problem) = team.push("", Body::from_stream(endless)).await;
    assert_eq!(
        (status, &problem["detail"]),
        (413, &json!("The body is larger than 256 MiB."))
    );
    for (length, is_too_long) in [((4 << 20) + 1, true), (4 << 20, false)] {
        let (status, problem) = team.push("", format!("{{}}\n{}", "x".repeat(length))).await;
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(
            (status, detail == "Line 2 is larger than 4 MiB."),
            (422, is_too_long),
            "{detail}"
        );
    }
    assert_eq!(runs().await, before);
}

on_each_database!(a_study_brings_its_data_along);
async fn a_study_brings_its_data_along(store: Store) {
    let team = Team::on(store).await;
    let rows = "question,answer\n".to_owned() + &"what is one and one?,two\n".repeat(2);
    let hash = crate::secret::sha256(rows.as_bytes());
    let file = format!("/api/projects/alpha/files/{hash}");
    let study = STUDY.replace(
        "kind = \"desk\"\noptimize = 12\nevaluate = 6",
        "kind = \"table\"\ndata = \"rows.csv\"\ninput = \"question\"\ntarget = \"answer\"",
    );
    let new = json!({ "name": "Table", "study": study, "files": { "rows.csv": hash } });
    let add = async || {
        team.ask(Who::Editor, "POST", "/api/projects/alpha/runs", new.clone())
            .await
    };
    let (status, problem) = add().await;
    assert!(
        status == 422 && problem["detail"].as_str().unwrap().contains("upload it first"),
        "{problem}"
    );
    assert_eq!(team.ask(Who::Editor, "GET", &file, Value::Null).await.0, 404);
    let put = async |content: String| {
        let mut request = team.request(Who::Editor, &Method::PUT, &file, &Value::Null);
        *request.body_mut() = Body::from(content);
        let response = team.send(request).await;
        (response.status().as_u16(), document(response).await)
    };
    assert_eq!(
        put("other".into()).await.0,
        422,
        "what came is not what was named"
    );
    assert_eq!(put(rows.clone()).await.0, 200);
    let (status, kept) = team.ask(Who::Viewer, "GET", &file, Value::Null).await;
    assert_eq!((status, &kept["size"]), (200, &json!(rows.len())));
    // Now the study itself is looked at: of this one somebody must say what to measure.
    let (status, problem) = add().await;
    assert!(
        status == 422 && !problem["detail"].as_str().unwrap().contains("upload"),
        "{problem}"
    );
}

on_each_database!(what_a_run_is_told_must_make_sense);
async fn what_a_run_is_told_must_make_sense(store: Store) {
    let team = Team::on(store).await;
    let order = async |order: Value| team.ask(Who::Editor, "POST", "/api/runs/RUN/orders", order).await;
    let threshold = |metric: &str| json!({ "round": 0, "thresholds": { metric: 0.1 } });
    for (given, status, said) in [
        (json!({ "order": "pause" }), 409, "not under way"),
        (
            json!({ "order": "steer", "change": { "round": 0 } }),
            422,
            "Nothing is changed",
        ),
        (
            json!({ "order": "steer", "change": { "round": 0, "stop": true } }),
            422,
            "Nothing is changed",
        ),
        (
            json!({ "order": "steer", "change": threshold("handovers") }),
            422,
            "no such constraint",
        ),
        (json!({ "order": "resume", "study": "[study]" }), 422, ""),
        (json!({ "order": "fly" }), 422, "fly"),
        (
            json!({ "order": "steer", "change": { "round": 0, "budget": { "rollouts": 9 } } }),
            422,
            "resume the run",
        ),
    ] {
        let (got, problem) = order(given.clone()).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(got == status && detail.contains(said), "{given}: {got} {detail}");
    }
    let (status, run) = order(json!({ "order": "steer", "change": threshold("human_requests") })).await;
    assert_eq!((status, &run["stage"]), (200, &json!("paused")));
    let (status, run) = order(json!({ "order": "resume" })).await;
    assert_eq!((status, &run["stage"]), (200, &json!("queued")));
    let (status, _) = order(json!({ "order": "resume" })).await;
    assert_eq!(status, 409);
    let (status, run) = order(json!({ "order": "stop" })).await;
    assert_eq!((status, &run["stage"]), (200, &json!("ended")));
}

on_each_database!(lists_come_in_pages_and_show_only_ones_own);
async fn lists_come_in_pages_and_show_only_ones_own(store: Store) {
    let team = Team::on(store).await;
    for _ in 0..100 {
        team.clock.fetch_add(1, Relaxed);
        team.start(STUDY).await;
    }
    let list = async |who: Who, query: &str| {
        let (status, page) = team
            .ask(who, "GET", &format!("/api/runs{query}"), Value::Null)
            .await;
        assert_eq!(status, 200, "{page}");
        page
    };
    let first = list(Who::Viewer, "?project=alpha").await;
    let before = first["before"].as_str().unwrap();
    assert_eq!(first["runs"].as_array().unwrap().len(), 100);
    let second = list(Who::Viewer, &format!("?before={before}")).await;
    let mut names: Vec<&str> = second["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        (names, &second["before"]),
        (vec!["First", "Learned from"], &Value::Null)
    );
    assert_eq!(list(Who::Stranger, "").await["runs"], json!([]));
    let (status, _) = team
        .ask(Who::Stranger, "GET", "/api/runs?project=alpha", Value::Null)
        .await;
    assert_eq!(status, 404);
}
