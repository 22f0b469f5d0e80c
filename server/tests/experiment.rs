//! `capo experiment`, from the command line to the files it leaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The help desk in small: seconds, not minutes.
const STUDY: &str = r#"
[study]
name = "small desk"
rounds = 2

[workload]
kind = "desk"
optimize = 6
evaluate = 4

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "human_requests"
threshold = 0.3

[[constraint]]
metric = "excess_tools"
threshold = 0.3

[models.agent]
provider = "simulated"
"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(place.path("study.toml"), STUDY).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, experiment: &str, seeds: &str, out: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capo"));
        command.args([
            "experiment",
            experiment,
            "--study",
            "study.toml",
            "--seeds",
            seeds,
            "--out",
            out,
        ]);
        command
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, experiment: &str, seeds: &str, out: &str) -> Output {
        self.command(experiment, seeds, out).output().unwrap()
    }

    fn journals(&self, out: &str) -> Vec<(String, Vec<u8>)> {
        let folder = self.path(out).join("journals");
        let mut journals: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (
                    entry.file_name().into_string().unwrap(),
                    std::fs::read(entry.path()).unwrap(),
                )
            })
            .collect();
        journals.sort();
        journals
    }

    fn report(&self, out: &str) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.path(out).join("report.json")).unwrap()).unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn leaves_tables_plots_and_journals_and_runs_nothing_twice() {
    let place = Place::new();
    let output = place.run("feedback", "2", "out");
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Where standard error is no terminal, a line for each run that ends.
    let told: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(
        told.len() == 6 && told.iter().all(|line| line.contains(": done · ")),
        "{told:?}"
    );
    let shown = text(&output.stdout);
    assert!(shown.starts_with("## Held-out results by feedback\n"), "{shown}");
    let mut command = place.command("feedback", "2", "logged");
    let logged = command.args(["--log", "json", "--no-journals"]).output().unwrap();
    for line in text(&logged.stderr).lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["log"], &line["level"]),
            (&"message".into(), &"INFO".into()),
            "{line}"
        );
    }
    assert_eq!(text(&logged.stderr).lines().count(), told.len());
    assert!(shown.trim_end().ends_with("out/report.md"), "{shown}");
    for file in [
        "report.md",
        "summary.csv",
        "multipliers.csv",
        "paper.csv",
        "outcomes.svg",
        "trajectories.svg",
    ] {
        assert!(place.path("out").join(file).exists(), "{file}");
    }
    let report = place.report("out");
    assert_eq!(report["runs"].as_array().unwrap().len(), 6);
    assert_eq!(report["runs"], place.report("logged")["runs"]);
    assert!(!place.path("logged/journals").exists());
    assert!(shown.contains("\nTables, plots and journals: "), "{shown}");
    assert!(text(&logged.stdout).contains("\nTables and plots: "));
    assert!(report["runs"][0]["rollouts"].as_u64().unwrap() > 0);
    for run in report["runs"].as_array().unwrap() {
        // Of a share over 1,000 examples.
        for outcome in ["fresh", "seed_prompt_fresh"] {
            let error = run[outcome]["standard_errors"]["success"].as_f64().unwrap();
            assert!(error > 0.0 && error < 0.5 / 999f64.sqrt(), "{run}");
        }
    }
    let journals = place.journals("out");
    let names: Vec<&str> = journals.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[0], "feedback-none-seed-0.journal.jsonl");
    assert_eq!(names.len(), 6);

    let again = place.run("feedback", "2", "out");
    assert!(again.status.success());
    assert_eq!(again.stdout, output.stdout);
    assert!(place.journals("out") == journals, "a finished run was touched");

    let more = place.run("feedback", "0,1,5", "out");
    assert!(more.status.success());
    assert_eq!(place.report("out")["runs"].as_array().unwrap().len(), 9);
    assert!(
        place
            .journals("out")
            .iter()
            .filter(|journal| journals.contains(journal))
            .count()
            == 6
    );
}

