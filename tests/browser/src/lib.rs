//! A real browser, driven as a person would use it.

use std::mem::ManuallyDrop;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::common::command::{Command, ExtensionCommand};
use thirtyfour::prelude::*;
use thirtyfour::{
    BrowserCapabilitiesHelper, Capabilities, ChromeCapabilities, ChromiumLikeCapabilities,
    FirefoxCapabilities,
};

pub use thirtyfour::Key;

/// How long anything may take that a person would wait for, a whole search by an unoptimised page beside two other tests
/// included.
const PATIENCE: Duration = Duration::from_mins(4);

/// What people see of a page: whether an element is shown, its words, and the opening of what it is folded away in.
const SEEN: &str = "const isShown = (one) => one.offsetParent !== null && one.checkVisibility();
    const words = (one) => (one.innerText || one.textContent).trim();
    const isFolded = (one) => one.closest('details:not([open])') !== null;
    const unfold = (one) => {
        for (let fold; (fold = one.closest('details:not([open])')); fold.open = true) fold.querySelector('summary').click();
    };";

/// How long a browser that was killed may take to be gone.
const GOING: Duration = Duration::from_secs(10);

/// A browser with a fresh profile, so nothing is cached; closed when dropped.
pub struct Browser {
    /// What drives it.
    pub driver: ManuallyDrop<WebDriver>,
    /// Where the page is: scheme, host and port.
    pub page: String,
    webdriver: Child,
    /// Where it saves what it downloads.
    downloads: TempDir,
    /// Where it and its driver keep all else: the profile, and what would stay in the system's folder of temporary files.
    files: TempDir,
}

