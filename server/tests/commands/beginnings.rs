//! What begins, changes and checks studies.

use std::path::Path;

use capo_tests::shared::shared;
use capo_tests::stub::{Answer, Stub};
use serde_json::{Value, json};

use super::{Ended, Place, STUDY};

impl Ended {
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

/// Writes a study with `capo init` and these words, and expects that a run could begin with it.
#[track_caller]
fn init(place: &Place, study: &str, words: &str) -> Value {
    place.capo(&format!("init {study} {words}")).expect(&[0], &[]);
    let text = place.read(study);
    assert!(text.starts_with('#') && text.contains("\n# "), "{text}");
    let outside = words.split(' ').find(|word| *word == "--allow-outside");
    let line = format!("optimize {study} --dry-run {}", outside.unwrap_or_default());
    place.capo(&line).expect(&[0], &[]);
    toml::from_str(&text).unwrap()
}

#[test]
fn studies_fit_their_schema_and_mistyped_keys_do_not() {
    let schema = Place::new().capo("schema").json();
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
        for pointer in ["", "/study", "/workload", "/models/rewriter", "/method"] {
            let mut mistyped = study.clone();
            if let Some(Value::Object(table)) = mistyped.pointer_mut(pointer) {
                table.insert("thershold".to_owned(), 1.into());
                assert!(!validator.is_valid(&mistyped), "{}{pointer}", path.display());
            }
        }
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn the_schema_that_a_study_names_is_no_part_of_it() {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    place.write("study.toml", &format!("\"$schema\" = \"a.json\"\n{STUDY}"));
    place
        .capo("optimize study.toml --journal run.jsonl")
        .expect(&[0, 2], &["holds the finished run"]);
    assert!(!place.read("run.jsonl").contains("$schema"));
}

#[test]
fn what_is_set_on_the_command_line_is_part_of_the_study() {
    let place = Place::new();
    let line = "optimize study.toml --journal run.jsonl --set study.rounds=1";
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
        .capo(line)
        .expect(&[1], &["belongs to another study", "0.4 → 0.3"]);
    // A budget is none of the study's identity, and the way on names what was set.
    let stopped = place.capo("optimize study.toml --journal short.jsonl --set budget.rollouts=3");
    stopped.expect(&[3], &["--set budget.rollouts=3"]);
    for (set, part) in [
        ("study.sed=1", "did you mean `seed`?"),
        (
            "study.rounds=six",
            "`study.rounds`: write a whole number of rounds",
        ),
        ("workload.optimise=3", "did you mean `optimize`?"),
        ("constraint.3.threshold=1", "there is no entry `3` among 1"),
        ("constraint.excess.threshold=1", "did you mean `excess_tools`?"),
        ("study.name.x=7", "`study.name`: holds no keys"),
        ("budget.usd=nan", "no number to reckon with"),
        ("budget", "KEY=VALUE"),
    ] {
        let line = format!("evaluate study.toml --prompt prompt.md --set {set}");
        place.capo(&line).expect(&[64], &[part]);
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
    let run = "optimize study.toml --journal new.jsonl --reuse old.jsonl --out";
    let study = place.read("study.toml");
    place.write("old.jsonl", "");
    for (own, part) in [
        ("new.jsonl", "is not replaced: it is a journal"),
        ("./old.jsonl", "is not replaced: it is a journal"),
        ("study.toml", "is the study"),
    ] {
        place
            .capo(&format!("{run} {own}"))
            .expect(&[64], &["--out: ", part]);
    }
    assert_eq!(place.read("study.toml"), study);
    assert!(!place.path("runs").exists() && !place.path("new.jsonl").exists());
    place.write("best.md", "an older one");
    let result = place.capo("optimize study.toml --out best.md --json").json();
    let best = result["best"]["prompt"].as_str().unwrap();
    assert_eq!(place.read("best.md"), format!("{best}\n"));

    place.optimize("study.toml", "paid.jsonl");
    let paid = place.read("paid.jsonl");
    place
        .capo("optimize study.toml --out paid.jsonl")
        .expect(&[64], &["--out: paid.jsonl is not replaced: it is a journal"]);
    assert_eq!(place.read("paid.jsonl"), paid);
    if cfg!(unix) {
        let ended = place.capo("optimize study.toml --out /dev/stdout");
        ended.expect(&[0, 2], &[]);
        assert!(ended.stdout.ends_with(&format!("{best}\n")), "{}", ended.stdout);
    }
}

#[test]
fn keys_beside_the_study_reach_models_and_are_shown_nowhere() {
    let stub = Stub::start(|_, _| Answer::Text("72".into()));
    let place = Place::new();
    place.write("rows.csv", "question,answer\na,72\nb,72\n");
    let table = "kind = \"table\"\ndata = \"rows.csv\"\nuser = \"{{ question }}\"\nevaluate = 1\n\
                 [[workload.metric]]\ntype = \"normalized\"\nname = \"success\"\nexpected = \"{{ answer }}\"";
    let keyed = format!(
        "provider = \"openai-compatible\"\nbase_url = \"{}\"\nmodel = \"stub\"\napi_key_env = \"CAPO_TEST_KEY\"",
        stub.base_url
    );
    let study = STUDY
        .replace("kind = \"desk\"\noptimize = 6\nevaluate = 4", table)
        .replace("metric = \"excess_tools\"", "metric = \"prompt_length\"")
        .replace("provider = \"simulated\"", &keyed);
    place.write("study.toml", &study);
    let line = "evaluate study.toml --prompt prompt.md --journal";
    place
        .capo(&format!("{line} without.jsonl"))
        .expect(&[1], &["CAPO_TEST_KEY"]);
    place.write(".env", "# keys\nCAPO_TEST_KEY=\"sk-of-the-file\"\n");
    let ended = place.capo(&format!("{line} file.jsonl"));
    ended.expect(&[0], &[]);
    assert_eq!(
        stub.request_log().authorizations,
        [Some("Bearer sk-of-the-file".to_owned())]
    );
    for told in [&ended.stdout, &ended.stderr, &place.read("file.jsonl")] {
        assert!(!told.contains("sk-of-the-file"), "{told}");
    }
    let dry = place.capo("optimize study.toml --dry-run --json");
    assert_eq!(dry.json()["missing"], json!([]));

    place.write(".env", "CAPO_TEST_KEY=sk-a\n\nsk-of-the-file and more\n");
    let wrong = place.capo(&format!("{line} wrong.jsonl"));
    wrong.expect(&[0], &["line 3 of .env is no variable"]);
    let authorizations = &stub.request_log().authorizations;
    assert_eq!(authorizations.last(), Some(&Some("Bearer sk-a".to_owned())));
    assert!(!wrong.stderr.contains("sk-"), "{}", wrong.stderr);
    let dry = std::process::Command::new(env!("CARGO_BIN_EXE_capo"))
        .args(["optimize", "study.toml", "--dry-run", "--json"])
        .current_dir(place.path(""))
        .env("CAPO_TEST_KEY", "")
        .output()
        .unwrap();
    let dry: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(dry["missing"], json!([]), "a blank variable hides none");
    // An environment of Python's is a folder of this name.
    std::fs::remove_file(place.path(".env")).unwrap();
    std::fs::create_dir(place.path(".env")).unwrap();
    place
        .capo(&format!("{line} folder.jsonl"))
        .expect(&[1], &["CAPO_TEST_KEY"]);
}

#[test]
fn what_lies_outside_finds_its_variables_beside_the_study() {
    let place = Place::new();
    init(&place, "agent.toml", "--kind external");
    let bearer = "kind = \"external\"\nbearer_env = \"CAPO_TEST_TOKEN\"";
    let agent = place.read("agent.toml").replace("kind = \"external\"", bearer);
    place.write("agent.toml", &agent);
    init(&place, "scorer.toml", "--kind table --force");
    let scorer = "[[workload.metric]]\ntype = \"http\"\nname = \"tone\"\nendpoint = \"http://127.0.0.1:9/\"\n\
                  bearer_env = \"CAPO_TEST_TOKEN\"\n\n# What is measured";
    let scorer = place
        .read("scorer.toml")
        .replacen("# What is measured", scorer, 1);
    place.write("scorer.toml", &scorer);
    let missing = |study: &str| {
        let dry = place.capo(&format!("optimize {study} --dry-run --json"));
        dry.json()["missing"].as_array().unwrap().len()
    };
    assert_eq!((missing("agent.toml"), missing("scorer.toml")), (1, 1));
    place.write(".env", "CAPO_TEST_TOKEN=token\n");
    assert_eq!((missing("agent.toml"), missing("scorer.toml")), (0, 0));
}

#[test]
fn shells_and_man_are_told_of_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.capo(&format!("completions {shell}")).stdout;
        assert!(
            script.contains("dry-run") && script.contains("optimize"),
            "{shell}"
        );
    }
    assert!(place.capo("man").stdout.contains(".TH capo 1"));
    place.capo("man pages/man1").expect(&[0], &[]);
    assert!(place.read("pages/man1/capo-optimize.1").contains("dry\\-run"));
}

#[test]
fn every_kind_has_a_study_to_begin_with_and_none_is_written_over() {
    for kind in ["desk", "table", "external"] {
        let place = Place::new();
        let words = format!("--kind {kind} --threshold prompt_length=3");
        let study = init(&place, "own.toml", &words);
        assert_eq!(study["workload"]["kind"], kind);
        let search = &study["study"];
        assert_eq!(
            (&search["rounds"], &search["batch"], &search["batch_growth"]),
            (&json!("until-budget"), &json!(8), &json!(1.5))
        );
        assert_eq!(
            (&study["method"]["pool"], &search["caution"]),
            (&json!(3), &json!(1.64))
        );
        let mut constraints = study["constraint"].as_array().unwrap().iter();
        let threshold = constraints.find(|constraint| constraint["metric"] == "prompt_length");
        assert_eq!(threshold.unwrap()["threshold"], 3.0);
        let text = place.read("own.toml");
        place
            .capo("init own.toml")
            .expect(&[64], &["own.toml is there already", "--force"]);
        assert_eq!(place.read("own.toml"), text);
        init(&place, "own.toml", "--force --model openai/gpt-5-mini");
    }
    let place = Place::new();
    for (words, parts) in [
        ("--kind tau2", ["data/tau2", "--from"]),
        ("--model opnai/gpt-5", ["did you mean", "`openai`?"]),
    ] {
        place
            .capo(&format!("init none.toml {words}"))
            .expect(&[64], &parts);
    }
    assert!(!place.path("none.toml").exists());
    if let Some(data) = shared("tau2/data") {
        let words = format!("--kind tau2 --allow-outside --from {}", data.display());
        init(&place, "tau2.toml", &words);
    }
}

#[test]
fn a_study_is_begun_on_whatever_table_there_is() {
    let place = Place::new();
    let rows = |separator: &str| {
        let lines = (0..6).map(|row| format!("what is {row} + 1?{separator}{}\n", row + 1));
        format!("question{separator}answer\n{}", lines.collect::<String>())
    };
    let quoted = rows(",").replace("what is 2 + 1?", "\"what is\n\"\"2\"\" + 1, then?\"");
    let objects = (0..6).map(|row| format!("{{\"input\": \"item {row}\", \"label\": \"yes\"}}\n"));
    for (file, text, asked, way) in [
        ("semicolons.csv", rows(";"), "question", "numeric"),
        ("tabs.tsv", rows("\t"), "question", "numeric"),
        ("quoted.csv", format!("\u{feff}{quoted}"), "question", "numeric"),
        ("objects.jsonl", objects.collect(), "input", "normalized"),
    ] {
        place.write(file, &text);
        let study = init(&place, &format!("{file}.toml"), &format!("--from {file}"));
        let workload = &study["workload"];
        assert_eq!(workload["data"], file);
        assert_eq!(workload["user"], format!("{{{{ {asked} }}}}"), "{file}");
        assert_eq!(workload["metric"][0]["type"], way, "{file}");
        assert_eq!(workload["evaluate"], 2, "{file}");
    }
    let twice = (0..20).map(|row| format!("question {},{row}\n", row / 2));
    let twice = format!("question,answer\n{}", twice.collect::<String>());
    place.write("twice.csv", &twice);
    let study = init(&place, "twice.toml", "--from twice.csv");
    assert!(!study["workload"]["exclude"].as_array().unwrap().is_empty());
    // What lies elsewhere is copied.
    place
        .capo("init project --from tabs.tsv")
        .expect(&[0], &["a copy of tabs.tsv"]);
    assert_eq!(place.read("project/tabs.tsv"), place.read("tabs.tsv"));
    place
        .capo("optimize project/study.toml --dry-run")
        .expect(&[0], &[]);
    place
        .capo("init project --from tabs.tsv --force")
        .expect(&[0], &[]);
    let own = rows("\t").replace("what is", "how much is");
    place.write("project/tabs.tsv", &own);
    place
        .capo("init project --from tabs.tsv --force")
        .expect(&[64], &["tabs.tsv is there already", "not replaced"]);
    assert_eq!(place.read("project/tabs.tsv"), own);
    let own = rows(",");
    place.write("examples.csv", &own);
    init(&place, "again.toml", "--kind table");
    init(&place, "again.toml", "--kind table --force");
    assert_eq!(place.read("examples.csv"), own);

    for (file, text, part) in [
        ("one.csv", "question\na\nb\n", "need a column each"),
        (
            "chats.jsonl",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}\n",
            "0 of 1 chat became rows; left out: 1 without an answer",
        ),
        ("cut.csv", "question,answer\na\n", "line 2: 1 field "),
    ] {
        place.write(file, text);
        place
            .capo(&format!("init none.toml --from {file}"))
            .expect(&[64], &[file, part]);
        assert!(!place.path("none.toml").exists(), "{file}");
    }
}