#[test]
fn each_seed_draws_a_split_of_its_own_unless_told_not_to() {
    let place = Place::new();
    let splits = |out: &str| -> Vec<serde_json::Value> {
        let header = |bytes: &[u8]| -> serde_json::Value {
            serde_json::from_str(text(bytes).lines().next().unwrap()).unwrap()
        };
        let journals = place.journals(out);
        let headers = journals.iter().map(|(_, bytes)| header(bytes));
        headers
            .map(|header| header["workloads"]["desk"]["evaluate"].clone())
            .collect()
    };
    assert!(place.run("feedback", "2", "drawn").status.success());
    let drawn = splits("drawn");
    assert!(drawn[0] != drawn[1] && drawn[0] == drawn[2], "{drawn:?}");
    let mut same = place.command("feedback", "2", "same");
    assert!(same.arg("--same-split").output().unwrap().status.success());
    let same = splits("same");
    assert!(same.iter().all(|split| *split == same[0]), "{same:?}");
    assert_eq!(same[0], drawn[0], "seed 0 draws the study's own");
}

#[test]
fn without_held_out_examples_there_is_nothing_fresh_and_with_them_another_seed_measures() {
    const TABLE: &str = r#"
        [study]
        name = "questions"
        method = "capo"
        rounds = 1
        [workload]
        kind = "table"
        data = "rows.jsonl"
        user = "{{ question }}"
        evaluate = 0
        [[workload.metric]]
        type = "regex"
        name = "numbers"
        pattern = "[0-9]"
        [[workload.metric]]
        type = "length"
        name = "length"
        [prompt]
        text = "Answer."
        [objective]
        metric = "numbers"
        [[constraint]]
        metric = "length"
        threshold = 400
        [models.agent]
        provider = "simulated"
    "#;
    let place = Place::new();
    let row = |row: u8| format!("{{\"question\": \"How many letters e are in word number {row}?\"}}");
    let rows = (0..9).map(row).collect::<Vec<_>>().join("\n");
    std::fs::write(place.path("rows.jsonl"), rows).unwrap();
    for (held_out, is_measured) in [("evaluate = 0", false), ("evaluate = 4", true)] {
        std::fs::write(place.path("study.toml"), TABLE.replace("evaluate = 0", held_out)).unwrap();
        let out = if is_measured { "with" } else { "without" };
        let output = place.run("feedback", "1", out);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(
            text(&output.stdout).contains("AllSat, fresh"),
            is_measured,
            "{held_out}"
        );
        for run in place.report(out)["runs"].as_array().unwrap() {
            assert_eq!(run["fresh"].is_object(), is_measured, "{run}");
        }
    }
}

#[test]
fn goes_on_after_a_crash_to_the_same_report() {
    let place = Place::new();
    assert!(place.run("dual-step", "2", "whole").status.success());
    // As a crash leaves it: some runs finished, one cut in the midst of a line, the others not begun.
    let journals = place.journals("whole");
    assert_eq!(journals.len(), 10);
    std::fs::create_dir_all(place.path("cut/journals")).unwrap();
    for (at, (name, bytes)) in journals[..4].iter().enumerate() {
        let kept = if at == 3 { bytes.len() / 2 } else { bytes.len() };
        std::fs::write(place.path("cut/journals").join(name), &bytes[..kept]).unwrap();
    }
    assert!(place.run("dual-step", "2", "cut").status.success());
    assert_eq!(
        place.journals("cut")[..3],
        journals[..3],
        "a finished run was touched"
    );
    let (mut whole, mut cut) = (place.report("whole"), place.report("cut"));
    // The critic and rewriter are asked again for what was under way, which costs calls.
    for report in [&mut whole, &mut cut] {
        for run in report["runs"].as_array_mut().unwrap() {
            run["calls"].take();
        }
    }
    assert_eq!(whole, cut);
}

