//! `evaluate` of several prompts, under several models, and in a build.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use quick_xml::escape::unescape;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde_json::Value;

use super::{Place, STUDY};

fn place() -> Place {
    let place = Place::new();
    place.write("other.md", "Hand every customer over to a human at once.");
    place
}

/// An element of a document: its name and attributes.
type Element = (String, BTreeMap<String, String>);

/// The elements of a document in order, each refused that JUnit does not have, and all its text.
fn junit(xml: &str) -> (Vec<Element>, String) {
    let mut reader = Reader::from_str(xml);
    let (mut found, mut text) = (Vec::new(), String::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = String::from_utf8_lossy(tag.name().0).into_owned();
                let attributes: BTreeMap<String, String> = tag
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.unwrap();
                        let value = String::from_utf8_lossy(&attribute.value).into_owned();
                        let key = String::from_utf8_lossy(attribute.key.0).into_owned();
                        (key, unescape(&value).unwrap().into_owned())
                    })
                    .collect();
                let known: &[&str] = match name.as_str() {
                    "testsuites" => &["name", "tests", "failures", "errors"],
                    "testsuite" => &["name", "tests", "failures", "errors", "time"],
                    "testcase" => &["classname", "name"],
                    "failure" | "error" => &["type", "message"],
                    other => panic!("no element of JUnit: {other}"),
                };
                let unknown = attributes.keys().find(|key| !known.contains(&key.as_str()));
                assert!(
                    unknown.is_none() && attributes.len() == known.len(),
                    "{attributes:?}"
                );
                found.push((name, attributes));
            }
            Event::Text(part) => text.push_str(&part.decode().unwrap()),
            Event::Eof => return (found, text),
            _ => {}
        }
    }
}

/// Tests, failures and errors as the document counts them.
fn counted(element: &Element) -> [&str; 3] {
    ["tests", "failures", "errors"].map(|key| element.1[key].as_str())
}

#[test]
fn prompts_side_by_side_are_what_each_is_alone_and_nothing_is_paid_twice() {
    let place = place();
    let alone = |prompt: &str| {
        let line = format!("evaluate study.toml --prompt {prompt} --split optimize --json");
        place.capo(&line).json()
    };
    let (one, other) = (alone("prompt.md"), alone("other.md"));
    let line = "evaluate study.toml --prompt prompt.md --prompt other.md --split optimize";
    let ended = place.capo(&format!("{line} --json"));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let both = ended.json();
    for (index, (file, scored)) in [("prompt.md", &one), ("other.md", &other)].iter().enumerate() {
        let found = &both["prompts"][index];
        assert_eq!(found["prompt"], *file);
        for (key, value) in scored.as_object().unwrap() {
            assert_eq!(&found[key], value, "{key}: with what was paid for it before");
        }
        let mean = found["objective"].as_f64().unwrap();
        let end = |name: &str| found["intervals"]["success"][name].as_f64().unwrap();
        assert!(end("low") < mean && mean < end("high"), "{found}");
    }
    let journal = |scored: &Value| scored["journal"].as_str().unwrap().to_owned();
    let journals = format!("{} {}", journal(&one), journal(&other));
    let compared = place.capo(&format!("compare {journals} --json")).json();
    assert_eq!(both["differences"].as_array().unwrap().len(), 1);
    let difference = &both["differences"][0];
    assert_eq!(difference["metrics"], compared["differences"][0]["metrics"]);
    assert_eq!(
        (&difference["prompt"], &difference["minus"]),
        (&2.into(), &1.into())
    );

    let table = place.capo(line).stdout;
    let short = |scored: &Value| scored["candidate"].as_str().unwrap()[..8].to_owned();
    for part in [
        format!(
            "prompt 1: prompt.md ({}), 6 examples, a constraint violated\n",
            short(&one)
        ),
        format!(
            "prompt 2: other.md ({}), 6 examples, a constraint violated\n",
            short(&other)
        ),
        "minus prompt 1".to_owned(),
        format!("Paid for all that is in {}: 6 rollouts", journal(&other)),
    ] {
        assert!(table.contains(&part), "no {part:?} in {table}");
    }
}

