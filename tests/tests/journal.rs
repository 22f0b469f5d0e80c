//! The journal as a file: whose it is, what damages it, where it cannot be written.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Ended, capo, command, read, run};
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::{Value, json};

fn finished_study() -> (Study, Stub) {
    let (study, stub) = Study::new("http://unused").on_stub();
    run(&mut study.optimize()).expect_code(0);
    (study, stub)
}

/// Rewrites the events of a journal.
fn edit(journal: &Path, change: impl Fn(&mut Vec<Value>)) {
    let mut events = events(journal);
    change(&mut events);
    let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
    fs::write(journal, lines.concat()).unwrap();
}

fn verify(journal: &Path) -> Ended {
    run(command(["journal", "verify"]).arg(journal))
}

#[test]
fn the_journal_of_another_study_is_refused_with_the_difference() {
    let (study, stub) = finished_study();
    let (requests, before) = (stub.requests(), read(&study.journal()));
    let other = study.with("threshold = 0.2", "threshold = 0.25");
    run(&mut other.optimize())
        .expect_code(1)
        .expect_error(&["threshold", "0.2", "0.25"]);
    assert_eq!(stub.requests(), requests);
    assert_eq!(read(&other.journal()), before, "the journal is untouched");
}

#[test]
fn a_journal_whose_data_changed_is_refused() {
    let (study, _stub) = finished_study();
    let data = read(&study.file("problems.jsonl")).replace("boxes", "crates");
    fs::write(study.file("problems.jsonl"), data).unwrap();
    run(&mut study.optimize()).expect_code(1).expect_error(&["data"]);
}

#[test]
fn a_journal_from_a_newer_schema_is_refused() {
    let (study, stub) = finished_study();
    edit(&study.journal(), |events| events[0]["schema"] = json!(99));
    let requests = stub.requests();
    run(&mut study.optimize()).expect_code(1).expect_error(&["99"]);
    assert_eq!(stub.requests(), requests);
}

#[test]
fn a_line_that_is_no_event_is_named() {
    let (study, _stub) = finished_study();
    let mut lines: Vec<String> = read(&study.journal()).lines().map(str::to_owned).collect();
    lines[4] = lines[4][..lines[4].len() / 2].to_owned();
    fs::write(study.journal(), lines.join("\n") + "\n").unwrap();
    run(&mut study.optimize())
        .expect_code(1)
        .expect_error(&["line 5"]);
    verify(&study.journal()).expect_code(1).expect_error(&["line 5"]);
}

#[test]
fn verify_finds_every_kind_of_forgery() {
    let (study, _stub) = finished_study();
    verify(&study.journal()).expect_code(0);
    let original = read(&study.journal());
    let forge = |what: &str, pick: fn(&Value) -> bool, change: fn(&mut Value)| {
        fs::write(study.journal(), &original).unwrap();
        edit(&study.journal(), |events| {
            change(events.iter_mut().find(|event| pick(event)).expect(what));
        });
        assert_ne!(read(&study.journal()), original, "{what} changes something");
        let ended = verify(&study.journal());
        assert_eq!(ended.code, Some(1), "{what} went unnoticed: {ended:?}");
    };
    let round: fn(&Value) -> bool = |event| event["event"] == "round" && event["round"] == 1;
    let finished: fn(&Value) -> bool = |event| event["event"] == "finished";
    forge(
        "a measurement",
        |event| event["event"] == "rollout",
        |event| {
            let correct = event["measurements"]["correct"].as_f64().unwrap();
            event["measurements"]["correct"] = json!(1.0 - correct);
        },
    );
    forge("a multiplier", round, |event| {
        event["next_multipliers"]["too_long"] = json!(0.123);
    });
    forge("an objective", round, |event| {
        event["scores"]
            .as_object_mut()
            .unwrap()
            .values_mut()
            .next()
            .unwrap()["objective"] = json!(0.999);
    });
    forge("a Lagrangian score", round, |event| {
        event["scores"]
            .as_object_mut()
            .unwrap()
            .values_mut()
            .next()
            .unwrap()["lagrangian"] = json!(0.999);
    });
    forge("the pool", round, |event| {
        event["retained"].as_array_mut().unwrap().reverse();
    });
    forge("the result", finished, |event| {
        let best = event["best"].as_str().unwrap().to_owned();
        let scores = event["final_scores"].as_object().unwrap();
        event["best"] = json!(scores.keys().find(|id| **id != best).unwrap());
    });
    forge("the evaluation", finished, |event| {
        event["evaluation"]["correct"]["mean"] = json!(0.999);
    });
    forge(
        "a prompt",
        |event| event["event"] == "candidate",
        |event| event["prompt"] = json!("Be good."),
    );
}

