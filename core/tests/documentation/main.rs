//! The hand-written pages of `docs/` about this crate say what the code does.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by one and exports nothing"
)]

mod adding_a_method;
mod hyperparameters;
mod journal;
mod names;
mod random_search;
mod recompute;
#[path = "../tiny/mod.rs"]
mod tiny;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of `docs/NAME.md`.
fn page(name: &str) -> String {
    let path = root().join("docs").join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of a page in one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect()
}

/// The part of a page below a heading line, up to the next heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("the page has no heading {heading}"));
    let rest = &page[start + heading.len() + 2..];
    rest.find("\n#").map_or(rest, |end| &rest[..end])
}

/// The cells of each row of a table whose first cell is code, with the marks of code taken off.
fn rows(section: &str) -> Vec<Vec<String>> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    })
    .collect()
}

/// The labels of the paper's equations, and of what it states of the bound.
const LABELS: [&str; 13] = [
    "eq:baseline_fixed_score",
    "eq:constrained",
    "eq:dcapo_policy",
    "eq:dcapo_rewrite",
    "eq:lagrangian",
    "eq:lagrangian_gradient",
    "eq:lambda_update",
    "eq:mopo_baseline_vector",
    "eq:reinforce_alignment_surrogate",
    "lem:app_discrete_pool_recursion",
    "prop:app_discrete_bridge",
    "thm:capo_main_convergence_expectation",
    "thm:rewrite_oracle_reduction",
];

#[test]
fn each_label_of_the_paper_is_on_the_page_and_in_code_that_it_names() {
    let page = page("method");
    let files: BTreeSet<&str> = names::references(&page)
        .into_iter()
        .filter_map(|reference| reference.split("::").next())
        .collect();
    let code: String = files
        .into_iter()
        .map(|file| fs::read_to_string(root().join(file)).unwrap())
        .collect();
    for (text, what) in [
        (&page, "docs/method.md"),
        (&code, "the code that docs/method.md names"),
    ] {
        let kinds = ["eq:", "lem:", "prop:", "thm:"];
        let is_label = |word: &&str| kinds.iter().any(|kind| word.starts_with(kind));
        let labels: BTreeSet<&str> = text.split('`').filter(is_label).collect();
        assert_eq!(labels, BTreeSet::from(LABELS), "in {what}");
    }
}

#[test]
fn every_name_and_link_in_the_pages_exists() {
    for (name, at_least) in [
        ("method", 55),
        ("journal", 10),
        ("adding-a-method", 5),
        ("adding-a-dual-step", 5),
        ("adding-a-metric", 3),
        ("adding-a-workload", 4),
        ("adding-a-provider", 5),
    ] {
        let page = page(name);
        let references = names::references(&page);
        assert!(
            references.len() >= at_least,
            "docs/{name}.md names {} places only",
            references.len()
        );
        let wrong: Vec<String> = references
            .into_iter()
            .filter_map(|reference| names::check(&root(), reference).err())
            .chain(
                names::links(&page)
                    .into_iter()
                    .filter(|link| !root().join("docs").join(link).exists())
                    .map(|link| format!("the link {link} leads nowhere")),
            )
            .collect();
        assert!(wrong.is_empty(), "docs/{name}.md:\n{}", wrong.join("\n"));
    }
}
