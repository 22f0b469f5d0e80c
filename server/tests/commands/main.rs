//! `optimize`, `evaluate`, `compare` and `journal` as a person uses them, on a small help desk.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod beginnings;
mod evaluations;
mod reports;

#[cfg(unix)]
use std::fs::{File, Permissions};
#[cfg(unix)]
use std::io::{Read as _, Write as _};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
#[cfg(unix)]
use std::process::Stdio;

#[cfg(unix)]
use nix::pty::{OpenptyResult, Winsize, openpty};
use serde_json::Value;

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
metric = "excess_tools"
threshold = 0.3

[models.agent]
provider = "simulated"
"#;

/// A folder with `study.toml` and `prompt.md`, in which commands run.
struct Place(tempfile::TempDir);

/// How a command ended.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("study.toml", STUDY);
        place.write("prompt.md", "You are a help desk. Use only the tools you need.\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `capo` with the words of a line.
    fn capo(&self, line: &str) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_capo"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What stands at the end on a terminal of 80 columns on which `capo` ran and somebody typed this.
    #[cfg(unix)]
    fn on_terminal(&self, line: &str, typed: &str) -> String {
        let (code, shown) = self.ended_on_terminal(line, typed);
        assert_eq!(code, 0, "{shown}");
        shown
    }

    /// The same with the exit code.
    #[cfg(unix)]
    fn ended_on_terminal(&self, line: &str, typed: &str) -> (i32, String) {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut child = Command::new(env!("CARGO_BIN_EXE_capo"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        drop(slave);
        let mut terminal = File::from(master);
        terminal.write_all(typed.as_bytes()).unwrap();
        let mut shown = Vec::new();
        // Linux says by an error that nobody writes to it any more.
        let _ = terminal.read_to_end(&mut shown);
        let code = child.wait().unwrap().code().unwrap();
        (code, String::from_utf8(shown).unwrap())
    }

    /// A finished run.
    fn optimize(&self, study: &str, journal: &str) -> Value {
        let ended = self.capo(&format!("optimize {study} --journal {journal} --json"));
        assert!([0, 2].contains(&ended.code), "{}", ended.stderr);
        ended.json()
    }
}

#[test]
fn runs_lie_where_they_are_looked_for_and_are_told_when_they_are_there_already() {
    let place = Place::new();
    let first = place.capo("optimize study.toml --seed 5");
    let told: Vec<&str> = first.stderr.lines().collect();
    let [rounds @ .., verdict] = &told[..] else {
        panic!("a line a round where no terminal shows progress: {told:?}")
    };
    assert_eq!((first.code, rounds.len()), (2, 2));
    assert!(
        verdict.ends_with("feasible on the search examples, but does not hold on the held-out examples"),
        "{verdict}"
    );
    for (round, line) in rounds.iter().enumerate() {
        assert!(
            line.starts_with(&format!("round {round}: best")) && line.is_ascii(),
            "{line}"
        );
    }
    assert!(first.stdout.contains("held-out examples"), "{}", first.stdout);
    let journal = "runs/study-5.journal.jsonl";
    assert!(first.stdout.ends_with(&format!("Journal: {journal}\n")));
    let before = place.read(journal);
    let second = place.capo("optimize study.toml --seed 5");
    assert_eq!((second.code, &second.stdout), (first.code, &first.stdout));
    assert!(
        second.stderr.contains("holds the finished run"),
        "{}",
        second.stderr
    );
    assert_eq!(place.read(journal), before);
}

#[test]
fn a_dry_run_names_what_the_models_still_lack() {
    let place = Place::new();
    let agent = "[models.agent]\nprovider = \"simulated\"\n";
    let keyed =
        "[models.agent]\nprovider = \"openai\"\nmodel = \"gpt-5-mini\"\napi_key_env = \"NO_SUCH_KEY\"\n";
    place.write("study.toml", &STUDY.replace(agent, keyed));
    let ended = place.capo("optimize study.toml --dry-run");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let line = "Missing for a run: models.agent: provider `openai` needs a key: set NO_SUCH_KEY";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let ended = place.capo("optimize study.toml --dry-run --json");
    assert_eq!(ended.json()["missing"].as_array().unwrap().len(), 1);
    let unpriced = keyed.replace("gpt-5-mini", "gpt-99") + "[budget]\nusd = 2.0\n";
    place.write("study.toml", &STUDY.replace(agent, &unpriced));
    let ended = place.capo("optimize study.toml --dry-run");
    let line = "Missing for a run: openai/gpt-99's price is unknown, so a budget of $2.00 cannot be kept";
    assert!(ended.code == 0 && ended.stdout.contains(line), "{}", ended.stdout);

    let thinking =
        "[models.agent]\nprovider = \"gemini\"\nmodel = \"gemini-2.5-pro\"\nreasoning_effort = \"none\"\n";
    place.write("study.toml", &STUDY.replace(agent, thinking));
    let ended = place.capo("optimize study.toml --dry-run");
    assert_eq!(ended.code, 64);
    assert!(
        ended
            .stderr
            .contains("`reasoning_effort` is not possible with gemini/gemini-2.5-pro"),
        "{}",
        ended.stderr
    );

    let local = "provider = \"local\"\nmodel = \"nowhere\"\n";
    for (model, is_told) in [
        ("nowhere", true),
        ("nowhere/", true),
        ("./nowhere", true),
        ("~/nowhere", true),
        ("owner/name", false),
        ("owner/name@refs/pr/1", false),
    ] {
        let of_rewriter = local.replace("nowhere", model);
        place.write(
            "study.toml",
            &format!("{STUDY}\n[models.rewriter]\n{of_rewriter}"),
        );
        let ended = place.capo("optimize study.toml --dry-run");
        let line = format!("Missing for a run: models.rewriter: there is no folder `{model}`");
        assert!(
            ended.code == 0 && ended.stdout.contains(&line) == is_told,
            "{model}: {}",
            ended.stdout
        );
    }
    for role in ["agent", "critic"] {
        let study = STUDY.replace(agent, "") + &format!("\n[models.{role}]\n{local}");
        let study = if role == "agent" {
            study
        } else {
            study + "\n" + agent
        };
        place.write("study.toml", &study);
        let ended = place.capo("optimize study.toml --dry-run");
        let words = "provider `local` serves the role `rewriter` alone";
        assert!(
            ended.code == 64 && ended.stderr.contains(words),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_pilot_says_what_to_expect_and_the_run_pays_for_none_of_it_again() {
    let place = Place::new();
    let pilot = "optimize study.toml --journal run.jsonl --dry-run --pilot";
    let told = place.capo(&format!("{pilot} 4 --json")).json();
    assert_eq!(
        (&told["pilot"]["rollouts"], &told["pilot"]["of"]),
        (&4.into(), &6.into())
    );
    assert_eq!(
        (&told["paid_rollouts"], &told["expected"]["measured"]),
        (&4.into(), &4.into())
    );
    let calls = |end: &str| told["expected"]["calls"][end].as_f64().unwrap();
    assert!(calls("low") <= calls("mean") && calls("mean") <= calls("high"));
    assert!(
        calls("mean") < told["calls"].as_f64().unwrap(),
        "less than at most"
    );
    assert_eq!(told["expected"]["by_role"]["rewriter"]["measured"], false);

    let all = place.capo(&format!("{pilot} 50"));
    for part in [
        "Pilot: 2 rollouts made now",
        "no more than 6 rollouts of the seed prompt",
        "small desk: expected by 6 rollouts, and at most",
        "critiques and rewrites are estimated",
    ] {
        assert!(all.stdout.contains(part), "{part}: {}", all.stdout);
    }
    assert_eq!(place.capo("journal verify run.jsonl").code, 0);
    let (with, alone) = (
        place.optimize("study.toml", "run.jsonl"),
        place.optimize("study.toml", "alone.jsonl"),
    );
    for part in ["best", "evaluation", "multipliers", "status"] {
        assert_eq!(with[part], alone[part], "{part}");
    }
    assert_eq!(with["usage"]["rollouts"], alone["usage"]["rollouts"]);
    let after = place
        .capo("optimize study.toml --journal run.jsonl --dry-run --json")
        .json();
    assert_eq!(after["expected"]["by_role"]["rewriter"]["measured"], true);
    assert_eq!(place.capo("optimize study.toml --pilot 4").code, 64);
}

#[test]
fn a_program_hears_one_json_object_a_line() {
    let place = Place::new();
    let ended = place.capo("optimize study.toml --journal run.jsonl --log json --json");
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["log"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["round", "round", "finished"]);
    let (result, finished) = (ended.json(), &lines[2]);
    assert_eq!((&lines[0]["round"], &lines[1]["round"]), (&0.into(), &1.into()));
    assert_eq!(finished["status"], result["status"]);
    assert_eq!(finished["rollouts"], result["usage"]["rollouts"]);
    assert!(finished["at"].as_str().unwrap().ends_with('Z'), "{finished}");
    let again = place.capo("optimize study.toml --journal run.jsonl --log json --json");
    let said: Value = serde_json::from_str(again.stderr.trim()).unwrap();
    assert_eq!(
        (&said["log"], &said["level"]),
        (&"message".into(), &"WARN".into())
    );
    assert!(
        said["text"].as_str().unwrap().contains("holds the finished run"),
        "{said}"
    );
    place.write("wrong.toml", &STUDY.replace("rounds = 2", "rounds = 0"));
    let wrong = place.capo("optimize wrong.toml --log json");
    assert_eq!(wrong.code, 64);
    // What stands on the command line of a server is wrong, too.
    let serve = "serve --data data --log json";
    for more in [
        "--metrics --public-url https://capo.example.org",
        "--otlp nowhere",
    ] {
        let refused = place.capo(&format!("{serve} {more}"));
        assert_eq!(refused.code, 64, "{}", refused.stderr);
        let said: Value = serde_json::from_str(refused.stderr.trim()).unwrap();
        assert_eq!(
            (&said["log"], &said["level"]),
            (&"message".into(), &"ERROR".into())
        );
    }
}

#[test]
fn what_others_wrote_steers_no_terminal() {
    let place = Place::new();
    let study = STUDY.replace("name = \"small desk\"", "name = \"desk \\u001b[2J\\u009b2J\"");
    place.write(
        "study.toml",
        &study.replace("with their request.", "with \\u001b]0;title\\u0007 it."),
    );
    let ended = place.capo("optimize study.toml --journal run.jsonl");
    let shown = place.capo("journal show run.jsonl").stdout;
    let compared = place.capo("compare run.jsonl").stdout;
    for text in [&ended.stdout, &ended.stderr, &shown, &compared] {
        assert!(!text.contains(['\x1b', '\u{9b}', '\x07']), "{text:?}");
    }
    assert!(ended.stdout.contains("desk ␛[2J"), "{}", ended.stdout);
    let exact = place.capo("journal show run.jsonl --json").json();
    assert_eq!(exact["study"]["study"]["name"], "desk \u{1b}[2J\u{9b}2J");
}

#[test]
fn one_prompt_is_measured_and_paid_once() {
    let place = Place::new();
    let line = "evaluate study.toml --prompt prompt.md --split optimize --journal kept.jsonl --json";
    let first = place.capo(line);
    let scored = first.json();
    assert_eq!(scored["usage"]["rollouts"], 6);
    assert_eq!(scored["estimates"]["success"]["n"], 6);
    let cost = &scored["constraints"]["excess_tools"];
    assert_eq!(cost["cost"], scored["estimates"]["excess_tools"]["mean"]);
    assert_eq!(cost["satisfied"], scored["feasible"]);
    assert_eq!(first.code, if scored["feasible"] == true { 0 } else { 2 });
    let kept = place.read("kept.jsonl");
    assert_eq!(place.capo(line).json(), scored);
    assert_eq!(place.read("kept.jsonl"), kept, "nothing was asked again");
}

#[test]
fn thresholds_relative_to_the_seed_are_measured_before_a_prompt_is_held_against_them() {
    let place = Place::new();
    place.write(
        "relative.toml",
        &STUDY.replace("threshold = 0.3", "relative_to_seed = 0.5"),
    );
    place.write(
        "seed.md",
        "You are a customer service agent. Help the customer with their request.",
    );
    let scored = place
        .capo("evaluate relative.toml --prompt seed.md --split optimize --json")
        .json();
    let cost = &scored["constraints"]["excess_tools"];
    assert_eq!(
        cost["threshold"].as_f64(),
        cost["cost"].as_f64().map(|cost| 0.5 * cost)
    );
    assert_eq!(scored["usage"]["rollouts"], 6, "the seed prompt is measured once");
}

#[test]
fn a_prompt_is_not_measured_into_the_journal_of_a_search() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    let before = place.read("run.jsonl");
    let ended = place.capo("evaluate study.toml --prompt prompt.md --journal run.jsonl");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("journal of a search"), "{}", ended.stderr);
    assert_eq!(place.read("run.jsonl"), before);
}

#[test]
fn one_prompt_is_kept_where_it_is_looked_for_and_a_budget_stop_says_how_to_go_on() {
    let place = Place::new();
    place.write("small.toml", &format!("{STUDY}\n[budget]\nrollouts = 4\n"));
    let line = "evaluate small.toml --prompt prompt.md --split optimize --seed 3";
    let cut = place.capo(line);
    assert_eq!((cut.code, cut.stdout.as_str()), (3, ""));
    let resume = "capo evaluate small.toml --seed 3 --prompt prompt.md --split optimize";
    assert!(
        cut.stderr.trim_end().ends_with(&format!("run: {resume}")),
        "{}",
        cut.stderr
    );
    let kept: Vec<String> = std::fs::read_dir(place.path("runs"))
        .unwrap()
        .map(|entry| format!("runs/{}", entry.unwrap().file_name().to_string_lossy()))
        .filter(|name| name.starts_with("runs/small-3.evaluate-") && name.ends_with(".journal.jsonl"))
        .collect();
    let [journal] = &kept[..] else {
        panic!("one journal: {kept:?}");
    };
    let rollouts = || {
        let lines = place.read(journal);
        lines
            .lines()
            .filter(|line| line.contains(r#""event":"rollout""#))
            .count()
    };
    assert_eq!(rollouts(), 4, "what was paid for is kept");
    place.write("small.toml", STUDY);
    let whole = place.capo(&format!("{line} --json")).json();
    assert_eq!(whole["usage"]["rollouts"], 6, "nothing is paid again");
    assert_eq!(
        (whole["journal"].as_str(), rollouts()),
        (Some(journal.as_str()), 6)
    );
}

#[test]
fn a_search_whose_result_could_not_be_measured_is_not_done() {
    let place = Place::new();
    let whole = place.optimize("study.toml", "whole.jsonl");
    // The search is in the journal, and its budget is spent.
    let lines = place.read("whole.jsonl");
    let search: String = lines
        .split_inclusive('\n')
        .filter(|line| !line.contains(r#""split":"evaluate""#) && !line.contains(r#""event":"finished""#))
        .collect();
    let spent = search.matches(r#""event":"rollout""#).count();
    place.write("run.jsonl", &search);
    place.write("cut.toml", &format!("{STUDY}\n[budget]\nrollouts = {spent}\n"));
    let cut = place.capo("optimize cut.toml --journal run.jsonl --json");
    let result = cut.json();
    assert_eq!(result["status"], whole["status"], "the search went its whole way");
    assert_eq!(
        (cut.code, &result["evaluation"]),
        (3, &Value::Null),
        "{}",
        cut.stderr
    );
    assert!(cut.stderr.contains("raise [budget]"), "{}", cut.stderr);
    place.write("cut.toml", STUDY);
    let raised = place.optimize("cut.toml", "run.jsonl");
    assert_eq!(raised["evaluation"], whole["evaluation"]);
}

#[test]
fn an_export_replaces_files_but_no_journal() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    std::fs::copy(place.path("run.jsonl"), place.path("other.jsonl")).unwrap();
    let before = place.read("run.jsonl");
    for out in ["run.jsonl", "./run.jsonl", "other.jsonl"] {
        let ended = place.capo(&format!("journal export run.jsonl --out {out}"));
        assert_eq!(ended.code, 64, "{out}");
        assert!(ended.stderr.contains("is a journal"), "{}", ended.stderr);
    }
    assert!(place.read("run.jsonl") == before && place.read("other.jsonl") == before);
    for _ in 0..2 {
        assert_eq!(place.capo("journal export run.jsonl --out rows.csv").code, 0);
    }
    assert!(place.read("rows.csv").starts_with("id,round,origin"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_goes_to_standard_output_follows_what_is_in_its_file() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    for (out, appends) in [
        ("/dev/stdout", false),
        ("/proc/self/fd/1", true),
        ("/dev/fd/2", false),
    ] {
        place.write("log", "before\n");
        let log = File::options()
            .append(appends)
            .write(true)
            .open(place.path("log"))
            .unwrap();
        (&log).write_all(b"again\n").unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_capo"))
            .args(["journal", "export", "run.jsonl", "--out", out])
            .current_dir(&place.0)
            .stderr(log.try_clone().unwrap())
            .stdout(log)
            .status();
        assert!(status.unwrap().success(), "{out}");
        let begins = if appends {
            "before\nagain\nid,round"
        } else {
            "again\n"
        };
        let log = place.read("log");
        assert!(
            log.starts_with(begins) && log.contains("id,round,origin"),
            "{out}: {log}"
        );
    }
}

#[test]
fn a_journal_torn_in_the_midst_of_a_character_is_read_up_to_there() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    let mut torn = place.read("run.jsonl").into_bytes();
    torn.extend(b"{\"event\":\"candidate\",\"prompt\":\"caf\xc3");
    std::fs::write(place.path("run.jsonl"), torn).unwrap();
    for line in [
        "verify run.jsonl",
        "show run.jsonl",
        "branch run.jsonl --round 1 --out branch.jsonl",
    ] {
        let ended = place.capo(&format!("journal {line}"));
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    }
}

#[test]
fn impossible_branches_are_refused_and_leave_nothing() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    for (options, part) in [
        (
            "--threshold excess_tools=0.1 --threshold excess_tools=0.2",
            "given twice",
        ),
        (
            "--multiplier excess_tools=1 --multiplier excess_tools=2",
            "given twice",
        ),
        ("--multiplier excess_tools=-1", "at least 0"),
        ("--threshold excess_tool=0.1", "did you mean `excess_tools`?"),
        ("--threshold success=0.1", "no constraint on `success`"),
    ] {
        let ended = place.capo(&format!(
            "journal branch run.jsonl --round 1 --out branch.jsonl {options}"
        ));
        assert_eq!(ended.code, 64, "{options}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert!(!place.path("branch.jsonl").exists(), "{options}");
    }
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 3);
}

#[cfg(unix)]
#[test]
fn a_branch_that_does_not_fit_on_the_disk_leaves_nothing() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    // The shell's `ulimit -f` counts blocks of 512 bytes and is inherited.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let limited = |words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_capo"), "journal"]);
        command.args(words.split_whitespace()).current_dir(place.path(""));
        command.output().unwrap()
    };
    place.write("rows.json", "kept");
    for words in [
        "branch run.jsonl --round 1 --out branch.jsonl",
        "export run.jsonl --rows rollouts --format json --out rows.json",
    ] {
        let ended = limited(words);
        assert_eq!(ended.status.code(), Some(1), "{words}");
    }
    assert_eq!(place.read("rows.json"), "kept");
    assert_eq!(
        std::fs::read_dir(place.path("")).unwrap().count(),
        4,
        "nothing half-written"
    );
}

/// An agent of one's own that measures under names that columns have.
#[cfg(unix)]
fn place_with_own_metrics(cost: &str) -> Place {
    let place = Place::new();
    let rows = (1..=4).map(|number| format!("{{\"id\": \"e{number}\", \"number\": {number}}}\n"));
    place.write("examples.jsonl", &rows.collect::<String>());
    place.write(
        "agent.sh",
        &format!(
            "read -r request; echo '{{\"protocol\": 1, \"measurements\": {{\"good\": 0.5, \"{cost}\": 7}}}}'"
        ),
    );
    place.write(
        "own.toml",
        &format!(
            r#"
[study]
name = "own agent"
rounds = 1

[workload]
kind = "external"
command = ["sh", "agent.sh"]
data = "examples.jsonl"
id = "id"
optimize = 2
evaluate = 2

[[workload.metric]]
name = "good"
direction = "objective"

[[workload.metric]]
name = "{cost}"
direction = "cost"

[prompt]
text = "Do it."

[objective]
metric = "good"

[[constraint]]
metric = "{cost}"
threshold = 9.0

[models.rewriter]
provider = "simulated"
"#
        ),
    );
    place
}

#[cfg(unix)]
#[test]
fn a_metric_named_as_a_column_replaces_none() {
    for cost in ["calls", "candidate", "usd", "round", "lagrangian"] {
        let place = place_with_own_metrics(cost);
        place.optimize("own.toml", "run.jsonl");
        let rows = |rows: &str| -> Vec<Value> {
            let line = format!("journal export run.jsonl --rows {rows} --format json");
            serde_json::from_str(&place.capo(&line).stdout).unwrap()
        };
        for row in rows("rollouts") {
            assert_eq!(row[format!("measurement.{cost}")], 7.0, "{row}");
            assert!(row["candidate"].is_string() && row["calls"] == 0, "{row}");
        }
        for row in rows("rounds") {
            assert_eq!(row[format!("cost.{cost}")], 7.0, "{row}");
            assert_eq!(
                (&row["round"], &row["objective"]),
                (&0.into(), &0.5.into()),
                "{row}"
            );
            assert!(
                row["candidate"].is_string() && row["lagrangian"].is_number(),
                "{row}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn a_dry_run_names_the_variables_that_an_agent_lacks() {
    let place = place_with_own_metrics("minutes");
    let own = place.read("own.toml");
    let command = "command = [\"sh\", \"agent.sh\"]\n";
    let endpoint = "endpoint = \"http://127.0.0.1:9/\"\n";
    for (agent, setting) in [
        (format!("{command}env = [\"NO_SUCH_KEY\", \"PATH\"]\n"), "env"),
        (format!("{endpoint}bearer_env = \"NO_SUCH_KEY\"\n"), "bearer_env"),
        (
            format!("{endpoint}headers_env = {{ X-Key = \"NO_SUCH_KEY\" }}\n"),
            "headers_env",
        ),
    ] {
        place.write("own.toml", &own.replace(command, &agent));
        let ended = place.capo("optimize own.toml --dry-run --json");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let told =
            format!("workload.{setting} names the environment variable NO_SUCH_KEY, but it is not set");
        assert_eq!(ended.json()["missing"], serde_json::json!([told]));
    }
}

#[cfg(unix)]
#[test]
fn an_export_says_which_rollouts_count_as_the_worst() {
    let place = place_with_own_metrics("minutes");
    let agent = place.read("agent.sh");
    place.write(
        "agent.sh",
        &agent.replace(
            "read -r request;",
            "read -r request; case \"$request\" in *e1*) echo no luck >&2; exit 1;; esac;",
        ),
    );
    let failures = "[failures]\nexample = \"worst\"\ntries = 1\nshare = 0.5\n\n[prompt]";
    let own = place.read("own.toml").replace("[prompt]", failures);
    place.write("own.toml", &own.replace("data = ", "retries = 0\ndata = "));
    place.optimize("own.toml", "run.jsonl");
    let ended = place.capo("journal export run.jsonl --rows rollouts --format json");
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    assert!(rows.iter().any(|row| row["example"] == "e1"), "{rows:?}");
    for row in rows {
        let failed = row["failed"].as_str().unwrap_or_default();
        assert_eq!(failed.contains("no luck"), row["example"] == "e1", "{row}");
    }
}

#[cfg(unix)]
#[test]
fn a_metric_that_results_would_confuse_with_a_verdict_is_refused() {
    for cost in ["all_sat", "seed", "good.standard_error"] {
        let ended = place_with_own_metrics(cost).capo("optimize own.toml");
        assert_eq!(ended.code, 64, "{cost}");
        assert!(
            ended.stderr.contains(cost) && ended.stderr.contains("another name"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn runs_are_compared_by_example_on_the_same_held_out_examples_only() {
    let place = Place::new();
    let best = place.optimize("study.toml", "a.jsonl");
    std::fs::copy(place.path("a.jsonl"), place.path("b.jsonl")).unwrap();
    let compared = place.capo("compare a.jsonl b.jsonl --json").json();
    assert_eq!(
        compared["runs"][0]["evaluate"]["means"]["success"],
        best["evaluation"]["success"]["mean"]
    );
    let difference = &compared["differences"][0]["metrics"]["success"];
    for part in ["mean", "low", "high"] {
        assert_eq!(
            difference[part], 0.0,
            "a run does not differ from its copy: {difference}"
        );
    }
    assert_eq!(difference["n"], 4);
    let table = place.capo("compare a.jsonl").stdout;
    let differences = table.split_once("Prompts on the same").unwrap().1;
    assert!(differences.contains("n = 4"), "{table}");
    let starred = differences.lines().filter(|line| line.ends_with('*'));
    assert_eq!(starred.count(), 0, "four examples make nothing clear: {table}");
    let against_seed = &compared["differences"][1];
    assert_eq!(against_seed["minus"], "its seed prompt");
    let mean = |pointer: &str| best.pointer(pointer).and_then(Value::as_f64).unwrap();
    let expected = mean("/evaluation/success/mean") - mean("/evaluation/seed/success/mean");
    let found = against_seed["metrics"]["success"]["mean"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    assert!(
        place
            .capo("compare a.jsonl b.jsonl")
            .stdout
            .contains("run 2 minus run 1")
    );

    place.write("other.toml", &STUDY.replace("evaluate = 4", "evaluate = 5"));
    place.optimize("other.toml", "c.jsonl");
    let refused = place.capo("compare a.jsonl c.jsonl");
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("held-out examples of `desk` differ"),
        "{}",
        refused.stderr
    );
}

#[test]
fn prompts_measured_alone_are_shown_and_compared() {
    let place = Place::new();
    place.write("other.md", "Hand every customer over to a human at once.");
    let evaluate = |prompt: &str, split: &str| {
        let line = format!(
            "evaluate study.toml --prompt {prompt} --split {split} --journal {prompt}.{split}.jsonl --json"
        );
        place.capo(&line).json()
    };
    for split in ["optimize", "evaluate"] {
        let (one, other) = (evaluate("prompt.md", split), evaluate("other.md", split));
        let journals = format!("prompt.md.{split}.jsonl other.md.{split}.jsonl");
        let compared = place.capo(&format!("compare {journals} --json")).json();
        for (run, scored) in [(0, &one), (1, &other)] {
            let run = &compared["runs"][run];
            assert_eq!(run["best"], scored["candidate"]);
            let mean = &scored["estimates"]["success"]["mean"];
            assert_eq!(&run[split]["means"]["success"], mean);
        }
        let difference = &compared["differences"][0];
        assert_eq!(
            (&difference["split"], &difference["run"]),
            (&split.into(), &2.into())
        );
        let mean = |scored: &Value| scored["objective"].as_f64().unwrap();
        let found = difference["metrics"]["success"]["mean"].as_f64().unwrap();
        assert!((found - (mean(&other) - mean(&one))).abs() < 1e-9, "{difference}");
        let table = place.capo(&format!("compare {journals}")).stdout;
        for part in [
            "evaluation",
            "run 2 minus run 1",
            &one["candidate"].as_str().unwrap()[..8],
        ] {
            assert!(table.contains(part), "no {part:?} in {table}");
        }
        let shown = place
            .capo(&format!("journal show prompt.md.{split}.jsonl"))
            .stdout;
        assert!(shown.contains("1 prompt measured by `capo evaluate`"), "{shown}");
        assert!(!shown.contains("capo optimize"), "{shown}");
        let mean = format!("{:.3}", mean(&one));
        let line = shown.lines().find(|line| line.contains("given"));
        assert!(line.unwrap().contains(&mean), "{shown}");
    }
}

#[test]
fn a_journal_that_is_not_there_is_said_not_to_be_there() {
    let place = Place::new();
    for line in [
        "compare nowhere.jsonl",
        "journal show nowhere.jsonl",
        "journal verify nowhere.jsonl",
        "journal export nowhere.jsonl",
        "journal branch nowhere.jsonl --round 1 --out new.jsonl",
    ] {
        let ended = place.capo(line);
        assert_eq!(ended.code, 1, "{line}");
        assert!(
            ended.stderr.contains("nowhere.jsonl is not there"),
            "{line}: {}",
            ended.stderr
        );
    }
    place.write("empty.jsonl", "");
    assert!(place.capo("compare empty.jsonl").stderr.contains("is empty"));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_made_is_told_with_the_option_that_names_it() {
    let place = Place::new();
    place.write("taken", "a file");
    for (line, option) in [
        (
            "experiment beta --seeds 1 --study study.toml --out taken/here",
            "--out",
        ),
        ("optimize study.toml --journal taken/here/run.jsonl", "--journal"),
    ] {
        let ended = place.capo(line);
        assert_eq!(ended.code, 1, "{line}");
        assert!(
            ended.stderr.contains(&format!("another place with {option}")),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_branch_shares_what_came_before_and_takes_its_changes() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    // A mode that no usual umask leaves to a new file.
    #[cfg(unix)]
    std::fs::set_permissions(place.path("run.jsonl"), Permissions::from_mode(0o640)).unwrap();
    let made =
        place.capo("journal branch run.jsonl --round 1 --out branch.jsonl --threshold excess_tools=0.05");
    assert_eq!(made.code, 0, "{}", made.stderr);
    #[cfg(unix)]
    assert_eq!(
        std::fs::metadata(place.path("branch.jsonl"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
    let branched = place.optimize("study.toml", "branch.jsonl");
    let rounds = |journal: &str| -> Vec<Value> {
        let lines = place.read(journal);
        let events = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "round").collect()
    };
    let (run, branch) = (rounds("run.jsonl"), rounds("branch.jsonl"));
    assert_eq!(run[0], branch[0]);
    assert_eq!((run.len(), branch.len()), (2, 2));
    let feasible = branched["best"]["costs"]["excess_tools"].as_f64().unwrap() <= 0.05;
    assert_eq!(
        branched["best"]["feasible"], feasible,
        "held against the new threshold"
    );
    assert_eq!(place.capo("journal verify branch.jsonl").code, 0);
    let again = place.capo("journal branch run.jsonl --round 1 --out branch.jsonl");
    assert_eq!(again.code, 1, "an existing journal is not overwritten");
}

#[test]
fn what_an_earlier_run_paid_for_is_taken_over() {
    let place = Place::new();
    let paid = place.optimize("study.toml", "run.jsonl");
    // The same search pays for nothing.
    let again = place.capo("optimize study.toml --journal again.jsonl --json --reuse run.jsonl");
    assert!(again.stderr.contains(" reused"), "{}", again.stderr);
    let free = again.json();
    assert_eq!(
        (&free["usage"]["calls"], &free["usage"]["rollouts"]),
        (&0.into(), &0.into())
    );
    assert_eq!(free["reused"]["rollouts"], paid["usage"]["rollouts"]);
    assert_eq!(
        (&free["best"], &free["evaluation"]),
        (&paid["best"], &paid["evaluation"])
    );
    assert_eq!(place.capo("journal verify again.jsonl").code, 0);
    let shown = place.capo("journal show again.jsonl").stdout;
    assert!(shown.contains("Reused from earlier runs"), "{shown}");

    // Another threshold ends as it would alone.
    place.write(
        "stricter.toml",
        &STUDY.replace("threshold = 0.3", "threshold = 0.2"),
    );
    let alone = place.optimize("stricter.toml", "alone.jsonl");
    let with = place.optimize("stricter.toml --reuse run.jsonl", "with.jsonl");
    assert_eq!(
        (&with["best"], &with["evaluation"]),
        (&alone["best"], &alone["evaluation"])
    );
    let rollouts = |part: &Value| part["rollouts"].as_u64().unwrap();
    assert!(rollouts(&with["reused"]) >= 6 + 4, "the seed prompt's");
    assert_eq!(
        rollouts(&with["usage"]) + rollouts(&with["reused"]),
        rollouts(&alone["usage"])
    );

    place.write("best.md", paid["best"]["prompt"].as_str().unwrap());
    let line =
        "evaluate study.toml --prompt best.md --journal kept.jsonl --json --reuse again.jsonl run.jsonl";
    let scored = place.capo(line).json();
    assert_eq!(
        (&scored["usage"]["rollouts"], &scored["reused"]["rollouts"]),
        (&0.into(), &4.into())
    );
    assert_eq!(scored["estimates"]["success"], paid["evaluation"]["success"]);

    // An earlier version did not note what rollouts depend on; the data say it.
    let lines = place.read("run.jsonl");
    let (first, rest) = lines.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(first).unwrap();
    let noted = header["workloads"]["desk"].as_object_mut().unwrap();
    assert!(noted.shift_remove("inputs").is_some());
    place.write("older.jsonl", &format!("{header}\n{rest}"));
    let from_older = place.optimize("study.toml --reuse older.jsonl", "from-older.jsonl");
    assert_eq!(from_older["usage"]["rollouts"], 0);
}

#[test]
fn a_journal_that_is_of_no_use_is_refused_before_the_run() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    let small = "provider = \"simulated\"\nmodel = \"sim-small\"";
    place.write("other.toml", &STUDY.replace("provider = \"simulated\"", small));
    place.write("newer.jsonl", "{\"event\":\"study\",\"schema\":99}\n");
    for (study, journal, told) in [
        ("other.toml", "run.jsonl", "models.agent.model"),
        ("study.toml --seed 5", "run.jsonl", "seed: 0"),
        ("study.toml", "newer.jsonl", "newer Capo"),
        ("study.toml", "nowhere.jsonl", "is not there"),
        ("study.toml", "study.toml", "not a Capo journal"),
    ] {
        let ended = place.capo(&format!("optimize {study} --journal new.jsonl --reuse {journal}"));
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        assert!(!place.path("new.jsonl").exists(), "{told}");
    }
    let ended = place.capo("optimize study.toml --dry-run --reuse run.jsonl");
    assert_eq!(ended.code, 64, "{}", ended.stderr);
}

#[test]
fn a_search_starts_from_prompts_of_earlier_runs() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    let stricter = "study.toml --set constraint.excess_tools.threshold=0.2";
    let with = place.optimize(
        &format!("{stricter} --from run.jsonl --reuse run.jsonl"),
        "with.jsonl",
    );
    let taken = place.read("with.jsonl").matches("\"origin\":\"from\"").count() as u64;
    // They, and the seed prompt, were measured on the 6 tasks of the search.
    assert!(taken > 0 && with["reused"]["rollouts"].as_u64().unwrap() >= 6 * (taken + 1));
    assert_eq!(place.capo("journal verify with.jsonl").code, 0);
    let again = place.capo(&format!(
        "optimize {stricter} --from run.jsonl --journal with.jsonl"
    ));
    assert!(again.stderr.contains("--from adds nothing"), "{}", again.stderr);

    let one = "evaluate study.toml --prompt prompt.md --journal held-out.jsonl";
    assert!([0, 2].contains(&place.capo(one).code));
    for (words, code, told) in [
        (
            "--from run.jsonl --set study.method=injected",
            64,
            "keeps one prompt",
        ),
        ("--from run.jsonl --set workload.optimize=3", 1, "held out here"),
        ("--from held-out.jsonl", 1, "measured no prompt"),
        ("--from nowhere.jsonl", 1, "is not there"),
        ("--from study.toml", 1, "not a Capo journal"),
        ("--from run.jsonl --dry-run", 64, "--dry-run"),
    ] {
        let ended = place.capo(&format!("optimize study.toml --journal new.jsonl {words}"));
        assert_eq!(ended.code, code, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{words}: {}", ended.stderr);
        assert!(!place.path("new.jsonl").exists(), "{words}");
    }
}

#[test]
fn exports_hold_every_row() {
    let place = Place::new();
    let result = place.optimize("study.toml", "run.jsonl");
    let rows = |rows: &str| -> Vec<Value> {
        let text = place
            .capo(&format!("journal export run.jsonl --rows {rows} --format json"))
            .stdout;
        serde_json::from_str(&text).unwrap()
    };
    let rollouts = rows("rollouts");
    assert_eq!(result["usage"]["rollouts"], rollouts.len());
    let calls: u64 = rollouts.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(result["usage"]["by_role"]["agent"]["calls"], calls);
    let candidates = rows("candidates");
    let best: Vec<&Value> = candidates.iter().filter(|row| row["best"] == true).collect();
    assert_eq!(best.len(), 1);
    assert_eq!(best[0]["prompt"], result["best"]["prompt"]);
    assert_eq!(
        best[0]["evaluate.success"],
        result["evaluation"]["success"]["mean"]
    );
    assert_eq!(rows("rounds").iter().filter(|row| row["best"] == true).count(), 2);
    let csv = place.capo("journal export run.jsonl --out rows.csv");
    assert_eq!((csv.code, csv.stdout.as_str()), (0, ""));
    let written = place.read("rows.csv");
    let mut reader = csv::Reader::from_reader(written.as_bytes());
    assert_eq!(reader.records().count(), candidates.len());
}

#[test]
fn the_sample_in_the_readme_is_what_the_program_says() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let place = Place::new();
    let study = root.join("studies/help-desk.toml");
    let ended = place.capo(&format!("optimize {}", study.display()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let sample = readme.split("```text\n").nth(1).unwrap().split("```").next();
    assert_eq!(sample, Some(ended.stdout.as_str()));

    let (study, journal) = (study.display(), "runs/help-desk-0.journal.jsonl");
    for line in [
        format!("journal show {journal}"),
        format!("compare {journal} {journal} {journal} {journal}"),
        format!("optimize {study} --dry-run"),
        format!("evaluate {study} --prompt prompt.md --model study --model simulated/sim-large"),
    ] {
        let told = place.capo(&line).stdout;
        let in_columns = told.lines().filter(|line| line.trim().contains("  "));
        let widest = in_columns.max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 80, "{line}: {widest}");
    }
}

#[test]
fn help_fits_eighty_columns() {
    let place = Place::new();
    for command in ["", "optimize", "evaluate", "init", "serve", "experiment"] {
        let help = place.capo(&format!("{command} --help")).stdout;
        let widest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 80, "{command}: {widest}");
    }
}

#[cfg(unix)]
#[test]
fn columns_stay_in_line_in_a_locale_that_writes_ascii_alone() {
    let place = Place::new();
    place.write("study.toml", &STUDY.replace("excess_tools", "turns"));
    place.optimize("study.toml", "run.jsonl");
    let shown = place.on_terminal("journal show run.jsonl", "");
    assert!(shown.is_ascii() && shown.contains("lambda"), "{shown}");
    let rounds = shown.lines().skip_while(|line| !line.starts_with("Round"));
    let lengths: Vec<usize> = rounds.take_while(|line| !line.is_empty()).map(str::len).collect();
    assert_eq!(lengths, [lengths[0]; 3], "{shown}");
}