impl Browser {
    /// Starts a browser for the page at an address: Chromium, or Firefox where the environment says
    /// `CAPO_BROWSER=firefox`. `arguments` are Chromium's, which keeps these `logs`: `browser` for
    /// [`Browser::console`], `performance` for [`Browser::requests`]; Firefox takes the size of its window from them.
    ///
    /// # Panics
    /// When the browser or its driver is missing (`cargo xtask setup` installs them) or does not start.
    pub async fn start(page: &str, arguments: &[&str], logs: &[&str]) -> Self {
        let port = free_port();
        let (files, downloads) = (folder(), folder());
        let (program, capabilities): (_, Capabilities) = if is_firefox() {
            ("geckodriver", firefox(arguments, downloads.path()).into())
        } else {
            let profile = files.path().join("profile");
            let capabilities = chromium(arguments, logs, &profile, downloads.path());
            ("chromedriver", capabilities.into())
        };
        let mut webdriver = process::Command::new(program);
        webdriver
            .arg(format!("--port={port}"))
            .env("TMPDIR", files.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if is_firefox() {
            webdriver.arg("--profile-root").arg(files.path());
        }
        let webdriver = webdriver.process_group(0).spawn();
        let webdriver = webdriver.expect("the browser's driver starts; `cargo xtask setup` installs it");
        wait_for_port(port);
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), capabilities).await;
        let driver = driver.expect("the browser starts; `cargo xtask setup` installs it");
        Self {
            // Its own way to end asks a driver that is gone by then.
            driver: ManuallyDrop::new(driver),
            page: page.trim_end_matches('/').to_owned(),
            webdriver,
            downloads,
            files,
        }
    }

    /// Goes to a path of the page and waits until it can be used.
    pub async fn go(&self, path: &str) {
        let address = format!("{}{path}", self.page);
        self.driver.goto(address).await.expect("the page loads");
        self.ready().await;
    }

    /// Reloads the page and waits until it can be used.
    pub async fn reload(&self) {
        self.driver.refresh().await.expect("the page loads again");
        self.ready().await;
    }

    async fn ready(&self) {
        self.until("the page can be used", async || {
            self.js("return document.documentElement.dataset.ready === 'true'")
                .await
                == json!(true)
        })
        .await;
    }

    /// Waits until something holds.
    ///
    /// # Panics
    /// With what the page and its console show, when it does not come about in four minutes.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            if started.elapsed() > PATIENCE {
                let shown = self.text("body").await;
                // Firefox's driver does not tell.
                let console = if is_firefox() {
                    String::new()
                } else {
                    self.console().await
                };
                panic!("waited in vain until {what}; the page shows:\n{shown}\nand its console:\n{console}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the page's text holds `words`.
    pub async fn until_shown(&self, words: &str) {
        let script = "return document.body?.innerText.includes(arguments[0]) === true";
        self.until(&format!("it shows `{words}`"), async || {
            self.js_with(script, vec![json!(words)]).await == json!(true)
        })
        .await;
    }

    /// The text of the first element that a selector finds, empty while there is none.
    pub async fn text(&self, selector: &str) -> String {
        let script =
            "const found = document.querySelector(arguments[0]); return found ? found.innerText : ''";
        let text = self.js_with(script, vec![json!(selector)]).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first button or link of this name, waiting until there is one. What it is folded away in is opened first.
    pub async fn click(&self, name: &str) {
        let script = "const wanted = arguments[0];
            const all = [...document.querySelectorAll('button, a, summary, label, [role=button]')]
                .filter((one) => !one.disabled);
            const shown = all.filter(isShown);
            const found = shown.find((one) => words(one) === wanted)
                || shown.find((one) => words(one).startsWith(wanted))
                || all.find((one) => isFolded(one) && words(one) === wanted);
            if (!found) return false;
            if (!isShown(found)) unfold(found);
            if (!isShown(found)) return false;
            found.click();
            return true";
        let script = format!("{SEEN} {script}");
        self.until(&format!("there is a button `{name}`"), async || {
            self.js_with(&script, vec![json!(name)]).await == json!(true)
        })
        .await;
    }

    /// Clicks the first element that a selector finds, waiting until there is one.
    pub async fn click_at(&self, selector: &str) {
        let script = "const found = document.querySelector(arguments[0]);
            if (found) found.click();
            return Boolean(found)";
        self.until(&format!("there is `{selector}`"), async || {
            self.js_with(script, vec![json!(selector)]).await == json!(true)
        })
        .await;
    }

    /// Moves the pointer to the middle of the first element that a selector finds.
    ///
    /// # Panics
    /// When there is none.
    pub async fn point_at(&self, selector: &str) {
        // What is seen stays where it is: what the pointer is on does so, too.
        let into_view = "const found = document.querySelector(arguments[0]);
            const { x, y, width, height } = found.getBoundingClientRect();
            const seen = document.elementFromPoint(x + width / 2, y + height / 2);
            if (!found.contains(seen)) found.scrollIntoView({ block: 'center' })";
        self.js_with(into_view, vec![json!(selector)]).await;
        let found = self.driver.find(By::Css(selector)).await;
        let found = found.expect("what was there a moment ago");
        let chain = self.driver.action_chain().move_to_element_center(&found);
        chain.perform().await.expect("the pointer can be moved");
    }

    /// Chooses files in the file input of this name.
    ///
    /// # Panics
    /// When there is no such input.
    pub async fn choose(&self, label: &str, file: &Path) {
        let selector = format!("input[type=file][aria-label=\"{label}\"]");
        self.until(&format!("there is a file input `{label}`"), async || {
            self.js_with(
                "return document.querySelector(arguments[0]) !== null",
                vec![json!(selector)],
            )
            .await
                == json!(true)
        })
        .await;
        let input = self.driver.find(By::Css(selector)).await;
        let input = input.expect("the input that was there a moment ago");
        let path = file.to_str().expect("a path of text");
        input.send_keys(path).await.expect("a file can be chosen");
    }

    /// Types into the field of this accessible name, in place of what it holds. What it is folded away in is opened first.
    ///
    /// # Panics
    /// When there is no such field.
    pub async fn fill(&self, label: &str, text: &str) {
        let script = "const [label, text] = arguments;
            const labelled = [...document.querySelectorAll('label')].find((one) => words(one) === label);
            const field = document.querySelector(`[aria-label=\"${label}\"]`)
                || (labelled && (labelled.control || document.getElementById(labelled.htmlFor)));
            if (!field) return false;
            unfold(field);
            field.focus();
            field.value = text;
            field.dispatchEvent(new Event('input', { bubbles: true }));
            field.dispatchEvent(new Event('change', { bubbles: true }));
            return true";
        let script = format!("{SEEN} {script}");
        self.until(&format!("there is a field `{label}`"), async || {
            self.js_with(&script, vec![json!(label), json!(text)]).await == json!(true)
        })
        .await;
    }

    /// Types into the field of this accessible name key by key, in place of what it holds. What it is folded away in is
    /// opened first.
    ///
    /// # Panics
    /// When there is no such field, or it has not got what was typed and the focus in the end.
    pub async fn type_in(&self, label: &str, text: &str) {
        let find = "const label = arguments[0];
            const labelled = [...document.querySelectorAll('label')].filter((one) => words(one) === label)
                .map((one) => one.control || document.getElementById(one.htmlFor));
            const all = [...document.querySelectorAll(`[aria-label=\"${label}\"]`), ...labelled]
                .filter((one) => one && !one.disabled);
            const field = all.find(isShown) || all.find(isFolded);
            if (!field) return false;
            unfold(field);
            if (!isShown(field)) return false;
            field.focus();
            field.select();
            window.typedInto = field;
            return true";
        let find = format!("{SEEN} {find}");
        self.until(&format!("there is a field `{label}`"), async || {
            self.js_with(&find, vec![json!(label)]).await == json!(true)
        })
        .await;
        self.keys(text).await;
        let typed = "const one = window.typedInto;
            return [one.isConnected && document.activeElement === one, document.activeElement.value]";
        let typed = self.js(typed).await;
        assert_eq!(typed, json!([true, text]), "what was typed into `{label}`");
    }

    /// Presses the keys of a text one after another on whatever has the focus.
    pub async fn keys(&self, text: &str) {
        // A line break is the key that makes one.
        let keys = text.replace('\n', "\u{e007}");
        let chain = self.driver.action_chain().send_keys(keys);
        chain.perform().await.expect("keys can be pressed");
    }

    /// Runs a script in the page.
    pub async fn js(&self, script: &str) -> Value {
        self.js_with(script, Vec::new()).await
    }

    /// Runs a script in the page with `arguments`.
    ///
    /// # Panics
    /// When the script fails.
    pub async fn js_with(&self, script: &str, arguments: Vec<Value>) -> Value {
        let run = self.driver.execute(script, arguments).await;
        let value = run.unwrap_or_else(|error| panic!("{script}: {error}"));
        value.json().clone()
    }

    /// Runs an asynchronous script, which hands its result to `done`.
    ///
    /// # Panics
    /// When the script fails.
    pub async fn js_async(&self, script: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then(done, (error) => done('' + error))"
        );
        let run = self.driver.execute_async(script.clone(), Vec::new()).await;
        run.unwrap_or_else(|error| panic!("{script}: {error}"))
            .json()
            .clone()
    }

    /// Gives a command of the DevTools protocol to the page, and returns its answer.
    ///
    /// # Panics
    /// When the browser refuses it.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.chromium(
            "/goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
        .await
    }

    /// Presses a key on whatever has the focus.
    pub async fn press(&self, key: Key) {
        let chain = self.driver.action_chain().send_keys(key);
        chain.perform().await.expect("a key can be pressed");
    }

    /// What the page wrote to its console.
    pub async fn console(&self) -> String {
        self.log("browser").await.to_string()
    }

    /// The addresses asked for since the last look, those of the page's own frames included.
    pub async fn requests(&self) -> Vec<String> {
        let log = self.log("performance").await;
        let entries = log.as_array().cloned().unwrap_or_default();
        let address = |entry: &Value| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            (message["method"] == "Network.requestWillBeSent")
                .then(|| message["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        entries.iter().filter_map(address).collect()
    }

    async fn log(&self, kind: &'static str) -> Value {
        self.chromium("/se/log", json!({ "type": kind })).await
    }

    /// Asks the driver for what only Chromium's can.
    pub async fn chromium(&self, endpoint: &'static str, parameters: Value) -> Value {
        let extension = Extension { endpoint, parameters };
        let command = Command::ExtensionCommand(Box::new(extension));
        let answer = self.driver.handle().cmd(command).await;
        let answer = answer.unwrap_or_else(|error| panic!("{endpoint}: {error}"));
        answer.value_json().expect("the driver answers JSON")
    }

    /// The text of the only file downloaded so far whose name ends so, once it is whole.
    pub async fn downloaded(&self, ending: &str) -> String {
        let path = self.download(ending).await;
        std::fs::read_to_string(path).expect("a download can be read")
    }

    /// Where that file lies, as long as this browser.
    pub async fn download(&self, ending: &str) -> PathBuf {
        // Chromium makes an empty file of that name before it moves the whole one there.
        let holds = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
        let find = || {
            let entries = std::fs::read_dir(self.downloads.path()).expect("the folder of downloads");
            let mut names = entries.filter_map(|entry| Some(entry.ok()?.path()));
            names.find(|path| path.to_string_lossy().ends_with(ending) && holds(path))
        };
        self.until(&format!("a file *{ending} is downloaded"), async || {
            find().is_some()
        })
        .await;
        find().expect("the download that was there a moment ago")
    }
}

/// A command beyond the WebDriver standard.
#[derive(Debug)]
struct Extension {
    endpoint: &'static str,
    parameters: Value,
}

impl ExtensionCommand for Extension {
    fn parameters_json(&self) -> Option<Value> {
        Some(self.parameters.clone())
    }

    fn method(&self) -> Method {
        Method::POST
    }

    fn endpoint(&self) -> Arc<str> {
        self.endpoint.into()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver and the browser it started are a group; both may have ended already.
        let group = Pid::from_raw(self.webdriver.id().cast_signed());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.webdriver.wait();
        // The rest of the group may write until it has ended too.
        let started = Instant::now();
        while std::fs::remove_dir_all(self.files.path()).is_err()
            && self.files.path().exists()
            && started.elapsed() < GOING
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Whether the tests are to use Firefox.
pub fn is_firefox() -> bool {
    std::env::var_os("CAPO_BROWSER").is_some_and(|name| name == "firefox")
}

fn chromium(arguments: &[&str], logs: &[&str], profile: &Path, downloads: &Path) -> ChromeCapabilities {
    let mut capabilities = ChromeCapabilities::new();
    let profile = format!("--user-data-dir={}", profile.display());
    for argument in [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        // Containers have little shared memory.
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &profile,
    ]
    .iter()
    .chain(arguments)
    {
        capabilities.add_arg(argument).expect("an argument is text");
    }
    capabilities
        .add_experimental_option("prefs", json!({ "download.default_directory": downloads }))
        .expect("preferences are an object");
    let logs: serde_json::Map<_, _> = logs.iter().map(|log| ((*log).to_owned(), json!("ALL"))).collect();
    capabilities
        .set("goog:loggingPrefs", logs)
        .expect("logging preferences are an object");
    capabilities
}

fn firefox(arguments: &[&str], downloads: &Path) -> FirefoxCapabilities {
    let mut capabilities = FirefoxCapabilities::new();
    let size = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--window-size="));
    let size = size.and_then(|size| size.split_once(','));
    let size = size.map(|(width, height)| [format!("--width={width}"), format!("--height={height}")]);
    for argument in ["-headless".to_owned()]
        .into_iter()
        .chain(size.into_iter().flatten())
    {
        capabilities.add_arg(&argument).expect("an argument is text");
    }
    let preferences = json!({
        "browser.download.folderList": 2,
        "browser.download.dir": downloads,
        // What the tests of Chromium call by a name of another's.
        "network.dns.localDomains": "models.example",
    });
    capabilities
        .set_browser_option("prefs", preferences)
        .expect("preferences are an object");
    capabilities
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    listener.local_addr().expect("a bound address").port()
}

fn wait_for_port(port: u16) {
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            started.elapsed() < PATIENCE,
            "the browser's driver does not listen"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