#[test]
fn other_agents_have_journals_of_their_own() {
    let place = place();
    let agent = "[models.agent]\nprovider = \"simulated\"\nmodel = \"sim-large\"\n";
    place.write("large.toml", agent);
    let measured = |models: &str| {
        let line = "evaluate study.toml --prompt prompt.md --split optimize --json";
        place.capo(&format!("{line} {models}")).json()
    };
    let own = measured("");
    let both = measured("--model study --model simulated/sim-large");
    let (study, large) = (&both["prompts"][0], &both["prompts"][1]);
    assert_eq!(
        (&study["journal"], &study["usage"]),
        (&own["journal"], &own["usage"])
    );
    assert_eq!(large["model"], "simulated/sim-large");
    assert_eq!(large["candidate"], study["candidate"]);
    assert_ne!(large["journal"], study["journal"]);
    assert_ne!(large["estimates"], study["estimates"]);
    assert_eq!(both["differences"][0]["metrics"]["success"]["n"], 6);
    let of_file = measured("--model large.toml");
    for key in ["journal", "estimates", "usage"] {
        assert_eq!(of_file[key], large[key], "{key}");
    }
}

#[test]
fn what_thresholds_are_relative_to_is_measured_once_for_all_prompts() {
    let place = place();
    let relative = STUDY.replace("threshold = 0.3", "relative_to_seed = 0.5");
    place.write("relative.toml", &relative);
    let line = "evaluate relative.toml --prompt prompt.md --prompt other.md --json";
    let both = place.capo(line).json();
    let (one, other) = (&both["prompts"][0], &both["prompts"][1]);
    assert_eq!(one["journal"], other["journal"]);
    assert!(
        one["constraints"]["excess_tools"]["threshold"].is_number(),
        "{one}"
    );
    assert_eq!(
        one["constraints"]["excess_tools"]["threshold"],
        other["constraints"]["excess_tools"]["threshold"]
    );
    let interval = &one["intervals"]["success"];
    assert!(interval.is_null(), "four examples that are all alike: {interval}");
    // Six of the seed prompt, then four of each.
    assert_eq!(
        (&one["usage"]["rollouts"], &other["usage"]["rollouts"]),
        (&10.into(), &14.into())
    );
}

#[cfg(unix)]
#[test]
fn a_prompt_short_of_a_demand_is_exit_code_2_and_junit_says_where() {
    let place = place();
    let study = STUDY.replace("threshold = 0.3", "threshold = 100.0");
    let study = study.replace("small desk", "small <desk> \\u001b");
    place.write("study.toml", &study);
    let file = "a&b<\"1\">.md";
    place.write(file, &place.read("prompt.md"));
    let line = format!("evaluate study.toml --prompt {file} --split optimize --json");
    let bare = place.capo(&line);
    let scored = bare.json();
    assert_eq!((bare.code, &scored["fail_under"]), (0, &Value::Null));
    let mean = scored["objective"].as_f64().unwrap();
    assert!(mean < 0.95, "{mean}");
    let kept = place.capo(&format!("{line} --fail-under success={mean}"));
    assert_eq!((kept.code, kept.stderr.as_str()), (0, ""));
    assert_eq!(kept.json()["fail_under"]["success"]["satisfied"], true);

    let short = place.capo(&format!("{line} --fail-under success=0.95 --junit out.xml"));
    assert_eq!(short.code, 2);
    assert_eq!(short.json()["fail_under"]["success"]["satisfied"], false);
    let told = format!("{file}: success is {mean:.3}");
    assert!(short.stderr.starts_with(&told), "{}", short.stderr);
    let (elements, text) = junit(&place.read("out.xml"));
    let names: Vec<&str> = elements.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["testsuites", "testsuite", "testcase", "testcase", "failure"]
    );
    assert_eq!(elements[0].1["name"], "small <desk> ␛");
    assert_eq!(elements[1].1["name"], file);
    for element in &elements[..2] {
        assert_eq!(counted(element), ["2", "1", "0"]);
    }
    for (case, name) in [(2, "excess_tools at most 100.000"), (3, "success at least 0.950")] {
        assert_eq!(elements[case].1["name"], name);
        assert_eq!(elements[case].1["classname"], file);
    }
    assert_eq!(elements[4].1["type"], "fail-under");
    assert!(elements[4].1["message"].ends_with("not at least 0.950"));
    assert_eq!(
        text.matches("0.000 of example ").count(),
        1,
        "five of six succeed: {text}"
    );
}