#[test]
fn runs_cut_by_their_budget_are_told_and_finished_once_it_is_raised() {
    let place = Place::new();
    std::fs::write(
        place.path("study.toml"),
        format!("{STUDY}\n[budget]\nrollouts = 12\n"),
    )
    .unwrap();
    let output = place.run("feedback", "1", "out");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("3 of 3 runs"),
        "{}",
        text(&output.stderr)
    );
    let page = std::fs::read_to_string(place.path("out/report.md")).unwrap();
    assert!(
        page.contains("0 of 3 runs finished") && page.contains("seed 0: "),
        "{page}"
    );
    std::fs::write(place.path("study.toml"), STUDY).unwrap();
    assert!(place.run("feedback", "1", "out").status.success());
    let page = std::fs::read_to_string(place.path("out/report.md")).unwrap();
    assert!(page.contains("3 of 3 runs finished"), "{page}");
}

#[cfg(unix)]
#[test]
fn an_interruption_says_what_it_keeps() {
    let begun = "out/journals/dual-step-pid-seed-0.journal.jsonl";
    interrupt(
        &[],
        begun,
        "of 200 runs are finished. To go on, run the same command again",
    );
    let measured = "out/fresh/dual-step-pid-seed-0.journal.json";
    interrupt(
        &["--no-journals"],
        measured,
        "of 200 runs are finished, without journals: the same",
    );
}

/// Interrupts an experiment once there is a file, and looks for what it says then.
#[cfg(unix)]
fn interrupt(options: &[&str], file: &str, expected: &str) {
    let place = Place::new();
    let mut command = place.command("dual-step", "40", "out");
    let child = command.args(["--jobs", "1"]).args(options).spawn().unwrap();
    let begun = Instant::now();
    while !place.path(file).exists() {
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing was begun");
        std::thread::sleep(Duration::from_millis(2));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains(expected), "{said}");
    assert_eq!(said.contains("is kept"), options.is_empty(), "{said}");
    assert!(!place.path("out/report.md").exists());
}

#[test]
fn a_dry_run_says_what_it_costs_and_touches_nothing() {
    let place = Place::new();
    let output = place
        .command("beta", "3", "out")
        .arg("--dry-run")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("runs") && shown.contains("12"), "{shown}");
    assert!(!place.path("out").exists());
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_written() {
    let place = Place::new();
    let refused = |output: &Output, part: &str| {
        assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains(part) && said.lines().count() <= 3, "{said}");
        assert!(!place.path("out").exists());
    };
    refused(&place.run("treshold", "1", "out"), "did you mean `threshold`?");
    refused(&place.run("beta", "x", "out"), "`x` is no seed");
    refused(&place.run("theory", "1", "out"), "--study is for experiments");
    refused(
        &place.run("beta", "18446744073709551615", "out"),
        "at most 10000 seeds",
    );
    let sampling = STUDY.replace("rounds = 2", "rounds = 2\nmethod = \"sampling\"");
    std::fs::write(place.path("study.toml"), sampling).unwrap();
    refused(
        &place.run("beta", "1", "out"),
        "`beta` does not fit the study `small desk`",
    );
    let bare: String = STUDY.split("[[constraint]]").next().unwrap().to_owned()
        + "[models.agent]\nprovider = \"simulated\"\n";
    std::fs::write(place.path("study.toml"), bare).unwrap();
    refused(
        &place.run("threshold", "1", "out"),
        "it has 0 of the 1 constraints",
    );
    #[cfg(not(feature = "train"))]
    for name in ["dcapo", "transfer"] {
        refused(&place.run(name, "1", "out"), "--features train");
    }
}

#[test]
fn a_changed_study_is_not_mixed_with_an_earlier_one() {
    let place = Place::new();
    assert!(place.run("threshold", "1", "out").status.success());
    std::fs::write(
        place.path("study.toml"),
        STUDY.replace("threshold = 0.3", "threshold = 0.4"),
    )
    .unwrap();
    let output = place.run("threshold", "1", "out");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("belongs to another study") && said.contains("0.3 → 0.4"),
        "{said}"
    );
    assert!(
        said.contains("-seed-0.journal.jsonl belongs")
            && said.contains("--out")
            && !said.contains("--journal"),
        "{said}"
    );
    assert!(
        Path::new(&place.path("out/report.md")).exists(),
        "the earlier report is kept"
    );
}
