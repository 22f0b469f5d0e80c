//! `capo experiment`: its files, and that what is finished is not paid again.

use std::fs;
use std::process::Command;
use std::time::Duration;

use capo_tests::program::{Running, command, read, run, wait_until};
use capo_tests::stub::Stub;
use capo_tests::study::{KEY, Study};
use nix::sys::signal::Signal;

fn experiment(study: &Study) -> Command {
    let mut experiment = command(["experiment", "feedback", "--seeds", "2", "--study"]);
    experiment.arg(study.path()).arg("--out").arg(study.file("out"));
    experiment.env(KEY, "key-of-this-test");
    experiment
}

#[test]
fn an_experiment_survives_a_kill_and_pays_for_nothing_twice() {
    let study = Study::new("http://unused").with("rounds = 4", "rounds = 2");
    let latency = Duration::from_millis(5);
    let (reference, stub) = (
        Stub::start_with(latency, None, study.models().script()),
        Stub::start_with(latency, None, study.models().script()),
    );
    let study = study.with("http://unused", &reference.base_url);
    let whole = run(&mut experiment(&study)).expect_code(0);
    let whole = whole
        .stdout
        .lines()
        .filter(|line| line.starts_with('|'))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        whole.contains("summary") && whole.contains("trajectory") && whole.contains("none"),
        "{whole}"
    );
    fs::rename(study.file("out"), study.file("whole")).unwrap();

    let study = study.with(&reference.base_url, &stub.base_url);
    let mut killed = Running::start(&mut experiment(&study));
    wait_until("the middle of the experiment", || {
        stub.requests() >= reference.requests() / 2
    });
    killed.signal(Signal::SIGKILL);
    assert!(killed.wait(Duration::from_secs(10)).is_some());
    let resumed = run(&mut experiment(&study)).expect_code(0);
    assert!(resumed.stdout.contains(&whole), "{}\n{whole}", resumed.stdout);
    let extra = stub.requests() - reference.requests();
    assert!(extra <= 4, "{extra} requests more than without the kill");

    let requests = stub.requests();
    let again = run(&mut experiment(&study)).expect_code(0);
    assert!(again.stdout.contains(&whole));
    assert_eq!(stub.requests(), requests);

    for name in ["report.md", "report.json", "summary.csv"] {
        assert!(!read(&study.file("out").join(name)).is_empty(), "{name}");
    }
    let files = |folder: &str, extension: &str| {
        let folder = study.file("out").join(folder);
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.extension().is_some_and(|is| is == extension))
            .collect::<Vec<_>>()
    };
    let plots = files("", "svg");
    assert!(!plots.is_empty());
    for plot in plots {
        assert!(read(&plot).trim_end().ends_with("</svg>"), "{}", plot.display());
    }
    let journals = files("journals", "jsonl");
    assert_eq!(journals.len(), 6, "three forms of feedback, two seeds");
    for journal in journals {
        run(command(["journal", "verify"]).arg(journal)).expect_code(0);
    }
}
