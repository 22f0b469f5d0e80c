//! Signing in at an OpenID Connect issuer, a certified one that runs here: npm's `oidc-provider`.

use std::net::TcpListener;
use std::process::Command;

use capo_browser::{Browser, Key};
use capo_tests::program::{Server, command};
use capo_tests::tools::named;
use serde_json::json;
use tempfile::TempDir;

use crate::barriers;
use crate::page::built;
use crate::team::{address, browser, made_project, with_password};

const CLIENT_SECRET: &str = "only-for-the-issuer";

/// A server whose members sign in at an issuer, too; the issuer; and the path of the link for the first administrator.
/// `None` where the issuer is not installed.
///
/// # Panics
/// Where continuous integration has none.
fn start(folder: &TempDir) -> Option<(Server, Server, String)> {
    let module = named("CAPO_OIDC_PROVIDER")?;
    let secret = folder.path().join("client-secret");
    std::fs::write(&secret, format!("{CLIENT_SECRET}\n")).unwrap();
    // Free until the issuer takes it, which must know the server's address before.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let issuer = format!("http://127.0.0.1:{port}");
    let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--oidc-name", "Acme"]);
    serve.args(["--oidc-issuer", &issuer, "--oidc-client-id", "capo"]);
    serve.args(["--oidc-domain", "example.org", "--oidc-client-secret-file"]);
    serve.arg(&secret).arg("--data").arg(folder.path().join("data"));
    let mut server = Server::start(serve.arg("--page").arg(built()));
    let line = server.next_line();
    let link = line.strip_prefix("make the first administrator at ").unwrap();
    let path = link.strip_prefix(&server.base_url).unwrap().to_owned();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/playground/oidc_provider.mjs");
    let mut node = Command::new("node");
    node.arg(script)
        .arg(module)
        .arg(port.to_string())
        .arg(CLIENT_SECRET);
    node.arg(format!("{}/sign-in/return", server.base_url));
    Some((server, Server::start(&mut node), path))
}

/// Says at the issuer who one is, by the keyboard: its login has the focus.
async fn identify(browser: &Browser, issuer: &Server, login: &str) {
    let at = async |what: &str| {
        let here = browser
            .js("return location.href + ' ' + document.body.innerText")
            .await;
        let here = here.as_str().unwrap_or_default().to_owned();
        here.starts_with(&issuer.base_url) && here.contains(what)
    };
    browser
        .until("the issuer asks who it is", async || at("Sign-in").await)
        .await;
    browser.keys(login).await;
    browser.press(Key::Tab).await;
    browser.keys("any password").await;
    browser.press(Key::Enter).await;
    let is_back = async || {
        let here = browser.js("return location.href").await;
        !here.as_str().unwrap_or_default().starts_with(&issuer.base_url)
    };
    // The key that ends the login may be the one that answers the next page, too.
    browser
        .until("the issuer asks whether it may tell, or has told", async || {
            at("Continue").await || is_back().await
        })
        .await;
    if !is_back().await {
        browser.click("Continue").await;
    }
}

#[tokio::test]
async fn who_signs_in_at_the_issuer_is_back_where_they_were() {
    let folder = TempDir::new().unwrap();
    let Some((server, issuer, link)) = start(&folder) else {
        return;
    };
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;

    // By the domain, from the page of a run list and by the keyboard alone.
    let bea = browser(&server).await;
    bea.go("/sign-in?return=/runs").await;
    bea.until_shown("Sign in with Acme").await;
    assert_eq!(barriers(&bea).await, Vec::<String>::new());
    let focus = "const one = [...document.querySelectorAll('button')].find((one) => one.innerText === 'Sign in with Acme');
        one.focus();
        return document.activeElement === one";
    assert_eq!(bea.js(focus).await, json!(true));
    bea.press(Key::Enter).await;
    identify(&bea, &issuer, "bea").await;
    bea.until_shown("Sign out").await;
    bea.until("one is back", async || address(&bea).await == "/runs")
        .await;
    bea.go("/team/account").await;
    bea.until_shown("bea@example.org").await;
    assert!(
        !bea.text("main").await.contains("Present password"),
        "there is none"
    );
    bea.click_at("#identities-plate button.link").await;
    bea.click_at("dialog[open] button[type=submit]").await;
    bea.until_shown("the only way into the account").await;
    let history = bea
        .js("return JSON.stringify([location.href, { ...sessionStorage }])")
        .await;
    assert!(!history.as_str().unwrap().contains("code="), "{history}");

    // By an invitation.
    let cleo = browser(&server).await;
    cleo.go(&invitation).await;
    cleo.click("Join with Acme").await;
    identify(&cleo, &issuer, "cleo").await;
    cleo.until_shown("Your projects").await;
    cleo.until_shown("Help desk").await;

    // An account that is there already links one.
    ada.go("/team/account").await;
    ada.click("Link one at Acme").await;
    identify(&ada, &issuer, "ada").await;
    ada.until_shown("Identities to sign in with").await;
    ada.until_shown("ada@example.org").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.click("Sign out").await;
    ada.go("/team").await;
    ada.click("Sign in with Acme").await;
    // The issuer knows this browser by now.
    ada.until_shown("Help desk").await;
}

#[tokio::test]
async fn who_comes_back_with_nothing_is_told_and_passwords_serve() {
    let folder = TempDir::new().unwrap();
    let Some((server, issuer, link)) = start(&folder) else {
        return;
    };
    let ada = browser(&server).await;
    made_project(&ada, &server, &link).await;
    let eve = browser(&server).await;
    for (query, said) in [
        ("?error=access_denied&state=x", "you turned back"),
        ("?code=x&state=x", "not begun in this browser"),
        ("", "Begin again"),
    ] {
        eve.go(&format!("/sign-in/return{query}")).await;
        eve.until_shown(said).await;
        assert_eq!(barriers(&eve).await, Vec::<String>::new());
    }
    drop(issuer);
    eve.go("/team").await;
    eve.click("Sign in with Acme").await;
    eve.until_shown("identity provider was not reached").await;
    with_password(&eve, "ada").await;
    eve.until_shown("Help desk").await;
}
