//! Networks, servers, storage and versions that fail or change under the page.

use capo_browser::{Browser, Key};
use capo_tests::stub::{Question, Stub};
use capo_tests::study::Study;
use serde_json::{Value, json};

use crate::page::{Host, open, run_shortly};
use crate::{LATENCY, SECRET, hold_after, set_up};

/// Waits until the page is kept for when there is no network.
pub(crate) async fn until_kept(browser: &Browser) {
    let is_kept = "return navigator.serviceWorker.controller?.state === 'activated'";
    browser
        .until("the service worker keeps the page", async || {
            browser.js(is_kept).await == Value::Bool(true)
        })
        .await;
}

/// Tells the page that this device has no network, or has one again. Its worker's calls go through
/// all the same.
pub(crate) async fn set_offline(browser: &Browser, offline: bool) {
    let conditions = json!({
        "offline": offline, "latency": 0, "download_throughput": -1, "upload_throughput": -1,
    });
    // The command of the developer tools holds for one document only, and this one for those after it too.
    browser
        .chromium(
            "/chromium/network_conditions",
            json!({ "network_conditions": conditions }),
        )
        .await;
}

#[tokio::test]
async fn without_a_network_the_page_opens_and_runs() {
    let host = Host::start();
    let browser = host.open("/").await;
    until_kept(&browser).await;
    host.go_down();
    set_offline(&browser, true).await;
    browser.reload().await;
    browser.until_shown("No network. Runs on simulated models").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
    browser.reload().await;
    browser.until_shown("Resume").await;
}

#[tokio::test]
async fn a_newer_version_is_offered_and_waits_for_the_run() {
    let host = Host::of_copy();
    let browser = host.open("/").await;
    until_kept(&browser).await;
    run_shortly(&browser).await;
    browser.until_shown("Round 1 closed").await;
    let version = |text: &str| {
        let (_, rest) = text.split_once("VERSION").unwrap();
        rest.split('"').nth(1).unwrap().to_owned()
    };
    let old = host.change("sw.js", |text| text.replacen(&version(text), "a-newer-one", 1));
    let old = version(&old);
    browser
        .js_async("await (await navigator.serviceWorker.ready).update(); return true")
        .await;
    browser
        .until_shown("A newer version of this page is ready.")
        .await;
    let caches = "return (await caches.keys()).join(' ')";
    let kept = browser.js_async(caches).await.to_string();
    assert!(kept.contains(&old) && kept.contains("a-newer-one"), "{kept}");
    assert!(
        !browser.text("body").await.contains("Finished."),
        "the run goes on"
    );
    browser.until_shown("Finished.").await;
    browser.js("window.isOld = true").await;
    browser.click("Reload now").await;
    let is_new = "return !window.isOld && document.documentElement.dataset.ready === 'true'";
    browser
        .until("it is loaded again", async || {
            browser.js(is_new).await == Value::Bool(true)
        })
        .await;
    let kept = browser.js_async(caches).await.to_string();
    assert!(kept.contains("a-newer-one") && !kept.contains(&old), "{kept}");
    browser.until_shown("See the result").await;
}

#[tokio::test]
async fn a_run_goes_on_where_the_browser_stores_no_more() {
    let browser = open("/").await;
    until_kept(&browser).await;
    let quota = json!({ "origin": browser.page, "quotaSize": 1 });
    browser.devtools("Storage.overrideQuotaForOrigin", quota).await;
    run_shortly(&browser).await;
    browser.until_shown("This browser will not store more.").await;
    browser.until_shown("Finished.").await;
    browser.click("Download journal").await;
    let journal = browser.downloaded(".jsonl").await;
    let last: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "finished");
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;
}

#[tokio::test]
async fn a_page_that_finds_no_room_to_be_kept_says_so_and_works() {
    let host = Host::start();
    let browser = Browser::start(host.address(), &[], &["browser"]).await;
    // What does not keep the page is of its origin already.
    let script = format!("{}/boot.js", browser.page);
    browser.driver.goto(script).await.unwrap();
    let quota = json!({ "origin": browser.page, "quotaSize": 1 << 20 });
    browser.devtools("Storage.overrideQuotaForOrigin", quota).await;
    browser.go("/").await;
    browser
        .until("it says why", async || {
            let told = browser.console().await;
            told.contains("The page is not kept in this browser") && told.contains("Quota")
        })
        .await;
    browser.until_shown("Run the help-desk study").await;
}

#[tokio::test]
async fn the_first_page_says_what_it_is_before_its_module_has_come() {
    let host = Host::of_copy();
    host.change("boot.js", |_| String::new());
    let browser = Browser::start(host.address(), &[], &["browser"]).await;
    browser.driver.goto(format!("{}/", browser.page)).await.unwrap();
    browser
        .until_shown("The best prompt that keeps within your limits")
        .await;
    browser.until_shown("Run the help-desk study").await;
    // Other pages have other words.
    browser
        .driver
        .goto(format!("{}/runs", browser.page))
        .await
        .unwrap();
    browser.until_shown("Capo").await;
    assert!(!browser.text("body").await.contains("within your limits"));
}

