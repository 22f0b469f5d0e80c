//! Study files and command lines that make no sense: each is exit code 64, in a few lines that
//! name what is wrong and what to do, before any model is asked.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

use std::fs;

use capo_tests::program::{command, run};
use capo_tests::stub::{Answer, Stub};
use capo_tests::study::Study;

/// A study on a stub that must not be asked anything.
struct Untouched {
    study: Study,
    stub: Stub,
}

impl Untouched {
    fn new() -> Self {
        let stub = Stub::start(|_, _| Answer::Text("#### 1".into()));
        Self {
            study: Study::new(&stub.base_url),
            stub,
        }
    }

    /// Replaces a part of the study file, and expects the study to be refused with these words.
    #[track_caller]
    fn refuses(part: &str, replacement: &str, words: &[&str]) {
        let mut untouched = Self::new();
        untouched.study.replace(part, replacement);
        untouched.expect_refused(words);
    }

    /// Replaces the data file, and expects the study to be refused with these words.
    #[track_caller]
    fn refuses_data(data: impl AsRef<[u8]>, words: &[&str]) {
        let untouched = Self::new();
        fs::write(untouched.study.file("problems.jsonl"), data).unwrap();
        untouched.expect_refused(words);
    }

    #[track_caller]
    fn expect_refused(self, words: &[&str]) {
        run(&mut self.study.optimize())
            .expect_code(64)
            .expect_error(words);
        assert_eq!(self.stub.requests(), 0);
        assert!(
            !self.study.journal().exists(),
            "no journal of a study that cannot be"
        );
    }
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    Untouched::refuses("rounds = 4", "rouns = 4", &["rouns", "rounds"]);
    Untouched::refuses("[method]\n", "[method]\nparentz = 2\n", &["parentz", "parents"]);
    Untouched::refuses("optimize = 12", "optimise = 12", &["optimise", "optimize"]);
    Untouched::refuses(
        "concurrency = 4",
        "concurency = 4",
        &["concurency", "concurrency"],
    );
    Untouched::refuses("[budget]\n", "[budget]\nrollout = 3\n", &["rollout", "rollouts"]);
}

#[test]
fn unknown_names_are_told() {
    Untouched::refuses(
        "metric = \"correct\"",
        "metric = \"corect\"",
        &["corect", "correct"],
    );
    Untouched::refuses(
        "metric = \"too_long\"\n",
        "metric = \"to_long\"\n",
        &["to_long", "too_long"],
    );
    Untouched::refuses("rounds = 4", "rounds = 4\nmethod = \"cappo\"", &["cappo", "capo"]);
    Untouched::refuses("kind = \"table\"", "kind = \"tabel\"", &["tabel", "table"]);
    Untouched::refuses("\"openai-compatible\"", "\"open-ai\"", &["open-ai", "openai"]);
}

#[test]
fn a_metric_serves_only_where_its_direction_fits() {
    Untouched::refuses(
        "metric = \"correct\"",
        "metric = \"too_long\"",
        &["too_long", "objective"],
    );
    Untouched::refuses(
        "metric = \"too_long\"\n",
        "metric = \"correct\"\n",
        &["correct", "constraint"],
    );
}

#[test]
fn impossible_splits_are_told_with_what_there_is() {
    Untouched::refuses("evaluate = 6", "evaluate = 60", &["evaluate", "60", "18"]);
    Untouched::refuses("evaluate = 6", "evaluate = 7", &["12", "7", "18"]);
}

#[test]
fn the_same_example_in_both_splits_is_told_with_both_lines() {
    let row = |number: usize| {
        // The eighteenth repeats the first.
        let pens = number % 17 + 1;
        format!(
            "{{\"question\": \"{pens} pens and 2 more?\", \"answer\": \"#### {}\"}}\n",
            pens + 2
        )
    };
    let rows: Vec<String> = (0..18).map(row).collect();
    let mut untouched = Untouched::new();
    untouched
        .study
        .replace("optimize = 12", "optimize = 12\nshuffle = false");
    fs::write(untouched.study.file("problems.jsonl"), rows.concat()).unwrap();
    untouched.expect_refused(&["line 18", "line 1", "exclude"]);
}

#[test]
fn impossible_constraints_are_told() {
    let twice = "threshold = 0.2\n\n[[constraint]]\nmetric = \"too_long\"\nthreshold = 0.1";
    Untouched::refuses("threshold = 0.2", twice, &["too_long"]);
    Untouched::refuses("threshold = 0.2", "threshold = -0.2", &["too_long", "-0.2"]);
    Untouched::refuses("threshold = 0.2", "threshold = nan", &["threshold"]);
    Untouched::refuses("threshold = 0.2", "", &["too_long", "threshold"]);
    Untouched::refuses("threshold = 0.2", "threshold = 0.2\nscale = 0.0", &["scale"]);
}

#[test]
fn prompts_that_are_none_are_told() {
    let text = "text = \"Solve the problem. End with #### and the number.\"";
    Untouched::refuses(text, "text = \"  \"", &["prompt"]);
    Untouched::refuses(text, "file = \"nowhere.md\"", &["nowhere.md"]);
    Untouched::refuses(text, &format!("{text}\nfile = \"nowhere.md\""), &["prompt"]);
}

