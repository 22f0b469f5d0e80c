//! What a team meets with: a server that is killed or away, doors, text that would be a script, another server.

use std::time::Duration;

use capo_browser::Browser;
use capo_tests::journal::{events, of_kind, outcome};
use capo_tests::program::{Server, command, run};
use capo_tests::stub::{Answer, Question, RequestLog, Stub};
use capo_tests::study::Study;
use serde_json::json;
use tempfile::TempDir;

use crate::hardships::{set_offline, until_kept};
use crate::page::{built, run_shortly};
use crate::team::{address, browser, made_project, server, team_of_ada, with_link};
use crate::team_keys::{add_key, set_up};
use crate::team_runs::{pick, start_with};
use crate::{SECRET, barriers, trace};

/// Calls at once, as [`Study::new`] has it.
const CONCURRENCY: usize = 4;

/// Text that would run if it were anything but text.
const SCRIPT: &str = "<img src=x onerror=\"window.owned=1\"><script>window.owned=1</script>";

/// Starts a study on the server, whose models are asked with the key of its project.
async fn start_with_key(ada: &Browser, study: &Study) {
    set_up(ada, study).await;
    pick(ada, "Where it runs", "On the server, Help desk").await;
    ada.click("Run study").await;
    ada.until_shown("project help-desk, started by ada").await;
}

/// The questions without an answer.
fn unanswered(request_log: &RequestLog) -> Vec<&Question> {
    let open = request_log
        .counts
        .iter()
        .filter(|(_, count)| count.asked > count.answered);
    open.map(|(question, _)| question).collect()
}

#[tokio::test]
async fn a_server_that_is_killed_goes_on_with_the_run_and_the_page_with_it() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let (study, reference) = Study::new("http://unused").on_stub();
    let whole = study.file("whole.jsonl");
    run(&mut study.optimize_to(&whole)).expect_code(0);
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), study.models().script());
    let ada = browser(&server).await;
    made_project(&ada, &server, &link).await;
    add_key(&ada, &stub).await;
    stub.let_through(reference.requests() / 2);
    start_with_key(&ada, &study).await;
    // As many as may be asked at once, so that no other is on its way.
    ada.until("rollouts wait for their answers, and nothing else", async || {
        let is_held = stub.is_held();
        let request_log = stub.request_log();
        let held = unanswered(&request_log);
        let is_so = held.len() == CONCURRENCY && held.iter().all(|question| question.is_rollout());
        if is_held && !is_so {
            stub.let_through(1);
        }
        is_held && is_so
    })
    .await;
    ada.until("the page has what was answered", async || {
        let lines = crate::journal(&ada).await;
        let kinds = ["rollout", "critique", "rewrite"];
        let kept: usize = kinds.iter().map(|kind| of_kind(&lines, kind).len()).sum();
        kept as u64 == stub.request_log().answered(|_| true)
    })
    .await;

    let place = server.base_url.trim_start_matches("http://").to_owned();
    server.kill();
    ada.until("the stub notices", async || stub.open() == 0).await;
    let mut serve = command(["serve", "--addr", &place, "--data"]);
    let _server = Server::start(serve.arg(folder.path()).arg("--page").arg(built()));
    stub.let_all_through();
    ada.until_shown("Finished.").await;

    let request_log = stub.request_log();
    assert_eq!(request_log.repeats(|_| true), 0, "an answer was paid twice");
    let asked_again: u64 = request_log.counts.values().map(|count| count.asked - 1).sum();
    assert!(
        asked_again <= CONCURRENCY as u64,
        "{asked_again} questions were asked again, of {CONCURRENCY} in flight"
    );
    ada.click("Result").await;
    ada.click("Download…").await;
    ada.click("Journal (JSONL)").await;
    let watched = study.file("watched.jsonl");
    std::fs::write(&watched, ada.downloaded(".jsonl").await).unwrap();
    run(command(["journal", "verify"]).arg(&watched)).expect_code(0);
    assert_eq!(
        outcome(&events(&watched)),
        outcome(&events(&whole)),
        "rounds and result of the uninterrupted run"
    );
}

#[tokio::test]
async fn axe_finds_no_barrier_at_the_doors_and_on_the_list_of_projects() {
    let (_folder, server, ada, invitation) = team_of_ada().await;
    let mut found = Vec::new();
    ada.go("/team").await;
    ada.until_shown("help-desk").await;
    found.push(("projects of an administrator", barriers(&ada).await));
    let bea = browser(&server).await;
    bea.go(&invitation).await;
    bea.until_shown("Make the account").await;
    assert_eq!(
        address(&bea).await,
        "/invitation",
        "the secret is out of the address"
    );
    found.push(("invitation", barriers(&bea).await));
    bea.go("/team").await;
    bea.until_shown("Password").await;
    found.push(("signing in", barriers(&bea).await));
    with_link(&bea, &invitation, "bea").await;
    bea.until_shown("help-desk").await;
    found.push(("projects of a viewer", barriers(&bea).await));
    found.retain(|(_, barriers)| !barriers.is_empty());
    assert!(found.is_empty(), "{found:#?}");
}

/// Waits until a part of the page shows a text, of which nothing else was made.
async fn is_text(browser: &Browser, part: &str, text: &str) {
    browser
        .until(&format!("`{part}` shows `{text}`"), async || {
            browser.text(part).await.contains(text)
        })
        .await;
    let made = "return [window.owned ?? null, document.querySelectorAll('img[src=\"x\"]').length]";
    assert_eq!(browser.js(made).await, json!([null, 0]), "{part}");
}

