//! Runs at the edge, on the runtime there: from the command line, as on a team server, and by whoever asks the API.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

#[expect(dead_code, reason = "other tests use other parts")]
mod edge_worker;
#[path = "edge_worker/here.rs"]
mod here;
mod told_runs;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use capo_gateway::cases::KEY;
use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Server, run, wait_until};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;
use edge_worker::{ORIGIN, ask, token};
use here::Here;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Calls of a run at a time.
const MOST_CALLS: u64 = 6;

/// The study that people get, of which a run takes a dozen slices.
const HELP_DESK: &str = include_str!("../../studies/help-desk.toml");

/// Some seconds long, so that it can be told something in its midst.
const DESK: &str = r#"
[study]
name = "small desk"
seed = 3
rounds = 6

[workload]
kind = "desk"
optimize = 24
evaluate = 12

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
relative_to_seed = 0.8

[models.agent]
provider = "simulated"
latency = 0.01
"#;

#[test]
fn a_runtime_that_is_killed_loses_nothing_and_pays_again_at_most_for_what_was_in_flight() {
    let study = Study::new("http://unused");
    let latency = Duration::from_millis(15);
    let reference = Stub::start_with(latency, None, study.models().script());
    let stub = Stub::start_with(latency, Some(KEY), study.models().script());
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);
    let study = study.with(&reference.base_url, &stub.base_url);
    let requests = reference.requests();

    let mut here = Here::new(&stub.base_url, "stub");
    let kills = 3;
    stub.let_through(requests / 10);
    let id = here.start(study.folder());
    for _ in 0..kills {
        let before = stub.requests();
        wait_until("questions that wait", || {
            stub.requests() > before && stub.request_log().open > 0 && stub.is_held()
        });
        here.kill_and_start();
        // Nobody has to look at it for it to go on.
        stub.let_through((0.8 * requests as f64 / f64::from(kills)) as u64);
    }
    stub.let_all_through();
    here.wait_for(&id, "ended");

    let pulled = here.pull(study.folder(), &id);
    assert_eq!(outcome(&pulled), outcome(&events(&whole)));
    let paid_again = stub.request_log().repeats(Question::is_rollout);
    assert!(
        paid_again <= kills as u64 * MOST_CALLS && stub.request_log().most_open as u64 <= MOST_CALLS,
        "{paid_again} rollouts were paid again at {kills} kills"
    );
    println!("{kills} kills: {paid_again} rollouts were in flight and paid again, of {requests} requests");
    // The calls count for who started it.
    let (_, used) = here.ask("root", "GET", "/api/usage?days=1", &Value::Null);
    let used = used.as_array().unwrap();
    let of_ada = used
        .iter()
        .find(|used| used["scope"] == "member" && used["name"] == "ada");
    assert!(
        of_ada.unwrap()["requests"].as_u64().unwrap() >= requests,
        "{used:?}"
    );
}

#[test]
fn the_help_desk_goes_on_after_kills_and_ends_as_it_does_here() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("study.toml"), HELP_DESK).unwrap();
    let mut here = Here::new("http://127.0.0.1:1/v1", "none");
    here.capo(folder.path(), "optimize study.toml --journal local.jsonl --json");
    let id = here.start(folder.path());
    for rounds in [1, 6] {
        here.kill_past(&id, rounds);
    }
    here.wait_for(&id, "ended");
    let (pulled, local) = (
        here.pull(folder.path(), &id),
        events(&folder.path().join("local.jsonl")),
    );
    assert_eq!(outcome(&pulled), outcome(&local));
    // More than one slice's calls.
    assert!(here.shown(&id)["progress"]["calls"].as_u64().unwrap() > 2_000);
    here.capo(folder.path(), &format!("runs delete {id}"))
        .expect_code(0);
    assert_eq!(
        here.ask("ada", "GET", "/api/runs", &Value::Null).1,
        json!({ "runs": [] })
    );
    assert_eq!(
        here.ask("ada", "GET", &format!("/api/runs/{id}"), &Value::Null).0,
        404
    );
}

#[test]
fn a_small_help_desk_asks_a_provider_and_is_killed() {
    let text = DESK
        .replace("latency = 0.01", "model = \"sim-medium\"")
        .replace("rounds = 6", "rounds = 2")
        .replace("optimize = 24", "optimize = 8")
        .replace("evaluate = 12", "evaluate = 4");
    asks_a_provider_and_is_killed(&text, "0.02", &[1]);
}

