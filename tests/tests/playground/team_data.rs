//! Data sets and studies of a project, from the page: uploaded by button and by drop, looked at, taken into a study, deleted.

use std::path::{Path, PathBuf};

use capo_browser::Browser;
use capo_tests::shared::shared;
use serde_json::json;
use tempfile::TempDir;

use crate::benchmark::{AIRLINE, archive, drop_on_page};
use crate::team::{address, browser, made_project, server, team_of_ada, with_link, with_password};
use crate::{STORED, barriers};

/// A cell that would run if it were anything but text.
const CELL: &str = "<img src=x onerror=\"document.title='run'\">";

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_data_set_is_uploaded_looked_at_and_taken_into_a_study() {
    let (folder, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;
    ada.until_shown("Upload data sets and studies, or drop them here")
        .await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    let rows = format!("question,answer\n{CELL},2\nwhat?,that\nwho?,them\n");
    ada.choose("Data set", &written(files.path(), "rows.csv", &rows))
        .await;
    ada.until_shown("rows.csv was taken in, 3 rows.").await;
    let torn = written(files.path(), "torn.jsonl", "{\"q\":1}\n{\"q\":}\n");
    let more = written(
        files.path(),
        "more.jsonl",
        "{\"question\":\"a\",\"answer\":\"b\"}\n",
    );
    drop_on_page(&ada, &[&torn, &more]).await;
    ada.until_shown("torn.jsonl was not taken in.").await;
    ada.until_shown("torn.jsonl line 2: not JSON: expected a value at column 6")
        .await;
    assert_eq!(
        address(&ada).await,
        "/team/projects/help-desk",
        "it is no journal to be opened"
    );
    ada.until_shown("more.jsonl was taken in, 1 rows.").await;

    // Whoever may only read sees it, and changes nothing.
    let bea = browser(&server).await;
    with_link(&bea, &invitation, "bea").await;
    bea.go("/team/projects/help-desk").await;
    bea.click("rows.csv").await;
    bea.until_shown("All rows").await;
    bea.until_shown(CELL).await;
    assert_eq!(barriers(&bea).await, Vec::<String>::new());
    assert_ne!(bea.js("return document.title").await, json!("run"));
    let shown = bea.text("main").await;
    assert!(
        shown.contains("added by ada") || shown.contains("Added by ada"),
        "{shown}"
    );
    assert!(!shown.contains("Delete"), "{shown}");
    let downloaded =
        "const link = [...document.querySelectorAll('a')].find((one) => one.innerText === 'Download');
        return await (await fetch(link.href)).text()";
    assert_eq!(bea.js_async(downloaded).await, json!(rows));

    ada.click("rows.csv").await;
    ada.until_shown(CELL).await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("New study from this data").await;
    ada.until_shown("rows.csv was taken in, 3 rows.").await;
    assert_eq!(address(&ada).await, "/study");
    ada.until_shown(CELL).await;
    // In the form, another one is chosen beside files of one's own.
    ada.click("Take another").await;
    let pick = "const list = document.querySelector('select[aria-label=\"A data set of the team\"]');
        const option = [...(list?.options ?? [])].find((one) => one.text.includes('more.jsonl'));
        if (!option) return false;
        list.value = option.value;
        return true";
    ada.until("the team's data can be chosen", async || {
        ada.js(pick).await == json!(true)
    })
    .await;
    ada.click("Take it in").await;
    ada.until_shown("more.jsonl was taken in, 1 rows.").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());

    ada.go("/team/projects/help-desk").await;
    ada.click("rows.csv").await;
    ada.click("Delete").await;
    ada.until_shown("Delete the data set rows.csv?").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click_at("dialog[open] button[type=submit]").await;
    ada.until("one is back at the project", async || {
        address(&ada).await == "/team/projects/help-desk"
    })
    .await;
    ada.until_shown("more.jsonl").await;
    ada.until("its row is gone", async || {
        !ada.text("#data-plate").await.contains("rows.csv")
    })
    .await;
}

