//! New study: where keys go, what is typed, what is dropped, where the focus goes.

use capo_browser::{Browser, Key};
use capo_tests::program::run;
use capo_tests::study::Study;
use serde_json::json;

use crate::SECRET;
use crate::page::open;

/// The value of the field of this accessible name.
const VALUE: &str = "return document.querySelector(`[aria-label=\"${arguments[0]}\"]`)?.value";

/// What has the focus: its id, else its tag.
const FOCUSED: &str = "const one = document.activeElement; return one.id || one.tagName";

async fn value(browser: &Browser, label: &str) -> String {
    let value = browser.js_with(VALUE, vec![json!(label)]).await;
    value.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_key_stays_with_the_server_it_was_typed_for() {
    let study = Study::new("http://127.0.0.1:9/v1").with("openai-compatible", "openai");
    let browser = crate::set_up(&study, SECRET).await;
    assert_eq!(value(&browser, "Key of task agent").await, SECRET);
    browser.fill("Base URL of task agent", "").await;
    browser.until_shown("was typed for 127.0.0.1:9").await;
    assert_eq!(value(&browser, "Key of task agent").await, "");
    browser.until_shown("has no key for OpenAI").await;
}

#[tokio::test]
async fn a_key_written_into_a_study_gets_into_no_link() {
    let mut study = Study::new("http://127.0.0.1:9/v1");
    study.replace(
        "model = \"stub\"",
        "model = \"stub\"\nheaders = { Authorization = \"Bearer sk-written\" }",
    );
    let browser = crate::set_up(&study, SECRET).await;
    browser.until_shown("carries a key").await;
    browser.click("Copy link").await;
    browser.until_shown("Nothing was changed").await;
    assert!(!browser.text("body").await.contains("sk-written"));
}

#[tokio::test]
async fn keys_are_remembered_by_keyboard_and_forgotten_when_asked() {
    let study = Study::new("http://127.0.0.1:9/v1");
    let browser = crate::set_up(&study, SECRET).await;
    browser.click("Remember on this device").await;
    browser
        .until("the passphrase has the focus", async || {
            browser.js(FOCUSED).await == json!("passphrase")
        })
        .await;
    browser.fill("The same once more", "correct horse battery").await;
    browser.fill("Passphrase", "correct horse battery").await;
    browser.press(Key::Enter).await;
    browser.until_shown("Kept, encrypted").await;
    browser.click("Remember on this device").await;
    browser.until_shown("Forget the keys kept here?").await;
    browser.click("Keep").await;
    browser.reload().await;
    browser.go("/study").await;
    browser.until_shown("Unlock the keys kept here").await;
    browser.click("Unlock the keys kept here").await;
    browser.fill("Passphrase", "correct horse battery").await;
    browser.press(Key::Enter).await;
    browser.until_shown("Taken out: 127.0.0.1:9.").await;
}

#[tokio::test]
async fn mistyped_text_stays_and_its_link_leads_there() {
    let browser = open("/study").await;
    browser.fill("Rounds", "six").await;
    browser.until_shown("First set right:").await;
    // Another method makes its fields anew.
    let choose = "const one = document.getElementById('method'); one.value = 'sampling';
        one.dispatchEvent(new Event('change', { bubbles: true }))";
    browser.js(choose).await;
    browser.until_shown("Rewrites").await;
    let rounds = "return document.getElementById('f-study-rounds').value";
    assert_eq!(browser.js(rounds).await, json!("six"));
    for _ in 0..2 {
        browser.js("document.activeElement.blur()").await;
        browser.click("Rounds").await;
        browser
            .until("the field has the focus", async || {
                browser.js(FOCUSED).await == json!("f-study-rounds")
            })
            .await;
    }
    browser.click("Runs").await;
    browser
        .until("the title has the focus", async || {
            browser.js(FOCUSED).await == json!("H1")
        })
        .await;
}

/// Which of the folded sections are open.
const UNFOLDED: &str = "return [...document.querySelectorAll('.folded > details')].map((one) => one.open)";

async fn until_unfolded(browser: &Browser, wanted: [bool; 3]) {
    browser
        .until(
            &format!("the folded sections are open as {wanted:?}"),
            async || browser.js(UNFOLDED).await == json!(wanted),
        )
        .await;
}

#[tokio::test]
async fn folded_sections_say_what_is_set_and_open_by_key_by_problem_and_by_link() {
    let browser = open("/study").await;
    for set in [
        "Success, human requests ≤ 37%, excess tools ≤ 1.25",
        "CAPO, ",
        "At most 3,000 rollouts",
    ] {
        browser.until_shown(set).await;
    }
    until_unfolded(&browser, [false; 3]).await;
    browser
        .js("document.querySelector('.folded summary').focus()")
        .await;
    browser.press(Key::Enter).await;
    until_unfolded(&browser, [true, false, false]).await;
    let mistype = "const one = document.getElementById('f-study-rounds'); one.value = 'six';
        one.dispatchEvent(new Event('input', { bubbles: true }))";
    browser.js(mistype).await;
    until_unfolded(&browser, [true, true, false]).await;
    browser
        .js("document.querySelectorAll('.folded > details > summary')[1].click()")
        .await;
    until_unfolded(&browser, [true, false, false]).await;
    browser.click_at("#start-why a").await;
    until_unfolded(&browser, [true, true, false]).await;
    browser
        .until("the field has the focus", async || {
            browser.js(FOCUSED).await == json!("f-study-rounds")
        })
        .await;
}

#[tokio::test]
async fn a_journal_taken_to_new_study_is_opened() {
    let (study, _stub) = Study::new("http://unused").on_stub();
    run(&mut study.optimize()).expect_code(0);
    let browser = open("/study").await;
    browser.choose("Study file", &study.journal()).await;
    browser.until_shown("Finished.").await;
    assert!(
        browser
            .js("return location.pathname")
            .await
            .as_str()
            .unwrap()
            .contains("/run/")
    );
}