/// The largest sum of layout shifts within five seconds of which none is a second apart, as browsers count them (CLS).
/// Nothing where a browser does not count them.
const SHIFTED: &str = "if (!PerformanceObserver.supportedEntryTypes.includes('layout-shift')) return null;
    return await new Promise((resolve) => {
        new PerformanceObserver((list) => {
            let [most, sum, first, last] = [0, 0, 0, -Infinity];
            for (const { value, startTime, hadRecentInput } of list.getEntries()) {
                if (hadRecentInput) continue;
                if (startTime - last > 1000 || startTime - first > 5000) [sum, first] = [0, startTime];
                [sum, last] = [sum + value, startTime];
                most = Math.max(most, sum);
            }
            resolve(most);
        }).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => resolve(0), 2000);
    })";

#[tokio::test]
async fn little_moves_by_itself_on_a_slow_telephone() {
    let browser = open("/").await;
    crate::on_telephone(&browser).await;
    browser
        .devtools("Emulation.setCPUThrottlingRate", json!({ "rate": 4 }))
        .await;
    browser.reload().await;
    // What follows a key that was pressed is no shift.
    let focus = "document.querySelector('.welcome button.primary').focus()";
    browser.js(focus).await;
    browser.press(Key::Enter).await;
    browser.until_shown("Round 3 closed").await;
    let shifted = browser.js_async(SHIFTED).await.as_f64();
    let shifted = shifted.expect("a browser that counts layout shifts");
    assert!(shifted < 0.05, "{shifted}");
}

#[tokio::test]
async fn a_worker_that_does_not_load_can_be_started_again() {
    // From the start: the service worker keeps no file that is not of its version.
    let host = Host::of_copy();
    let script = host.change("capo-worker.js", |_| "throw new Error('half of it');".to_owned());
    let browser = host.open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("The worker of this run stopped").await;
    host.change("capo-worker.js", |_| script.clone());
    browser.click("Resume").await;
    browser.until_shown("Round 1 closed").await;
}

#[tokio::test]
async fn a_server_that_goes_away_is_waited_for() {
    let (study, mut stub) = Study::new("http://unused")
        .with_agent("retries = 1")
        .on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 30, "Run study").await;
    stub.leave();
    browser.until_shown("a model cannot be reached").await;
    stub.let_all_through();
    stub.come_back();
    browser.until_shown("Finished.").await;
    assert_eq!(stub.request_log().repeats(Question::is_rollout), 0);
    assert_eq!(stub.request_log().repeats(Question::is_rewrite), 0);
}

#[tokio::test]
async fn a_run_over_the_network_pauses_without_one_and_goes_on_with_it() {
    let study = Study::new("http://unused");
    let stub = Stub::start_with(LATENCY, Some(SECRET), study.models().script());
    // A server of this device would be reached without a network.
    let elsewhere = stub.base_url.replace("127.0.0.1", "models.example");
    let study = study.with("http://unused", &elsewhere);
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 30, "Run study").await;
    set_offline(&browser, true).await;
    stub.let_all_through();
    browser
        .until_shown("Paused; goes on by itself when it returns")
        .await;
    set_offline(&browser, false).await;
    browser.until_shown("Finished.").await;
    assert_eq!(stub.request_log().repeats(Question::is_rollout), 0);
}

#[tokio::test]
async fn a_pilot_whose_server_goes_away_waits_for_it() {
    let (study, mut stub) = Study::new("http://unused")
        .with_agent("retries = 1")
        .on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 2, "Measure the seed prompt on 5 examples first").await;
    stub.leave();
    browser.until_shown("a model cannot be reached").await;
    stub.let_all_through();
    stub.come_back();
    browser.until_shown("Run the whole study").await;
    assert_eq!(stub.request_log().answered(Question::is_rollout), 5);
    assert_eq!(stub.request_log().asked(Question::is_rewrite), 0);
}

#[tokio::test]
async fn a_pilot_outlives_its_network_and_stays_a_pilot() {
    let study = Study::new("http://unused");
    let stub = Stub::start_with(LATENCY, Some(SECRET), study.models().script());
    let elsewhere = stub.base_url.replace("127.0.0.1", "models.example");
    let study = study.with("http://unused", &elsewhere);
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 0, "Measure the seed prompt on 5 examples first").await;
    set_offline(&browser, true).await;
    stub.let_all_through();
    browser
        .until_shown("Paused; goes on by itself when it returns")
        .await;
    set_offline(&browser, false).await;
    browser.until_shown("Run the whole study").await;
    // Nor does what is made by now go on when the network comes and goes.
    set_offline(&browser, true).await;
    browser.until_shown("No network. Runs on simulated models").await;
    set_offline(&browser, false).await;
    browser
        .until("the network is back", async || {
            !browser.text("body").await.contains("No network.")
        })
        .await;
    assert!(browser.text("main").await.contains("Run the whole study"));
    assert_eq!(stub.request_log().asked(Question::is_rollout), 5);
    assert_eq!(stub.request_log().asked(Question::is_rewrite), 0);
}
