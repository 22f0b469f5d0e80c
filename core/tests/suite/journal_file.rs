//! Journals in files: torn tails, wrong lines, locks, other studies, and tampering.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::rc::Rc;

use crate::world::{EFFORT, Probe, WorldModels, problem, run, study};
use capo_core::arena::RunOptions;
use capo_core::journal::{FileJournal, Fsync};
use capo_core::{Outcome, RunError, optimize, verify};
use futures::executor::block_on;

/// A path in a fresh directory of this test's own.
fn path(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("capo-journal-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory.join("run.journal.jsonl")
}

fn run_file(path: &std::path::Path, seed: u64, constraint: &str) -> Result<Outcome, RunError> {
    let probe = Rc::new(Probe::default());
    let journal = FileJournal::open(path, Fsync::Never)?;
    let models = Rc::new(WorldModels(probe.clone()));
    block_on(optimize(
        problem(study(seed, "capo", constraint, ""), &probe),
        journal,
        models,
        RunOptions::default(),
    ))
}

fn refusal(result: Result<Outcome, RunError>) -> String {
    result.err().expect("a refusal").to_string()
}

#[test]
fn a_torn_last_line_is_dropped_and_the_run_goes_on() {
    let path = path("torn");
    let whole = run_file(&path, 3, EFFORT).unwrap().finished;
    let bytes = fs::read(&path).unwrap();
    for cut in [bytes.len() - 1, bytes.len() / 2, bytes.len() / 3 + 11] {
        fs::write(&path, &bytes[..cut]).unwrap();
        assert_eq!(run_file(&path, 3, EFFORT).unwrap().finished, whole);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines().count(),
            String::from_utf8_lossy(&bytes).lines().count()
        );
        block_on(verify(text.lines())).unwrap();
    }
}

#[test]
fn a_frozen_threshold_replaces_the_first_line_and_keeps_the_rest() {
    let path = path("frozen");
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    // A mode that no usual umask leaves to a new file.
    #[cfg(unix)]
    {
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let in_file = run_file(&path, 3, relative).unwrap().finished;
    let in_memory = run(study(3, "capo", relative, ""), &Rc::new(Probe::default()))
        .0
        .finished;
    assert_eq!(in_file, in_memory);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().next().unwrap().contains("\"threshold\":"));
    block_on(verify(text.lines())).unwrap();
    #[cfg(unix)]
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "no file is left beside it"
    );
}

#[test]
fn a_wrong_line_in_the_middle_is_named() {
    let path = path("wrong");
    run_file(&path, 3, EFFORT).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[6] = "{\"event\":\"rollout\",\"candidate\":1}";
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = refusal(run_file(&path, 3, EFFORT));
    assert!(error.starts_with("journal line 7:"), "{error}");
    fs::write(&path, "hello\n").unwrap();
    assert!(refusal(run_file(&path, 3, EFFORT)).contains("not a Capo journal"));
}