#[test]
fn show_and_export_read_a_journal_alone() {
    let (study, stub) = finished_study();
    let requests = stub.requests();
    let shown = run(command(["journal", "show"]).arg(study.journal())).expect_code(0);
    assert!(shown.stdout.contains("too_long"), "{}", shown.stdout);
    let exported = run(command(["journal", "export"]).arg(study.journal())).expect_code(0);
    assert!(!exported.stdout.is_empty());
    assert_eq!(stub.requests(), requests);
}

#[test]
fn a_directory_that_cannot_be_written_is_told_before_anything_is_asked() {
    let (study, stub) = Study::new("http://unused").on_stub();
    let folder = study.file("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let mut optimize = study.optimize_to(&folder.join("run.jsonl"));
    if nix::unistd::geteuid().is_root() {
        // Permissions mean nothing to root: run as somebody to whom they do, with a copy of the
        // program that they can read.
        const NOBODY: u32 = 65534;
        let program = study.file("capo");
        fs::copy(capo(), &program).unwrap();
        let mut as_nobody = Command::new(program);
        as_nobody
            .args(optimize.get_args())
            .env_clear()
            .stdin(Stdio::null())
            .uid(NOBODY)
            .gid(NOBODY);
        for (name, value) in optimize.get_envs() {
            if let Some(value) = value {
                as_nobody.env(name, value);
            }
        }
        optimize = as_nobody;
        for path in [
            study.folder().to_owned(),
            study.path(),
            study.file("problems.jsonl"),
        ] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    run(&mut optimize)
        .expect_code(1)
        .expect_error(&["locked/run.jsonl", "ermission denied"]);
    assert_eq!(stub.requests(), 0);
}

#[test]
fn a_disk_that_fills_up_is_told_and_nothing_written_is_lost() {
    let study = Study::new("http://unused");
    let (reference, stub) = (
        Stub::start(study.models().script()),
        Stub::start(study.models().script()),
    );
    let study = study.with("http://unused", &reference.base_url);
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);

    let study = study.with(&reference.base_url, &stub.base_url);
    let optimize = study.optimize();
    // The shell's `ulimit -f` counts blocks of 512 bytes and is inherited.
    let half = fs::metadata(&whole).unwrap().len() / 1024;
    let mut limited = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {half}; exec \"$0\" \"$@\"");
    limited
        .args(["-c", &script])
        .arg(capo())
        .args(optimize.get_args())
        .env_clear();
    for (name, value) in optimize.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    run(&mut limited).expect_code(1).expect_error(&["run.jsonl"]);

    let kept = of_kind(&events(&study.journal()), "rollout").len() as u64;
    assert!(kept > 0);
    let text = read(&study.journal());
    assert!(text.ends_with('\n'), "no half-written line is left");
    let paid = stub.requests();
    run(&mut study.optimize()).expect_code(0);
    assert_eq!(outcome(&events(&study.journal())), outcome(&events(&whole)));
    verify(&study.journal()).expect_code(0);
    let repeated = stub.requests() - reference.requests();
    assert!(repeated <= 4 + 1, "{repeated} answers of {paid} were lost");
}
