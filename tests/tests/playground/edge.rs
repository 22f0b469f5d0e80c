//! The page on Cloudflare's runtime: who signs in there with a token has runs that go on without this browser.

use capo_browser::Key;
use capo_tests::journal::of_kind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::edge_worker::{Team, token};
use crate::page::Host;
use crate::team::{address, browser};
use crate::team_runs::pick;
use crate::{STORED, barriers};

#[tokio::test]
async fn a_run_at_the_edge_is_started_watched_paused_and_steered() {
    let (folder, host) = (TempDir::new().unwrap(), Host::start());
    let mut team = Team::default();
    for (name, role) in [("ada", "editor"), ("vera", "viewer")] {
        team.member(name, json!({ "projects": { "help-desk": role } }));
    }
    team.projects.insert("help-desk".into(), json!({}));
    let edge = team.start_with_page(folder.path(), host.address());
    let signed_in = async |name: &str| {
        let browser = browser(&edge).await;
        browser.go("/sign-in").await;
        browser.type_in("Name", name).await;
        browser.type_in("Token", &token(name)).await;
        assert_eq!(barriers(&browser).await, Vec::<String>::new());
        browser.press(Key::Enter).await;
        browser.until_shown("Sign out").await;
        browser
    };
    let ada = signed_in("ada").await;
    // What is not there is not shown.
    ada.go("/team").await;
    ada.until_shown("are configured where this page is hosted").await;
    assert!(!ada.text("header").await.contains("Team"));
    assert_eq!(barriers(&ada).await, Vec::<String>::new());

    ada.go("/study").await;
    pick(&ada, "Where it runs", "On the server, help-desk").await;
    ada.type_in("Rollouts", "1000").await;
    ada.click("Run study").await;
    ada.until_shown("project help-desk, started by ada").await;
    let run = address(&ada).await;
    ada.until_shown("running on the server").await;
    ada.type_in("Human requests, as a number", "42").await;
    ada.press(Key::Tab).await;
    ada.until_shown("Round 1 closed").await;
    let vera = signed_in("vera").await;
    vera.go(&run).await;
    vera.until_shown("You are a viewer of the project help-desk")
        .await;
    ada.click("Pause").await;
    for browser in [&ada, &vera] {
        browser
            .until_shown("Paused. Calls under way were finished and counted.")
            .await;
    }
    ada.click("Resume").await;
    ada.until_shown("running on the server").await;
    ada.until_shown("Round 3 closed").await;
    ada.reload().await;
    ada.until_shown("Finished.").await;
    assert!(!ada.text("main").await.contains("Push to the team"));
    let lines = crate::journal(&ada).await;
    assert_eq!(
        of_kind(&lines, "steer")[0]["thresholds"]["human_requests"],
        json!(0.42)
    );

    // No page reads the token, and nothing of it is kept but in the cookie.
    assert_eq!(ada.js("return document.cookie").await, json!(""));
    let stored = ada.js_async(STORED).await;
    assert!(!stored.as_str().unwrap().contains(&token("ada")));
    assert_eq!(ada.js("return localStorage.length + sessionStorage.length > 0 && JSON.stringify([{...localStorage}, {...sessionStorage}]).includes('capo_of')").await, Value::Bool(false));
    ada.click("Sign out").await;
    ada.until_shown("Sign in").await;
    ada.go("/runs").await;
    ada.until("nothing of it is kept", async || {
        crate::journal(&ada).await.is_empty()
    })
    .await;
}
