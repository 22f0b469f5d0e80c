//! What a run outlives: other tabs, cleared site data, reloads; and how soon it stops.

use std::time::{Duration, Instant};

use capo_browser::{Browser, Key};
use capo_tests::journal::of_kind;
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::Study;
use serde_json::{Value, json};

use crate::page::{open, run_shortly};
use crate::{LATENCY, SECRET, hold_after, pause_after, set_up};

#[tokio::test]
async fn a_second_tab_follows_a_run_and_says_where_it_goes_on() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 30, "Run study").await;
    let address = browser.js("return location.href").await;
    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second).await.unwrap();
    browser.driver.goto(address.as_str().unwrap()).await.unwrap();
    browser
        .until_shown("This run goes on in another tab of this browser.")
        .await;
    browser.until_shown("running in another tab").await;
    let shown = browser.text("main").await;
    for misleading in ["interrupted", "needs a key", "Resume", "broke off"] {
        assert!(!shown.contains(misleading), "{misleading} in {shown}");
    }
    let rollouts = async || {
        let meter = "return document.querySelector('.meter .v')?.innerText ?? ''";
        browser.js(meter).await
    };
    let before = rollouts().await;
    stub.let_through(40);
    browser
        .until("the spend shown here grows", async || rollouts().await != before)
        .await;
    stub.let_all_through();
    browser.until_shown("Finished.").await;
    browser.until_shown("See the result").await;
    assert!(!browser.text("main").await.contains("in another tab"));
}

#[tokio::test]
async fn a_run_waits_after_its_pilot_says_what_to_expect_and_pays_for_nothing_twice() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    browser.click("Measure the seed prompt on 5 examples first").await;
    browser
        .until_shown("By five rollouts, the whole study is expected to take")
        .await;
    assert_eq!(stub.request_log().asked(Question::is_rollout), 5);
    assert_eq!(stub.request_log().asked(Question::is_rewrite), 0);
    browser.click("Run the whole study").await;
    browser.until_shown("Finished.").await;
    assert_eq!(stub.request_log().repeats(Question::is_rollout), 0);
    let lines = crate::journal(&browser).await;
    assert_eq!(of_kind(&lines, "finished").len(), 1);
}

#[tokio::test]
async fn a_pilot_that_is_paused_and_reloaded_becomes_no_whole_study_unasked() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    // Four are under way at once: the fifth is not begun.
    pause_after(&browser, &stub, 0, "Measure the seed prompt on 5 examples first").await;
    assert!(stub.request_log().asked(Question::is_rollout) < 5);
    browser.reload().await;
    let host = stub.base_url.trim_start_matches("http://");
    let field = format!("Key for {}", host.trim_end_matches("/v1"));
    browser.type_in(&field, SECRET).await;
    browser.click("Resume").await;
    browser.until_shown("Run the whole study").await;
    browser.reload().await;
    browser.until_shown("Run the whole study").await;
    let request_log = stub.request_log();
    assert_eq!(request_log.asked(Question::is_rollout), 5);
    assert_eq!(request_log.asked(Question::is_rewrite), 0);
}

#[tokio::test]
async fn a_tab_that_watched_a_pilot_says_what_it_waits_for() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 0, "Measure the seed prompt on 5 examples first").await;
    let address = browser.js("return location.href").await;
    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second).await.unwrap();
    browser.driver.goto(address.as_str().unwrap()).await.unwrap();
    browser.until_shown("running in another tab").await;
    stub.let_all_through();
    browser.until_shown("Run the whole study").await;
    assert!(!browser.text("main").await.contains("interrupted"));
}

#[tokio::test]
async fn cleared_site_data_leave_a_run_in_memory_that_says_so() {
    let browser = open("/").await;
    run_shortly(&browser).await;
    browser.until_shown("Round 1 closed").await;
    let all = json!({ "origin": browser.page, "storageTypes": "all" });
    browser.devtools("Storage.clearDataForOrigin", all).await;
    browser
        .until_shown("The stored data of this page were deleted.")
        .await;
    browser.until_shown("Finished.").await;
    let shown = browser.text("body").await;
    for wrong in [
        "InvalidStateError",
        "is kept. Resume",
        "A newer version of this page",
    ] {
        assert!(!shown.contains(wrong), "{wrong} in {shown}");
    }
    browser.click("Download journal").await;
    let journal = browser.downloaded(".jsonl").await;
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let last: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&first["event"], &last["event"]),
        (&json!("study"), &json!("finished"))
    );
}

#[tokio::test]
async fn a_deleted_database_is_noticed_at_once() {
    let browser = open("/").await;
    run_shortly(&browser).await;
    browser.until_shown("Round 1 closed").await;
    let first = browser.driver.window().await.unwrap();
    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second).await.unwrap();
    browser
        .driver
        .goto(format!("{}/icons/capo.svg", browser.page))
        .await
        .unwrap();
    browser.js("indexedDB.deleteDatabase('capo')").await;
    browser.driver.switch_to_window(first).await.unwrap();
    browser
        .until_shown("The stored data of this page were deleted.")
        .await;
    browser.until_shown("Finished.").await;
}

