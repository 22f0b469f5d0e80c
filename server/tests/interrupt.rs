//! Ctrl-C and waits, as a person at the command line meets them.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A child that does not outlive its test.
struct Running(Child);

impl Running {
    fn capo(folder: &Path, line: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_capo"))
            .args(line.split_whitespace())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Its exit code and what it said on standard error.
    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code().unwrap(), said)
    }

    /// The first line on standard output.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let mut stdout = BufReader::new(self.0.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A help desk whose models answer at this address.
fn study(base_url: &str) -> String {
    let model = |role: &str, model: &str| {
        format!(
            "[models.{role}]\nprovider = \"openai-compatible\"\nbase_url = \"{base_url}\"\nmodel = \"{model}\"\n"
        )
    };
    format!(
        r#"
[study]
name = "slow desk"
rounds = 1

[workload]
kind = "desk"
optimize = 8
evaluate = 2

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "excess_tools"
threshold = 0.3

{}
{}
"#,
        model("agent", "sim-medium"),
        model("rewriter", "sim-large"),
    )
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "waited a minute for {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_interrupt_ends_a_run_of_slow_dialogues_within_two_seconds_and_it_can_be_resumed() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        // Every call takes seconds, a dialogue many of them.
        let mut slow = Running::capo(folder.path(), "simulate --port 0 --latency 2 --log served.jsonl");
        let address = slow.first_line();
        let base_url = address.strip_prefix("listening on ").unwrap();
        std::fs::write(folder.path().join("study.toml"), study(base_url)).unwrap();
        let run = Running::capo(folder.path(), "optimize study.toml --journal run.jsonl");
        let served = || std::fs::read_to_string(folder.path().join("served.jsonl")).unwrap_or_default();
        wait_until("answers", || served().lines().count() >= 4);

        run.signal(signal);
        let asked = Instant::now();
        let (code, said) = run.end();
        let took = asked.elapsed();
        // Two seconds, and as much again for a machine that has other things to do.
        assert!(took < Duration::from_secs(4), "{signal}: {took:?}: {said}");
        assert_eq!(code, 3, "{said}");
        for part in [
            "1.5 s",
            "dropped",
            "is kept",
            "capo optimize study.toml --journal run.jsonl",
        ] {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        let shown = Running::capo(folder.path(), "journal show run.jsonl");
        assert_eq!(shown.end().0, 0, "the journal can be read");

        slow.signal("-INT");
        drop(slow);
        let port = base_url.trim_end_matches("/v1").rsplit(':').next().unwrap();
        let mut quick = Running::capo(folder.path(), &format!("simulate --port {port}"));
        quick.first_line();
        let resumed = Running::capo(folder.path(), "optimize study.toml --journal run.jsonl");
        let (code, said) = resumed.end();
        assert!([0, 2].contains(&code), "{said}");
        assert!(said.contains("resuming run.jsonl"), "{said}");
    }
}

#[test]
fn a_provider_that_cannot_be_reached_is_told_at_once_and_an_interrupt_ends_the_wait() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = free.local_addr().unwrap().to_string();
    drop(free);
    for log in ["text", "json"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("study.toml"),
            study(&format!("http://{host}/v1")),
        )
        .unwrap();
        let mut run = Running::capo(
            folder.path(),
            &format!("optimize study.toml --journal run.jsonl --log {log}"),
        );
        let begun = Instant::now();
        let mut said = BufReader::new(run.0.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(4), "{first}");
        let words = format!("cannot reach {host}: trying again in");
        assert!(first.contains(&words), "{first}");
        if log == "json" {
            let line: serde_json::Value = serde_json::from_str(&first).unwrap();
            assert_eq!(
                (&line["log"], &line["host"]),
                (&"wait".into(), &host.as_str().into())
            );
        }

        run.signal("-INT");
        let asked = Instant::now();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(run.0.wait().unwrap().code(), Some(3), "{rest}");
        assert!(asked.elapsed() < Duration::from_secs(4), "{rest}");
        let lines = rest.lines().filter(|line| line.contains("cannot reach"));
        assert!(log == "json" || lines.count() == 0, "told again at once: {rest}");
    }
}
