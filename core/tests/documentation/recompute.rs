//! The few lines of Python in `docs/journal.md` recompute a real journal.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::rc::Rc;

use capo_core::arena::RunOptions;
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::optimize;
use futures::executor::block_on;

use crate::{blocks, journal, page, tiny};

/// What a snippet of the page says about these lines; none when this machine has no Python.
fn run(snippet: usize, name: &str, lines: &[String]) -> Option<Output> {
    let page = page("journal");
    let code = blocks(&page, "python")[snippet];
    let file = format!("capo-recompute-{name}-{}.jsonl", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(file);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let ran = Command::new("python3").arg("-c").arg(code).arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    match ran {
        Ok(output) => Some(output),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped: python3 does not start here ({error})");
            None
        }
        Err(error) => panic!("python3: {error}"),
    }
}

const IDENTITY: usize = 0;
const ROUNDS: usize = 1;

fn lines_of(study: &str) -> Vec<String> {
    let store = MemoryJournal::new();
    let journal = Journal::create(Box::new(store.clone()));
    let problem = tiny::problem(study).unwrap();
    block_on(optimize(
        problem,
        journal,
        Rc::new(tiny::Tiny),
        RunOptions::default(),
    ))
    .unwrap();
    store.lines().to_vec()
}

#[test]
fn the_snippets_agree_with_journals() {
    let settings = |settings: &str| format!("{}{settings}", tiny::STUDY);
    let search = |search: &str| tiny::STUDY.replace("rounds = 2", search);
    let studies = [
        ("plain", tiny::STUDY.to_owned(), 2),
        (
            "settings",
            settings("pool = 1\nbest = 2\nbeta = 0.7\nlambda_max = 2\n"),
            2,
        ),
        ("batches", search("rounds = 4\nrepeats = 2\nbatch = 1"), 4),
        ("budget", settings("[budget]\nrollouts = 40\n"), 2),
        (
            "operational",
            tiny::STUDY
                .replace(
                    "provider = \"tiny\"",
                    "provider = \"tiny\"\nretries = 2\nconcurrency = 3",
                )
                .replace(
                    "kind = \"questions\"",
                    "kind = \"questions\"\ntimeout = 5\nretries = 1\nembeddings = \"vectors.jsonl\"",
                )
                .replace("[method]", "[models.embeddings]\nprovider = \"tiny\"\n\n[method]"),
            2,
        ),
        (
            "vectors",
            tiny::STUDY.replace("[method]", "[models.embeddings]\nprovider = \"tiny\"\n\n[method]"),
            2,
        ),
    ];
    let with_failures = ["worst", "leave-out"].map(|policy| (policy, journal::filtered(policy), 2));
    let runs = studies.map(|(name, study, rounds)| (name, lines_of(&study), rounds));
    for (name, lines, rounds) in runs.into_iter().chain(with_failures) {
        for (snippet, expected) in [
            (IDENTITY, "the id is the hash of the study".to_owned()),
            (ROUNDS, format!("{rounds} rounds follow from their rollouts")),
        ] {
            let Some(output) = run(snippet, name, &lines) else {
                return;
            };
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {complaint}");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{name}");
        }
    }
}

#[test]
fn the_snippets_find_changes() {
    let lines = lines_of(tiny::STUDY);
    for (snippet, name, then, now) in [
        (IDENTITY, "seed", "\"seed\":0", "\"seed\":1"),
        (ROUNDS, "measurement", "\"handovers\":1.0,", "\"handovers\":0.5,"),
        (ROUNDS, "objective", "{\"objective\":0.5", "{\"objective\":0.25"),
        (ROUNDS, "score", "\"lagrangian\":0.25", "\"lagrangian\":0.3"),
        (
            ROUNDS,
            "multiplier",
            "\"next_multipliers\":{\"handovers\":",
            "\"next_multipliers\":{\"handovers\":1",
        ),
    ] {
        let mut changed = lines.clone();
        let line = changed.iter_mut().find(|line| line.contains(then)).unwrap();
        *line = line.replacen(then, now, 1);
        let Some(output) = run(snippet, name, &changed) else {
            return;
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} was changed and nobody noticed");
        let expected = if snippet == IDENTITY {
            "AssertionError"
        } else {
            "computed"
        };
        assert!(complaint.contains(expected), "{name}: {complaint}");
    }
}
