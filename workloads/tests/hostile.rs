//! What strangers may hand to Capo, changed at random: nothing panics, and everything ends. The fuzz targets of
//! `cargo xtask fuzz` run the same for longer; `PROPTEST_CASES` makes this longer, too.

#![cfg(not(target_arch = "wasm32"))]

#[path = "../fuzz/bodies.rs"]
mod bodies;

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

/// Longer than any text may take, on a machine under load.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that choose changes, a few or many.
fn edits() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 5..=5), vec(any::<u8>(), 0..120)]
}

fn soon(what: impl FnOnce()) -> Result<(), TestCaseError> {
    let started = Instant::now();
    what();
    prop_assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    Ok(())
}

proptest! {
    #[test]
    fn studies(edits in edits()) {
        soon(|| bodies::study(&bodies::changed(bodies::STUDY, &edits)))?;
    }

    #[test]
    fn templates(edits in edits()) {
        soon(|| bodies::template(&bodies::changed(bodies::TEMPLATE, &edits)))?;
    }

    #[test]
    fn journals(edits in edits()) {
        soon(|| bodies::journal(&bodies::changed(&bodies::JOURNAL, &edits)))?;
    }

    #[test]
    fn any_text_is_no_trouble(text in ".*", bytes in vec(any::<u8>(), 0..200)) {
        soon(|| {
            bodies::study(&text);
            bodies::template(&text);
            bodies::journal(&text);
            bodies::answer(&bytes);
        })?;
    }

    #[test]
    fn answers(provider in any::<u8>(), edits in edits()) {
        let body = bodies::changed(bodies::ANSWER, &edits);
        soon(|| bodies::answer(&[&[provider], body.as_bytes()].concat()))?;
    }
}

/// The texts that mutations begin with are taken as they are.
#[test]
fn what_is_changed_is_right_before() {
    use capo_core::study::{Format, Study};
    Study::parse(bodies::STUDY, Format::Toml).unwrap();
    let lines: Vec<&str> = bodies::JOURNAL.lines().collect();
    futures::executor::block_on(capo_core::verify(&lines)).unwrap();
    bodies::template(bodies::TEMPLATE);
    bodies::answer(&[b"\0", bodies::ANSWER.as_bytes()].concat());
}

/// Counts that a search would make lists of, longer than any memory.
#[test]
fn counts_beyond_all_need_end_no_search_but_in_words() {
    use capo_core::study::{Format, Study};
    let usual = Study::parse(bodies::STUDY, Format::Toml).unwrap();
    let journal = bodies::search(usual).expect("a search");
    assert!(
        journal
            .lines()
            .iter()
            .any(|line| line.starts_with("{\"event\":\"rollout\""))
    );
    for (usual, key) in [
        ("repeats = 1", "repeats"),
        ("rounds = 2", "rounds"),
        ("children = 2", "children"),
        ("parents = 1", "parents"),
        ("pool = 2", "pool"),
    ] {
        for count in ["1000000", "10000000", "4294967295", "18446744073709551615"] {
            let text = bodies::STUDY.replace(usual, &format!("{key} = {count}"));
            let error = Study::parse(&text, Format::Toml).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        bodies::study(&bodies::STUDY.replace(usual, &format!("{key} = 1000")));
    }
}

/// Brackets in the arguments of a tool call, of which a hundred thousand took a minute.
#[test]
fn brackets_without_end_are_soon_read() {
    let body = bodies::ANSWER.replace("{\\\"order\\\": [7, {}]}", &"[".repeat(1_000_000));
    let started = Instant::now();
    bodies::answer(&[b"\0", body.as_bytes()].concat());
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}