#[tokio::test]
async fn script_in_names_prompts_and_answers_is_shown_as_text() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let written = SCRIPT.replace('"', "\\\"");
    let study = Study::new("http://127.0.0.1:9/v1")
        .with("rounds = 4", "rounds = 2")
        .with("word problems", &written)
        .with("Solve the problem.", &format!("{written} Solve the problem."));
    let models = study.models();
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), move |question, _| {
        match models.answer(question) {
            Answer::Text(text) => Answer::Text(format!("{SCRIPT} {text}")),
            other => other,
        }
    });
    let ada = browser(&server).await;
    made_project(&ada, &server, &link).await;
    add_key(&ada, &stub).await;
    start_with_key(&ada, &study).await;
    let live = address(&ada).await;
    ada.until_shown("Finished.").await;
    is_text(&ada, ".runbar h1", SCRIPT).await;

    // What the agent said, the prompt beside its parent, what the critic said of that.
    let lines = crate::journal(&ada).await;
    let rollouts = of_kind(&lines, "rollout");
    let seed = &rollouts[0]["candidate"];
    let of_child = rollouts.iter().find(|rollout| rollout["candidate"] != *seed);
    trace::open(&ada, &live, of_child.unwrap()).await;
    for part in [".talk", "#plate-B .prompt", "#plate-D .feedback"] {
        is_text(&ada, part, SCRIPT).await;
    }

    ada.go(&format!("{live}/result")).await;
    is_text(&ada, "#prompt-text", SCRIPT).await;
    ada.click("Add to prompts of").await;
    ada.type_in("Name of the prompt", "greeting").await;
    ada.type_in("Note", SCRIPT).await;
    ada.click("Add").await;
    ada.until_shown("It is version 1 of greeting.").await;
    ada.click("Open it there").await;
    is_text(&ada, "#version-plate .prompt", SCRIPT).await;
    is_text(&ada, "#versions-plate tbody", SCRIPT).await;
    ada.type_in("Text", &format!("Greet. {SCRIPT}")).await;
    ada.click("Add the version").await;
    ada.until_shown("Against version 1.").await;
    is_text(&ada, "#version-plate .prompt", &format!("Greet. {SCRIPT}")).await;

    ada.go("/runs").await;
    is_text(&ada, "table.runs tbody", SCRIPT).await;
    ada.go("/team/projects/help-desk").await;
    ada.until_shown("Export").await;
    ada.type_in("Title", SCRIPT).await;
    ada.click("Rename").await;
    is_text(&ada, ".page-head h1", SCRIPT).await;
    ada.go("/team").await;
    is_text(&ada, "#projects-plate tbody", SCRIPT).await;
}

#[tokio::test]
async fn who_is_signed_out_or_without_a_network_has_the_playground_all_the_same() {
    let (_folder, server, browser, _) = team_of_ada().await;
    browser.click("Sign out").await;
    browser.until_shown("Password").await;
    browser.go("/").await;
    browser.until_shown("Sign in").await;
    run_shortly(&browser).await;
    browser.until_shown("Finished.").await;
    let kept = address(&browser).await;
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;

    until_kept(&browser).await;
    server.kill();
    set_offline(&browser, true).await;
    browser.go(&kept).await;
    browser.until_shown("No network. Runs on simulated models").await;
    browser.until_shown("Finished.").await;
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;
    browser.go("/study").await;
    let study = Study::new("http://127.0.0.1:9/v1");
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("was taken in").await;
    browser.choose("Rows", &study.file("problems.jsonl")).await;
    browser.until_shown("problems.jsonl was taken in, 18 rows.").await;
    browser.go("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
}

#[tokio::test]
async fn a_browser_that_keeps_the_page_gets_from_the_server_what_is_no_part_of_it() {
    let folder = TempDir::new().unwrap();
    let (server, _) = server(&folder);
    let browser = browser(&server).await;
    browser.go("/").await;
    until_kept(&browser).await;
    for (path, script, said) in [
        ("/api/docs", "return document.title", "Capo: the API"),
        ("/healthz", "return document.body.innerText.trim()", "ok"),
    ] {
        let place = format!("{}{path}", server.base_url);
        browser.driver.goto(place).await.unwrap();
        assert_eq!(browser.js(script).await, json!(said), "{path}");
    }
}

#[tokio::test]
async fn a_project_moves_to_another_server() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let [(first, first_link), (second, second_link)] = [&here, &there].map(server);
    let ada = browser(&first).await;
    made_project(&ada, &first, &first_link).await;
    start_with(&ada, "Rollouts", "800").await;
    ada.until_shown("Finished.").await;
    ada.until("all of it is kept", async || {
        let lines = crate::journal(&ada).await;
        lines.last().is_some_and(|line| line["event"] == "finished")
    })
    .await;
    let lines = crate::journal(&ada).await;
    ada.go("/team/projects/help-desk").await;
    ada.click("Export").await;
    let files = TempDir::new().unwrap();
    let archive = files.path().join("help-desk.tar");
    std::fs::write(&archive, ada.downloaded("help-desk.tar").await).unwrap();

    let other = browser(&second).await;
    made_project(&other, &second, &second_link).await;
    other.go("/team").await;
    other.choose("Archive of a project", &archive).await;
    other.until_shown("already a project of this name").await;
    other.type_in("Name in addresses", "moved").await;
    other.choose("Archive of a project", &archive).await;
    other
        .until("its page is shown", async || {
            address(&other).await == "/team/projects/moved"
        })
        .await;
    other.go("/runs").await;
    other
        .until_shown("project moved, started by ada (imported)")
        .await;
    other.click("Help desk").await;
    other.until_shown("Finished.").await;
    other
        .until("every line is there as it was", async || {
            crate::journal(&other).await == lines
        })
        .await;
    other.click("Result").await;
    other.until_shown("Copy prompt").await;
}
