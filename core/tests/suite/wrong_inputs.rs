//! Studies and journals that are wrong in many ways: what is said of them is no parser's jargon.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use capo_core::journal::parse_line;
use capo_core::llm::Role;
use capo_core::study::{Format, Setting, Study, Table, read_table, suggest};

const STUDY: &str = "[study]\nname = \"n\"\n[workload]\nkind = \"world\"\n[prompt]\ntext = \"Act.\"\n[objective]\nmetric = \"success\"\n[models.agent]\nprovider = \"x\"\n";

/// What parsers say among themselves.
const JARGON: [&str; 13] = [
    "variant",
    "ident",
    "EOF",
    "struct",
    "f64",
    "u64",
    "sequence",
    "mantissa",
    "expected nothing",
    "TOML parse error",
    "invalid type",
    "string",
    "overflowed",
];

/// Values of a key that takes another kind.
const VALUES: [&str; 14] = [
    "two",
    "",
    ".5",
    "5.0.1",
    "0x",
    "1e",
    "\"open",
    "\"\\q\"",
    "[1",
    "3",
    "[\"a\"]",
    "{ a = 1 }",
    "2026-11-27",
    "\"x\"",
];

/// The same in JSON.
const VALUES_IN_JSON: [&str; 12] = [
    "nan",
    "tru",
    "NaN",
    "\"x\"",
    "{}",
    "[]",
    "\"\\u12\"",
    "\"\\q\"",
    "\"a\nb\"",
    "1e999",
    "-1",
    "\"",
];

/// Lines that are none of a journal.
const LINES: [&str; 7] = [
    "{\"event\":5}",
    "{\"event\":\"runs\"}",
    "{\"event\":",
    "[]",
    "nope",
    "{\"event\":[\"a\"]}",
    "{\"event\":\"round\"}",
];

fn toml(text: &str) -> String {
    Study::parse(text, Format::Toml).unwrap_err().to_string()
}

fn json(text: &str) -> String {
    Study::parse(text, Format::Json).unwrap_err().to_string()
}

#[test]
fn no_message_holds_a_parsers_jargon() {
    let mut told: Vec<String> = Vec::new();
    let set = |key: &str, value: &str| {
        let (table, key) = key.rsplit_once('.').unwrap();
        STUDY.replacen(
            &format!("[{table}]\n"),
            &format!("[{table}]\n{key} = {value}\n"),
            1,
        )
    };
    let mut refuse = |text: &str| {
        let study = Study::parse(text, Format::Toml);
        told.extend(study.err().map(|error| error.to_string()));
    };
    for value in VALUES {
        refuse(&set("study.batch", value));
        refuse(&set("study.rounds", value));
        refuse(&format!("{STUDY}[feedback]\nform = {value}\n"));
        refuse(&format!("{STUDY}[failures]\nexample = {value}\n"));
    }
    refuse(&format!("{STUDY}[[feedback]]\nform = \"none\"\n"));
    for name in ["study", "workload", "prompt", "objective", "budget"] {
        let text = format!("{STUDY}[budget]\nrollouts = 1\n");
        let error = toml(&text.replace(&format!("[{name}]"), &format!("[[{name}]]")));
        assert!(
            error.contains(&format!("`{name}`: expected a table, found a list")),
            "{error}"
        );
    }
    let date = toml(&set("workload.day", "2026-11-27"));
    assert!(
        date.contains("`workload.day`: line 4, column 7: `2026-11-27` is a date"),
        "{date}"
    );
    for format in [Format::Toml, Format::Json] {
        let error = Study::parse("{\"event\":\"study\",\"schema\":1}\n", format).unwrap_err();
        assert!(error.to_string().contains("the journal of a run"), "{error}");
    }
    let whole = serde_json::to_string(&Study::parse(STUDY, Format::Toml).unwrap()).unwrap();
    for value in VALUES_IN_JSON {
        told.push(json(&whole.replacen(
            "\"seed\":0",
            &format!("\"seed\":{value}"),
            1,
        )));
    }
    told.extend([
        json("nope"),
        json("{"),
        json("{1:2}"),
        json(""),
        json(&format!("{whole}]")),
    ]);
    told.push(json(&whole.replacen("\"prompt\":{", "\"prompt\":[{", 1)));
    for setting in [
        "study.rounds=[1]",
        "study.preset=3",
        "feedback.form=[\"none\"]",
        "budget=[1]",
        "models=3",
    ] {
        let setting: Setting = setting.parse().unwrap();
        let study = Study::parse_with(STUDY, Format::Toml, &[setting]);
        told.extend(study.err().map(|error| error.to_string()));
    }
    for line in LINES {
        for number in [1, 2] {
            told.push(parse_line(line, number).unwrap_err().to_string());
        }
    }
    let table = Table::from_iter([("first".to_owned(), 3.into())]);
    told.push(read_table::<BTreeMap<String, Role>>(&table).unwrap_err());
    told.push(suggest("invalid length 3, expected an array of length 2"));
    assert!(told.len() > 80, "{told:?}");
    for told in &told {
        let jargon = JARGON.iter().find(|jargon| told.contains(**jargon));
        assert_eq!(jargon, None, "{told}");
        assert!(
            !told.trim_end().ends_with("expected") && told.lines().count() == 1,
            "{told}"
        );
    }
}