#[test]
fn what_the_budget_stops_is_an_error_and_no_failure_until_it_goes_on() {
    let place = place();
    place.write("study.toml", &format!("{STUDY}\n[budget]\nrollouts = 4\n"));
    let line = "evaluate study.toml --prompt prompt.md --prompt other.md --junit out.xml --split optimize";
    let cut = place.capo(line);
    assert_eq!((cut.code, cut.stdout.as_str()), (3, ""));
    let resume = format!("run: capo {line}");
    assert!(cut.stderr.trim_end().ends_with(&resume), "{}", cut.stderr);
    let (elements, _) = junit(&place.read("out.xml"));
    assert_eq!(counted(&elements[0]), ["2", "0", "2"]);
    place.write("study.toml", STUDY);
    assert_eq!(place.capo(line).code, 2);
    let (elements, _) = junit(&place.read("out.xml"));
    assert_eq!(counted(&elements[0]), ["2", "2", "0"]);
}

#[test]
fn what_was_measured_is_told_where_a_later_prompt_fails() {
    let place = place();
    let line = "evaluate study.toml --prompt prompt.md --prompt other.md --split optimize";
    let both = place.capo(&format!("{line} --json")).json();
    let journal = both["prompts"][1]["journal"].as_str().unwrap();
    place.write(journal, "{}\n{}\n");
    place.write("out.xml", "of another build");
    place.write("third.md", "Be brief.");
    let failed = place.capo(&format!("{line} --prompt third.md --junit out.xml"));
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let part = "prompt 1: prompt.md (";
    assert!(failed.stdout.starts_with(part), "{}", failed.stdout);
    let (elements, _) = junit(&place.read("out.xml"));
    assert_eq!(counted(&elements[0]), ["3", "1", "2"]);
    let suites = elements.iter().filter(|(name, _)| name == "testsuite");
    let suites: Vec<(&str, [&str; 3])> = suites
        .map(|suite| (suite.1["name"].as_str(), counted(suite)))
        .collect();
    assert_eq!(
        suites,
        [
            ("prompt.md", ["1", "1", "0"]),
            ("other.md", ["1", "0", "1"]),
            ("third.md", ["1", "0", "1"])
        ]
    );
    let error = elements.iter().find(|(name, _)| name == "error").unwrap();
    assert!(error.1["message"].contains(journal), "{error:?}");
}

#[test]
fn a_constraint_that_nothing_in_the_split_measures_is_refused() {
    let place = place();
    let rows = |of: &str| {
        let row = |row: u8| format!("{{\"question\": \"How many letters e are in {of} number {row}?\"}}");
        (0..6).map(row).collect::<Vec<_>>().join("\n")
    };
    place.write("words.jsonl", &rows("word"));
    place.write("names.jsonl", &rows("name"));
    let study = r#"
        [study]
        name = "questions"
        rounds = 1
        [workload]
        kind = "table"
        data = "words.jsonl"
        user = "{{ question }}"
        evaluate = 2
        [[workload.metric]]
        type = "regex"
        name = "numbers"
        pattern = "[0-9]"
        [[workload.set]]
        name = "names"
        data = "names.jsonl"
        user = "{{ question }}"
        evaluate = 0
        [[workload.set.metric]]
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
    let line = "evaluate questions.toml --prompt prompt.md";
    place.write("questions.toml", study);
    let refused = place.capo(line);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    let why = "no held-out examples for the constraint `length`";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(!place.path("runs").exists());
    place.write("questions.toml", &study.replace("evaluate = 0", "evaluate = 2"));
    let measured = place.capo(&format!("{line} --json"));
    let held = &measured.json()["constraints"]["length"]["satisfied"];
    assert!(held.is_boolean(), "{}", measured.stdout);
}

#[test]
fn meanings_and_how_far_judges_agree_are_measured_of_a_prompt() {
    let place = place();
    let row = |row: u8| {
        format!("{{\"question\": \"How many letters e are in word {row}?\", \"answer\": \"{row} letters\"}}")
    };
    place.write("words.jsonl", &(0..6).map(row).collect::<Vec<_>>().join("\n"));
    let study = r#"
        [study]
        name = "questions"
        rounds = 1
        [workload]
        kind = "table"
        data = "words.jsonl"
        user = "{{ question }}"
        evaluate = 2
        [[workload.metric]]
        type = "similarity"
        name = "meaning"
        expected = "{{ answer }}"
        [[workload.metric]]
        type = "judge"
        name = "brief"
        rubric = "Does it say how many letters there are?"
        worst = 1
        best = 5
        repeats = 3
        [prompt]
        text = "Answer."
        [objective]
        metric = "meaning"
        [models.agent]
        provider = "simulated"
    "#;
    let line = "evaluate questions.toml --prompt prompt.md --json";
    place.write("questions.toml", study);
    let refused = place.capo(line);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    let why = "no model for the role `embeddings`: add a table [models.embeddings]";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    place.write(
        "questions.toml",
        &format!("{study}\n[models.embeddings]\nprovider = \"simulated\""),
    );
    let measured = place.capo(line);
    let result = measured.json();
    for metric in ["meaning", "brief", "brief_agreement"] {
        let estimate = &result["estimates"][metric];
        assert_eq!(estimate["n"], 2, "{metric}: {}", measured.stdout);
        assert!(
            (0.0..=1.0).contains(&estimate["mean"].as_f64().unwrap()),
            "{metric}"
        );
    }
    // Two answers and what was expected of each.
    assert_eq!(result["usage"]["by_role"]["embeddings"]["calls"], 4);
    assert_eq!(result["usage"]["by_role"]["embeddings"]["output_tokens"], 0);
    assert!(result["usage"]["by_role"]["judge"]["calls"].as_u64() >= Some(6));
}

