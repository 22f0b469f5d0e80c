//! Runs on the team's server, from the page: started there, watched by others, ordered about, pushed.

use std::time::Duration;

use capo_browser::{Browser, Key};
use capo_tests::journal::of_kind;
use capo_tests::study::SUMS;
use serde_json::{Value, json};

use crate::page::run_shortly;
use crate::team::{PASSWORD, address, browser, team_of_ada, with_link};
use crate::{STORED, barriers};

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

/// Counts connections by which runs are followed from now on.
const COUNT: &str = "const Plain = EventSource;
    window.followed = [];
    window.EventSource = class extends Plain {
        constructor(url) { super(url); window.followed.push(this); }
    };
    return true";

/// How many of them are open.
const OPEN: &str = "return window.followed.filter((one) => one.readyState !== EventSource.CLOSED).length";

/// The rows of the list of runs.
const ROWS: &str = "return document.querySelectorAll('table.runs tbody tr').length";

/// Where New study has the study run: the name of a project, nothing for this browser.
const WHERE: &str = "return document.getElementById('run-where')?.value ?? null";

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

/// Waits until a script returns this number.
async fn until_count(browser: &Browser, script: &str, count: usize) {
    browser
        .until(&format!("`{script}` is {count}"), async || {
            browser.js(script).await == json!(count)
        })
        .await;
}

/// How many runs a browser keeps.
async fn kept(browser: &Browser) -> usize {
    let stored: Value = serde_json::from_str(browser.js_async(STORED).await.as_str().unwrap()).unwrap();
    stored["stores"]["runs"].as_array().unwrap().len()
}

/// Deletes a run as somebody else would from their own page.
async fn delete_elsewhere(browser: &Browser, run: &str) {
    let id = run.strip_prefix("/run/team-").unwrap();
    let delete = format!("return (await fetch('/api/runs/{id}', {{ method: 'DELETE' }})).status");
    assert_eq!(browser.js_async(&delete).await, json!(204));
}

/// The study of a run of the server.
async fn study_of(browser: &Browser, run: &str) -> String {
    let id = run.strip_prefix("/run/team-").unwrap();
    let read = format!("return (await (await fetch('/api/runs/{id}')).json()).study");
    browser.js_async(&read).await.as_str().unwrap().to_owned()
}

/// Gives the project rows and what is no text, and a run on them that does not start yet. Returns its address.
async fn scheduled(browser: &Browser, rows: &str) -> String {
    let script = format!(
        "const [rows, study] = {};
        const send = async (method, path, type, body) => {{
            const headers = {{ 'content-type': type }};
            const answer = await fetch('/api/projects/help-desk' + path, {{ method, headers, body }});
            if (!answer.ok) throw new Error(await answer.text());
            return await answer.json();
        }};
        const keep = async (bytes) => {{
            const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
            const sha256 = [...digest].map((one) => one.toString(16).padStart(2, '0')).join('');
            await send('PUT', '/files/' + sha256, 'application/octet-stream', bytes);
            return sha256;
        }};
        const files = {{
            'rows.csv': await keep(new TextEncoder().encode(rows)),
            'old.zip': await keep(new Uint8Array([0x50, 0x4b, 0xff])),
        }};
        const run = {{ name: 'Sums', study, files, start_at: '2099-01-01T00:00:00Z' }};
        return (await send('POST', '/runs', 'application/json', JSON.stringify(run))).id",
        json!([rows, SUMS])
    );
    let id = browser.js_async(&script).await;
    let id = id.as_str().unwrap();
    assert!(id.chars().all(|one| one.is_ascii_hexdigit()), "{id}");
    format!("/run/team-{id}")
}

/// Starts a third of the study that New study begins with on the server.
pub(crate) async fn start_there(browser: &Browser) {
    start_with(browser, "Rollouts", "1000").await;
}

/// Starts the help desk's study there with a text in a field of the form.
pub(crate) async fn start_with(browser: &Browser, field: &str, text: &str) {
    browser.go("/study").await;
    pick(browser, "Where it runs", "On the server, Help desk").await;
    browser
        .until_shown("asks models with the keys that the project shares")
        .await;
    browser.fill(field, text).await;
    assert_eq!(barriers(browser).await, Vec::<String>::new());
    browser.click("Run study").await;
    browser.until_shown("project help-desk, started by ada").await;
}