#[test]
fn data_that_cannot_be_read_names_file_and_line() {
    Untouched::refuses_data("", &["problems.jsonl", "no examples"]);
    let good = r#####"{"question": "How many?", "answer": "#### 1"}"#####;
    Untouched::refuses_data(
        format!("{good}\n{{\"question\": \n{good}\n"),
        &["problems.jsonl", "line 2"],
    );
    Untouched::refuses_data(
        b"{\"question\": \"\xff\", \"answer\": \"#### 1\"}\n",
        &["problems.jsonl", "UTF-8"],
    );
    Untouched::refuses(
        "data = \"problems.jsonl\"",
        "data = \"nowhere.jsonl\"",
        &["nowhere.jsonl"],
    );
}

#[test]
fn a_template_that_names_no_column_is_told() {
    Untouched::refuses("{{ question }}", "{{ qestion }}", &["qestion"]);
    Untouched::refuses("{{ question }}", "{{ question", &["user"]);
}

#[test]
fn a_study_file_that_is_none_is_told() {
    Untouched::refuses("[study]", "[study", &["study.toml"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere.toml");
    run(command(["optimize"]).arg(&nowhere))
        .expect_code(64)
        .expect_error(&["nowhere.toml"]);
    let latin = folder.path().join("latin.toml");
    fs::write(&latin, b"[study]\nname = \"caf\xe9\"\n").unwrap();
    run(command(["optimize"]).arg(&latin))
        .expect_code(64)
        .expect_error(&["latin.toml", "UTF-8"]);
}

#[test]
fn command_lines_that_make_no_sense_are_told() {
    for arguments in [
        &["optimise"][..],
        &["optimize"],
        &["optimize", "a.toml", "--sede", "1"],
        &["optimize", "a.toml", "--seed", "one"],
        &["journal", "burn", "a.jsonl"],
        &["compare"],
        &["experiment", "gamma"],
        &["simulate", "--fault", "418"],
        &["simulate", "--port", "70000"],
        &["train"],
    ] {
        let ended = run(&mut command(arguments));
        assert_eq!(ended.code, Some(64), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.starts_with("error"), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.is_empty());
    }
}

/// What parsers say among themselves.
const JARGON: [&str; 11] = [
    "variant",
    "ident",
    "EOF",
    "struct",
    "f64",
    "u64",
    "sequence",
    "mantissa",
    "expected nothing",
    "parse error",
    "invalid type",
];

#[test]
fn files_and_settings_are_refused_without_a_parsers_jargon() {
    let with = |part: &str, replacement: &str| Study::new("http://127.0.0.1:9").with(part, replacement);
    let metric = |rest: &str| {
        with(
            "[prompt]",
            &format!("[[workload.metric]]\nname = \"m\"\n{rest}\n\n[prompt]"),
        )
    };
    let mut ended = Vec::new();
    for (study, name, content) in [
        (with("rounds = 4", "rounds = two"), "m.json", ""),
        (with("type = \"numeric\"", "type = [\"numeric\"]"), "m.json", ""),
        (with("type = \"numeric\"", "type = 3"), "m.json", ""),
        (metric("type = \"regex\"\npattern = \"(a\""), "m.json", ""),
        (
            metric("type = \"regex\"\npattern = \"(a{1000}){1000}\""),
            "m.json",
            "",
        ),
        (
            metric("type = \"json_schema\"\nschema = \"m.json\""),
            "m.json",
            "{",
        ),
        (
            metric("type = \"refusal\"\nshould_refuse = false\nlist = \"m.json\""),
            "m.json",
            "{\"phrases\": 1}",
        ),
        (
            with("seed = 7", "seed = 8"),
            "problems.jsonl",
            "{\"question\": nan}\n",
        ),
    ] {
        fs::write(study.file(name), content).unwrap();
        ended.push(run(&mut study.optimize()));
    }
    let study = Study::new("http://127.0.0.1:9");
    for (option, content) in [
        ("--prices", "date = 1"),
        ("--prices", "date = \"d\"\nprice = 3"),
        ("--prices", "date = \"d\"\n[[price]]\nprovider = p\n"),
        ("--model", "models = 3"),
        ("--model", "[models.agent\n"),
    ] {
        let file = study.file("m.toml");
        fs::write(&file, content).unwrap();
        let mut evaluate = command(["evaluate"]);
        evaluate.arg(study.path()).arg("--prompt").arg(study.path());
        ended.push(run(evaluate.arg(option).arg(file).current_dir(study.folder())));
    }
    ended.push(run(study.optimize().args(["--set", "workload.metric[0].type=3"])));
    let port = run(&mut command(["simulate", "--port", "99999"]));
    ended.push(port.expect_error(&["is not within 0 to 65535"]));
    for ended in ended {
        let ended = ended.expect_code(64).expect_error(&[]);
        let jargon = JARGON.iter().find(|jargon| ended.stderr.contains(**jargon));
        assert_eq!(jargon, None, "{}", ended.stderr);
    }
}

#[test]
fn what_was_not_built_in_is_told_with_the_way_to_build_it() {
    for arguments in [
        &["train", "sft", "a.toml", "--full"][..],
        &["rewriter", "serve", "b"],
    ] {
        run(&mut command(arguments))
            .expect_code(1)
            .expect_error(&[arguments[1], "--features train"]);
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["optimize", "--help"],
        &["simulate", "--help"],
    ] {
        let ended = run(&mut command(arguments)).expect_code(0);
        assert!(!ended.stdout.is_empty() && ended.stderr.is_empty(), "{ended:?}");
    }
}

#[test]
fn a_missing_journal_is_told() {
    for verb in ["show", "verify", "export"] {
        let ended = run(&mut command(["journal", verb, "nowhere.jsonl"]));
        assert!(matches!(ended.code, Some(1 | 64)), "{ended:?}");
        ended.expect_error(&["nowhere.jsonl"]);
    }
}
