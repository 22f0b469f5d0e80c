//! A report: the page in one file, opened from disk.

use std::path::Path;

use capo_browser::Browser;
use capo_tests::journal::{events, of_kind};
use capo_tests::program::{command, run};
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::json;

use super::{is_own, page};

/// Opens a file from disk.
async fn from_disk(path: &Path, shown: &str) -> Browser {
    let browser = Browser::start(
        "file://",
        &["--window-size=1440,1000"],
        &["browser", "performance"],
    )
    .await;
    browser.go(path.to_str().unwrap()).await;
    browser.until_shown(shown).await;
    browser
}

/// That nothing was asked for but the file itself, nothing was kept, and nothing went wrong.
async fn left_nothing(browser: &Browser, path: &Path) {
    let file = format!("file://{}", path.display());
    let outside: Vec<String> = browser.requests().await;
    let outside: Vec<&String> = outside.iter().filter(|url| !is_own(url, &file)).collect();
    assert!(outside.is_empty(), "{outside:?}");
    let kept = browser
        .js_async("return [(await indexedDB.databases()).length, localStorage.length]")
        .await;
    assert_eq!(kept, json!([0, 0]));
    let console = browser.console().await;
    assert!(!console.contains("SEVERE"), "{console}");
}

/// A study whose journal holds a finished run, and who answers it.
fn ended() -> (Study, Stub) {
    let study = Study::new("http://unused");
    let stub = Stub::start(study.models().script());
    let study = study.with("http://unused", &stub.base_url);
    run(&mut study.optimize()).expect_code(0);
    (study, stub)
}

#[tokio::test]
async fn a_report_opens_from_disk_and_asks_nobody() {
    let (study, _stub) = ended();
    let first = study.journal();
    let [second, one, two] = ["second.jsonl", "one.html", "two.html"].map(|name| study.file(name));
    // How it ends is of no matter here.
    run(study.optimize_to(&second).args(["--seed", "1"]));
    let mut report = command(["report", "--html", "--page"]);
    run(report.arg(page::built()).arg("--out").arg(&one).arg(&first)).expect_code(0);
    let mut report = command(["report", "--html", "--page"]);
    run(report
        .arg(page::built())
        .arg("--out")
        .arg(&two)
        .args([&first, &second]))
    .expect_code(0);

    let browser = from_disk(&one, "Copy prompt").await;
    let lines = events(&first);
    let finished = of_kind(&lines, "finished");
    let best = &finished.last().unwrap()["best"];
    let candidates = of_kind(&lines, "candidate");
    let best = candidates
        .iter()
        .find(|candidate| candidate["id"] == *best)
        .unwrap();
    let prompt = best["prompt"].as_str().unwrap();
    assert_eq!(browser.text("#prompt-text").await.trim(), prompt.trim());
    let thresholds = browser.text(".held-out").await;
    assert!(
        thresholds.contains("Threshold") && thresholds.contains("≤ "),
        "{thresholds}"
    );
    // What cannot be done in a report is not offered.
    for missing in ["Resume", "Branch", "Search again", "Keys", "New study"] {
        assert!(!browser.text("body").await.contains(missing), "{missing}");
    }
    browser.click("Candidates").await;
    browser.until_shown("Lineage").await;
    browser.js("history.back()").await;
    browser.until_shown("Copy prompt").await;
    // The address behind `#` leads to the same page.
    browser.click("Live").await;
    browser
        .until("it is at the run", async || {
            browser.js("return location.hash").await == json!("#/run/1")
        })
        .await;
    browser.reload().await;
    browser.until_shown("Round").await;
    left_nothing(&browser, &one).await;

    let browser = from_disk(&two, "Comparison").await;
    browser.until_shown("word problems (2)").await;
    left_nothing(&browser, &two).await;
}

/// Has the page keep a journal and takes something away from its result.
async fn taken(study: &Study, what: &str) -> Browser {
    let browser = page::open("/runs").await;
    browser.choose("Journals to open", &study.journal()).await;
    browser.until_shown("Finished.").await;
    browser.click("Result").await;
    browser.click("Download…").await;
    browser.click(what).await;
    browser
}

#[tokio::test]
async fn the_page_makes_the_same_file_of_a_run() {
    let (study, _stub) = ended();
    let browser = taken(&study, "This page in one file, opens offline").await;
    let file = browser.download(".html").await;
    let report = from_disk(&file, "Copy prompt").await;
    assert_eq!(report.text(".held-out").await, browser.text(".held-out").await);
    left_nothing(&report, &file).await;
}

#[tokio::test]
async fn a_packed_journal_without_traces_verifies_and_opens_again() {
    let (study, _stub) = ended();
    let browser = taken(&study, "Journal without traces").await;
    let file = browser.download(".jsonl.gz").await;
    run(command(["journal", "verify"]).arg(&file)).expect_code(0);
    browser.go("/runs").await;
    browser.choose("Journals to open", &file).await;
    browser
        .until("it is opened", async || {
            browser.js("return location.pathname.startsWith('/run/')").await == json!(true)
        })
        .await;
    browser.until_shown("Finished.").await;
}
