//! A key that a project shares: added by an administrator, used by a member who never has it, within limits.

use std::time::Duration;

use capo_browser::Browser;
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::json;
use tempfile::TempDir;

use crate::team::{browser, made_project, server, with_link};
use crate::team_runs::pick;
use crate::{SECRET, STORED, barriers};

/// Types the settings of the stub's key, and the key, and adds it.
pub(crate) async fn add_key(ada: &Browser, stub: &Stub) {
    ada.go("/team/server").await;
    ada.until_shown("Add a key").await;
    ada.type_in("Name in addresses", "stub").await;
    pick(ada, "Provider", "OpenAI-compatible").await;
    ada.click("Add the key").await;
    ada.until_shown("Write where its API is").await;
    ada.type_in("Base URL", &stub.base_url).await;
    ada.type_in("Projects", "help-desk").await;
    ada.fill("Models", "stub 1 2\nother-*").await;
    ada.type_in("The provider’s key", SECRET).await;
    ada.click("Add the key").await;
    ada.until_shown("names a private host").await;
    let typed = "return document.getElementById('key-secret').value";
    assert_eq!(ada.js(typed).await, json!(""), "a key does not stay in its field");
    ada.click("A private host").await;
    ada.type_in("The provider’s key", SECRET).await;
    ada.click("Add the key").await;
    ada.until_shown("stub, other-*").await;
    assert_eq!(barriers(ada).await, Vec::<String>::new());
}

/// Limits what may be asked with the stub's key in a day.
async fn limit(ada: &Browser, requests: &str, shown: &str) {
    ada.go("/team/server").await;
    ada.type_in("Whose", "stub").await;
    ada.type_in("Requests a day", requests).await;
    ada.click("Set the limits").await;
    ada.until_shown(shown).await;
}

/// Sets up a study whose agent is asked with the project's key.
pub(crate) async fn set_up(bea: &Browser, study: &Study) {
    bea.go("/study").await;
    bea.choose("Study file", &study.path()).await;
    bea.until_shown("was taken in").await;
    bea.choose("Rows", &study.file("problems.jsonl")).await;
    pick(bea, "Whose key for task agent", "Key stub of Help desk").await;
    bea.until_shown("the page never has it").await;
}

/// That the key stands nowhere in a browser.
async fn has_no_key(browser: &Browser) {
    let fields =
        "return JSON.stringify([...document.querySelectorAll('input, textarea')].map((one) => one.value))";
    for (what, text) in [
        ("storage", browser.js_async(STORED).await.to_string()),
        ("a field", browser.js(fields).await.to_string()),
        (
            "the page",
            browser
                .js("return document.documentElement.outerHTML")
                .await
                .to_string(),
        ),
        ("the console", browser.console().await),
        ("an address", browser.requests().await.join("\n")),
    ] {
        assert!(!text.contains(SECRET), "the key stands in {what}");
    }
}

#[tokio::test]
async fn a_member_runs_a_study_with_a_key_that_the_page_never_has() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let study = Study::new("http://127.0.0.1:9/v1");
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), study.models().script());
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;
    add_key(&ada, &stub).await;
    limit(&ada, "5000", "5,000 requests").await;
    has_no_key(&ada).await;

    let bea = browser(&server).await;
    with_link(&bea, &invitation, "bea").await;
    ada.go("/team/projects/help-desk").await;
    ada.until_shown("Shared keys").await;
    ada.until_shown(&format!("{}/api/proxy/stub", server.base_url))
        .await;
    pick(&ada, "Role of bea", "editor").await;
    ada.until_shown("role.editor").await;

    set_up(&bea, &study).await;
    assert_eq!(barriers(&bea).await, Vec::<String>::new());
    let key_fields = "return document.querySelectorAll('[aria-label=\"Key of task agent\"]').length";
    assert_eq!(bea.js(key_fields).await, json!(0), "no key is asked for");
    bea.click("Test").await;
    bea.until_shown("answers").await;
    bea.click("Run study").await;
    bea.until_shown("Finished.").await;
    has_no_key(&bea).await;
    let request_log = stub.request_log();
    let sent = Some(format!("Bearer {SECRET}"));
    assert!(request_log.requests > 0 && request_log.authorizations.iter().all(|header| *header == sent));
    let own = format!("{}/", server.base_url);
    let requests = bea.requests().await;
    let elsewhere: Vec<_> = requests.iter().filter(|url| !crate::is_own(url, &own)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");

    // The server goes on with it, by the key itself.
    bea.click("Push to the team…").await;
    bea.until_shown("Push this run to the team").await;
    bea.click("Push").await;
    bea.until_shown("It is on the server.").await;
    bea.click("Open it there").await;
    bea.until_shown("project help-desk, started by bea").await;
    bea.click("Branch…").await;
    bea.type_in("After round", "1").await;
    bea.click("Branch").await;
    bea.until_shown("branched after round 1").await;
    let asked = stub.request_log().requests;
    bea.click("Resume").await;
    bea.until_shown("Finished.").await;
    assert!(stub.request_log().requests > asked);

    // What it cost, by whom, and how much of it was today.
    ada.go("/team/server").await;
    ada.until_shown("Used in the last 30 days").await;
    ada.until("what bea used is shown", async || {
        ada.text("#usage-plate").await.contains("bea")
    })
    .await;
    assert!(ada.text("#usage-plate").await.contains("stub"));
    assert!(ada.text("#keys-plate").await.contains("requests"));
    assert_eq!(barriers(&ada).await, Vec::<String>::new());

    // Beyond the limit the run says so.
    limit(&ada, "1", "1 request").await;
    set_up(&bea, &study).await;
    bea.click("Run study").await;
    bea.until_shown("the key limit of 1 requests a day").await;

    // A key of one's own takes its place again.
    bea.go("/study").await;
    pick(&bea, "Whose key for task agent", "Key of my own").await;
    bea.fill("Key of task agent", "sk-my-own").await;

    // One that is changed to be sent elsewhere is asked for anew; one that is deleted is gone.
    ada.go("/team/server").await;
    ada.click("Change").await;
    ada.until_shown("Change the key stub").await;
    ada.type_in("Base URL", "http://127.0.0.1:9/v1").await;
    ada.click("Change the key").await;
    ada.until_shown("type the key for that place").await;
    ada.click("Leave it as it is").await;
    ada.until_shown("Add a key").await;
    ada.click("Delete").await;
    ada.until_shown("Delete the key stub?").await;
    ada.click_at("dialog[open] button[type=submit]").await;
    ada.until_shown("With one, members ask models").await;
}