#[tokio::test]
async fn a_study_is_kept_in_a_project_and_set_up_from_there() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    ada.go("/study").await;
    ada.type_in("Name", "Night shift").await;
    ada.click("Keep in the project").await;
    ada.until_shown("Choose the project that is to keep it.").await;
    let project = "const list = document.getElementById('keep-where');
        list.value = 'help-desk';
        list.dispatchEvent(new Event('change', { bubbles: true }))";
    ada.js(project).await;
    ada.click("Keep in the project").await;
    ada.until_shown("help-desk keeps it as Night shift.toml.").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    // Its name is taken by itself.
    ada.click("Keep in the project").await;
    ada.until_shown("help-desk has a file Night shift.toml already. Rename the study")
        .await;
    assert!(
        !ada.text("main").await.contains("help-desk keeps it as"),
        "not this time"
    );
    let offered = "const list = document.querySelector('select[aria-label=\"A study of the team\"]');
        return [...(list?.options ?? [])].map((one) => one.text)";
    ada.until("what was just kept is offered", async || {
        ada.js(offered).await == json!(["or a study of the team", "help-desk: Night shift.toml"])
    })
    .await;

    ada.click("Start anew").await;
    ada.go("/team/projects/help-desk").await;
    ada.click("Night shift.toml").await;
    ada.until_shown("at most 0.37").await;
    ada.until_shown("What it says").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Set up this study").await;
    ada.until_shown("Night shift.toml was taken in.").await;
    let name = "return document.getElementById('f-study-name').value";
    assert_eq!(ada.js(name).await, json!("Night shift"));
}

/// A row that only the team knows.
const ROW: &str = "who knows?,the team";

/// Sets up a study on the project's rows, and waits until the browser keeps it.
async fn take_rows(browser: &Browser) {
    browser.go("/team/projects/help-desk").await;
    browser.click("rows.csv").await;
    browser.click("New study from this data").await;
    browser.until_shown("It holds what is a project’s").await;
    browser
        .until("it is kept", async || keeps(browser, ROW).await)
        .await;
}

/// Whether a browser keeps some text.
async fn keeps(browser: &Browser, text: &str) -> bool {
    browser.js_async(STORED).await.as_str().unwrap().contains(text)
}

/// Waits until neither the page nor the browser has anything of the rows.
async fn until_forgotten(browser: &Browser) {
    browser
        .until("the team's rows are gone", async || {
            let is_shown = browser.text("main").await.contains("who knows?");
            !is_shown && !keeps(browser, ROW).await && !keeps(browser, "rows.csv").await
        })
        .await;
}

/// Waits until one's own draft is taken up.
async fn until_mine(browser: &Browser) {
    let name = "return document.getElementById('f-study-name')?.value ?? null";
    browser
        .until("one's own draft is shown", async || {
            browser.js(name).await == json!("Mine")
        })
        .await;
}

#[tokio::test]
async fn what_was_taken_from_a_project_goes_with_who_took_it_and_one_s_own_draft_stays() {
    let (folder, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, link) = server(&folder);
    let browser = browser(&server).await;
    let invitation = made_project(&browser, &server, &link).await;
    let rows = format!("question,answer\n{ROW}\nwhat?,that\nwho?,them\n");
    browser
        .choose("Data set", &written(files.path(), "rows.csv", &rows))
        .await;
    browser.until_shown("rows.csv was taken in, 3 rows.").await;
    browser.go("/study").await;
    browser.type_in("Name", "Mine").await;

    take_rows(&browser).await;
    browser.click("Sign out").await;
    until_forgotten(&browser).await;
    browser.click("Back to the former draft, “Mine”").await;
    until_mine(&browser).await;
    browser.reload().await;
    until_mine(&browser).await;

    // A session that ends by itself takes nothing along; who signs in next finds nothing.
    browser.go("/team").await;
    with_password(&browser, "ada").await;
    browser.until_shown("Your projects").await;
    take_rows(&browser).await;
    let end = "return (await fetch('/api/session', { method: 'DELETE' })).status";
    assert_eq!(browser.js_async(end).await, json!(204));
    browser.go("/study").await;
    browser.until_shown("Sign in").await;
    browser.until_shown("who knows?").await;
    with_link(&browser, &invitation, "bea").await;
    until_forgotten(&browser).await;
    browser.go("/study").await;
    browser.until_shown("Back to the former draft, “Mine”").await;
    until_forgotten(&browser).await;
}

#[tokio::test]
async fn the_benchmark_that_was_taken_from_a_project_goes_with_who_took_it() {
    let Some(data) = shared("tau2/data") else { return };
    let (folder, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, link) = server(&folder);
    let browser = browser(&server).await;
    made_project(&browser, &server, &link).await;
    browser
        .choose("Data set", &archive(&data, files.path(), AIRLINE))
        .await;
    browser.until_shown("tau2-bench-main.zip was taken in").await;
    browser.click("tau2-bench-main.zip").await;
    browser.click("New study from this data").await;
    browser.until_shown("The benchmark was taken in.").await;
    assert!(keeps(&browser, "# Airline Agent Policy").await);
    browser.click("Sign out").await;
    browser
        .until("the team's benchmark is gone", async || {
            !keeps(&browser, "# Airline Agent Policy").await
        })
        .await;
    browser
        .until_shown("airline domain of the benchmark is not in this browser yet")
        .await;
}
