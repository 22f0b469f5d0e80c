//! What begins, changes and checks studies on the command line, as a person uses it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use capo_tests::shared::shared;
use capo_tests::stub::{Answer, Stub};
use serde_json::{Value, json};

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

/// A folder in which commands run.
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

    /// Checks the exit code, and that standard error holds these parts.
    #[track_caller]
    fn expect(&self, codes: &[i32], parts: &[&str]) -> &Self {
        assert!(codes.contains(&self.code), "{}: {}", self.code, self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in: {}", self.stderr);
        }
        self
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

    fn toml(&self, name: &str) -> Value {
        toml::from_str(&self.read(name)).unwrap()
    }

    /// Runs `capo` with the words of a line.
    fn capo(&self, line: &str) -> Ended {
        self.capo_with(line, &[])
    }

    /// The same with variables.
    fn capo_with(&self, line: &str, variables: &[(&str, &str)]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_capo"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Writes a study with `capo init` and these words, and expects that a run could begin with it.
    #[track_caller]
    fn init(&self, study: &str, words: &str) -> Value {
        self.capo(&format!("init {study} {words}")).expect(&[0], &[]);
        let text = self.read(study);
        assert!(text.starts_with('#') && text.contains("\n# "), "{text}");
        let outside = if words.contains("--allow-outside") {
            "--allow-outside"
        } else {
            ""
        };
        self.capo(&format!("optimize {study} --dry-run {outside}"))
            .expect(&[0], &[]);
        self.toml(study)
    }
}

#[test]
fn studies_fit_their_schema_and_mistyped_keys_do_not() {
    let place = Place::new();
    let schema = place.capo("schema").json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let mut study: Value = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        study["$schema"] = "study.schema.json".into();
        let wrong: Vec<String> = validator
            .iter_errors(&study)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
        for pointer in [
            "",
            "/study",
            "/workload",
            "/prompt",
            "/models/rewriter",
            "/method",
        ] {
            let mut mistyped = study.clone();
            if let Some(Value::Object(table)) = mistyped.pointer_mut(pointer) {
                table.insert("thershold".to_owned(), 1.into());
                assert!(!validator.is_valid(&mistyped), "{}{pointer}", path.display());
            }
        }
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
    let documented = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/external-protocol.json");
    let documented: Value = serde_json::from_str(&std::fs::read_to_string(documented).unwrap()).unwrap();
    for of in ["request", "response"] {
        assert_eq!(place.capo(&format!("schema {of}")).json(), documented[of], "{of}");
    }
}

#[test]
fn the_schema_that_a_study_names_is_no_part_of_it() {
    let place = Place::new();
    place
        .capo("optimize study.toml --journal run.jsonl")
        .expect(&[0, 2], &[]);
    place.write("study.toml", &format!("\"$schema\" = \"a.json\"\n{STUDY}"));
    let mut study = place.toml("study.toml");
    study["$schema"] = "b.json".into();
    place.write("study.json", &study.to_string());
    for study in ["study.toml", "study.json"] {
        let again = place.capo(&format!("optimize {study} --journal run.jsonl"));
        again.expect(&[0, 2], &["holds the finished run"]);
    }
    assert!(!place.read("run.jsonl").contains("$schema"));
}

#[test]
fn what_is_set_on_the_command_line_is_part_of_the_study() {
    let place = Place::new();
    let line = "optimize study.toml --journal run.jsonl --json --set study.rounds=1";
    let set = "--set constraint.excess_tools.threshold=0.4";
    place.capo(&format!("{line} {set}")).expect(&[0, 2], &[]);
    let journal = place.read("run.jsonl");
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let kept = &first["study"];
    assert_eq!(
        (&kept["study"]["rounds"], &kept["constraint"][0]["threshold"]),
        (&json!(1), &json!(0.4))
    );
    place
        .capo(&format!("{line} {set}"))
        .expect(&[0, 2], &["holds the finished run"]);
    place
        .capo(line)
        .expect(&[1], &["belongs to another study", "0.4 → 0.3"]);
    assert_eq!(place.read("run.jsonl"), journal);
    // A budget is none of the study's identity, and the way on names what was set.
    let stopped = place.capo("optimize study.toml --journal short.jsonl --set budget.rollouts=3");
    stopped.expect(&[3], &["--set budget.rollouts=3"]);
}

#[test]
fn keys_that_cannot_be_set_are_told_by_whoever_reads_studies() {
    let place = Place::new();
    for command in [
        "optimize study.toml --dry-run",
        "evaluate study.toml --prompt prompt.md",
        "certify study.toml --prompt prompt.md --examples 2",
    ] {
        for (set, part) in [
            ("study.sed=1", "did you mean `seed`?"),
            (
                "study.rounds=six",
                "`study.rounds`: write a whole number of rounds",
            ),
            ("workload.optimise=3", "did you mean `optimize`?"),
            ("constraint.3.threshold=1", "there is no entry `3` among 1"),
            ("budget.usd=nan", "no number to reckon with"),
            ("budget", "KEY=VALUE"),
        ] {
            place
                .capo(&format!("{command} --set {set}"))
                .expect(&[64], &[part]);
        }
    }
}

#[test]
fn the_returned_prompt_is_written_where_it_is_wanted() {
    let place = Place::new();
    for wrong in ["none/best.md", "."] {
        place
            .capo(&format!("optimize study.toml --out {wrong}"))
            .expect(&[64], &["--out: "]);
    }
    assert!(!place.path("runs").exists(), "nothing is begun");
    place.write("best.md", "an older one");
    let ended = place.capo("optimize study.toml --out best.md --json");
    let result = ended.expect(&[0, 2], &[]).json();
    let best = result["best"]["prompt"].as_str().unwrap();
    assert_eq!(place.read("best.md"), format!("{best}\n"));
}

/// A study of a model at this address, whose key is in `CAPO_TEST_KEY`.
fn keyed(base_url: &str) -> String {
    format!(
        r#"
[study]
name = "keyed"
[workload]
kind = "table"
data = "rows.csv"
user = "{{{{ question }}}}"
evaluate = 1
[[workload.metric]]
type = "normalized"
name = "correct"
expected = "{{{{ answer }}}}"
[prompt]
text = "Answer."
[objective]
metric = "correct"
[models.agent]
provider = "openai-compatible"
base_url = "{base_url}"
model = "stub"
api_key_env = "CAPO_TEST_KEY"
"#
    )
}

#[test]
fn keys_beside_the_study_are_used_where_the_environment_has_none_and_shown_nowhere() {
    let stub = Stub::start(|_, _| Answer::Text("72".into()));
    let place = Place::new();
    place.write("study.toml", &keyed(&stub.base_url));
    place.write("rows.csv", "question,answer\na,72\nb,72\n");
    let line = "evaluate study.toml --prompt prompt.md --journal";
    place
        .capo(&format!("{line} without.jsonl"))
        .expect(&[1], &["CAPO_TEST_KEY"]);
    place.write(".env", "# keys\nCAPO_TEST_KEY=\"sk-of-the-file\"\n");
    let ended = place.capo(&format!("{line} file.jsonl"));
    ended.expect(&[0], &[]);
    let own = [("CAPO_TEST_KEY", "sk-of-the-environment")];
    place
        .capo_with(&format!("{line} own.jsonl"), &own)
        .expect(&[0], &[]);
    assert_eq!(
        stub.books().authorizations,
        ["file", "environment"].map(|whose| Some(format!("Bearer sk-of-the-{whose}")))
    );
    let journal = place.read("file.jsonl");
    for told in [&ended.stdout, &ended.stderr, &journal] {
        assert!(!told.contains("sk-of-the-file"), "{told}");
    }
    let dry = place.capo("optimize study.toml --dry-run --json");
    assert_eq!(dry.json()["missing"], json!([]));

    place.write(".env", "CAPO_TEST_KEY=sk-a\n\nsk-of-the-file and more\n");
    let wrong = place.capo(&format!("{line} wrong.jsonl"));
    wrong.expect(&[64], &["line 3 of .env is no variable"]);
    assert!(!wrong.stderr.contains("sk-"), "{}", wrong.stderr);
    // An environment of Python's is a folder of this name.
    std::fs::remove_file(place.path(".env")).unwrap();
    std::fs::create_dir(place.path(".env")).unwrap();
    place
        .capo(&format!("{line} folder.jsonl"))
        .expect(&[1], &["CAPO_TEST_KEY"]);
}

#[test]
fn an_agent_of_ones_own_finds_its_variables_beside_the_study() {
    let place = Place::new();
    let study = place.init("own.toml", "--kind external");
    assert_eq!(study["models"]["rewriter"]["provider"], "simulated");
    let bearer = "kind = \"external\"\nbearer_env = \"CAPO_TEST_TOKEN\"";
    let text = place.read("own.toml").replace("kind = \"external\"", bearer);
    place.write("own.toml", &text);
    let missing = || place.capo("optimize own.toml --dry-run --json").json()["missing"].clone();
    assert_eq!(missing().as_array().map(Vec::len), Some(1));
    place.write(".env", "CAPO_TEST_TOKEN=token\n");
    assert_eq!(missing(), json!([]));
}

#[test]
fn shells_and_man_are_told_of_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = place.capo(&format!("completions {shell}"));
        script.expect(&[0], &[]);
        for word in ["optimize", "dry-run", "completions"] {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
    }
    place.capo("completions tcsh").expect(&[64], &["bash"]);
    assert!(place.capo("man").stdout.contains(".TH capo 1"));
    place.capo("man pages/man1").expect(&[0], &[]);
    assert!(place.read("pages/man1/capo-optimize.1").contains("dry\\-run"));
}