#[tokio::test]
async fn a_run_on_the_server_is_watched_and_told_what_to_do() {
    let (_folder, server, ada, invitation) = team_of_ada().await;
    // The whole study, for it is to go on while two people look at it.
    start_with(&ada, "Not before", "").await;
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
    bea.until_shown(" closed").await;
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
        until_count(browser, ROWS, 1).await;
    }
    bea.click_at("table.runs tbody input").await;
    bea.until_shown("Editors of a run’s project rename and delete it.")
        .await;
    let offered = bea.text("main").await;
    assert!(offered.contains("Export") && !offered.contains("Delete…") && !offered.contains("Rename…"));
    bea.click_at("table.runs th a").await;
    bea.click("Result").await;
    bea.until_shown("Copy prompt").await;

    // The team's data go with whoever signs out.
    bea.click("Sign out").await;
    bea.until_shown("Sign in to see it").await;
    bea.until("nothing of it is kept", async || {
        crate::journal(&bea).await.is_empty()
    })
    .await;
    ada.go("/").await;
    ada.until("it is listed on the first page", async || {
        !ada.text(".your-runs ul").await.is_empty()
    })
    .await;
    ada.click("Sign out").await;
    ada.until_shown("None in this browser yet").await;
}

#[tokio::test]
async fn a_run_of_the_browser_is_pushed_and_branched_on_the_server() {
    let (_folder, server, ada, _) = team_of_ada().await;
    run_shortly(&ada).await;
    ada.until_shown("Finished.").await;
    let here = address(&ada).await;
    ada.click("Push to the team…").await;
    ada.until_shown("Push this run to the team").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Push").await;
    ada.until_shown("It is on the server.").await;
    ada.click("Open it there").await;
    ada.until_shown("project help-desk, started by ada").await;
    let there = address(&ada).await;
    assert_ne!(there, here);
    ada.until_shown("Finished.").await;

    ada.click("Branch…").await;
    ada.type_in("After round", "2").await;
    ada.click("Branch").await;
    ada.until_shown("branched after round 2").await;
    ada.until_shown("two rounds").await;

    // One row in the browser, two on the server, of which one is measured against the other, also after a reload.
    ada.go("/runs").await;
    ada.until_shown("branched after round 2").await;
    until_count(&ada, ROWS, 3).await;
    let select = async |what: &str| {
        let select = "[...document.querySelectorAll('table.runs tr')].find((one) => one.innerText.includes(arguments[0]))
            .querySelector('input').click(); return true";
        ada.js_with(select, vec![json!(what)]).await;
    };
    select("branched").await;
    ada.click("Set as baseline").await;
    ada.until_shown(" pts").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.reload().await;
    ada.until_shown(" pts").await;
    assert_eq!(
        ada.text("table.runs").await.matches(" pts").count(),
        1,
        "those of its project"
    );
    select(" pts").await;
    ada.click("Compare with the baseline").await;
    ada.until_shown("Differences from Help desk, branched after round 2")
        .await;
    ada.click("Choose other runs").await;
    until_count(&ada, ROWS, 3).await;
    select("branched").await;
    ada.click("Delete…").await;
    ada.until_shown("for everybody of its project").await;
    ada.click("Delete").await;
    until_count(&ada, ROWS, 2).await;

    // A browser exports what it never opened, and keeps nothing of it.
    let other = browser(&server).await;
    other.go("/sign-in?return=/runs").await;
    other.type_in("Name", "ada").await;
    other.type_in("Password", PASSWORD).await;
    other.press(Key::Enter).await;
    until_count(&other, ROWS, 1).await;
    other.click("Export all").await;
    let id = there.strip_prefix("/run/").unwrap();
    let exported = other.downloaded(&format!("{id}.jsonl")).await;
    let finished = exported
        .lines()
        .filter(|line| line.contains("\"event\":\"finished\""));
    assert_eq!(finished.count(), 1);
    assert_eq!(kept(&other).await, 0);

    // Who signs out in one tab is signed out in the others, and the team's runs leave the list.
    let first = other.driver.window().await.unwrap();
    let second = other.driver.new_tab().await.unwrap();
    other.driver.switch_to_window(second).await.unwrap();
    other.go("/team").await;
    other.click("Sign out").await;
    other.until_shown("Password").await;
    other.driver.switch_to_window(first).await.unwrap();
    until_count(&other, ROWS, 0).await;
}

