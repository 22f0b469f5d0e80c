//! The page before a team server: set-up, an invitation, roles, tokens, the wrong password.

use capo_browser::{Browser, Key};
use capo_tests::program::{Server, command};
use serde_json::json;
use tempfile::TempDir;

use crate::page::built;
use crate::{barriers, fits, on_telephone};

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// A server with the built page, and the path of the link by which its first administrator is made.
pub(crate) fn server(folder: &TempDir) -> (Server, String) {
    let mut serve = command(["serve", "--addr", "127.0.0.1:0", "--data"]);
    serve.arg(folder.path()).arg("--page").arg(built());
    let mut server = Server::start(&mut serve);
    let line = server.next_line();
    let link = line.strip_prefix("make the first administrator at ").unwrap();
    let path = link.strip_prefix(&server.base_url).unwrap().to_owned();
    (server, path)
}

pub(crate) async fn browser(server: &Server) -> Browser {
    Browser::start(
        &server.base_url,
        &["--window-size=1440,1000"],
        &["browser", "performance"],
    )
    .await
}

/// Types name and password of a new account.
async fn type_account(browser: &Browser, name: &str, password: &str) {
    browser.type_in("Name", name).await;
    browser.type_in("New password", password).await;
    browser.type_in("The same once more", password).await;
}

pub(crate) async fn address(browser: &Browser) -> String {
    let address = browser.js("return location.pathname + location.hash").await;
    address.as_str().unwrap().to_owned()
}

/// Makes the first administrator, ada, with the project help-desk, and returns the path of an invitation to it as a viewer.
pub(crate) async fn made_project(ada: &Browser, server: &Server, link: &str) -> String {
    ada.go(link).await;
    type_account(ada, "ada", PASSWORD).await;
    ada.press(Key::Enter).await;
    ada.until_shown("Your projects").await;
    ada.type_in("Title", "Help desk").await;
    ada.type_in("Name in addresses", "help-desk").await;
    ada.click("Make the project").await;
    ada.until_shown("Open invitations").await;
    ada.click("Make a link").await;
    ada.until_shown("is not shown again").await;
    let link = ada.js("return document.querySelector('input.once').value").await;
    let path = link.as_str().unwrap().strip_prefix(&server.base_url).unwrap();
    path.to_owned()
}

/// A server in a folder, the browser of ada with the project of [`made_project`] there, and the path of that invitation.
pub(crate) async fn team_of_ada() -> (TempDir, Server, Browser, String) {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    let invitation = made_project(&ada, &server, &link).await;
    (folder, server, ada, invitation)
}

/// Follows an invitation.
pub(crate) async fn with_link(browser: &Browser, path: &str, name: &str) {
    browser.go(path).await;
    type_account(browser, name, PASSWORD).await;
    browser.click("Make the account").await;
    browser.until_shown("Your projects").await;
}

/// Types one's name and password where one signs in.
pub(crate) async fn with_password(browser: &Browser, name: &str) {
    browser.type_in("Name", name).await;
    browser.type_in("Password", PASSWORD).await;
    browser.press(Key::Enter).await;
}