#[test]
fn a_study_is_begun_on_the_answers_of_a_log_of_chats() {
    let place = Place::new();
    let chat = |turns: &[(&str, &str)]| {
        let system = [("system", "Count aloud.")];
        let turns = system.iter().chain(turns);
        let message = |(role, content): &(&str, &str)| json!({ "role": role, "content": content });
        json!({ "messages": turns.map(message).collect::<Vec<_>>() })
    };
    let mut log: Vec<Value> = (0..6)
        .map(|number| {
            chat(&[
                ("user", format!("{number}?").as_str()),
                ("assistant", "One more."),
            ])
        })
        .collect();
    let turns = [
        ("user", "1?"),
        ("assistant", "2"),
        ("user", "and then?"),
        ("assistant", "3"),
    ];
    log.push(chat(&[&turns[..], &[("user", "Thanks.")]].concat()));
    log.push(chat(&turns[..1]));
    let mut calling = chat(&turns);
    calling["messages"][2]["tool_calls"] = json!([{ "id": "a" }]);
    log.push(calling);
    let lines: Vec<String> = log.iter().map(Value::to_string).collect();
    place.write("chats.jsonl", &lines.join("\n"));

    let study = init(&place, "own.toml", "--from chats.jsonl");
    let workload = &study["workload"];
    assert_eq!(
        (
            &workload["data"],
            &workload["evaluate"],
            &workload["metric"][0]["type"]
        ),
        (&json!("chats-rows.jsonl"), &json!(2), &json!("f1"))
    );
    assert_eq!(study["prompt"]["text"], "Count aloud.");
    let rows = place.read("chats-rows.jsonl");
    let last: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    let question = "User: 1?\n\nAssistant: 2\n\nUser: and then?";
    assert_eq!(
        (rows.lines().count(), &last),
        (7, &json!({ "question": question, "answer": "3" }))
    );

    let again = place.capo("init judged.toml --from chats.jsonl --metric judge");
    again.expect(&[0], &[]);
    let told =
        "7 of 9 chats became rows; left out: 1 without an answer of the assistant, 1 with calls of tools\n";
    assert!(again.stdout.contains(told), "{}", again.stdout);
    let judged: Value = toml::from_str(&place.read("judged.toml")).unwrap();
    let metric = &judged["workload"]["metric"][0];
    assert!(
        metric["rubric"].as_str().unwrap().ends_with("{{ answer }}"),
        "{metric}"
    );
    let fewer = lines[..3].join("\n");
    place.write("chats.jsonl", &fewer);
    place
        .capo("init fewer.toml --from chats.jsonl")
        .expect(&[64], &["chats-rows.jsonl is there already", "not replaced"]);
    assert_eq!(place.read("chats-rows.jsonl"), rows);
    assert!(!place.path("fewer.toml").exists());
    // A list of lists, contents in parts.
    let chat =
        |part: Value| json!([{ "role": "user", "content": [part] }, { "role": "assistant", "content": "b" }]);
    let mut list: Vec<Value> = (0..6)
        .map(|number| chat(json!({ "type": "text", "text": format!("a{number}") })))
        .collect();
    list.push(chat(json!({ "type": "image_url" })));
    place.write("list.json", &json!(list).to_string());
    let listed = place.capo("init list.toml --from list.json");
    let told = "list-rows.jsonl: 6 of 7 chats became rows; left out: 1 with more than text\n";
    assert!(
        listed.stdout.contains(told),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
    let first = "{\"question\":\"a0\",\"answer\":\"b\"}\n";
    assert!(place.read("list-rows.jsonl").starts_with(first));
    place
        .capo("init desk.toml --metric f1")
        .expect(&[64], &["`desk` has metrics of its own"]);
}

#[cfg(unix)]
#[test]
fn whoever_sits_at_a_terminal_is_asked() {
    let place = Place::new();
    let shown = place.on_terminal("init own.toml", "table\n\nsimulated/sim-small\nprompt_length=2\n");
    for question in [
        "prompts measured on",
        "Which file",
        "Who answers",
        "Which mean cost",
    ] {
        assert!(shown.contains(question), "{shown}");
    }
    let study: Value = toml::from_str(&place.read("own.toml")).unwrap();
    assert_eq!(
        (&study["workload"]["kind"], &study["models"]["agent"]["model"]),
        (&json!("table"), &json!("sim-small"))
    );
    assert_eq!(study["constraint"][0]["threshold"], 2.0);
}

#[cfg(unix)]
#[test]
fn a_wrong_answer_is_asked_for_again_until_there_are_no_more() {
    let place = Place::new();
    place.write("rows.csv", "question,answer\na,1\nb,2\nc,3\n");
    let typed =
        "tabel\ntable\nnowhere.csv\nrows.csv\nopnai/x\nopenai\nsimulated/sim-small\nlength\ncost=2\n\n";
    let shown = place.on_terminal("init own.toml", typed);
    for part in [
        "did you mean `table`?",
        "there is no file nowhere.csv",
        "did you mean `openai`?",
        "which model of openai?",
        "METRIC=VALUE, such as",
        "constraint[0] (cost)",
    ] {
        assert!(shown.contains(part), "no {part:?} in: {shown}");
    }
    let study: Value = toml::from_str(&place.read("own.toml")).unwrap();
    assert_eq!(study["workload"]["data"], "rows.csv");
    assert_eq!(study["constraint"].as_array().unwrap().len(), 1);
    assert_eq!(study["constraint"][0]["metric"], "prompt_length");

    let (code, shown) = place.ended_on_terminal("init other.toml", "\x04");
    assert!(
        code == 64 && shown.contains("say it with --kind"),
        "{code}: {shown}"
    );
    assert!(!place.path("other.toml").exists());
}

#[cfg(unix)]
#[test]
fn what_a_run_reads_is_not_written_over() {
    let place = Place::new();
    let rows = "question,answer\na,1\nb,2\nc,3\n";
    place.write("rows.csv", rows);
    place.write("seed.md", "Answer.\n");
    place.write("prices.toml", "date = \"2026-01-01\"\n");
    place.write(".env", "KEY=secret\n");
    place.write("rows.tab", "question\tanswer\na\t1\n");
    place.write("chats.json", "[]");
    for (line, told) in [
        ("init rows.csv", true),
        ("init rows.tab", true),
        ("init chats.json", true),
        ("init new.csv", false),
        ("init rows.csv --from rows.csv", false),
    ] {
        let ended = place.capo(line);
        let hints = ended.stderr.contains("capo init --from ");
        assert_eq!((hints, ended.code), (told, 64), "{line}: {}", ended.stderr);
    }
    init(&place, "own.toml", "--from rows.csv");
    let seed = place
        .read("own.toml")
        .replace("[prompt]\n", "[prompt]\nfile = \"seed.md\"\n#");
    place.write("own.toml", &seed);
    std::fs::hard_link(place.path("rows.csv"), place.path("same.csv")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    let before = ["own.toml", "rows.csv", "seed.md", "prompt.md", ".env"].map(|name| place.read(name));
    for (own, what) in [
        ("own.toml", "own.toml is not replaced: it is the study"),
        ("./seed.md", "is the study's prompt"),
        ("rows.csv", "is read by the study"),
        ("same.csv", "is read by the study"),
        (".env", "is the file of variables"),
        ("prices.toml", "is the price file"),
        ("pipe", "is neither a file nor a terminal"),
    ] {
        let line = format!("optimize own.toml --prices prices.toml --out {own}");
        place.capo(&line).expect(&[64], &["--out: ", what]);
        let line = format!("evaluate own.toml --prompt prompt.md --prices prices.toml --junit {own}");
        place.capo(&line).expect(&[64], &["--junit: ", what]);
    }
    let line = "evaluate own.toml --prompt prompt.md --junit prompt.md";
    place
        .capo(line)
        .expect(&[64], &["prompt.md is not replaced: it is a prompt"]);
    for line in ["optimize pipe", "optimize own.toml --prices pipe"] {
        place.capo(line).expect(&[64], &["it is not a regular file"]);
    }
    let after = ["own.toml", "rows.csv", "seed.md", "prompt.md", ".env"].map(|name| place.read(name));
    assert_eq!(before, after);
    assert!(!place.path("runs").exists());
}