#[test]
fn a_newer_schema_and_another_study_are_refused_with_what_to_do() {
    let path = path("other");
    run_file(&path, 3, EFFORT).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let error = refusal(run_file(
        &path,
        4,
        "[[constraint]]\nmetric = \"effort\"\nthreshold = 1.5\n",
    ));
    assert!(error.contains("another study"), "{error}");
    assert!(
        error.contains("study.seed: 3 → 4") && error.contains("1.6 → 1.5"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing was written");
    fs::write(&path, text.replacen("\"schema\":1", "\"schema\":2", 1)).unwrap();
    let error = refusal(run_file(&path, 3, EFFORT));
    assert!(
        error.contains("newer Capo") && error.contains("Update"),
        "{error}"
    );
}

#[test]
fn a_second_writer_is_refused() {
    let path = path("lock");
    let _open = FileJournal::open(&path, Fsync::Never).unwrap();
    assert!(refusal(run_file(&path, 3, EFFORT)).contains("another process is writing"));
}

#[test]
fn a_journal_that_cannot_be_written_is_an_error_that_names_it() {
    let missing = std::env::temp_dir()
        .join("capo-no-such-directory")
        .join("run.jsonl");
    let error = refusal(run_file(&missing, 3, EFFORT));
    assert!(
        error.contains("capo-no-such-directory") && error.contains("cannot be opened"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_as_such() {
    // /dev/full takes the opening and refuses every byte.
    let mut journal = FileJournal::open(std::path::Path::new("/dev/full"), Fsync::Never).unwrap();
    let event =
        serde_json::from_str(&run(study(3, "capo", EFFORT, ""), &Rc::new(Probe::default())).1[0]).unwrap();
    journal.record(&event).unwrap();
    let error = journal.flush().unwrap_err().to_string();
    assert!(
        error.contains("/dev/full") && error.contains("free some space"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_batch_that_the_journal_cannot_note_is_not_handed_in() {
    use crate::durability::{Heard, InBatch};
    use crate::tiny::{STUDY, problem};
    use futures::FutureExt as _;
    let (batches, heard) = (capo_core::batches::Batches::default(), Heard::default());
    let journal = FileJournal::open(std::path::Path::new("/dev/full"), Fsync::Never).unwrap();
    let models = Rc::new(InBatch(batches.clone(), Rc::clone(&heard)));
    let run = optimize(problem(STUDY).unwrap(), journal, models, RunOptions::default());
    let error = refusal(block_on(run));
    assert!(error.contains("free some space"), "{error}");
    assert!(!batches.are_under_way());
    let written = heard.take().expect("it was noted").now_or_never();
    assert_eq!(written, Some(false));
}

#[test]
fn verify_finds_every_kind_of_tampering() {
    let relative = format!("{EFFORT}[[constraint]]\nmetric = \"prompt_length\"\nrelative_to_seed = 4.0\n");
    let lines = run(study(3, "capo", &relative, ""), &Rc::new(Probe::default())).1;
    block_on(verify(&lines)).unwrap();
    let line_of = |event: &str, nth: usize| {
        let tag = format!("\"event\":\"{event}\"");
        lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.contains(&tag))
            .nth(nth)
            .unwrap()
            .0
    };
    let edit = |at: usize, key: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut lines = lines.clone();
        let mut value: serde_json::Value = serde_json::from_str(&lines[at]).unwrap();
        let target = value
            .pointer_mut(key)
            .unwrap_or_else(|| panic!("{key} in {}", lines[at]));
        change(target);
        lines[at] = value.to_string();
        lines
    };
    let add = |value: &mut serde_json::Value| *value = (value.as_f64().unwrap() + 0.25).into();
    let reverse = |value: &mut serde_json::Value| value.as_array_mut().unwrap().reverse();
    let (rollout, round, finished) = (
        line_of("rollout", 40),
        line_of("round", 2),
        line_of("finished", 0),
    );
    let best = serde_json::from_str::<serde_json::Value>(&lines[round]).unwrap()["best"][0]
        .as_str()
        .unwrap()
        .to_owned();
    // A child of a later round than the first.
    let is_child = |line: &String| line.contains("\"event\":\"candidate\"") && !line.contains("\"round\":0,");
    let child = lines.iter().position(is_child).unwrap();
    let cases = [
        ("a candidate's round", edit(child, "/round", &|v| *v = 77.into())),
        (
            "a candidate's parents",
            edit(child, "/parents", &|v| v.as_array_mut().unwrap().clear()),
        ),
        (
            "an origin: given",
            edit(child, "/origin", &|v| *v = "given".into()),
        ),
        (
            "an origin: injected",
            edit(child, "/origin", &|v| *v = "injected".into()),
        ),
        (
            "an origin: crossover",
            edit(child, "/origin", &|v| *v = "crossover".into()),
        ),
        (
            "an origin: paraphrase",
            edit(child, "/origin", &|v| *v = "paraphrase".into()),
        ),
        ("an origin: seed", edit(child, "/origin", &|v| *v = "seed".into())),
        ("the schema", edit(0, "/schema", &|v| *v = 0.into())),
        ("the time", edit(0, "/started_at", &|v| *v = "yesterday".into())),
        ("a measurement", edit(rollout, "/measurements/effort", &add)),
        (
            "an objective",
            edit(round, &format!("/scores/{best}/objective"), &add),
        ),
        (
            "a cost",
            edit(round, &format!("/scores/{best}/costs/effort"), &add),
        ),
        (
            "a Lagrangian",
            edit(round, &format!("/scores/{best}/lagrangian"), &add),
        ),
        (
            "feasibility",
            edit(round, &format!("/scores/{best}/feasible"), &|v| {
                *v = (!v.as_bool().unwrap()).into();
            }),
        ),
        ("a multiplier", edit(round, "/multipliers/effort", &add)),
        ("a next multiplier", edit(round, "/next_multipliers/effort", &add)),
        ("the pool", edit(round, "/retained", &reverse)),
        ("the parents", edit(round, "/parents", &reverse)),
        (
            "the result",
            edit(finished, "/best", &|v| *v = serde_json::Value::Null),
        ),
        (
            "the status",
            edit(finished, "/status", &|v| *v = "infeasible".into()),
        ),
        ("the evaluation", edit(finished, "/evaluation/success/mean", &add)),
        (
            "the threshold",
            edit(0, "/study/constraint/0/threshold", &|v| *v = 1.7.into()),
        ),
        (
            "a threshold relative to the seed",
            edit(0, "/study/constraint/1/threshold", &add),
        ),
        (
            "the first multipliers",
            edit(line_of("round", 0), "/multipliers/effort", &add),
        ),
        (
            "the evaluation's presence",
            edit(finished, "/evaluation", &|v| *v = serde_json::json!({})),
        ),
        (
            "the seed's evaluation",
            edit(finished, "/seed_evaluation", &|v| *v = serde_json::json!({})),
        ),
        (
            "a final score's presence",
            edit(finished, "/final_scores", &|v| {
                v.as_object_mut().unwrap().shift_remove(&best);
            }),
        ),
        (
            "a budget as the end",
            edit(finished, "/status", &|v| *v = "budget".into()),
        ),
        (
            "a person as the end",
            edit(finished, "/status", &|v| *v = "stopped".into()),
        ),
        (
            "a failure as the end",
            edit(finished, "/status", &|v| *v = "failed".into()),
        ),
        ("a rollout counted twice", {
            let mut lines = lines.clone();
            lines.insert(rollout + 1, lines[rollout].clone());
            lines
        }),
        ("the seed", edit(0, "/study/study/seed", &|v| *v = 4.into())),
        (
            "a prompt",
            edit(line_of("candidate", 1), "/prompt", &|v| *v = "Other.".into()),
        ),
        (
            "a missing rollout",
            lines
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != rollout)
                .map(|(_, l)| l.clone())
                .collect(),
        ),
    ];
    for (what, tampered) in cases {
        let found = block_on(verify(&tampered));
        assert!(found.is_err(), "{what} was changed and nobody noticed");
    }
}

#[test]
fn a_multiplier_is_recomputed_apart_from_the_code_that_moved_it() {
    for step in ["subgradient", "count", "pid", "augmented", "fixed"] {
        let method = format!("[method]\ndual_step = \"{step}\"\n");
        let lines = run(study(3, "capo", EFFORT, &method), &Rc::new(Probe::default())).1;
        let rounds = lines.iter().filter(|line| line.contains("\"event\":\"round\""));
        let last = rounds.max().unwrap().clone();
        let at = lines.iter().position(|line| *line == last).unwrap();
        let mut round: serde_json::Value = serde_json::from_str(&last).unwrap();
        let next = &mut round["next_multipliers"]["effort"];
        *next = (next.as_f64().unwrap() + 0.001).into();
        let mut lines = lines;
        lines[at] = round.to_string();
        let error = block_on(verify(&lines)).unwrap_err().to_string();
        let place = format!(
            "journal line {}: round 5: the next multiplier of `effort`",
            at + 1
        );
        assert!(error.starts_with(&place), "{step}: {error}");
    }
}

#[test]
fn an_event_that_does_not_fit_is_not_written() {
    let path = path("unfit");
    run_file(&path, 3, EFFORT).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let mut journal = FileJournal::open(&path, Fsync::Never).unwrap();
    for event in ["rollout", "round", "study"] {
        let tag = format!("{{\"event\":\"{event}\"");
        let again = text.lines().find(|line| line.starts_with(&tag)).unwrap();
        journal.record(&serde_json::from_str(again).unwrap()).unwrap_err();
    }
    journal.flush().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_file_that_is_no_journal_is_refused_and_left_as_it_was() {
    let path = path("stranger");
    for text in ["notes without a line break", "two lines\nthe second torn"] {
        fs::write(&path, text).unwrap();
        assert!(refusal(run_file(&path, 3, EFFORT)).contains("not a Capo journal"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, "{\"event\":\"study\",\"sche").unwrap();
    run_file(&path, 3, EFFORT).expect("a first line cut off by a crash is begun again");
}

#[test]
fn a_line_that_is_not_utf8_is_named() {
    let path = path("bytes");
    run_file(&path, 3, EFFORT).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let second_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second_line + 20] = 0xFF;
    fs::write(&path, bytes).unwrap();
    let error = refusal(run_file(&path, 3, EFFORT));
    assert!(error.contains("line 2 is not UTF-8"), "{error}");
}

#[test]
fn a_repeat_far_ahead_of_the_others_is_refused_where_it_stands() {
    let mut lines = run(study(3, "capo", EFFORT, ""), &Rc::new(Probe::default())).1;
    let rollout = |line: &String| line.contains("\"event\":\"rollout\"");
    let at = lines.iter().position(rollout).unwrap();
    lines[at] = lines[at].replacen("\"repeat\":0", "\"repeat\":4294967295", 1);
    let error = block_on(verify(&lines)).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("journal line {}: repeat 4294967295", at + 1)),
        "{error}"
    );
}
