//! The playground in a real browser.

use capo_tests::browser::Browser;

#[tokio::test]
async fn the_demonstration_finds_a_feasible_prompt() {
    let browser = Browser::open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Simulated models, not a real agent").await;
    // A violated constraint's multiplier has risen above where it began.
    browser.until_shown("Round 2 closed").await;
    let strips = browser.text(".strips").await;
    assert!(strips.contains("threshold"), "{strips}");
    browser.until_shown("finished").await;
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;
    assert!(browser.text("main").await.contains("feasible"));
}
