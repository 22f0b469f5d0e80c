//! New study: the dollars that a run may spend, and the prices by which they are counted.

use capo_browser::{Browser, Key};
use capo_tests::study::Study;
use serde_json::Value;

use crate::SECRET;
use crate::page::open;
use crate::typing::{CAN_RUN, CHOOSE_OPENAI, held};

#[tokio::test]
async fn dollars_want_a_price_before_the_run_and_are_counted_by_it() {
    let (study, _stub) = Study::new("http://unused").on_stub_with(std::time::Duration::ZERO, Some(SECRET));
    let browser = crate::set_up(&study, "").await;
    browser.type_in("Key of task agent", SECRET).await;
    browser.type_in("Dollars", "2").await;
    browser.until_shown("The price of stub is unknown").await;
    assert_eq!(browser.js(CAN_RUN).await, Value::Bool(false));
    // Simulated models cost nothing that is unknown.
    let simulated = "return [...document.querySelectorAll('button')]
        .some((one) => one.innerText.trim() === 'Run with simulated models instead' && !one.disabled)";
    assert_eq!(browser.js(simulated).await, Value::Bool(true));
    browser.type_in("Tokens read", "0.5").await;
    browser.until_shown("State the price of tokens written too").await;
    browser.type_in("Tokens written", "1.5").await;
    browser
        .until("the study can run", async || {
            browser.js(CAN_RUN).await == Value::Bool(true)
        })
        .await;
    // Five answers of 400 tokens each, and what is read for them.
    browser.until_shown("5 examples first, about $0.003").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    assert!(browser.text("main").await.contains("/ $2.00"));
}

/// Types the task agent's model, leaves the field and waits for what stands in that of the dollars then.
async fn until_limited(browser: &Browser, model: &str, dollars: &str) {
    browser.type_in("Model of task agent", model).await;
    browser.press(Key::Tab).await;
    browser
        .until(&format!("`{dollars}` is the limit with {model}"), async || {
            held(browser, "f-budget-usd").await == dollars
        })
        .await;
}

#[tokio::test]
async fn the_usual_limit_of_dollars_comes_and_goes_with_prices_and_yields_to_what_is_typed() {
    let browser = open("/study").await;
    browser.until_shown("Help desk").await;
    browser.js(CHOOSE_OPENAI).await;
    until_limited(&browser, "gpt-5-mini", "5").await;
    // Its price is unknown, so nothing is counted, and nothing said of it.
    until_limited(&browser, "gpt-5-mini-foo", "").await;
    assert!(!browser.text("main").await.contains("dollars cannot be counted"));
    browser.type_in("Tokens read", "1").await;
    browser.type_in("Tokens written", "2").await;
    browser.press(Key::Tab).await;
    browser
        .until("a price that is typed bounds them, too", async || {
            held(&browser, "f-budget-usd").await == "5"
        })
        .await;
    browser.type_in("Dollars", "1").await;
    browser.press(Key::Backspace).await;
    browser.press(Key::Tab).await;
    until_limited(&browser, "gpt-5-mini", "").await;
    browser.reload().await;
    until_limited(&browser, "gpt-5", "").await;
}

#[tokio::test]
async fn a_study_from_a_file_keeps_the_limits_it_came_with() {
    let study = Study::new("http://unused");
    let browser = crate::set_up(&study, SECRET).await;
    browser.js(CHOOSE_OPENAI).await;
    browser.type_in("Model of task agent", "gpt-5-mini").await;
    // The last one of the form's numbers to be left shows that whatever follows a model has followed.
    browser.type_in("Rounds", "3").await;
    browser.press(Key::Tab).await;
    assert_eq!(held(&browser, "f-budget-usd").await, "");
}
