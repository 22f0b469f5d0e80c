//! Prompts for programs over HTTP: what is added, fetched and moved.

use axum::http::HeaderMap;
use capo_core::journal::{Event, FinishedEvent, parse_line};

use super::runs::Worker;
use super::*;
use crate::store::tests::on_each_database;

const PROMPTS: &str = "/api/projects/alpha/prompts";

/// What came back of a GET.
struct Fetched {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Fetched {
    fn tag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Team {
    async fn fetch(&self, who: Who, rest: &str, headers: &[(&'static str, &str)]) -> Fetched {
        let path = format!("{PROMPTS}/{rest}");
        let mut request = self.request(who, &Method::GET, &path, &Value::Null);
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let response = self.send(request).await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        Fetched {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    async fn add(&self, name: &str, new: Value) -> (u16, Value) {
        let path = format!("{PROMPTS}/{name}/versions");
        self.ask(Who::Editor, "POST", &path, new).await
    }

    /// Moves a label, having seen the version.
    async fn put(&self, who: Who, label: &str, version: u64, was: u64) -> (u16, Value) {
        let seen = self
            .fetch(who, &format!("greeting?version={version}"), &[])
            .await
            .json();
        let to = json!({ "version": version, "seen": seen["fingerprint"], "was": was });
        let path = format!("{PROMPTS}/greeting/labels/{label}");
        self.ask(who, "PUT", &path, to).await
    }

    /// How a run's journal ends.
    async fn finished(&self, run: &str) -> Box<FinishedEvent> {
        let lines = self.journal(run, 0).await;
        let Event::Finished(finished) = parse_line(lines.last().unwrap(), lines.len()).unwrap() else {
            panic!("the run did not end");
        };
        finished
    }
}

fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap()
}

#[tokio::test]
async fn a_change_for_which_a_full_disk_has_no_room_is_refused_and_can_be_made_later() {
    let team = Team::new().await;
    let large = json!({ "text": "x".repeat(200_000) });
    assert!(team.store.set_full(true).await, "a file can be full");
    let path = format!("{PROMPTS}/greeting/versions");
    let refused = team
        .send(team.request(Who::Editor, &Method::POST, &path, &large))
        .await;
    assert_eq!(refused.status(), 507);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    let problem = document(refused).await;
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("/problems/full"), &json!(507))
    );
    // Nobody is signed out, and what is there is read.
    let read = team.fetch(Who::Viewer, "greeting", &[]).await;
    assert_eq!((read.status, &read.json()["version"]), (200, &json!(1)));
    team.store.set_full(false).await;
    let (status, added) = team.add("greeting", large).await;
    assert_eq!((status, &added["version"]), (201, &json!(2)));
}

on_each_database!(a_program_fetches_what_it_does_not_have_yet);
async fn a_program_fetches_what_it_does_not_have_yet(store: Store) {
    let team = Team::on(store).await;
    let first = team.fetch(Who::Reader, "greeting?label=candidate", &[]).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(first.headers["cache-control"], "private, no-cache");
    assert_eq!(first.headers["vary"], "accept");
    let document = first.json();
    assert_eq!(
        (&document["version"], &document["text"], &document["labels"]),
        (&json!(1), &json!("Greet the customer."), &json!(["candidate"]))
    );
    assert_eq!(document["sha256"], crate::secret::sha256(b"Greet the customer."));
    let plain = [("accept", "text/plain;q=0.9, */*;q=0.1")];
    let text = team.fetch(Who::Viewer, "greeting?label=candidate", &plain).await;
    assert_eq!(text.text, "Greet the customer.");
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    assert_ne!(text.tag(), first.tag(), "they are two answers");
    for known in [
        text.tag().to_owned(),
        format!("\"other\", W/{}", text.tag()),
        "*".into(),
    ] {
        let headers = [plain[0], ("if-none-match", &known)];
        let again = team
            .fetch(Who::Viewer, "greeting?label=candidate", &headers)
            .await;
        assert_eq!(
            (again.status, again.text.as_str(), again.tag()),
            (304, "", text.tag()),
            "{known}"
        );
        assert_eq!(again.headers["cache-control"], "private, no-cache");
    }
    let headers = [plain[0], ("if-none-match", first.tag())];
    assert_eq!(team.fetch(Who::Viewer, "greeting", &headers).await.status, 200);

    // The label moves, and only who asks for it gets another text.
    assert_eq!(
        team.add("greeting", json!({ "text": "Greet by name.\n" }))
            .await
            .0,
        201
    );
    let headers = [plain[0], ("if-none-match", text.tag())];
    assert_eq!(
        team.fetch(Who::Viewer, "greeting?version=1", &headers)
            .await
            .status,
        304
    );
    assert_eq!(team.put(Who::Writer, "candidate", 2, 1).await.0, 200);
    let moved = team
        .fetch(Who::Viewer, "greeting?label=candidate", &headers)
        .await;
    assert_eq!((moved.status, moved.text.as_str()), (200, "Greet by name.\n"));

    for (rest, status) in [
        ("greeting?label=production", 404),
        ("greeting?version=3", 404),
        ("greeting?version=0", 404),
        ("greeting?label=candidate&version=1", 422),
        ("greeting?tag=candidate", 400),
        ("farewell", 404),
        ("..%2Fgreeting", 404),
        ("greeting%2Fversions", 404),
    ] {
        assert_eq!(team.fetch(Who::Viewer, rest, &[]).await.status, status, "{rest}");
    }
}

on_each_database!(versions_count_up_and_say_nothing_twice);
async fn versions_count_up_and_say_nothing_twice(store: Store) {
    let team = Team::on(store).await;
    let (status, again) = team
        .add("greeting", json!({ "text": "Greet the customer.", "note": "x" }))
        .await;
    assert_eq!(
        (status, &again["version"], &again["note"]),
        (200, &json!(1), &Value::Null)
    );
    for version in 2..=23 {
        let new = json!({ "text": format!("Greet the customer {version} times."), "note": "more" });
        let (status, added) = team.add("greeting", new).await;
        assert_eq!((status, &added["version"]), (201, &json!(version)));
        assert_eq!(
            (&added["note"], &added["created_by"]),
            (&json!("more"), &json!("ed"))
        );
    }
    let (status, back) = team
        .add("greeting", json!({ "text": "Greet the customer." }))
        .await;
    assert_eq!(
        (status, &back["version"]),
        (201, &json!(24)),
        "an older text is new again"
    );
    let page = team.fetch(Who::Viewer, "greeting/versions", &[]).await.json();
    let rest = team
        .fetch(Who::Viewer, "greeting/versions?before=5", &[])
        .await
        .json();
    let numbers = |page: &Value| -> Vec<u64> {
        let versions = page["versions"].as_array().unwrap().iter();
        versions
            .map(|version| version["version"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(numbers(&page), (5..=24).rev().collect::<Vec<_>>());
    assert_eq!((&page["before"], numbers(&rest)), (&json!(5), vec![4, 3, 2, 1]));
    assert_eq!(rest["before"], Value::Null);
    let (_, listed) = team.ask(Who::Viewer, "GET", PROMPTS, Value::Null).await;
    assert_eq!(
        (&listed[0]["name"], &listed[0]["newest"], &listed[0]["labels"]),
        (&json!("greeting"), &json!(24), &json!({ "candidate": 1 }))
    );
    for (name, new, said) in [
        ("..%2Fgreeting", json!({ "text": "x" }), "a prompt's name has"),
        ("Greeting", json!({ "text": "x" }), "a prompt's name has"),
        ("greeting", json!({ "text": " \n" }), "empty"),
        ("greeting", json!({ "text": "a\u{0}b" }), "NUL"),
        (
            "greeting",
            json!({ "text": "x".repeat((256 << 10) + 1) }),
            "256 KiB",
        ),
        (
            "greeting",
            json!({ "text": "x", "run": "RUN" }),
            "either `text`, or `run`",
        ),
        ("greeting", json!({ "run": "RUN" }), "not come to an end"),
    ] {
        let (status, problem) = team.add(name, new).await;
        assert!(
            status == 422 && detail(&problem).contains(said),
            "{said}: {status} {problem}"
        );
    }
}

on_each_database!(a_prompt_of_a_run_comes_with_what_the_run_says_of_it);
async fn a_prompt_of_a_run_comes_with_what_the_run_says_of_it(store: Store) {
    let team = Team::on(store).await;
    let study = STUDY.replace("evaluate = 6", "evaluate = 40") + "[confirm]\nexamples = 20\n";
    let run = team.start(&study).await;
    let worker = Worker::of(&team);
    team.ended(&run).await;
    worker.end().await;
    let finished = team.finished(&run).await;
    let best = finished.best.unwrap();

    let (status, added) = team.add("desk", json!({ "run": run, "note": "the first" })).await;
    assert_eq!(
        (status, &added["version"], &added["run"]),
        (201, &json!(1), &json!(run))
    );
    assert_eq!(added["sha256"], best.to_string());
    assert_eq!(
        added["sha256"],
        crate::secret::sha256(added["text"].as_str().unwrap().as_bytes())
    );
    let evidence = &added["evidence"];
    assert_eq!(evidence["status"], serde_json::to_value(finished.status).unwrap());
    assert_eq!(
        evidence["evaluation"],
        serde_json::to_value(&finished.evaluation).unwrap()
    );
    assert_eq!(
        evidence["seed_evaluation"],
        serde_json::to_value(&finished.seed_evaluation).unwrap()
    );
    assert_eq!(evidence["evaluation"]["success"]["n"], 20);
    assert_eq!(evidence["thresholds"], json!({ "human_requests": 0.3 }));
    let mean = finished.evaluation["human_requests"].mean;
    assert_eq!(evidence["feasibility"]["held_out"], mean <= 0.3);
    let tested = &finished.certificates[0];
    let (_, of_tested) = team
        .add(
            "tested",
            json!({ "run": run, "candidate": tested.candidate.to_string() }),
        )
        .await;
    assert_eq!(
        of_tested["evidence"]["certificate"],
        serde_json::to_value(tested).unwrap()
    );

    // The same again is the same version; named by its first digits, too.
    let short = &best.to_string()[..8];
    for new in [
        json!({ "run": run }),
        json!({ "run": run, "candidate": short }),
        json!({ "text": added["text"] }),
    ] {
        let (status, same) = team.add("desk", new).await;
        assert_eq!((status, &same), (200, &added));
    }
    // A text alone gets its numbers once a run speaks for it.
    let (_, alone) = team.add("alone", json!({ "text": added["text"] })).await;
    let (status, told) = team.add("alone", json!({ "run": run })).await;
    assert_eq!(
        (status, &alone["evidence"], &told["version"]),
        (201, &Value::Null, &json!(2))
    );
    assert_eq!((&told["evidence"], &told["sha256"]), (evidence, &alone["sha256"]));
    assert_ne!(told["fingerprint"], alone["fingerprint"]);

    let seed = capo_core::ids::CandidateId::of(
        "You are a customer service agent. Help the customer with their request.",
    );
    let (status, seed) = team
        .add("desk", json!({ "run": run, "candidate": seed.to_string() }))
        .await;
    assert_eq!(status, 201);
    assert_eq!(seed["evidence"]["evaluation"], evidence["seed_evaluation"]);
    for (candidate, said) in [
        ("abc", "first 6"),
        ("../../x", "first 6"),
        ("000000000000", "no candidate"),
    ] {
        let (status, problem) = team
            .add("desk", json!({ "run": run, "candidate": candidate }))
            .await;
        assert!(
            status == 422 && detail(&problem).contains(said),
            "{candidate}: {problem}"
        );
    }

    // The run goes, and what it said stays.
    let path = format!("/api/runs/{run}");
    assert_eq!(team.ask(Who::Editor, "DELETE", &path, Value::Null).await.0, 204);
    assert_eq!(team.fetch(Who::Reader, "desk?version=1", &[]).await.json(), added);
}

on_each_database!(a_label_is_moved_and_moved_back);
async fn a_label_is_moved_and_moved_back(store: Store) {
    let team = Team::on(store).await;
    assert_eq!(
        team.add("greeting", json!({ "text": "Greet by name." })).await.0,
        201
    );
    let (status, placed) = team.put(Who::Editor, "production", 1, 0).await;
    assert_eq!(
        (status, &placed["version"], &placed["moved_by"]),
        (200, &json!(1), &json!("ed"))
    );
    assert_eq!(team.put(Who::Admin, "production", 2, 1).await.0, 200);
    // Who still believes it is on 1 is told.
    let (status, problem) = team.put(Who::Editor, "production", 1, 1).await;
    assert!(
        status == 409 && detail(&problem).contains("is on version 2 by now"),
        "{problem}"
    );
    assert_eq!(
        team.put(Who::Editor, "production", 2, 2).await.0,
        200,
        "it is there already"
    );
    assert_eq!(team.put(Who::Editor, "production", 1, 2).await.0, 200);
    let shown = team
        .fetch(Who::Reader, "greeting?label=production", &[])
        .await
        .json();
    assert_eq!(
        (&shown["version"], &shown["labels"]),
        (&json!(1), &json!(["candidate", "production"]))
    );
    let production = format!("{PROMPTS}/greeting/labels/production");
    assert_eq!(
        team.ask(Who::Editor, "DELETE", &production, Value::Null).await.0,
        204
    );
    assert_eq!(
        team.ask(Who::Editor, "DELETE", &production, Value::Null).await.0,
        404
    );
    assert_eq!(
        team.ask(Who::Editor, "GET", &production, Value::Null).await.0,
        404
    );
    let history = team
        .fetch(Who::Viewer, "greeting/labels/production/history", &[])
        .await
        .json();
    let moves: Vec<(&Value, &Value, &Value)> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|moved| (&moved["actor"], &moved["from"], &moved["to"]))
        .collect();
    let (ed, ada, none) = (json!("ed"), json!("ada"), Value::Null);
    let (one, two) = (json!(1), json!(2));
    assert_eq!(
        moves,
        [
            (&ed, &one, &none),
            (&ed, &two, &one),
            (&ada, &one, &two),
            (&ed, &none, &one)
        ]
    );
    let early = team
        .fetch(Who::Viewer, "greeting/labels/production/history?before=2", &[])
        .await
        .json();
    assert_eq!((early.as_array().unwrap().len(), &early[0]["number"]), (1, &one));
    let (_, audit) = team
        .ask(Who::Admin, "GET", "/api/projects/alpha/audit", Value::Null)
        .await;
    let lines: Vec<(&str, &str)> = audit.as_array().unwrap()[..3]
        .iter()
        .map(|line| {
            (
                line["action"].as_str().unwrap(),
                line["subject"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("label.remove", "greeting production: version 1 to no version"),
            ("label.move", "greeting production: version 2 to version 1"),
            ("label.move", "greeting production: version 1 to version 2"),
        ]
    );
}

on_each_database!(production_is_moved_by_a_person_who_has_seen_the_numbers);
async fn production_is_moved_by_a_person_who_has_seen_the_numbers(store: Store) {
    let team = Team::on(store).await;
    let (status, problem) = team.put(Who::Writer, "production", 1, 0).await;
    assert!(
        status == 403 && detail(&problem).contains("a person who is signed in"),
        "{problem}"
    );
    assert_eq!(team.put(Who::Viewer, "production", 1, 0).await.0, 403);
    assert_eq!(team.put(Who::Writer, "canary", 1, 0).await.0, 200);
    let path = format!("{PROMPTS}/greeting/labels/production");
    for (to, status, said) in [
        (
            json!({ "version": 1, "seen": "0" }),
            422,
            "not the fingerprint of version 1",
        ),
        (json!({ "version": 1 }), 422, "seen"),
        (json!({ "version": 9, "seen": "SEEN" }), 404, "version"),
    ] {
        let (got, problem) = team.ask(Who::Editor, "PUT", &path, to).await;
        assert!(
            got == status && detail(&problem).contains(said),
            "{got} {problem}"
        );
    }
    assert_eq!(team.put(Who::Editor, "production", 1, 0).await.0, 200);
    assert_eq!(team.ask(Who::Writer, "DELETE", &path, Value::Null).await.0, 403);
    let wrong = format!("{PROMPTS}/greeting/labels/a%2Fb");
    let to = json!({ "version": 1, "seen": "SEEN" });
    let (status, problem) = team.ask(Who::Editor, "PUT", &wrong, to).await;
    assert!(
        status == 422 && detail(&problem).contains("a label has"),
        "{problem}"
    );
}

on_each_database!(a_project_has_its_own_prompts_and_takes_them_from_its_own_runs);
async fn a_project_has_its_own_prompts_and_takes_them_from_its_own_runs(store: Store) {
    let team = Team::on(store).await;
    let beta = "/api/projects/beta/prompts/greeting/versions";
    let stranger = Who::Stranger;
    // Another's prompt, another's run, and another prompt of the same name.
    assert_eq!(team.fetch(stranger, "greeting", &[]).await.status, 404);
    let (status, problem) = team.ask(stranger, "POST", beta, json!({ "run": "RUN" })).await;
    assert!(status == 404 && detail(&problem).contains("run"), "{problem}");
    let (status, problem) = team.ask(Who::Root, "POST", beta, json!({ "run": "RUN" })).await;
    assert!(
        status == 422 && detail(&problem).contains("the project alpha"),
        "{problem}"
    );
    let (status, added) = team
        .ask(stranger, "POST", beta, json!({ "text": "Hello." }))
        .await;
    assert_eq!((status, &added["version"]), (201, &json!(1)));
    assert_eq!(
        team.fetch(Who::Viewer, "greeting", &[]).await.json()["text"],
        "Greet the customer."
    );
    let (status, _) = team
        .ask(Who::Admin, "DELETE", "/api/projects/alpha", Value::Null)
        .await;
    assert_eq!(status, 204);
    let (_, listed) = team
        .ask(stranger, "GET", "/api/projects/beta/prompts", Value::Null)
        .await;
    assert_eq!(listed[0]["name"], "greeting");
}
