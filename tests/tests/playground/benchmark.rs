//! The tau2 benchmark in the page, from the data folder to a finished run.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use capo_tests::shared::shared;
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::Study;
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::SECRET;
use crate::browser::Browser;

/// An archive as code hosts make it of a checkout, with the airline alone.
fn archive(data: &Path, folder: &Path) -> std::path::PathBuf {
    let path = folder.join("tau2-bench-main.zip");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    for file in [
        "domains/airline/db.json",
        "domains/airline/policy.md",
        "domains/airline/tasks.json",
        "domains/airline/split_tasks.json",
        "user_simulator/simulation_guidelines.md",
    ] {
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
async fn drop_on_page(browser: &Browser, path: &Path) {
    let place = browser
        .js("const { x, y } = document.querySelector('.drop').getBoundingClientRect(); return [x + 9, y + 9]")
        .await;
    for kind in ["dragEnter", "dragOver", "drop"] {
        let event = json!({
            "type": kind, "x": place[0], "y": place[1],
            "data": { "items": [], "files": [path], "dragOperationsMask": 1 },
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
    let browser = Browser::open("/study").await;
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
    drop_on_page(&browser, &folder).await;
    browser.until_shown("Airline, retail and telecom").await;
    browser.click("Forget the benchmark").await;
    browser.until_shown("Drop the folder").await;
    browser
        .until_shown("airline domain of the benchmark is not in this browser yet")
        .await;
}

#[tokio::test]
async fn an_archive_without_the_benchmark_is_refused() {
    let browser = Browser::open("/study").await;
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

#[tokio::test]
async fn a_study_of_the_benchmark_runs_and_shows_both_sides() {
    let Some(data) = shared("tau2/data") else { return };
    let stub = Stub::start_with(std::time::Duration::ZERO, Some(SECRET), |question, _| {
        models(question)
    });
    let study = Study::new(&stub.base_url)
        .with_workload("kind = \"tau2\"\ndomain = \"airline\"\ndata = \"elsewhere/data/tau2\"\noptimize = 3\nevaluate = 2")
        .with("metric = \"correct\"", "metric = \"success\"")
        .with("metric = \"too_long\"", "metric = \"human_requests\"")
        .with("rounds = 4", "rounds = 1");
    let browser = Browser::open("/study").await;
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("was taken in").await;
    let folder = tempfile::tempdir().unwrap();
    browser
        .choose("ZIP of the benchmark", &archive(&data, folder.path()))
        .await;
    browser.until_shown("kept in this browser").await;
    browser.fill("Key of task agent", SECRET).await;
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
