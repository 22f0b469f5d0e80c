//! Trainings of rewriters, from the page: started, watched, used in a study, and deleted.

use capo_browser::Browser;
use capo_tests::study::SUMS;
use serde_json::json;
use tempfile::TempDir;

use crate::barriers;
use crate::team::{browser, made_project, server, with_link};

const STUDY: &str = r#"
[study]
name = "small desk"
method = "capo"
rounds = 2

[workload]
kind = "desk"
optimize = 6
evaluate = 4

[prompt]
text = "You are a customer service agent. Help the customer with their request."

[objective]
metric = "success"

[[constraint]]
metric = "prompt_length"
threshold = 0.05

[models.agent]
provider = "simulated"
"#;

/// Few steps: this program is not built to be fast.
const SETTINGS: &str = "[sft]\nepochs = 2\nbatch = 4\nevaluate_every = 1\n";

/// Runs a study on the server, as a program of the member would, until it has ended.
const SEARCH: &str = "const ask = async (path, body) => {
        const sent = body ? { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {};
        return await (await fetch(path, sent)).json();
    };
    let run = await ask('/api/projects/help-desk/runs', { name: 'small desk', study: STUDY, files: FILES });
    while (['queued', 'running'].includes(run.stage)) {
        await new Promise((done) => setTimeout(done, 200));
        run = await ask(`/api/runs/${run.id}`);
    }";

/// Gives the project rows.
const UPLOAD: &str = "const bytes = new TextEncoder().encode('question,answer\\nwho knows?,the team\\nwhat?,that\\nwho?,them\\n');
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    const sha256 = [...digest].map((one) => one.toString(16).padStart(2, '0')).join('');
    const headers = { 'content-type': 'application/octet-stream' };
    await fetch('/api/projects/help-desk/files/' + sha256, { method: 'PUT', headers, body: bytes });";

/// Starts a training on a run, and stops it before it has come to anything.
const STOP: &str = "const trainings = '/api/projects/help-desk/trainings';
    const start = { from: 'fresh' };
    let training = await ask(trainings, { name: 'Of rows', kind: 'sft', start, runs: [run.id] });
    await ask(`${trainings}/${training.id}/orders`, { order: 'stop' });
    while (training.state !== 'stopped') {
        await new Promise((done) => setTimeout(done, 200));
        training = await ask(`${trainings}/${training.id}`);
    }
    return training.id";

/// Has the next connection that the page listens on refused.
const REFUSE_ONCE: &str = "const Real = EventSource;
    window.EventSource = function (path) {
        window.EventSource = Real;
        return new Real(path.replace('/events', '/nothing'));
    };
    return true";

/// Has a training that learned from a run on rows used as rewriter: the rows come along, and it runs where it was trained.
async fn use_on_rows(ada: &Browser) {
    let search = SEARCH.replace("STUDY", &json!(SUMS).to_string());
    let search = search.replace("FILES", "{ 'rows.csv': sha256 }");
    let id = ada.js_async(&format!("{UPLOAD} {search} {STOP}")).await;
    let training = format!("/team/projects/help-desk/trainings/{}", id.as_str().unwrap());
    ada.go(&training).await;
    ada.click("Use as rewriter…").await;
    ada.until_shown("The study was taken in.").await;
    ada.until_shown("who knows?").await;
    let place = "return document.getElementById('run-where')?.value ?? null";
    ada.until("it is to run in the project", async || {
        ada.js(place).await == json!("help-desk")
    })
    .await;
}

#[tokio::test]
async fn a_rewriter_is_trained_and_used() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;
    let search = SEARCH.replace("STUDY", &json!(STUDY).to_string());
    let search = search.replace("FILES", "{}") + " return run.stage";
    assert_eq!(ada.js_async(&search).await, json!("ended"));

    ada.go("/team/projects/help-desk").await;
    ada.click("Train a rewriter…").await;
    ada.until_shown("small desk").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    // What is missing is said where it is missing.
    ada.click("Start the training").await;
    ada.until_shown("Choose a run whose study it takes").await;
    ada.type_in("Name", "First lessons").await;
    ada.click_at("fieldset input[type=checkbox]").await;
    ada.fill("Settings", SETTINGS).await;
    ada.js(REFUSE_ONCE).await;
    ada.click("Start the training").await;
    ada.until_shown("First lessons").await;
    ada.until_shown("done").await;
    ada.until("a checkpoint can be fetched", async || {
        ada.js("return document.querySelector('a[download]') !== null")
            .await
            == json!(true)
    })
    .await;
    ada.until_shown("nats a token").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    let training = ada.js("return location.pathname").await;
    let training = training.as_str().unwrap().to_owned();
    let download = "const link = document.querySelector('a[download]');
        const answer = await fetch(link.href);
        const bytes = await answer.arrayBuffer();
        return [answer.status, bytes.byteLength > 10000, new TextDecoder().decode(bytes.slice(0, 9))]";
    assert_eq!(ada.js_async(download).await, json!([200, true, "rewriter-"]));

    ada.click("Use as rewriter…").await;
    let taken =
        "return [...document.querySelectorAll('input')].some((one) => one.value.startsWith('training:'))";
    ada.until("the study has it as its rewriter", async || {
        ada.js(taken).await == json!(true)
    })
    .await;
    ada.go(&training).await;
    // The run that it learned from is a link that leads to it.
    ada.until_shown("Runs").await;
    ada.click_at("table.facts a.id").await;
    ada.until_shown("project help-desk, started by ada").await;

    let bea = browser(&server).await;
    with_link(&bea, &invitation, "bea").await;
    bea.go(&training).await;
    bea.until_shown("nats a token").await;
    assert!(
        !bea.text("main").await.contains("Use as rewriter"),
        "a viewer looks on"
    );
    bea.go("/team/projects/help-desk").await;
    bea.until_shown("First lessons").await;
    assert!(!bea.text("main").await.contains("Train a rewriter…"));
    bea.go("/team/projects/help-desk/train").await;
    bea.until_shown("You are a viewer of the project help-desk: its editors train rewriters.")
        .await;
    assert!(!bea.text("main").await.contains("Start the training"));

    ada.go(&training).await;
    ada.click("Delete").await;
    ada.until_shown("Its checkpoints go with it").await;
    ada.click_at("dialog[open] button[type=submit]").await;
    ada.until_shown("Trained rewriters").await;
    ada.until_shown("None yet. A rewriter learns").await;
    use_on_rows(&ada).await;
}