#[test]
fn every_kind_has_a_study_to_begin_with_and_none_is_written_over() {
    for kind in ["desk", "table", "external"] {
        let place = Place::new();
        let study = place.init("own.toml", &format!("--kind {kind} --threshold prompt_length=3"));
        assert_eq!(study["workload"]["kind"], kind);
        let mut constraints = study["constraint"].as_array().unwrap().iter();
        let threshold = constraints.find(|constraint| constraint["metric"] == "prompt_length");
        assert_eq!(threshold.unwrap()["threshold"], 3.0);
        let text = place.read("own.toml");
        place
            .capo("init own.toml")
            .expect(&[64], &["own.toml is there already", "--force"]);
        assert_eq!(place.read("own.toml"), text);
        place.init("own.toml", "--force --model openai/gpt-5-mini");
    }
    let place = Place::new();
    place
        .capo("init none.toml --kind tau2")
        .expect(&[64], &["data/tau2", "--from"]);
    place
        .capo("init none.toml --model opnai/gpt-5")
        .expect(&[64], &["did you mean `openai`?"]);
    assert!(!place.path("none.toml").exists());
    if let Some(data) = shared("tau2/data") {
        let words = format!("--kind tau2 --allow-outside --from {}", data.display());
        place.init("tau2.toml", &words);
    }
}