#[tokio::test]
async fn a_team_sets_itself_up_and_invites() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let ada = browser(&server).await;
    ada.go(&link).await;
    ada.until_shown("Set up this server").await;
    assert_eq!(address(&ada).await, "/set-up", "the secret is out of the address");
    type_account(&ada, "ada", "password123").await;
    ada.click("Set up").await;
    ada.until_shown("easily guessed").await;
    type_account(&ada, "ada", PASSWORD).await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    ada.press(Key::Enter).await;
    ada.until_shown("Your projects").await;
    ada.type_in("Title", "Help <b>desk</b>").await;
    ada.type_in("Name in addresses", "help-desk").await;
    ada.click("Make the project").await;
    ada.until_shown("Help <b>desk</b>").await;
    ada.until_shown("Open invitations").await;
    ada.click("Make a link").await;
    ada.until_shown("is not shown again").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    let link = ada.js("return document.querySelector('input.once').value").await;
    let link = link
        .as_str()
        .unwrap()
        .strip_prefix(&server.base_url)
        .unwrap()
        .to_owned();

    let bea = browser(&server).await;
    bea.go(&link).await;
    type_account(&bea, "bea", PASSWORD).await;
    bea.click("Make the account").await;
    bea.until_shown("Your projects").await;
    bea.click("Help <b>desk</b>").await;
    bea.until_shown("Members").await;
    assert!(
        !bea.text("main").await.contains("Open invitations"),
        "a viewer invites nobody"
    );
    bea.go("/team/server").await;
    bea.until_shown("administrator").await;

    // A role that is changed is there when the page is asked for again.
    ada.reload().await;
    ada.until_shown("bea").await;
    let pick = "const one = document.querySelector('select[aria-label=\"Role of bea\"]');
        one.value = [...one.options].find((option) => option.value.toLowerCase().includes('admin')
            || option.text.toLowerCase().startsWith('admin')).value;
        one.dispatchEvent(new Event('change', { bubbles: true }));
        return true";
    ada.js(pick).await;
    ada.until_shown("role.admin").await;
    bea.go("/team/projects/help-desk").await;
    bea.until_shown("Open invitations").await;

    // What the playground does needs nobody.
    bea.click("Sign out").await;
    bea.go("/").await;
    bea.until_shown("Run the help-desk study").await;
}

#[tokio::test]
async fn signing_in_says_what_is_wrong_and_makes_tokens() {
    let folder = TempDir::new().unwrap();
    let (server, link) = server(&folder);
    let browser = browser(&server).await;
    browser.go(&link).await;
    type_account(&browser, "ada", PASSWORD).await;
    browser.click("Set up").await;
    browser.until_shown("Your projects").await;
    browser.click("Sign out").await;
    browser.go("/team/account").await;
    browser.type_in("Name", "ada").await;
    browser.type_in("Password", "not the password").await;
    browser.press(Key::Enter).await;
    browser
        .until_shown("no member of this name with this password")
        .await;
    browser.type_in("Password", PASSWORD).await;
    browser.press(Key::Enter).await;
    browser.until_shown("Tokens for programs").await;
    assert_eq!(address(&browser).await, "/team/account", "where one was");
    browser.until_shown("this browser").await;
    browser.type_in("Name", "laptop").await;
    browser.click("Make the token").await;
    browser.until_shown("laptop").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    let secret = browser
        .js("return document.querySelector('input.once').value")
        .await;
    assert!(secret.as_str().unwrap().starts_with("capo_"));
    browser.reload().await;
    browser.until_shown("laptop").await;
    assert!(!browser.text("main").await.contains("capo_"), "shown once");
    browser.js("document.cookie = 'x=1'; return true").await;
    let readable = browser.js("return document.cookie").await;
    assert!(
        !readable.as_str().unwrap().contains("session"),
        "no script reads the cookie"
    );
    // On a phone nothing is cut off.
    on_telephone(&browser).await;
    assert!(fits(&browser).await);
}

/// The id of what has the focus.
async fn focused(browser: &Browser) -> String {
    let id = browser.js("return document.activeElement?.id ?? ''").await;
    id.as_str().unwrap().to_owned()
}

/// Waits until a page is shown at this section.
async fn until_at(browser: &Browser, page: &str, section: &str) {
    let wanted = format!("{page}#{section}");
    browser
        .until(&format!("{wanted} is shown"), async || {
            address(browser).await == wanted && focused(browser).await == section
        })
        .await;
}