#[tokio::test]
async fn a_run_is_followed_while_it_is_shown_and_forgotten_when_it_is_deleted_elsewhere() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        start_with(&ada, "Not before", "2099-01-01T00:00").await;
        ada.until_shown("scheduled on the server").await;
        runs.push(address(&ada).await);
    }
    ada.go("/runs").await;
    ada.js(COUNT).await;
    ada.click_at(&format!("table.runs a[href=\"{}\"]", runs[0])).await;
    ada.until_shown("scheduled on the server").await;
    until_count(&ada, OPEN, 1).await;
    ada.click("Constraint dynamics").await;
    until_count(&ada, OPEN, 0).await;
    ada.js("history.back(); return true").await;
    until_count(&ada, OPEN, 1).await;

    // One is shown, the other is not.
    delete_elsewhere(&ada, &runs[0]).await;
    ada.until_shown("This run is not on the server any more").await;
    until_count(&ada, OPEN, 0).await;
    ada.click("Runs").await;
    until_count(&ada, ROWS, 1).await;
    delete_elsewhere(&ada, &runs[1]).await;
    until_count(&ada, ROWS, 0).await;
    assert_eq!(kept(&ada).await, 0);
    ada.requests().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let asked = ada.requests().await;
    assert!(!asked.iter().any(|url| url.contains("/api/")), "{asked:?}");
}

#[tokio::test]
async fn a_run_is_rerun_with_a_change_where_it_ran() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    start_with(&ada, "Not before", "2099-01-01T00:00").await;
    let first = address(&ada).await;
    // What is set up meanwhile is offered back.
    ada.click("New study").await;
    ada.type_in("System prompt", "Be brief.").await;
    ada.go(&first).await;
    ada.click("Rerun with changes…").await;
    ada.until_shown("The study was taken in.").await;
    ada.until_shown("Back to the former draft, “help desk”").await;
    assert_eq!(address(&ada).await, "/study");
    ada.until("it is to run in the same project", async || {
        ada.js(WHERE).await == json!("help-desk")
    })
    .await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.type_in("Threshold for human requests", "42").await;
    ada.click("Run study").await;
    ada.until_shown("project help-desk, started by ada").await;
    let second = address(&ada).await;
    assert!(second.starts_with("/run/team-") && second != first, "{second}");
    let (before, after) = (study_of(&ada, &first).await, study_of(&ada, &second).await);
    assert!(after.contains("threshold = 0.42"), "{after}");
    assert_eq!(after, before.replace("threshold = 0.37", "threshold = 0.42"));
    ada.go("/runs").await;
    until_count(&ada, ROWS, 2).await;

    // One of this browser is set up to run here, and may go on meanwhile.
    ada.go("/").await;
    ada.click("Run the help-desk study").await;
    ada.until_shown("Simulated models, not a real agent").await;
    ada.click("Rerun with changes…").await;
    ada.until_shown("The study was taken in.").await;
    ada.until("it is to run in this browser", async || {
        ada.js(WHERE).await == json!("")
    })
    .await;
}

#[tokio::test]
async fn a_rerun_has_the_rows_of_its_run_and_no_others() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    let rows = "question,answer\none and one?,two\none and two?,three\ntwo and two?,four\n";
    let first = scheduled(&ada, rows).await;
    let second = scheduled(&ada, &rows.replace("two and", "three and")).await;
    let (own, others) = ("two and two?", "three and two?");
    for (run, own, others) in [(first, own, others), (second, others, own)] {
        ada.go(&run).await;
        ada.click("Rerun with changes…").await;
        ada.until_shown("taken in without old.zip: of data files only text comes along")
            .await;
        ada.until_shown("3 rows").await;
        ada.until_shown(own).await;
        assert!(!ada.text("main").await.contains(others));
    }
}