/// Six questions and answers as a file whose fields are separated so.
fn rows(separator: &str) -> String {
    let lines = (0..6).map(|row| format!("what is {row} + 1?{separator}{}\n", row + 1));
    format!("question{separator}answer\n{}", lines.collect::<String>())
}

#[test]
fn a_study_is_begun_on_whatever_table_there_is() {
    let place = Place::new();
    let quoted = rows(",").replace("what is 2 + 1?", "\"what is\n\"\"2\"\" + 1, then?\"");
    let objects = (0..6).map(|row| format!("{{\"input\": \"item {row}\", \"label\": \"yes\"}}\n"));
    for (file, text, asked, way) in [
        ("commas.csv", rows(","), "question", "numeric"),
        ("semicolons.csv", rows(";"), "question", "numeric"),
        ("tabs.csv", rows("\t"), "question", "numeric"),
        ("tabs.tsv", rows("\t"), "question", "numeric"),
        (
            "mark.csv",
            format!("\u{feff}{}", rows(",")),
            "question",
            "numeric",
        ),
        ("quoted.csv", quoted, "question", "numeric"),
        ("objects.jsonl", objects.collect(), "input", "normalized"),
    ] {
        place.write(file, &text);
        let name = format!("{file}.toml");
        let study = place.init(&name, &format!("--from {file}"));
        let workload = &study["workload"];
        assert_eq!(workload["data"], file);
        assert_eq!(workload["user"], format!("{{{{ {asked} }}}}"), "{file}");
        assert_eq!(workload["metric"][0]["type"], way, "{file}");
        assert_eq!(workload["evaluate"], 2, "{file}");
    }
    let told = "it is a long answer that nobody gives in the same words twice, ".repeat(3);
    let long = (0..6).map(|row| format!("item {row},{told}{row}\n").replace(", ", " "));
    place.write("long.csv", &format!("text,reply\n{}", long.collect::<String>()));
    let study = place.init("long.toml", "--from long.csv");
    let metric = &study["workload"]["metric"][0];
    assert_eq!(metric["type"], "judge");
    assert!(metric["rubric"].as_str().unwrap().ends_with("{{ reply }}"));
}

#[test]
fn a_table_that_no_study_can_begin_on_is_refused_with_the_reason() {
    let place = Place::new();
    for (file, text, part) in [
        (
            "twice.csv",
            "question,answer,answer\na,1,2\n",
            "two columns are named `answer`",
        ),
        ("one.csv", "question\na\nb\n", "need a column each"),
        (
            "spaces.csv",
            "my question,my answer\na,1\n",
            "letters, digits and _",
        ),
        (
            "chats.jsonl",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}\n",
            "a log of chats",
        ),
        ("cut.csv", "question,answer\na\n", "line 2: 1 fields"),
        ("rows.txt", "question,answer\na,1\n", "neither .jsonl nor .csv"),
    ] {
        place.write(file, text);
        place
            .capo(&format!("init none.toml --from {file}"))
            .expect(&[64], &[file, part]);
        assert!(!place.path("none.toml").exists(), "{file}");
    }
    place
        .capo("init none.toml --from gone.csv")
        .expect(&[64], &["gone.csv is no file"]);
}

#[test]
fn rows_that_ask_the_same_are_left_out_and_rows_from_elsewhere_are_copied() {
    let place = Place::new();
    let twice = (0..20).map(|row| format!("question {},{row}\n", row / 2));
    place.write(
        "rows.csv",
        &format!("question,answer\n{}", twice.collect::<String>()),
    );
    let study = place.init("study-of-twins.toml", "--from rows.csv");
    assert!(!study["workload"]["exclude"].as_array().unwrap().is_empty());

    place
        .capo("init project --from rows.csv")
        .expect(&[0], &["a copy of rows.csv"]);
    assert_eq!(place.read("project/rows.csv"), place.read("rows.csv"));
    place
        .capo("optimize project/study.toml --dry-run")
        .expect(&[0], &[]);
}
