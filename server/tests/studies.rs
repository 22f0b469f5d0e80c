//! Every file in `studies/` is a study this build can run.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::path::{Path, PathBuf};

use capo_core::Outcome;
use capo_core::budget::Budget;
use capo_core::journal::{Fsync, Status};
use capo_core::methods;
use capo_core::study::Study;
use capo_core::workload::Split;
use capo_models::Environment;
use capo_models::ModelSpec;
use capo_models::prices::PriceTable;
use capo_server::files::Reach;
use capo_server::session::{Session, StudyFile, block_on, open_journal};
use serde_json::json;

/// Rollouts a study is run for here, unless an agent has to be started for each: a first round and
/// the beginning of a second one.
const ROLLOUTS: u64 = 400;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies")
}

fn read(name: &str) -> StudyFile {
    StudyFile::read(&folder().join(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a study until so many rollouts are spent. Returns how many rounds that was.
fn run(mut file: StudyFile, rollouts: u64) -> usize {
    file.study.budget = Budget {
        rollouts: Some(rollouts),
        ..Budget::default()
    };
    let outcome = optimized(&file);
    let state = outcome.journal.state();
    assert!(state.ledger().rollouts() <= rollouts);
    assert!(outcome.finished.best.is_some());
    state.rounds().len()
}

/// What comes of a study that does not fail.
fn optimized(file: &StudyFile) -> Outcome {
    let out = tempfile::tempdir().unwrap();
    let session = Session::new(file, &Environment, PriceTable::shipped()).unwrap();
    let journal = open_journal(&out.path().join("run.journal.jsonl"), Fsync::Never, "--journal").unwrap();
    let outcome = block_on(session.optimize(journal)).unwrap().unwrap();
    let failure = outcome.journal.state().last_failure();
    assert_ne!(
        outcome.finished.status,
        Status::Failed,
        "{:?}",
        failure.map(|failure| &failure.message)
    );
    outcome
}

fn is_simulated(study: &Study) -> bool {
    study
        .models
        .values()
        .all(|model| model["provider"] == "simulated")
}

#[test]
fn every_file_is_known_here() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "airline-8b.toml",
            "airline-gpt-5.1.toml",
            "airline-simulated.toml",
            "airline.toml",
            "gsm8k.toml",
            "help-desk-dcapo.toml",
            "help-desk-openai.toml",
            "help-desk.toml",
            "nine-constraints.toml",
            "own-agent.toml",
            "progressive.toml",
            "retail-8b.toml",
            "retail-gpt-5.1.toml",
            "retail-simulated.toml",
            "retail.toml",
            "telecom-8b.toml",
            "telecom-gpt-5.1.toml",
            "telecom-simulated.toml",
            "telecom.toml"
        ]
    );
}

#[test]
fn the_simulated_ones_run_as_they_stand() {
    for name in [
        "help-desk.toml",
        "help-desk-dcapo.toml",
        "nine-constraints.toml",
        "progressive.toml",
    ] {
        let file = read(name);
        assert!(is_simulated(&file.study), "{name}");
        let rollouts = ROLLOUTS * u64::from(file.study.study.repeats);
        assert!(run(file, rollouts) >= 1, "{name}");
    }
}

#[test]
fn the_rewriter_of_the_learned_one_can_learn() {
    let study = read("help-desk-dcapo.toml").study;
    let method = methods::build(&study.study.method, &study.method).unwrap();
    assert!(method.learns());
}

#[test]
fn the_nine_constraints_are_nine() {
    assert_eq!(read("nine-constraints.toml").study.constraints.len(), 9);
}

#[test]
fn the_progressive_one_has_a_constraint_that_enters_later() {
    let study = read("progressive.toml").study;
    assert!(
        study
            .constraints
            .iter()
            .any(|constraint| constraint.from_round > 0)
    );
}

/// That the tables of a study's models read, whether or not its data are there.
fn expect_readable_models(file: &StudyFile) {
    for (role, table) in &file.study.models {
        if let Err(problem) = ModelSpec::parse(table) {
            panic!("{role}: {problem}");
        }
    }
}

#[test]
fn the_real_help_desk_lacks_nothing_but_a_key() {
    let file = read("help-desk-openai.toml");
    assert!(!is_simulated(&file.study));
    file.setup().unwrap();
}

