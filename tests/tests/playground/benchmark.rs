//! The tau2 benchmark in the page, from the data folder to a finished run.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capo_browser::Browser;
use capo_tests::shared::shared;
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::Study;
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::SECRET;
use crate::page::open;

/// What the airline reads.
pub(crate) const AIRLINE: &[&str] = &[
    "domains/airline/db.json",
    "domains/airline/policy.md",
    "domains/airline/tasks.json",
    "domains/airline/split_tasks.json",
    "user_simulator/simulation_guidelines.md",
];

/// What the telephone company reads.
const TELECOM: &[&str] = &[
    "domains/telecom/db.toml",
    "domains/telecom/user_db.toml",
    "domains/telecom/main_policy.md",
    "domains/telecom/tech_support_manual.md",
    "domains/telecom/tech_support_workflow.md",
    "domains/telecom/tasks.json",
    "domains/telecom/split_tasks.json",
    "user_simulator/simulation_guidelines_tools.md",
];

/// An archive as code hosts make it of a checkout, with one domain alone.
pub(crate) fn archive(data: &Path, folder: &Path, files: &[&str]) -> PathBuf {
    let path = folder.join("tau2-bench-main.zip");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    for file in files {
        let name = format!("tau2-bench-main/data/tau2/{file}");
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        archive
            .write_all(&std::fs::read(data.join(file)).unwrap())
            .unwrap();
    }
    archive.finish().unwrap();
    path
}

/// Drops a file or folder where the benchmark is asked for.
pub(crate) async fn drop_on_page(browser: &Browser, paths: &[&Path]) {
    let place = browser
        .js(
            "const place = document.querySelector('.drop'); place.scrollIntoView({ block: 'center' });
            const { x, y } = place.getBoundingClientRect(); return [x + 9, y + 9]",
        )
        .await;
    for kind in ["dragEnter", "dragOver", "drop"] {
        let event = json!({
            "type": kind, "x": place[0], "y": place[1],
            "data": { "items": [], "files": paths, "dragOperationsMask": 1 },
        });
        browser.devtools("Input.dispatchDragEvent", event).await;
    }
}

/// Models for both sides of a conversation, and for the search.
fn models(question: &Question) -> Answer {
    let text = if question.is_rewrite() {
        format!(
            "<prompt>\nBe kind, variant {}.\n</prompt>",
            question.seed.unwrap_or_default()
        )
    } else if question.is_critique() {
        "The agent did nothing.".to_owned()
    } else if question.system.contains("<scenario>") {
        match question.user.as_str() {
            "Is that all?" => "It is. ###STOP###".to_owned(),
            _ => "Hello, I need something.".to_owned(),
        }
    } else {
        "Is that all?".to_owned()
    };
    Answer::Text(text)
}

#[tokio::test]
async fn a_folder_of_the_benchmark_is_kept_for_all_studies() {
    let Some(data) = shared("tau2/data") else { return };
    let browser = open("/study").await;
    browser.click("tau2 benchmark").await;
    browser
        .until_shown("airline domain of the benchmark is not in this browser yet")
        .await;
    // The driver takes no path with a turn in it.
    let folder = data.canonicalize().unwrap();
    browser.choose("Folder of the benchmark", &folder).await;
    browser.until_shown("Airline, retail and telecom").await;
    browser.until_shown("The benchmark was taken in.").await;
    browser.reload().await;
    browser.click("tau2 benchmark").await;
    browser.until_shown("Airline, retail and telecom").await;
    let problem = browser.text("#main").await;
    assert!(!problem.contains("not in this browser yet"), "{problem}");
    browser.click("Forget the benchmark").await;
    browser.until_shown("Drop the folder").await;
    drop_on_page(&browser, &[&folder]).await;
    browser.until_shown("Airline, retail and telecom").await;
    browser.click("Forget the benchmark").await;
    browser.until_shown("Drop the folder").await;
    browser
        .until_shown("airline domain of the benchmark is not in this browser yet")
        .await;
}

#[tokio::test]
async fn an_archive_without_the_benchmark_is_refused() {
    let browser = open("/study").await;
    browser.click("tau2 benchmark").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos.zip");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    archive
        .start_file("domains/airline/policy.md", SimpleFileOptions::default())
        .unwrap();
    archive.finish().unwrap();
    browser.choose("ZIP of the benchmark", &path).await;
    browser.until_shown("airline lacks domains/airline/db.json").await;
    std::fs::write(&path, "no archive").unwrap();
    browser.choose("ZIP of the benchmark", &path).await;
    browser
        .until_shown("photos.zip does not read as a ZIP archive")
        .await;
}

/// A customer and an agent who both use their tools.
fn callers(question: &Question) -> Answer {
    let said = |text: &str| Answer::Text(text.to_owned());
    let is_first = question.tool.is_empty();
    if !question.is_rollout() {
        return models(question);
    }
    if question.system.contains("<scenario>") {
        return match question.user.as_str() {
            "Switch to airplane mode." if is_first => Answer::Call("toggle_airplane_mode", json!({})),
            "Switch to airplane mode." => said("It is on."),
            "Is that all?" => said("It is. ###STOP###"),
            _ => said("I fly abroad."),
        };
    }
    match question.user.as_str() {
        "I fly abroad." if is_first => Answer::Call(
            "enable_roaming",
            json!({ "customer_id": "C1001", "line_id": "L1003" }),
        ),
        "I fly abroad." => said("Switch to airplane mode."),
        _ => said("Is that all?"),
    }
}