/// Of `cargo xtask test --all`, for it takes minutes.
#[test]
fn the_whole_help_desk_asks_a_provider_and_is_killed() {
    asks_a_provider_and_is_killed(HELP_DESK, "0", &[1, 6, 12]);
}

/// Has the simulated models of a study asked behind an endpoint of this latency, here, and at the edge, where the runtime is
/// killed past each of these rounds: the run comes to the same end, and at most what was under way is asked again.
fn asks_a_provider_and_is_killed(study: &str, latency: &str, kills: &[usize]) {
    let simulated = Server::simulate(&["--seed", "3", "--latency", latency]);
    let folder = TempDir::new().unwrap();
    let provider = format!(
        "provider = \"openai-compatible\"\nbase_url = \"{}\"",
        simulated.base_url
    );
    let text = study.replace("provider = \"simulated\"", &provider);
    std::fs::write(folder.path().join("study.toml"), text).unwrap();
    let mut here = Here::new(&simulated.base_url, "sim-*");
    let local = here.capo(folder.path(), "optimize study.toml --journal local.jsonl --json");
    let calls = local.json()["usage"]["calls"].as_u64().unwrap();
    let id = here.start(folder.path());
    for rounds in kills {
        here.kill_past(&id, *rounds);
    }
    here.wait_for(&id, "ended");
    let computed = |events: &[Value]| {
        let mut outcome = outcome(events);
        for event in &mut outcome {
            for field in ["evaluation", "seed_evaluation"] {
                if let Some(estimates) = event[field].as_object_mut() {
                    estimates.remove("latency");
                }
            }
        }
        outcome
    };
    let (pulled, local) = (
        here.pull(folder.path(), &id),
        events(&folder.path().join("local.jsonl")),
    );
    assert_eq!(computed(&pulled), computed(&local));
    let (_, used) = here.ask("root", "GET", "/api/usage?days=1", &Value::Null);
    let used = used.as_array().unwrap();
    let of_ada = used
        .iter()
        .find(|used| used["scope"] == "member" && used["name"] == "ada");
    let asked = of_ada.unwrap()["requests"].as_u64().unwrap();
    // A conversation that was under way is held anew, from its first call on.
    let longest = of_kind(&local, "rollout").into_iter().map(|rollout| {
        let by_role = rollout["usage"].as_object().unwrap().values();
        by_role.map(|usage| usage["calls"].as_u64().unwrap()).sum::<u64>()
    });
    let most = calls + kills.len() as u64 * MOST_CALLS * longest.max().unwrap();
    println!("{asked} calls with kills, {calls} without, {most} at most");
    assert!((calls..=most).contains(&asked), "{asked} of {calls} to {most}");
}

/// Each route with what nobody gets, a member of another project, a viewer of this one, and with what is sent.
const ROUTES: &str = r#"
GET    401 404 200 /api/projects/sums
GET    401 404 200 /api/projects/sums/keys
PUT    401 404 403 /api/projects/sums/files/FILE
GET    401 404 200 /api/projects/sums/files/FILE
GET    401 404 200 /api/projects/sums/files/FILE/content
POST   401 404 403 /api/projects/sums/runs {"name": "x", "study": "STUDY"}
GET    401 404 200 /api/runs?project=sums
GET    401 404 200 /api/runs/RUN
PATCH  401 404 403 /api/runs/RUN {"name": "y"}
POST   401 404 403 /api/runs/RUN/orders {"order": "pause"}
POST   401 404 403 /api/runs/RUN/branches {"name": "z", "round": 0, "start": false}
GET    401 404 200 /api/runs/RUN/journal
GET    401 404     /api/runs/RUN/events
DELETE 401 404 403 /api/runs/RUN
GET    401 403 403 /api/usage
"#;