#[test]
fn gsm8k_runs_on_problems_of_our_own() {
    let mut file = read("gsm8k.toml");
    expect_readable_models(&file);
    file.study
        .models
        .values_mut()
        .for_each(|model| *model = json!({ "provider": "simulated" }));
    run(file, ROLLOUTS);
}

#[test]
fn gsm8k_without_its_problems_says_which_file_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("gsm8k.toml");
    std::fs::copy(folder().join("gsm8k.toml"), &copy).unwrap();
    let setup = StudyFile::read(&copy).unwrap().setup();
    let message = setup.err().expect("there are no data").to_string();
    assert!(message.contains("gsm8k/train.jsonl"), "{message}");
    assert!(message.contains("no file"), "{message}");
}

#[test]
fn gsm8k_runs_on_the_published_files() {
    let Some(data) = capo_tests::shared::shared("data/gsm8k") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("gsm8k")).unwrap();
    for part in ["train.jsonl", "test.jsonl"] {
        std::fs::copy(data.join(part), place.path().join("gsm8k").join(part)).unwrap();
    }
    let copy = place.path().join("gsm8k.toml");
    std::fs::copy(folder().join("gsm8k.toml"), &copy).unwrap();
    let mut file = StudyFile::read(&copy).unwrap();
    expect_readable_models(&file);
    // The same study with models that need no key.
    file.study
        .models
        .values_mut()
        .for_each(|model| *model = json!({ "provider": "simulated" }));
    run(file, ROLLOUTS);
}

#[test]
fn the_agent_of_ones_own_runs_with_a_simulated_rewriter() {
    let mut file = read("own-agent.toml");
    file.setup().unwrap();
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|version| version.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "python3 is needed in CI");
        eprintln!("skipped: no python3");
        return;
    }
    file.study
        .models
        .values_mut()
        .for_each(|model| *model = json!({ "provider": "simulated" }));
    assert!(run(file, 80) >= 1);
}

#[test]
fn the_tau2_domains_lack_nothing_but_their_data() {
    for (name, optimize, evaluate) in [
        ("airline.toml", 30, 20),
        ("airline-gpt-5.1.toml", 30, 20),
        ("airline-8b.toml", 30, 20),
        ("retail.toml", 74, 40),
        ("retail-gpt-5.1.toml", 74, 40),
        ("retail-8b.toml", 74, 40),
        ("telecom.toml", 74, 40),
        ("telecom-gpt-5.1.toml", 74, 40),
        ("telecom-8b.toml", 74, 40),
    ] {
        // Beside the study itself somebody may have put the data.
        let place = tempfile::tempdir().unwrap();
        let copy = place.path().join(name);
        std::fs::copy(folder().join(name), &copy).unwrap();
        let mut file = StudyFile::read_with(&copy, Reach::Anywhere, &[]).unwrap();
        expect_readable_models(&file);
        let message = file.setup().err().expect("there are no data").to_string();
        assert!(message.contains("no file `tau2-bench/data/tau2/"), "{message}");
        let Some(data) = capo_tests::shared::shared("tau2/data") else {
            continue;
        };
        file.study.workload["data"] = json!(data);
        let problem = file.setup().unwrap().problem;
        let examples = |split| problem.workloads()[0].examples(split).len();
        assert_eq!(
            (examples(Split::Optimize), examples(Split::Evaluate)),
            (optimize, evaluate),
            "{name}"
        );
    }
}

#[test]
fn the_tau2_domains_run_on_simulated_models() {
    let Some(data) = capo_tests::shared::shared("tau2/data") else {
        return;
    };
    for name in ["airline", "retail", "telecom"] {
        let path = folder().join(format!("{name}-simulated.toml"));
        let mut file = StudyFile::read_with(&path, Reach::Anywhere, &[]).unwrap();
        file.study.workload["data"] = json!(data);
        let outcome = optimized(&file);
        let state = outcome.journal.state();
        let status = outcome.finished.status;
        assert!(
            matches!(status, Status::Feasible | Status::Infeasible),
            "{name}: {status:?}"
        );
        // Thresholds matter: the seed prompt exceeds one, and the multipliers move.
        let first = &state.rounds()[0];
        let seed = state.candidates().next().unwrap().0;
        assert!(!first.scores[seed].feasible, "{name}");
        assert!(
            state
                .rounds()
                .iter()
                .any(|round| round.next_multipliers != round.multipliers),
            "{name}"
        );
        let success = outcome.finished.evaluation["success"].mean;
        assert!(0.1 < success && success < 0.99, "{name}: {success}");
    }
}