#[tokio::test]
async fn another_project_is_switched_to_at_the_same_section() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    assert!(
        !ada.text("main").await.contains("Another project"),
        "there is none"
    );
    ada.go("/team").await;
    // As long as titles of a hundred characters are.
    ada.type_in("Title", &format!("{}desk", "Billing ".repeat(12)))
        .await;
    ada.type_in("Name in addresses", "billing").await;
    ada.click("Make the project").await;
    ada.until_shown("Another project").await;
    ada.click("Members").await;
    until_at(&ada, "/team/projects/billing", "members").await;
    assert_eq!(barriers(&ada).await, Vec::<String>::new());
    // By keyboard alone, from the section up to the list.
    for _ in 0..60 {
        if focused(&ada).await == "other-project" {
            break;
        }
        let back = ada.driver.action_chain().key_down(Key::Shift);
        let back = back.send_keys(Key::Tab).key_up(Key::Shift);
        back.perform().await.unwrap();
    }
    assert_eq!(focused(&ada).await, "other-project");
    ada.press(Key::Tab).await;
    ada.press(Key::Enter).await;
    until_at(&ada, "/team/projects/help-desk", "members").await;
    ada.until_shown("Help desk").await;

    // From the page of what only one project has, to where the other lists such things; on a telephone, too.
    on_telephone(&ada).await;
    for project in ["help-desk", "billing"] {
        ada.go(&format!("/team/projects/{project}")).await;
        ada.until_shown("Another project").await;
        ada.until_shown("ada (you)").await;
        assert!(fits(&ada).await, "{project}");
        assert_eq!(barriers(&ada).await, Vec::<String>::new(), "{project}");
    }
    let files = TempDir::new().unwrap();
    let rows = files.path().join("rows.csv");
    std::fs::write(&rows, "question,answer\nwhat?,that\n").unwrap();
    ada.go("/team/projects/help-desk").await;
    ada.choose("Data set", &rows).await;
    ada.until_shown("rows.csv was taken in, 1 rows.").await;
    ada.click("rows.csv").await;
    ada.until_shown("All rows").await;
    ada.until_shown("Another project").await;
    assert!(fits(&ada).await);
    ada.click("Switch").await;
    until_at(&ada, "/team/projects/billing", "data").await;
}

/// Holds back what the server says of one's projects, counts what else is asked, and notes how high the bar of a project is drawn.
const HELD: &str = "const plain = window.fetch;
    window.underway = 0;
    window.heights = new Set();
    window.fetch = async (request, options) => {
        const path = new URL(request.url ?? request, location.href).pathname;
        if (path === '/api/projects' && !window.release)
            await new Promise((release) => { window.release = release; });
        window.underway += 1;
        try { return await plain(request, options); } finally { window.underway -= 1; }
    };
    const look = () => {
        const bar = document.querySelector('.project-bar');
        if (bar) window.heights.add(bar.offsetHeight);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);";

#[tokio::test]
async fn the_bar_of_a_project_is_as_high_before_its_switcher_could_come_as_with_it() {
    let (_folder, _server, ada, _) = team_of_ada().await;
    let another = "const headers = { 'content-type': 'application/json' };
        const body = JSON.stringify({ name: 'billing', title: 'Billing' });
        return (await fetch('/api/projects', { method: 'POST', headers, body })).status";
    assert_eq!(ada.js_async(another).await, json!(201));
    on_telephone(&ada).await;
    ada.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": HELD }))
        .await;
    ada.go("/team/projects/help-desk").await;
    ada.until("nothing but one's projects is waited for", async || {
        let waits = "return Boolean(window.release) && window.underway === 0";
        ada.js(waits).await == json!(true)
    })
    .await;
    let drawn = "const frame = () => new Promise((done) => requestAnimationFrame(done));
        await frame(); await frame();";
    ada.js_async(&format!("{drawn} window.release()")).await;
    ada.until_shown("Another project").await;
    ada.until_shown("ada (you)").await;
    let heights = ada.js_async(&format!("{drawn} return [...window.heights]")).await;
    assert_eq!(heights.as_array().unwrap().len(), 1, "{heights}");
}
