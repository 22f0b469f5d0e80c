//! Prompts for programs, from the page: taken from a run, labelled with its numbers in sight, moved back, deleted.

use capo_browser::Browser;
use serde_json::json;

use crate::barriers;
use crate::team::{address, browser, team_of_ada, with_link};
use crate::team_runs::start_there;

const PROMPT: &str = "/team/projects/help-desk/prompts/greeting";

/// Presses the button that is read out so.
const PRESS: &str = "const all = [...document.querySelectorAll('main button')];
    const found = all.find((one) => one.offsetParent && one.textContent.trim() === arguments[0]);
    if (found) found.click();
    return Boolean(found)";

/// Moves the label candidate to version 1, as somebody else would from their own page.
const MOVE_ELSEWHERE: &str = "const path = '/api/projects/help-desk/prompts/greeting';
    const version = await (await fetch(path + '?version=1')).json();
    const moved = await fetch(path + '/labels/candidate', {
        method: 'PUT', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ version: 1, seen: version.fingerprint }),
    });
    return moved.status";

async fn press(browser: &Browser, read_out: &str) {
    browser
        .until(&format!("there is a button `{read_out}`"), async || {
            browser.js_with(PRESS, vec![json!(read_out)]).await == json!(true)
        })
        .await;
}

/// Waits until the table of labels says so.
async fn until_on(browser: &Browser, label: &str, version: u64) {
    browser
        .until(&format!("{label} is on version {version}"), async || {
            let labels = browser.text("#labels-plate tbody").await;
            let mut rows = labels.lines().filter(|row| row.contains(label));
            rows.any(|row| row.contains(&format!("Version {version}")))
        })
        .await;
}

/// Asks about moving a label to the version shown.
async fn look(browser: &Browser, label: &str, version: u64) {
    browser.type_in("Label", label).await;
    browser.click("Look and move…").await;
    browser
        .until_shown(&format!("Move {label} to version {version}?"))
        .await;
    browser.until_shown(&format!("Then: version {version}")).await;
}

#[tokio::test]
async fn a_prompt_is_taken_from_a_run_and_labelled_with_its_numbers_in_sight() {
    let (_folder, server, ada, invitation) = team_of_ada().await;
    start_there(&ada).await;
    ada.until_shown("Finished.").await;
    ada.click("Result").await;
    ada.click("Add to prompts of").await;
    ada.until_shown("Add to the prompts of help-desk").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.type_in("Name of the prompt", "greeting").await;
    ada.type_in("Note", "of the first search").await;
    ada.click("Add").await;
    ada.until_shown("It is version 1 of greeting.").await;
    ada.click("Open it there").await;

    // What speaks for it is there before the label is.
    ada.until_shown("Held-out evaluation; ± is one standard error")
        .await;
    ada.until_shown("from the run").await;
    look(&ada, "production", 1).await;
    ada.until_shown("There is no such label yet.").await;
    let asked = ada.text("dialog[open]").await;
    assert!(asked.contains("Success") && asked.contains("≤ 37%"), "{asked}");
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Move").await;
    until_on(&ada, "production", 1).await;
    ada.until_shown("greeting?label=production").await;
    assert!(ada.text("main").await.contains("Bearer $CAPO_TOKEN"));

    // A text that somebody types says that nothing speaks for it, and stands beside what is in production.
    ada.type_in("Text", "Greet the customer by name.").await;
    ada.click("Add the version").await;
    ada.until_shown("No evidence.").await;
    ada.until_shown("Against version 1.").await;
    assert!(ada.text("#version-plate ins").await.contains("Greet"));
    look(&ada, "candidate", 2).await;
    ada.click("Move").await;
    until_on(&ada, "candidate", 2).await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());

    look(&ada, "production", 2).await;
    ada.until_shown("Now: version 1").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Move").await;
    until_on(&ada, "production", 2).await;
    press(&ada, "History of production").await;
    press(&ada, "Move back to version 1").await;
    ada.until_shown("Now: version 2").await;
    ada.click("Move").await;
    until_on(&ada, "production", 1).await;

    // Who is late is told what the label is on by now.
    ada.go(&format!("{PROMPT}?version=1")).await;
    look(&ada, "candidate", 1).await;
    ada.until_shown("Now: version 2").await;
    assert_eq!(ada.js_async(MOVE_ELSEWHERE).await, json!(200));
    ada.click("Move").await;
    ada.until_shown("Somebody moved it meanwhile.").await;
    ada.until_shown("It is on this version.").await;
    ada.click("Cancel").await;

    // Who may only read sees all of it, and moves nothing.
    let bea = browser(&server).await;
    with_link(&bea, &invitation, "bea").await;
    bea.go("/team/projects/help-desk").await;
    bea.until_shown("production 1").await;
    bea.go(&format!("{PROMPT}?version=1")).await;
    bea.until_shown("Held-out evaluation").await;
    press(&bea, "History of production").await;
    bea.until_shown("To version").await;
    assert_eq!(barriers(&bea).await, Vec::<String>::new());
    let shown = bea.text("main").await;
    for forbidden in [
        "Look and move…",
        "Move back",
        "Remove",
        "Type a version",
        "Delete",
    ] {
        assert!(!shown.contains(forbidden), "{forbidden}");
    }

    ada.reload().await;
    press(&ada, "Remove the label candidate").await;
    ada.click("Remove").await;
    ada.until("the label is gone", async || {
        !ada.text("#labels-plate tbody").await.contains("candidate")
    })
    .await;
    press(&ada, "Delete the prompt greeting").await;
    ada.type_in("Its name, to confirm", "greeting").await;
    ada.click("Delete").await;
    ada.until("one is back at the project", async || {
        address(&ada).await == "/team/projects/help-desk"
    })
    .await;
}
