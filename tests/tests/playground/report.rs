//! A report: the page in one file, opened from disk.

use std::path::Path;

use capo_browser::{Browser, is_firefox};
use capo_tests::journal::{events, of_kind};
use capo_tests::program::{command, run};
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::{Value, json};

use super::{is_own, page};

/// A browser for files on disk.
async fn for_disk() -> Browser {
    Browser::start(
        "file://",
        &["--window-size=1440,1000"],
        &["browser", "performance"],
    )
    .await
}

/// Opens a file from disk.
async fn from_disk(path: &Path, shown: &str) -> Browser {
    let browser = for_disk().await;
    browser.go(path.to_str().unwrap()).await;
    browser.until_shown(shown).await;
    browser
}

/// That nothing was asked for but the file itself, nothing was kept, and nothing went wrong.
async fn left_nothing(browser: &Browser, path: &Path) {
    let kept = browser
        .js_async("return [(await indexedDB.databases()).length, localStorage.length]")
        .await;
    assert_eq!(kept, json!([0, 0]));
    // Firefox's driver tells of neither.
    if is_firefox() {
        return;
    }
    let file = format!("file://{}", path.display());
    let outside: Vec<String> = browser.requests().await;
    let outside: Vec<&String> = outside.iter().filter(|url| !is_own(url, &file)).collect();
    assert!(outside.is_empty(), "{outside:?}");
    let console = browser.console().await;
    assert!(!console.contains("SEVERE"), "{console}");
}

/// That what cannot be done in a report is not offered on the page shown.
async fn offers_nothing_to_do(browser: &Browser) {
    let names = "return [...document.querySelectorAll('button, a')].filter((one) => one.checkVisibility())
        .map((one) => one.innerText.trim())";
    let names = browser.js(names).await;
    let names: Vec<&str> = names
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for missing in [
        "Pause",
        "Stop",
        "Resume",
        "Run the whole study",
        "Raise the budget",
        "Branch",
        "Rerun",
        "Search again",
        "Keys",
        "New study",
        "Thumb",
        "with notes",
    ] {
        assert!(
            !names.iter().any(|name| name.starts_with(missing)),
            "{missing}: {names:?}"
        );
    }
    let steers = "return document.querySelectorAll('main :is(.steer input, textarea)').length";
    assert_eq!(browser.js(steers).await, json!(0));
}

/// A report of journals, as the command line makes it.
fn made(report: &Path, journals: &[&Path]) {
    let mut command = command(["report", "--html", "--page"]);
    run(command.arg(page::built()).arg("--out").arg(report).args(journals)).expect_code(0);
}

/// A study whose journal holds a finished run, and who answers it.
pub(crate) fn ended() -> (Study, Stub) {
    let (study, stub) = Study::new("http://unused").on_stub();
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
    made(&one, &[&first]);
    made(&two, &[&first, &second]);

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
    browser.click_at("table a[href*='example=']").await;
    browser.until_shown("Whole conversation").await;
    offers_nothing_to_do(&browser).await;
    // Whoever opens a link in another tab is led behind `#` as well.
    let pointed = "const link = [...document.querySelectorAll('a')].find((one) => one.innerText.trim() === 'Candidates');
        link.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
        return link.getAttribute('href')";
    assert_eq!(browser.js(pointed).await, json!("#/run/1/candidate"));
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
    browser.until_shown("of 4 rounds").await;
    offers_nothing_to_do(&browser).await;
    browser.reload().await;
    browser.until_shown("Round").await;
    left_nothing(&browser, &one).await;

    let browser = from_disk(&two, "Comparison").await;
    browser.until_shown("Word problems (2)").await;
    left_nothing(&browser, &two).await;
}

#[tokio::test]
async fn a_report_of_a_run_that_has_not_ended_offers_nothing_to_do() {
    let (study, _stub) = ended();
    let whole = std::fs::read_to_string(study.journal()).unwrap();
    let (begun, _) = whole.trim_end().rsplit_once('\n').unwrap();
    let [cut, file] = ["cut.jsonl", "cut.html"].map(|name| study.file(name));
    std::fs::write(&cut, format!("{begun}\n")).unwrap();
    made(&file, &[&cut]);
    let browser = from_disk(&file, "not ended").await;
    offers_nothing_to_do(&browser).await;
    browser.click("Live").await;
    browser.until_shown("of 4 rounds").await;
    offers_nothing_to_do(&browser).await;
    // Pages that would need more than the report are not in it.
    for page in ["#/study", "#/runs", "#/team", "#/set-up"] {
        browser
            .js_with("location.hash = arguments[0]", vec![json!(page)])
            .await;
        browser.until_shown("There is no such page").await;
        browser.click("The run of this report").await;
        browser.until_shown("not ended").await;
    }
    left_nothing(&browser, &file).await;
}

#[tokio::test]
async fn a_report_that_is_not_whole_says_so_and_blames_no_browser() {
    let (study, _stub) = ended();
    let file = study.file("broken.html");
    made(&file, &[&study.journal()]);
    let whole = std::fs::read_to_string(&file).unwrap();
    // What gzip packed begins so.
    std::fs::write(&file, whole.replacen(">H4sI", ">AAAA", 1)).unwrap();
    let browser = for_disk().await;
    let address = format!("file://{}", file.display());
    browser.driver.goto(address).await.unwrap();
    browser.until_shown("The report does not read").await;
    let shown = browser.text("body").await;
    for wrong in ["Reading the report", "This browser cannot"] {
        assert!(!shown.contains(wrong), "{wrong} in {shown}");
    }
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
async fn the_prompt_is_taken_away_as_a_call_of_its_model() {
    let (study, stub) = ended();
    let browser = taken(&study, "Call of the model (TypeScript)").await;
    let code = browser.downloaded(".ts").await;
    let url = format!("\"{}/chat/completions\"", stub.base_url);
    assert!(
        code.contains(&url) && code.contains("process.env[\"CAPO_TEST_KEY\"]"),
        "{code}"
    );
    assert!(code.contains("Solve the problem."), "{code}");
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
    let run = browser.js("return location.pathname").await;
    let lines = events(&study.journal());
    let rollout = of_kind(&lines, "rollout")[0];
    crate::trace::open(&browser, run.as_str().unwrap(), rollout).await;
    browser.until_shown("The journal was made without traces.").await;
    let shown = browser.text(".drawer").await;
    assert!(!shown.contains("No conversation was recorded"), "{shown}");
}

#[tokio::test]
async fn nothing_goes_on_from_a_journal_without_traces() {
    let browser = page::open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
    browser.click("Pause").await;
    browser
        .until_shown("Calls under way were finished and counted")
        .await;
    let lines = crate::journal(&browser).await.into_iter();
    let slim = lines
        .filter(|event| event["event"] != "finished")
        .map(|mut event| {
            if event["event"] == "rollout" {
                event["trace"] = json!({ "messages": [] });
                event["without_trace"] = json!(true);
            }
            event.to_string() + "\n"
        });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slim.jsonl");
    std::fs::write(&path, slim.collect::<String>()).unwrap();
    browser.go("/runs").await;
    browser.choose("Journals to open", &path).await;
    browser.until_shown("interrupted").await;
    browser.click("Resume at round").await;
    browser.until_shown("Rerun with changes…").await;
    browser.click("Resume").await;
    browser.until_shown("this journal was made without traces").await;
}