/// Stops the run and waits until it has stopped.
pub(crate) async fn stop(browser: &Browser) {
    browser.click("Stop").await;
    browser.until_shown("Stop this run?").await;
    let confirm =
        "[...document.querySelectorAll('dialog[open] button')].find((one) => one.type === 'submit').click()";
    browser.js(confirm).await;
    let asked = Instant::now();
    browser
        .until_shown("Stopped. The best prompt so far is kept")
        .await;
    // Two seconds are a benchmark's matter; this machine may be busy with other tests.
    let took = asked.elapsed();
    assert!(took <= Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn stop_lets_no_dialogue_go_on_and_what_it_was_answered_is_not_paid_again() {
    let study = Study::new("http://unused")
        .with_workload("kind = \"desk\"\noptimize = 8\nevaluate = 2")
        .with("metric = \"correct\"", "metric = \"success\"")
        .with("metric = \"too_long\"", "metric = \"excess_tools\"")
        .with("rounds = 4", "rounds = 1");
    let models = study.models();
    // A dialogue is two calls: the first asks for an order, the second gives up.
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), move |question, _| match question {
        question if !question.is_rollout() => models.answer(question),
        question if question.tool.is_empty() => Answer::Call("get_order", json!({ "order_id": "O-1" })),
        _ => Answer::Call("transfer_to_human", json!({ "reason": "no such order" })),
    });
    let study = study.with("http://unused", &stub.base_url);
    let browser = open("/study").await;
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("was taken in").await;
    browser.fill("Key of task agent", SECRET).await;
    // Of an odd number of answers one was the first of a dialogue that waits for its second.
    hold_after(&browser, &stub, 5, "Run study").await;
    browser
        .until("as many calls wait as may", async || stub.open() == 4)
        .await;
    let before = stub.request_log();
    stop(&browser).await;
    browser
        .until("nobody waits for an answer", async || stub.open() == 0)
        .await;
    stub.let_all_through();
    let lines = crate::journal(&browser).await;
    assert_eq!(of_kind(&lines, "finished").last().unwrap()["status"], "stopped");
    let stopped = stub.request_log();
    assert_eq!(stopped.requests, before.requests, "no call begins after it");
    assert_eq!(stopped.answered(Question::is_rollout), 5);

    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
    assert_eq!(stub.request_log().repeats(Question::is_rollout), 0);
    assert!(stub.requests() > before.requests);
}

#[tokio::test]
async fn stop_ends_a_run_within_two_seconds_whatever_its_server_does() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), move |question, _| {
        if question.is_rewrite() {
            return Answer::Silence;
        }
        models.answer(question)
    });
    let study = study.with("http://unused", &stub.base_url);
    let browser = set_up(&study, SECRET).await;
    browser.click("Run study").await;
    browser
        .until("the rewriter is asked", async || {
            stub.request_log().asked(Question::is_rewrite) > 0
        })
        .await;
    stop(&browser).await;
    let lines = crate::journal(&browser).await;
    assert_eq!(of_kind(&lines, "finished").last().unwrap()["status"], "stopped");
}

#[tokio::test]
async fn a_wait_for_a_server_is_said_while_it_lasts() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), move |question, asked| match asked {
        0 => Answer::Error(429, Some(4)),
        1..=3 => Answer::Error(500, None),
        _ => models.answer(question),
    });
    let study = study.with("http://unused", &stub.base_url);
    let browser = set_up(&study, SECRET).await;
    browser.click("Run study").await;
    let asked = Instant::now();
    browser.until_shown("asked to wait").await;
    assert!(asked.elapsed() <= Duration::from_secs(5));
    let bar = browser.text(".runbar").await;
    assert!(bar.contains("Nothing was counted as a score"), "{bar}");
    // What failed is tried again, which is said as soon.
    browser
        .until("a server that fails is told", async || {
            let bar = browser.text(".runbar").await;
            bar.contains("HTTP 500") && bar.contains("trying again in")
        })
        .await;
    assert!(asked.elapsed() <= Duration::from_secs(12));
}

#[tokio::test]
async fn times_and_the_spend_outlast_a_reload() {
    let browser = open("/").await;
    run_shortly(&browser).await;
    browser.until_shown("Round 2 closed").await;
    browser.until_shown("Finished.").await;
    browser.reload().await;
    browser.until_shown("Finished.").await;
    let times = "return [...document.querySelectorAll('.log time')].map((one) => one.innerText)";
    let times = browser.js(times).await;
    let times: Vec<&str> = times
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        times.len() > 3 && times.iter().all(|time| time.contains(':')),
        "{times:?}"
    );
    browser.click("Result").await;
    browser.until_shown("in this browser").await;
}

#[tokio::test]
async fn a_budget_is_raised_above_what_is_spent() {
    let (study, _stub) = Study::new("http://unused")
        .with_budget("rollouts = 40")
        .on_stub_with(Duration::ZERO, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    browser.click("Run study").await;
    browser.click("Raise the budget…").await;
    browser.type_in("Rollouts", "30").await;
    browser.click("Go on with this budget").await;
    browser.until_shown("are spent already").await;
    browser.type_in("Rollouts", "4000").await;
    browser.click("Go on with this budget").await;
    browser.until_shown("Finished.").await;
}

#[tokio::test]
async fn a_threshold_is_typed_while_the_run_goes_on() {
    let browser = open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
    browser.type_in("Human requests, as a number", "42").await;
    browser.press(Key::Tab).await;
    browser.until_shown("→ 42%").await;
    // It is written when the round under way closes.
    browser
        .until("the threshold is in the journal", async || {
            !of_kind(&crate::journal(&browser).await, "steer").is_empty()
        })
        .await;
    let lines = crate::journal(&browser).await;
    let steers = of_kind(&lines, "steer");
    assert_eq!(steers[0]["thresholds"]["human_requests"], json!(0.42));
}