/// A study of a domain, three tasks to search on and two held out, one round.
fn study(stub: &Stub, domain: &str, more: &str) -> Study {
    Study::new(&stub.base_url)
        .with_workload(&format!(
            "kind = \"tau2\"\ndomain = \"{domain}\"\ndata = \"elsewhere/data/tau2\"\noptimize = 3\n\
             evaluate = 2\n{more}"
        ))
        .with("metric = \"correct\"", "metric = \"success\"")
        .with("metric = \"too_long\"", "metric = \"human_requests\"")
        .with("rounds = 4", "rounds = 1")
}

/// Takes a study in, with the benchmark's files and the key.
async fn set_up(study: &Study, data: &Path, files: &[&str]) -> Browser {
    let browser = open("/study").await;
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("was taken in").await;
    let folder = tempfile::tempdir().unwrap();
    browser
        .choose("ZIP of the benchmark", &archive(data, folder.path(), files))
        .await;
    browser.until_shown("The benchmark was taken in.").await;
    browser.fill("Key of task agent", SECRET).await;
    browser
}

#[tokio::test]
async fn a_study_of_the_benchmark_runs() {
    let Some(data) = shared("tau2/data") else { return };
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), |question, _| models(question));
    let browser = set_up(&study(&stub, "airline", ""), &data, AIRLINE).await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    let lines = crate::journal(&browser).await;
    let rollouts = crate::of_kind(&lines, "rollout");
    assert!(!rollouts.is_empty());
    for rollout in rollouts {
        assert_eq!(rollout["workload"], json!("airline"), "{rollout}");
        assert_eq!(rollout["measurements"]["turns"], json!(1.0), "{rollout}");
    }
    let console = browser.console().await;
    assert!(!console.contains("SEVERE"), "{console}");
}

#[tokio::test]
async fn a_trace_of_the_benchmark_shows_both_sides() {
    let Some(data) = shared("tau2/data") else { return };
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), |question, _| callers(question));
    let browser = set_up(&study(&stub, "telecom", ""), &data, TELECOM).await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    let run = browser.js("return location.pathname").await;
    let lines = crate::journal(&browser).await;
    let rollout = crate::of_kind(&lines, "rollout")[0].clone();
    crate::trace::open(&browser, run.as_str().unwrap(), &rollout).await;
    browser.until_shown("State changes: 1 on the agent’s side").await;
    let shown = browser.text(".drawer").await;
    for words in [
        "Reward",
        "the user ended the conversation",
        "Assertions",
        "lines.L1003.roaming_enabled",
        "device.airplane_mode",
        "enable_roaming(",
        "toggle_airplane_mode(",
    ] {
        assert!(shown.contains(words), "{words} is not in\n{shown}");
    }
}

#[tokio::test]
async fn other_descriptions_of_the_tools_go_with_the_study() {
    let (Some(data), Some(tools)) = (shared("tau2/data"), shared("tau2/parity/airline.tools.json")) else {
        return;
    };
    let described = "Cancels what was booked, in words of this test.";
    let folder = tempfile::tempdir().unwrap();
    let mut list: Value = serde_json::from_slice(&std::fs::read(tools).unwrap()).unwrap();
    list["assistant"][0]["function"]["description"] = json!(described);
    let path = folder.path().join("tools.json");
    std::fs::write(&path, list.to_string()).unwrap();
    let other = folder.path().join("other.json");
    std::fs::write(&other, "{\"assistant\": []}").unwrap();

    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), |question, _| models(question));
    let key = "tool_descriptions = \"mine/tools.json\"";
    let browser = set_up(&study(&stub, "airline", key), &data, AIRLINE).await;
    browser.until_shown("mine/tools.json is not here yet.").await;
    browser.choose("Tool descriptions", &other).await;
    browser.until_shown("In other.json, it describes ").await;
    browser.click("Leave out").await;
    browser
        .until("nothing is wrong with it", async || {
            !browser.text("#main").await.contains("In other.json")
        })
        .await;
    // What was dropped on the page arrives as what was chosen for a study does.
    browser.choose("Study file", &path).await;
    browser.until_shown("goes with the study").await;
    browser.click("Export TOML").await;
    let toml = browser.downloaded(".toml").await;
    assert!(toml.contains("tool_descriptions = \"tools.json\""), "{toml}");
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    assert!(stub.request_log().described.contains(described));
    // It is kept with the run.
    let stored: Value =
        serde_json::from_str(browser.js_async(crate::STORED).await.as_str().unwrap()).unwrap();
    assert!(stored["stores"]["files"].to_string().contains(described));
}

#[tokio::test]
async fn vectors_of_the_tasks_are_asked_for_where_they_make_the_clusters() {
    let Some(data) = shared("tau2/data") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("airline.jsonl");
    std::fs::write(&path, "").unwrap();
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), |question, _| models(question));
    let keys = "split = \"cluster-shift\"\nembeddings = \"vectors/airline.jsonl\"";
    let browser = set_up(&study(&stub, "airline", keys), &data, AIRLINE).await;
    browser
        .until_shown("vectors/airline.jsonl is not here yet.")
        .await;
    browser.choose("Vectors of the tasks", &path).await;
    browser
        .until_shown("he file lacks vectors of 50 of the 50 texts")
        .await;
    browser.click("Leave out").await;
    browser
        .until("words are counted instead", async || {
            !browser.text("#main").await.contains("lacks vectors")
        })
        .await;
}