#[test]
fn everybody_gets_from_every_route_what_they_may() {
    /// The hash of `1`.
    const FILE: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
    let (here, folder) = (
        Here::new("http://127.0.0.1:1/v1", "none"),
        TempDir::new().unwrap(),
    );
    std::fs::write(folder.path().join("study.toml"), DESK).unwrap();
    let id = here.start(folder.path());
    let name = here.shown(&id)["name"].clone();
    let path = format!("/api/projects/sums/files/{FILE}");
    let kept = here.ask("ada", "PUT", &path, &json!(1));
    assert!(kept.0 < 300, "{kept:?}");
    for line in ROUTES.lines().filter(|line| !line.is_empty()) {
        let (expected, sent) = line.split_at(line.find('/').unwrap());
        let (path, body) = sent.split_once(' ').unwrap_or((sent, "null"));
        let path = path.replace("RUN", &id).replace("FILE", FILE);
        let body = body.replace("\"STUDY\"", &json!(DESK).to_string());
        let body = serde_json::from_str(&body).unwrap();
        let mut expected = expected.split_whitespace();
        let method = expected.next().unwrap();
        for (who, expected) in ["", "otto", "vera"].iter().zip(expected) {
            let (status, said) = here.ask(who, method, &path, &body);
            assert_eq!(status.to_string(), expected, "{method} {path} by {who:?}: {said}");
        }
    }
    assert_eq!(
        here.ask("otto", "GET", "/api/runs", &Value::Null).1,
        json!({ "runs": [] })
    );
    assert_eq!(here.shown(&id)["name"], name);
}

#[test]
fn a_run_is_watched_paused_steered_and_resumed_by_who_may() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("study.toml"), DESK).unwrap();
    let here = Here::new("http://127.0.0.1:1/v1", "none");
    let id = here.start(folder.path());
    let at = |rest: &str| format!("/api/runs/{id}{rest}");
    let order = |member: &str, order: Value| here.ask(member, "POST", &at("/orders"), &order);
    here.wait_past(&id, 1);

    let asks = DESK.replace("\"simulated\"\nlatency = 0.01", "\"openai\"\nmodel = \"gpt-5\"");
    let (status, refused) = here.ask(
        "ada",
        "POST",
        "/api/projects/sums/runs",
        &json!({ "name": "x", "study": asks }),
    );
    assert_eq!(status, 422);
    assert!(
        refused["detail"].as_str().unwrap().contains("no shared key"),
        "{refused}"
    );
    for path in [
        "/api/projects/sums/prompts",
        "/api/members",
        "/api/projects/sums/journals",
    ] {
        assert_eq!(here.ask("ada", "GET", path, &Value::Null).0, 404, "{path}");
    }

    // From line 3 on, live.
    let bearer = format!("Bearer {}", token("vera"));
    let watched = ask(
        here.edge(),
        "GET",
        &at("/events?from=3"),
        &[("authorization", &bearer)],
        "",
    );
    let mut lines = BufReader::new(watched.into_body().into_reader())
        .lines()
        .map(Result::unwrap);
    let mut next = || {
        let mut event = (String::new(), String::new(), String::new());
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event.0),
                Some(("id", id)) => id.clone_into(&mut event.1),
                Some(("data", data)) => data.clone_into(&mut event.2),
                _ => {}
            }
        }
        event
    };
    assert_eq!(next().0, "run");
    for number in 3..6 {
        let (name, id, data) = next();
        assert_eq!((name.as_str(), id), ("line", number.to_string()));
        assert!(data.starts_with("{\"event\":"), "{data}");
    }

    // Whether a round takes it up before the pause, or after it.
    let early = json!({ "order": "steer", "change": { "round": 0, "multipliers": { "excess_tools": 2.5 } } });
    assert_eq!(order("ada", early).0, 200);
    assert_eq!(order("ada", json!({ "order": "pause" })).0, 200);
    here.wait_for(&id, "paused");
    assert_eq!(order("ada", json!({ "order": "pause" })).0, 409);
    let wrong = json!({ "order": "steer", "change": { "round": 0, "thresholds": { "excess_tool": 0.9 } } });
    assert_eq!(order("ada", wrong).0, 422);
    let steer = json!({ "order": "steer", "change": { "round": 0, "thresholds": { "excess_tools": 0.9 } } });
    assert_eq!(order("ada", steer).0, 200);
    assert_eq!(order("ada", json!({ "order": "resume" })).0, 200);
    assert_eq!(order("ada", json!({ "order": "resume" })).0, 409);
    here.wait_for(&id, "ended");
    let journal = here.pull(folder.path(), &id);
    let steered = |steer: &&Value| steer["thresholds"]["excess_tools"] == 0.9;
    assert!(of_kind(&journal, "steer").iter().any(steered));
    let early = |steer: &&Value| steer["multipliers"]["excess_tools"] == 2.5;
    assert!(of_kind(&journal, "steer").iter().any(early));
    // Who watched has seen it to its end.
    let mut seen = 6;
    loop {
        let (name, _, data) = next();
        seen += usize::from(name == "line");
        let run: Value = serde_json::from_str(&data).unwrap_or(Value::Null);
        if name == "run" && run["stage"] == "ended" {
            break;
        }
    }
    assert_eq!(seen, journal.len());
    let watched = here.capo(folder.path(), &format!("watch {id} --json"));
    assert!(matches!(watched.code, Some(0 | 2)), "{}", watched.stderr);
}

