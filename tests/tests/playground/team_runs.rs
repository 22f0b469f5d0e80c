//! Runs on the team's server, from the page: started there, watched by others, ordered about, pushed.

use capo_browser::{Browser, Key};
use capo_tests::journal::of_kind;
use serde_json::json;
use tempfile::TempDir;

use crate::barriers;
use crate::team::{address, browser, made_project, server, with_link};

/// Chooses the option that begins with some words in the list of this name.
const PICK: &str = "const [label, words] = arguments;
    const labels = [...document.querySelectorAll('label')];
    const list = labels.find((one) => one.innerText.trim() === label && one.offsetParent)?.control
        ?? document.querySelector(`select[aria-label=\"${label}\"]`);
    const option = [...(list?.options ?? [])].find((one) => one.text.trim().startsWith(words));
    if (!option) return false;
    list.value = option.value;
    list.dispatchEvent(new Event('change', { bubbles: true }));
    return true";

/// Whether the first button shown of this name is disabled.
const IS_DISABLED: &str = "const all = [...document.querySelectorAll('main button')];
    return all.find((one) => one.offsetParent && one.innerText.trim() === arguments[0])?.disabled ?? null";

pub(crate) async fn pick(browser: &Browser, label: &str, words: &str) {
    browser
        .until(&format!("`{words}` can be chosen"), async || {
            browser.js_with(PICK, vec![json!(label), json!(words)]).await == json!(true)
        })
        .await;
}

async fn is_disabled(browser: &Browser, name: &str) {
    browser
        .until(&format!("`{name}` is disabled"), async || {
            browser.js_with(IS_DISABLED, vec![json!(name)]).await == json!(true)
        })
        .await;
}

/// Starts the study that New study begins with on the server.
pub(crate) async fn start_there(browser: &Browser) {
    browser.go("/study").await;
    pick(browser, "Where it runs", "On the server, Help desk").await;
    browser
        .until_shown("asks models with the keys that the project shares")
        .await;
    assert_eq!(barriers(browser).await, Vec::<String>::new());
    browser.click("Run study").await;
    browser.until_shown("project help-desk, started by ada").await;
}

#[tokio::test]
async fn a_run_on_the_server_is_watched_and_told_what_to_do() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;
    start_there(&ada).await;
    let run = address(&ada).await;
    assert!(run.starts_with("/run/team-"), "{run}");
    ada.until_shown("running on the server").await;
    // At its beginning: at its end nothing can be typed any more.
    ada.type_in("Human requests, as a number", "42").await;
    ada.press(Key::Tab).await;
    ada.until_shown("Round 1 closed").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());

    // Who may only read sees it as it goes, and why there is nothing to press.
    let bea = browser(&server).await;
    with_link(&bea, &invitation, "bea").await;
    bea.go(&run).await;
    bea.until_shown("Round 1 closed").await;
    bea.until_shown("You are a viewer of the project help-desk").await;
    is_disabled(&bea, "Branch…").await;

    ada.click("Pause").await;
    ada.until_shown("Paused. Calls under way were finished and counted.")
        .await;
    bea.until_shown("Paused. Calls under way were finished and counted.")
        .await;
    is_disabled(&bea, "Resume").await;
    ada.click("Resume").await;
    ada.until_shown("running on the server").await;

    // A reload goes on from the mirror; nothing is asked of this browser meanwhile.
    ada.reload().await;
    ada.until_shown("Finished.").await;
    let lines = crate::journal(&ada).await;
    let steers = of_kind(&lines, "steer");
    assert_eq!(steers[0]["thresholds"]["human_requests"], json!(0.42));
    assert_eq!(of_kind(&lines, "finished").len(), 2, "paused once, then finished");

    // Both find it in the list, once.
    for browser in [&ada, &bea] {
        browser.go("/runs").await;
        browser.until_shown("project help-desk, started by ada").await;
        let rows = browser
            .js("return document.querySelectorAll('table.runs tbody tr').length")
            .await;
        assert_eq!(rows, json!(1));
    }
    bea.js("document.querySelector('table.runs th a').click(); return true")
        .await;
    bea.click("Result").await;
    bea.until_shown("Copy prompt").await;

    // The team's data go with whoever signs out.
    bea.click("Sign out").await;
    bea.until_shown("Sign in to see it").await;
    bea.until("nothing of it is kept", async || {
        crate::journal(&bea).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_run_of_the_browser_is_pushed_and_branched_on_the_server() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    made_project(&ada, &server, &link).await;
    ada.go("/").await;
    ada.click("Run the help-desk study").await;
    ada.until_shown("Finished.").await;
    let here = address(&ada).await;
    ada.click("Push to the team…").await;
    ada.until_shown("Push this run to the team").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Push").await;
    ada.until_shown("It is on the server.").await;
    ada.click("Open it there").await;
    ada.until_shown("project help-desk, started by ada").await;
    assert_ne!(address(&ada).await, here);
    ada.until_shown("Finished.").await;

    ada.click("Branch…").await;
    ada.type_in("After round", "2").await;
    ada.click("Branch").await;
    ada.until_shown("branched after round 2").await;
    ada.until_shown("2 of 6 rounds").await;

    // One row in the browser, two on the server.
    ada.go("/runs").await;
    ada.until_shown("branched after round 2").await;
    let rows = "return document.querySelectorAll('table.runs tbody tr').length";
    assert_eq!(ada.js(rows).await, json!(3));
    ada.js(
        "[...document.querySelectorAll('table.runs tr')].find((one) => one.innerText.includes('branched'))
            .querySelector('input').click(); return true",
    )
    .await;
    ada.click("Delete…").await;
    ada.until_shown("for everybody of its project").await;
    ada.click("Delete").await;
    ada.until("its row is gone", async || ada.js(rows).await == json!(2))
        .await;
}
