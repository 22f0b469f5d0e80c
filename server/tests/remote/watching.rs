//! `capo watch`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stub::{Say, Stub, document, events, problem};
use crate::{ID, Place, RUN, detail, ended_of_env, result, run, whole, with};

/// Says this of the run, connection by connection; the last for ever.
fn telling(connections: Vec<Vec<Say>>) -> Stub {
    Stub::start(move |asked, before| match asked.line.split('?').next().unwrap() {
        line if line == format!("GET /api/runs/{ID}") => Some(document(200, &detail(run("running", 0, 0)))),
        line if line == format!("GET /api/runs/{ID}/events") => {
            Some(events(&connections[before.min(connections.len() - 1)]))
        }
        _ => None,
    })
}

fn froms(stub: &Stub) -> Vec<String> {
    let froms = stub
        .lines()
        .into_iter()
        .filter_map(|line| Some(line.split_once("from=")?.1.to_owned()));
    froms.collect()
}

#[test]
fn a_run_is_watched_to_the_result_that_a_local_one_prints() {
    let (place, stub) = (Place::new(), telling(vec![whole()]));
    let (code, shown, summary) = &RUN.local;
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    assert_eq!(
        (ended.code, result(&ended.stdout)),
        (*code, result(shown)),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .ends_with(&format!("\nJournal: {}/api/runs/{ID}\n", stub.url))
    );
    assert!(ended.stderr.contains("round 1: best"), "{}", ended.stderr);
    let mut command = place.command(&format!("watch {ID} --json --log json"));
    let ended = ended_of_env(&mut command, &stub);
    let mut got: Value = serde_json::from_str(&ended.stdout).unwrap();
    got["journal"] = summary["journal"].clone();
    assert_eq!((ended.code, &got), (*code, summary));
    for line in ended.stderr.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert_eq!(froms(&stub), ["0", "0"]);
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke_and_thresholds_freeze() {
    let lines = &RUN.lines;
    let middle = 5;
    let connections = vec![
        vec![
            Say::Run(run("queued", 0, 0)),
            Say::Run(run("running", 0, 0)),
            Say::Lines(0, vec![RUN.open.clone()]),
            Say::Lines(1, lines[1..middle].to_vec()),
            Say::Break,
        ],
        vec![
            Say::Run(run("running", middle, 0)),
            // Some of it was there.
            Say::Lines(middle as u64 - 1, lines[middle - 1..8].to_vec()),
            Say::Study(lines[0].clone()),
            Say::Run(run("running", 8, 1)),
            Say::Break,
        ],
        vec![
            Say::Run(run("ended", lines.len(), 1)),
            Say::Lines(8, lines[8..].to_vec()),
            Say::Run(run("ended", lines.len(), 1)),
            Say::Silence,
        ],
    ];
    let (place, stub) = (Place::new(), telling(connections));
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    let (code, shown, _) = &RUN.local;
    assert_eq!(
        (ended.code, result(&ended.stdout)),
        (*code, result(shown)),
        "{}",
        ended.stderr
    );
    assert_eq!(froms(&stub), ["0", "5", "8"]);
    for words in ["small desk (01234567): queued\n", "running\n", " broke ("] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn lines_under_another_first_line_are_read_anew() {
    let lines = &RUN.lines;
    let connections = vec![
        vec![
            Say::Run(run("running", 3, 0)),
            Say::Lines(0, vec![RUN.open.clone()]),
            Say::Lines(1, lines[1..3].to_vec()),
            Say::Break,
        ],
        vec![
            Say::Run(run("ended", lines.len(), 1)),
            Say::Lines(3, lines[3..].to_vec()),
            Say::Silence,
        ],
        whole(),
    ];
    let (place, stub) = (Place::new(), telling(connections));
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    let (code, shown, _) = &RUN.local;
    assert_eq!(
        (ended.code, result(&ended.stdout)),
        (*code, result(shown)),
        "{}",
        ended.stderr
    );
    assert_eq!(froms(&stub), ["0", "3", "0"]);
}

#[test]
fn a_run_that_waits_for_a_model_says_so() {
    let wait = json!({
        "model": "openai/gpt-5", "provider": "openai", "host": "api.openai.com", "kind": "unreachable",
        "message": "no route\u{1b}[2J", "seconds": 4.0, "is_asked": false, "next_try": [3, 6],
    });
    let mut says = vec![
        Say::Run(run("running", 0, 0)),
        Say::Waits(wait),
        Say::Waits(Value::Null),
    ];
    says.extend(whole());
    let (place, stub) = (Place::new(), telling(vec![says]));
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    let words = "cannot reach api.openai.com: trying again in 4 s, 3 of 6\n";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let ended = ended_of_env(&mut place.command(&format!("watch {ID} --log json")), &stub);
    for words in [
        r#""log":"wait""#,
        r#""host":"api.openai.com""#,
        r#""log":"answered""#,
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_run_that_failed_or_is_paused_is_told_with_its_code() {
    let place = Place::new();
    let error = "no key is shared with desk\nthat may ask gpt-5";
    let failed = with(run("failed", 0, 0), "error", json!(error));
    let stub = telling(vec![vec![Say::Run(failed), Say::Silence]]);
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    let words = "error: small desk (01234567) failed: no key is shared with desk; that may ask gpt-5\n";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains(&format!("run: capo runs resume {ID} --remote {}", stub.url))
    );

    let lines = &RUN.lines[..4];
    let paused = run("paused", 4, 1);
    let says = vec![
        Say::Run(paused.clone()),
        Say::Lines(0, lines.to_vec()),
        Say::Run(paused),
        Say::Silence,
    ];
    let stub = telling(vec![says]);
    let ended = place.capo(&format!("watch {ID} --remote {}", stub.url));
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("paused. To go on, run: capo runs resume"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_answer_that_will_not_change_ends_the_watch() {
    for (status, words) in [
        (401, "another one under your account"),
        (403, "Only who may."),
        (404, "Only who may."),
    ] {
        let stub = Stub::start(
            move |asked, before| match (asked.line.contains("/events"), before) {
                (false, _) => Some(document(200, &detail(run("running", 0, 0)))),
                // What passes is waited for first.
                (true, 0) => Some(problem(503, "It starts.")),
                (true, _) => Some(problem(status, "Only who may.")),
            },
        );
        let ended = Place::new().capo(&format!("watch {ID} --remote {}", stub.url));
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(words) && ended.stderr.contains("It starts."),
            "{}",
            ended.stderr
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_run_to_the_server() {
    let stub = telling(vec![vec![Say::Run(run("running", 0, 0)), Say::Silence]]);
    let place = Place::new();
    let mut command = place.command(&format!("watch {ID} --remote {}", stub.url));
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while froms(&stub).is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it never watches");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    for command in ["capo watch", "capo runs stop"] {
        let command = format!("run: {command} {ID} --remote {}", stub.url);
        assert!(said.contains(&command), "{said}");
    }
}