#[test]
fn who_watches_is_told_whom_a_run_waits_for() {
    let (here, folder) = (
        Here::new("http://127.0.0.1:1/v1", "none"),
        TempDir::new().unwrap(),
    );
    let model = "provider = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"none\"";
    let text = DESK.replace("provider = \"simulated\"\nlatency = 0.01", model);
    std::fs::write(folder.path().join("study.toml"), text).unwrap();
    let id = here.start(folder.path());
    let mut watch = here.command(folder.path(), &format!("watch {id}"));
    let mut watching = watch.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(watching.stderr.take().unwrap()).lines();
    let waits = said.find(|line| line.as_ref().unwrap().starts_with("127.0.0.1:1 failed (HTTP 502"));
    let stop = json!({ "order": "stop" });
    here.ask("ada", "POST", &format!("/api/runs/{id}/orders"), &stop);
    watching.wait().unwrap();
    assert!(waits.is_some());
}

#[test]
fn a_run_is_told_what_one_on_a_server_is_and_answers_so() {
    let here = Here::new("http://127.0.0.1:1/v1", "none");
    let ask = |method: &str, path: &str, body: &Value| here.ask("ada", method, path, body);
    told_runs::both_answer_so(&ask, "sums", DESK);
}

#[test]
fn a_member_has_as_many_runs_at_a_time_as_on_a_server() {
    let here = Here::with("http://127.0.0.1:1/v1", "none", json!({ "RUNS_PER_MEMBER": "1" }));
    let ask = |method: &str, path: &str, body: &Value| here.ask("ada", method, path, body);
    told_runs::both_carry_out_one_after_the_other(&ask, "sums", DESK);
}

#[test]
fn who_asks_too_often_is_refused_as_at_a_server() {
    let here = Here::with("http://127.0.0.1:1/v1", "none", json!({ "RATE": "1" }));
    let ask = |method: &str, path: &str, body: &Value| here.ask("ada", method, path, body);
    told_runs::both_refuse_who_asks_too_often(&ask);
}

#[test]
fn a_browser_keeps_the_token_in_a_cookie_that_no_other_page_makes_use_of() {
    let here = Here::new("http://127.0.0.1:1/v1", "none");
    let sign_in = |name: &str, password: &str, origin: &str| {
        let body = json!({ "name": name, "password": password }).to_string();
        let headers = [("content-type", "application/json"), ("origin", origin)];
        ask(here.edge(), "POST", "/api/session", &headers, &body)
    };
    assert_eq!(sign_in("ada", &token("vera"), ORIGIN).status(), 401);
    assert_eq!(
        sign_in("ada", &token("ada"), "https://evil.example").status(),
        403
    );
    let came = sign_in("ada", &token("ada"), ORIGIN);
    assert_eq!(came.status(), 201);
    let set = came.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    let cookie = set.split(';').next().unwrap();
    let status = |method: &str, path: &str, more: &[(&str, &str)], body: &str| {
        let headers = [&[("cookie", cookie), ("content-type", "application/json")], more].concat();
        ask(here.edge(), method, path, &headers, body).status().as_u16()
    };
    assert_eq!(status("GET", "/api/projects", &[], ""), 200);
    let new = json!({ "name": "x", "study": DESK }).to_string();
    let start = |more: &[(&str, &str)]| status("POST", "/api/projects/sums/runs", more, &new);
    assert_eq!(start(&[]), 403);
    assert_eq!(start(&[("origin", "https://evil.example")]), 403);
    assert_eq!(start(&[("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(status("POST", "/api/proxy/stub/chat/completions", &[], "{}"), 403);
    assert_eq!(start(&[("origin", ORIGIN)]), 201);
    let out = ask(
        here.edge(),
        "DELETE",
        "/api/session",
        &[("cookie", cookie), ("origin", ORIGIN)],
        "",
    );
    assert!(
        out.headers()["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
}