#[test]
fn an_earlier_run_is_to_fit_one_of_several_models() {
    let place = place();
    place.optimize("study.toml", "run.jsonl");
    let line = "evaluate study.toml --prompt prompt.md --split optimize --json --model simulated/sim-large";
    let refused = place.capo(&format!("{line} --reuse run.jsonl"));
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("fits this study"), "{}", refused.stderr);
    for models in ["--model study", "--model simulated/sim-small --model study"] {
        let measured = place.capo(&format!("{line} {models} --reuse run.jsonl"));
        assert!([0, 2].contains(&measured.code), "{}", measured.stderr);
    }
    let line = format!("{line} --model simulated/sim-small --reuse run.jsonl");
    assert_eq!(place.capo(&line).code, 1);
}

#[test]
fn wrong_words_are_refused_before_anything_is_paid() {
    let place = place();
    place.write("same.md", &place.read("prompt.md"));
    place.write("wrong.toml", "[models.agnt]\nprovider = \"simulated\"\n");
    for (words, part) in [
        ("--prompt same.md", "hold the same prompt"),
        ("--prompt nowhere.md", "nowhere.md"),
        ("--fail-under success=2", "success is 1 at most"),
        ("--fail-under success=-1", "success is 0 at least"),
        ("--fail-under succes=0.5", "did you mean `success`?"),
        ("--fail-under success=high", "METRIC=VALUE"),
        ("--fail-under excess_tools=0.5", "lower is better"),
        ("--fail-under success=0.1 --fail-under success=0.2", "given twice"),
        ("--junit nowhere/out.xml", "there is no folder nowhere"),
        ("--junit .", "is a folder"),
        ("--model sim-large", "PROVIDER/MODEL"),
        ("--model simulated/sim-huge", "sim-large"),
        ("--model nowhere.toml", "nowhere.toml"),
        ("--model wrong.toml", "did you mean `agent`?"),
        ("--model study --model study", "the same models"),
        (
            "--model study --model simulated/sim-large --journal kept.jsonl",
            "leave --journal out",
        ),
    ] {
        let ended = place.capo(&format!("evaluate study.toml --prompt prompt.md {words}"));
        assert_eq!(ended.code, 64, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
        assert!(!place.path("runs").exists(), "{words}");
    }
    assert!(!place.path("kept.jsonl").exists());
}

#[cfg(unix)]
#[test]
fn the_shell_of_the_guide_fails_a_build_where_a_prompt_breaks_its_thresholds() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let script = guide
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert!(guide.contains("run: sh prompts.sh\n"), "the workflow runs it");
    let place = place();
    place.write("prompts.sh", script);
    let programs = Path::new(env!("CARGO_BIN_EXE_capo")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let study = STUDY.replace("evaluate = 4", "evaluate = 30");
    let kept = study.replace("threshold = 0.3", "threshold = 2.0");
    let broken = kept
        .replace("excess_tools", "prompt_length")
        .replace("= 2.0", "= 0.001");
    for (study, code, said) in [
        (kept.clone(), 0, "keeps every threshold"),
        (broken, 2, "breaks a threshold"),
        // An agent of another seed, of which nothing is paid yet.
        (
            format!("{kept}\nseed = 1\n[budget]\nrollouts = 4\n"),
            3,
            "goes on",
        ),
        (
            kept.replace("rounds = 2", "rounds = 0"),
            64,
            "could not be measured",
        ),
    ] {
        place.write("study.toml", &study);
        let mut build = Command::new("sh");
        let build = build.arg("prompts.sh").current_dir(place.path(""));
        let ended = build.env("PATH", &path).output().unwrap();
        let stdout = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{stdout}");
        assert!(stdout.lines().last().unwrap().contains(said), "{stdout}");
    }
}
